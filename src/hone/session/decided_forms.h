// session/decided_forms.h - numbers of elements that data decide (graph/decided_sizes.h) as sizes
// of a run: forms behind those of graph::Varying. A kernel reads one where an earlier call wrote
// it.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "hone/graph/tasks.h"
#include "hone/session/needed_parts.h"

namespace hone {

class DecidedForms {
 public:
  explicit DecidedForms(const graph::TaskList& tasks);

  // Returns whether a form is one of these.
  [[nodiscard]] bool contains(int form) const { return form >= first_; }
  // Leaves out limits of a call by such sizes that no call before it has written, or that are more
  // than a kernel can number.
  void leave_out_unknown(int call, KernelLimits& limits) const;
  // Returns the buffers in which a call finds the sizes of its limits.
  [[nodiscard]] std::set<int> buffers_of(int call, const KernelLimits& limits) const;
  // Numbers the sizes of limits that leave_out_unknown() kept as the call's kernel reads them, so
  // that calls with sizes of their own share it. Returns the buffers where they are
  // (TaskCall::sizes).
  [[nodiscard]] std::vector<int> number_for(int call, KernelLimits& limits) const;
  // Returns the sizes of the inputs with these behind them. They may be below 0 there.
  [[nodiscard]] const graph::Varying& all() const { return all_; }
  // Returns the forms that the elements of buffers are; -1 stands for something else.
  [[nodiscard]] const std::map<Place, std::vector<int>>& of_places() const { return of_places_; }

 private:
  struct Written {
    graph::DecidedPlace place;
    int64_t elements = 0;  // number of those that the buffer has
    int call = 0;          // the last one that writes the buffer
  };
  // Returns where a call finds the size, which some call before it has written; or null.
  [[nodiscard]] const Written* find(int form, int call) const;

  int first_ = 0;
  graph::Varying all_;
  std::vector<std::vector<Written>> written_;  // per form, from `first_` on, the earliest first
  std::map<Place, std::vector<int>> of_places_;
};

}  // namespace hone
