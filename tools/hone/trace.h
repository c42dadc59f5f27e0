// tools/hone/trace.h - `run --trace`: the steps of a model on its threads as JSON that
// chrome://tracing and ui.perfetto.dev open ("Trace Event Format").
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/model.h"

#include "json_text.h"

namespace hone::tool {

class Trace {
 public:
  explicit Trace(std::string model) : model_(std::move(model)) {}
  // Adds a run that began at this time, in seconds since the first one. Without `work`, as on a
  // GPU, only the times of the steps are known, and they follow each other without gaps.
  void add_run(double begin, std::span<const StepTime> steps, std::span<const ThreadWork> work);
  [[nodiscard]] Json json() const;

 private:
  std::string model_;
  int threads_ = 0;  // that had work
  std::vector<Json> events_;
};

}  // namespace hone::tool
