// measure/runner.h - runs candidates and returns their times. A bad candidate is an ordinary
// answer; an error means that nothing can be measured at all.
#pragma once

#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/measure/job.h"

namespace hone::measure {

class Runner {
 public:
  virtual ~Runner() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Submits a batch and returns at once, so that the caller can prepare the next one meanwhile.
  [[nodiscard]] virtual Status submit(std::vector<Job> batch) = 0;
  // Waits for everything that was submitted and returns the answers in that order.
  [[nodiscard]] virtual Result<std::vector<Measurement>> collect() = 0;
  // Drops jobs that have not been measured yet, so that collect() returns at once. It may be called
  // from any thread, but not from a signal handler. The next submit() starts anew.
  virtual void cancel() = 0;
};

}  // namespace hone::measure
