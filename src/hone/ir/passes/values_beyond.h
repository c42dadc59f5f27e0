// ir/passes/values_beyond.h - finds known numbers beyond the sizes of a run: a mask is false there,
// scores with a mask are minus infinity and their weights 0. Such terms of a reduction change
// nothing, so it may end early.
//
// All other elements beyond the sizes count as finite, and so do results of reductions: 0 * x is 0,
// and -inf + x is -inf. The graph is made so that its results do not depend on what lies beyond.
#pragma once

#include <map>

#include "hone/ir/passes/size_limits.h"

namespace hone::ir {

// Elements of a buffer that are beyond the limit have this value.
struct KnownBeyond {
  SizeLimit limit;
  double value = 0;
};

// Facts about the params of a program.
struct SizeOperands {
  std::map<const Buffer*, std::vector<KnownBeyond>> beyond;
  // Buffers whose element i is the size `forms[i]`; -1 stands for something else.
  std::map<const Buffer*, std::vector<int>> sizes;
  // Constants whose element i is i / inner % most.
  struct Places {
    int64_t inner = 1, most = 1;
  };
  std::map<const Buffer*, Places> places;
};

// Terms of a reduction whose index is `unit * size - offset` or more change nothing.
struct ReductionEnd {
  int form = 0;
  int64_t unit = 1, offset = 0;
  bool operator==(const ReductionEnd&) const = default;
};

class ValuesBeyond {
 public:
  // The program is a naive one (compute/naive.cc): each of its buffers has one store, or, as the
  // result of a reduction, one and an update.
  ValuesBeyond(const Program& program, SizeOperands operands);
  [[nodiscard]] const SizeOperands& known() const { return known_; }
  // Returns where the reduction that makes a buffer ends, if it has one axis and ends early.
  [[nodiscard]] std::optional<ReductionEnd> end_of(const BufferPtr& buffer) const;
  // Returns when a condition can be true (or false): only if all of these hold.
  [[nodiscard]] std::vector<Need> needs_of(const Expr& condition, bool holds,
                                           const Ranges& ranges) const;
  // Returns the form of the size that an expression is.
  [[nodiscard]] std::optional<int> form_of(const Expr& e, const Ranges& ranges) const;

 private:
  struct Site {
    const StmtNode* store = nullptr;
    std::vector<const StmtNode*> around;
  };
  void collect(const StmtNode& s, std::vector<const StmtNode*>& around);
  void follow(const Buffer* buffer, const std::vector<Site>& sites);
  void follow_points(const Buffer* buffer, const Site& site);
  void follow_reduction(const Buffer* buffer, const Site& init, const Site& update);
  [[nodiscard]] std::vector<Need> marks_of(const Expr& value, const Ranges& ranges) const;
  [[nodiscard]] std::optional<Need> mark_of(const Expr& comparison, const Ranges& ranges) const;
  [[nodiscard]] std::optional<double> evaluate(const Expr& e, const Need& beyond,
                                               const Ranges& ranges) const;

  SizeOperands known_;
  std::map<const Buffer*, ReductionEnd> ends_;
  std::map<const Buffer*, std::vector<Site>> sites_;
};

}  // namespace hone::ir
