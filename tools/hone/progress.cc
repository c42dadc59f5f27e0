#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "hone/base/printable.h"
#include "hone/base/status.h"

#include "table.h"

namespace hone::tool {
namespace {

constexpr size_t kTableRows = 10;

winsize terminal_size() {
  winsize size = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  if (!known || size.ws_col < 20) size.ws_col = 80;
  if (!known || size.ws_row == 0) size.ws_row = 24;
  return size;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

// Of the kernels that were measured, with their multiplicity.
struct Totals {
  double best = 0, before = 0;  // seconds
  size_t measured = 0;
};

Totals totals(const TuneProgress& progress) {
  Totals totals;
  for (const TaskProgress& task : progress.tasks) {
    if (!(task.best_seconds > 0)) continue;
    totals.best += task.multiplicity * task.best_seconds;
    // A default schedule that does not run gains nothing that could be told.
    totals.before +=
        task.multiplicity * (task.untuned_seconds > 0 ? task.untuned_seconds : task.best_seconds);
    ++totals.measured;
  }
  return totals;
}

}  // namespace

void write_stderr(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string progress_text(const TuneProgress& progress) {
  std::string text;
  const Totals sum = totals(progress);
  if (sum.measured > 0) {
    text += fmt::format("best {} ({:.2f}x)", format_seconds(sum.best), sum.before / sum.best);
    if (sum.measured < progress.tasks.size()) {
      text += fmt::format(" of {}/{} kernels", sum.measured, progress.tasks.size());
    }
    text += ", ";
  }
  text += fmt::format("{} trials, {:.1f}/s, {:.1f} s left", progress.trials,
                      progress.trials_per_second, progress.left);
  if (!progress.stage.empty()) text += fmt::format(", {}", progress.stage);
  if (progress.task >= 0 && progress.task < std::ssize(progress.tasks)) {
    text += ", " + printable(progress.tasks[static_cast<size_t>(progress.task)].name);
  }
  return text;
}

std::string progress_bar(const TuneProgress& progress, size_t columns) {
  constexpr size_t kBar = 20;
  const double share =
      progress.budget > 0 ? std::clamp(progress.elapsed / progress.budget, 0.0, 1.0) : 0;
  const auto filled = static_cast<size_t>(std::lround(share * kBar));
  const std::string bar = fmt::format("[{}{}] {:3.0f}%  ", std::string(filled, '#'),
                                      std::string(kBar - filled, '-'), 100 * share);
  const std::string text = progress_text(progress);
  if (columns <= bar.size()) return std::string(whole_characters(text, columns));
  return bar + std::string(whole_characters(text, columns - bar.size()));
}

std::string progress_table(const TuneProgress& progress, size_t rows) {
  std::vector<const TaskProgress*> order;
  for (const TaskProgress& task : progress.tasks) order.push_back(&task);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->share > b->share; });
  if (order.size() > rows) order.resize(rows);
  Table table({"kernel", "count", "best", "of limit", "share", "gain in 10 s"});
  for (const TaskProgress* task : order) {
    const bool limited = task->best_seconds > 0 && task->bound_seconds > 0;
    table.add({shorten(task->name, 32), fmt::format("{:g}", task->multiplicity),
               format_seconds(task->best_seconds),
               limited ? percent(std::min(1.0, task->bound_seconds / task->best_seconds)) : "-",
               percent(task->share), task->at_limit ? "done" : percent(task->expected_gain)});
  }
  return table.text();
}

ProgressDisplay::ProgressDisplay() : terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressDisplay::show(const TuneProgress& progress) {
  const double pause = terminal_ ? 0.1 : 1.0;
  // Lines begin after a pause, so that bad input is one line.
  const double shown = terminal_ ? last_shown_ : std::max(last_shown_, 0.0);
  const bool shown_now = shown >= 0 && progress.elapsed < shown + pause;
  const bool new_stage = terminal_ && progress.stage != last_stage_;
  if (shown_now && !new_stage) return;
  last_shown_ = progress.elapsed;
  last_stage_ = progress.stage;
  if (terminal_) {
    draw(progress);
  } else {
    write_stderr(fmt::format("{:.1f} s: {}\n", progress.elapsed, progress_text(progress)));
  }
}

void ProgressDisplay::draw(const TuneProgress& progress) {
  const winsize size = terminal_size();
  const size_t columns = size.ws_col - 1U;
  // Header, rule and bar need three lines; the cursor can go up no further than the first one.
  const size_t rows = size.ws_row > 6 ? std::min<size_t>(kTableRows, size.ws_row - 4U) : 0;
  std::string text = "\r";
  if (lines_above_ > 0) text += fmt::format("\x1b[{}A", lines_above_);
  size_t lines = 0;
  const std::string table = rows > 0 ? progress_table(progress, rows) : "";
  for (size_t begin = 0; begin < table.size(); ++lines) {
    const size_t end = table.find('\n', begin);
    const std::string_view line = std::string_view(table).substr(begin, end - begin);
    text += std::string(whole_characters(line, columns)) + "\x1b[K\n";
    begin = end + 1;
  }
  lines_above_ = lines;
  write_stderr(text + progress_bar(progress, columns) + "\x1b[K\x1b[J");
  bar_shown_ = true;
}

void ProgressDisplay::finish() {
  if (bar_shown_) write_stderr("\n");
  bar_shown_ = false;
}

}  // namespace hone::tool
