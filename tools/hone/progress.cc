#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "table.h"

namespace hone::tool {
namespace {

size_t terminal_columns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

// Of the kernels that were measured, with their multiplicity.
struct Totals {
  double best = 0, before = 0;  // seconds
  size_t measured = 0;
};

Totals totals(const search::TuneProgress& progress) {
  Totals totals;
  for (const search::TaskProgress& task : progress.tasks) {
    if (!(task.best_seconds > 0)) continue;
    totals.best += task.multiplicity * task.best_seconds;
    // A default schedule that does not run gains nothing that could be told.
    totals.before +=
        task.multiplicity * (task.default_seconds > 0 ? task.default_seconds : task.best_seconds);
    ++totals.measured;
  }
  return totals;
}

void write_stderr(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::string progress_text(const search::TuneProgress& progress) {
  std::string text;
  const Totals sum = totals(progress);
  if (sum.measured > 0) {
    text += fmt::format("best {} ({:.2f}x)", format_seconds(sum.best), sum.before / sum.best);
    if (sum.measured < progress.tasks.size()) {
      text += fmt::format(" of {}/{} kernels", sum.measured, progress.tasks.size());
    }
    text += ", ";
  }
  text +=
      fmt::format("{} trials, {:.1f}/s, {:.1f} s left", progress.trials, progress.trials_per_second,
                  std::max(0.0, progress.budget - progress.elapsed));
  if (progress.task >= 0 && progress.task < std::ssize(progress.tasks)) {
    text += fmt::format(", {}", progress.tasks[static_cast<size_t>(progress.task)].name);
  }
  return text;
}

std::string progress_bar(const search::TuneProgress& progress, size_t columns) {
  constexpr size_t kBar = 20;
  const double share =
      progress.budget > 0 ? std::clamp(progress.elapsed / progress.budget, 0.0, 1.0) : 0;
  const auto filled = static_cast<size_t>(std::lround(share * kBar));
  const std::string bar = fmt::format("[{}{}] {:3.0f}%  ", std::string(filled, '#'),
                                      std::string(kBar - filled, '-'), 100 * share);
  const std::string text = progress_text(progress);
  if (columns <= bar.size()) return text.substr(0, columns);
  return bar + text.substr(0, columns - bar.size());
}

ProgressDisplay::ProgressDisplay() : terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressDisplay::show(const search::TuneProgress& progress) {
  const double pause = terminal_ ? 0.1 : 1.0;
  if (last_shown_ >= 0 && progress.elapsed < last_shown_ + pause) return;
  last_shown_ = progress.elapsed;
  if (terminal_) {
    write_stderr(fmt::format("\r{}\x1b[K", progress_bar(progress, terminal_columns() - 1)));
    bar_shown_ = true;
  } else {
    write_stderr(fmt::format("{:.1f} s: {}\n", progress.elapsed, progress_text(progress)));
  }
}

void ProgressDisplay::finish() {
  if (bar_shown_) write_stderr("\n");
  bar_shown_ = false;
}

}  // namespace hone::tool
