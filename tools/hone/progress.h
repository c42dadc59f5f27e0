// tools/hone/progress.h - what a person sees while a model is tuned, on stderr: a bar that is
// rewritten in place on a terminal, else a line at most once a second.
#pragma once

#include <string>

#include "hone/search/tune_tasks.h"

namespace hone::tool {

// "best 12.1 ms (1.84x), 342 trials, 17.1/s, 39.9 s left, conv2d". The time is that of one run of
// the model with the best schedule of each kernel, and its gain over the default ones; while
// kernels are not measured yet, of the others: "best 2.1 ms (1.2x) of 3/20 kernels".
[[nodiscard]] std::string progress_text(const search::TuneProgress& progress);
// The same after a bar, at most `columns` wide.
[[nodiscard]] std::string progress_bar(const search::TuneProgress& progress, size_t columns);

class ProgressDisplay {
 public:
  ProgressDisplay();
  ~ProgressDisplay() { finish(); }
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;
  void show(const search::TuneProgress& progress);
  void finish();  // leaves the terminal on a fresh line

 private:
  bool terminal_;
  bool bar_shown_ = false;
  double last_shown_ = -1;  // progress.elapsed
};

}  // namespace hone::tool
