#include "dataset_progress.h"

#include <unistd.h>

#include "hone/base/printable.h"

#include "command.h"
#include "progress.h"
#include "table.h"

namespace hone::tool {
namespace {

constexpr double kProgressSeconds = 5;  // between two lines where no terminal is

std::string describe(const DatasetProgress& p) {
  return fmt::format("{}/{} schedules, {} records, {:.1f}/s, {} left, {} on {}, {} thread{}",
                     p.stored, p.wanted, p.records, p.rate, format_seconds(p.left),
                     shorten(p.task, 30), p.device, p.threads, p.threads == 1 ? "" : "s");
}

}  // namespace

void print_variant(const ModelVariant& variant) {
  const std::string name = printable(fmt::format("{} {}", variant.model, variant.text));
  if (variant.status.ok())
    write_stderr(fmt::format("{}: {} tasks, {} of them new\n", name, variant.tasks, variant.added));
  else
    write_stderr(fmt::format("{}: left out: {}\n", name,
                             one_line(printable_lines(variant.status.message()))));
}

DatasetProgressDisplay::DatasetProgressDisplay()
    : terminal_(isatty(STDERR_FILENO) == 1), last_(-kProgressSeconds) {}

void DatasetProgressDisplay::show(const DatasetProgress& progress) {
  if (!terminal_ && progress.elapsed - last_ < kProgressSeconds) return;
  last_ = progress.elapsed;
  const std::string line = printable(describe(progress));
  write_stderr(terminal_ ? "\r\x1b[K" + line : line + "\n");
}

void DatasetProgressDisplay::finish() const {
  if (terminal_) write_stderr("\n");
}

}  // namespace hone::tool
