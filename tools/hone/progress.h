// tools/hone/progress.h - what a person sees while a model is tuned, on stderr: on a terminal a
// table of the kernels that cost most and a bar, rewritten in place, else a line at most once a
// second.
#pragma once

#include <string>

#include "hone/progress.h"

namespace hone::tool {

// "best 12.1 ms (1.84x), 342 trials, 17.1/s, 39.9 s left, conv2d". The time is that of one run of
// the model with the best schedule of each kernel, and its gain over the default ones; while
// kernels are not measured yet, of the others: "best 2.1 ms (1.2x) of 3/20 kernels". After the
// search what is done then takes the kernel's place.
[[nodiscard]] std::string progress_text(const TuneProgress& progress);
// The same after a bar, at most `columns` wide.
[[nodiscard]] std::string progress_bar(const TuneProgress& progress, size_t columns);
// The kernels with the largest shares of the model, `rows` of them at most: best time, how much of
// the limit that is ("-" while not measured), share of the model, and what part of the model's time
// ten more seconds on it may save ("done" at its limit).
[[nodiscard]] std::string progress_table(const TuneProgress& progress, size_t rows);

// To stderr at once. Whether it arrives changes nothing.
void write_stderr(const std::string& text);

class ProgressDisplay {
 public:
  ProgressDisplay();
  ~ProgressDisplay() { finish(); }
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;
  void show(const TuneProgress& progress);
  void finish();  // leaves the terminal on a fresh line

 private:
  void draw(const TuneProgress& progress);

  bool terminal_;
  bool bar_shown_ = false;
  size_t lines_above_ = 0;       // of the table, above the bar
  double last_shown_ = -1;       // progress.elapsed
  std::string_view last_stage_;  // progress.stage
};

}  // namespace hone::tool
