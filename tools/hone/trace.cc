#include "trace.h"

#include <fmt/format.h>

#include <algorithm>

namespace hone::tool {
namespace {

constexpr int kProcess = 1;
constexpr int kSteps = 0;  // the row of whole steps; that of thread t is t + 1

Json event(const StepTime& step, int number, int row, double begin, double seconds) {
  Json arguments = {{"step", number}, {"kernel", step.kernel_class}};
  if (step.flops > 0) arguments["flops"] = step.flops;
  if (step.bytes > 0) arguments["bytes"] = step.bytes;
  return {{"name", step.name},
          {"cat", step.kernel_class},
          {"ph", "X"},
          {"pid", kProcess},
          {"tid", row},
          {"ts", begin * 1e6},
          {"dur", seconds * 1e6},
          {"args", std::move(arguments)}};
}

Json label(const char* what, int row, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", kProcess}, {"tid", row}, {"args", {{"name", name}}}};
}

}  // namespace

void Trace::add_run(double begin, std::span<const StepTime> steps,
                    std::span<const ThreadWork> work) {
  double at = begin;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].seconds <= 0) continue;  // it did not run
    events_.push_back(event(steps[i], static_cast<int>(i), kSteps, at, steps[i].seconds));
    at += steps[i].seconds;
  }
  for (const ThreadWork& part : work) {
    if (part.step < 0 || static_cast<size_t>(part.step) >= steps.size()) continue;
    events_.push_back(event(steps[static_cast<size_t>(part.step)], part.step, part.thread + 1,
                            begin + part.begin, part.end - part.begin));
    threads_ = std::max(threads_, part.thread + 1);
  }
}

Json Trace::json() const {
  Json events = Json::array();
  events.push_back(label("process_name", kSteps, model_));
  events.push_back(label("thread_name", kSteps, "steps"));
  for (int thread = 0; thread < threads_; ++thread)
    events.push_back(label("thread_name", thread + 1, fmt::format("thread {}", thread)));
  for (const Json& one : events_) events.push_back(one);
  return {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
}

}  // namespace hone::tool
