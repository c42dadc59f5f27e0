#include "trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hone::tool {
namespace {

// Viewers take thread 0 for the idle one; Perfetto drew it and thread 1 in one row until August
// 2025. The thread with the number of its process is the main one, whose row is the first.
constexpr int kProcess = 1;
constexpr int kSteps = 1;  // the row of whole steps; that of thread t is t + 2

int row_of_thread(int thread) { return kSteps + 1 + thread; }

// Viewers cut times in microseconds to whole nanoseconds, and Perfetto drops what then begins
// within another step of its row (its statistic slice_drop_overlapping_complete_event). So times
// are whole nanoseconds here; half of one more keeps a start from being cut to the nanosecond
// before.
constexpr double kHalfNanosecond = 0.0005;
double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }
int64_t nanoseconds(double seconds) { return static_cast<int64_t>(std::floor(seconds * 1e9)); }

Json event(const StepTime& step, int number, int row, double begin, double end) {
  const int64_t start = nanoseconds(begin);
  Json arguments = {{"step", number}, {"kernel", step.kernel_class}};
  if (step.flops > 0) arguments["flops"] = step.flops;
  if (step.bytes > 0) arguments["bytes"] = step.bytes;
  return {{"name", step.name.empty() ? step.kernel_class : step.name},
          {"cat", step.kernel_class},
          {"ph", "X"},
          {"pid", kProcess},
          {"tid", row},
          {"ts", microseconds(start) + kHalfNanosecond},
          {"dur", microseconds(nanoseconds(end) - start)},
          {"args", std::move(arguments)}};
}

// Returns an event of metadata.
Json label(const char* what, int row, Json arguments) {
  return {{"name", what}, {"ph", "M"}, {"pid", kProcess},
          {"tid", row},   {"ts", 0},   {"args", std::move(arguments)}};
}

// Adds the name of a row, and its place among the others.
void add_row(Json& events, int row, const std::string& name) {
  events.push_back(label("thread_name", row, {{"name", name}}));
  events.push_back(label("thread_sort_index", row, {{"sort_index", row}}));
}

}  // namespace

void Trace::add_run(double begin, std::span<const StepTime> steps,
                    std::span<const ThreadWork> work) {
  double at = begin;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].seconds <= 0) continue;  // it did not run
    const double end = at + steps[i].seconds;
    events_.push_back(event(steps[i], static_cast<int>(i), kSteps, at, end));
    at = end;
  }
  for (const ThreadWork& part : work) {
    if (part.step < 0 || static_cast<size_t>(part.step) >= steps.size()) continue;
    events_.push_back(event(steps[static_cast<size_t>(part.step)], part.step,
                            row_of_thread(part.thread), begin + part.begin, begin + part.end));
    threads_ = std::max(threads_, part.thread + 1);
  }
}

Json Trace::json() const {
  Json events = Json::array();
  events.push_back(label("process_name", kSteps, {{"name", model_}}));
  add_row(events, kSteps, "steps");
  for (int thread = 0; thread < threads_; ++thread)
    add_row(events, row_of_thread(thread), fmt::format("thread {}", thread));
  for (const Json& one : events_) events.push_back(one);
  return {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
}

}  // namespace hone::tool
