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

double total(const search::TuneProgress& progress, double search::TaskProgress::*seconds) {
  double sum = 0;
  for (const search::TaskProgress& task : progress.tasks) {
    if (!(task.*seconds > 0)) return 0;
    sum += task.multiplicity * (task.*seconds);
  }
  return sum;
}

void write_stderr(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

double best_total(const search::TuneProgress& progress) {
  return total(progress, &search::TaskProgress::best_seconds);
}
double default_total(const search::TuneProgress& progress) {
  return total(progress, &search::TaskProgress::default_seconds);
}

std::string progress_text(const search::TuneProgress& progress) {
  std::string text;
  const double best = best_total(progress), before = default_total(progress);
  if (best > 0) {
    text += fmt::format("best {}", format_seconds(best));
    if (before > 0) text += fmt::format(" ({:.2f}x)", before / best);
    text += ", ";
  } else {
    const auto known =
        std::count_if(progress.tasks.begin(), progress.tasks.end(),
                      [](const search::TaskProgress& t) { return t.best_seconds > 0; });
    text += fmt::format("{} of {} kernels measured, ", known, progress.tasks.size());
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
