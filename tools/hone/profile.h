// tools/hone/profile.h - `run --profile`: where the time of a model goes, kernel by kernel. Tasks
// that run the same code are one line, whatever phases they consist of.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/model.h"

#include "json_text.h"
#include "limits.h"

namespace hone::tool {

struct KernelTime {
  std::string name;  // of the first task that runs it
  std::string kernel_class;
  int calls = 0;       // in one run
  double seconds = 0;  // of all calls in one run, the mean over runs
  double flops = 0;    // of all calls in one run
  Limit limit;         // of all calls in one run
};

class Profile {
 public:
  // `is_whole`: the inputs have their largest shapes. What steps say of their arithmetic is that of
  // these, and not known of others.
  explicit Profile(Limits limits = {}, bool is_whole = true)
      : limits_(std::move(limits)), is_whole_(is_whole) {}
  // The steps of one more run of the same model.
  void add_run(std::span<const StepTime> steps);
  [[nodiscard]] int runs() const { return runs_; }
  [[nodiscard]] std::vector<KernelTime> kernels() const;  // the longest first
  [[nodiscard]] std::string text() const;                 // a table
  [[nodiscard]] Json json() const;

 private:
  Limits limits_;
  bool is_whole_;
  int runs_ = 0;
  std::vector<StepTime> steps_;  // seconds are sums over runs
};

}  // namespace hone::tool
