// measure/runner.h - runs candidates and says how fast they were. A bad candidate is an ordinary
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
  // Returns at once: the batch runs while the caller prepares the next one.
  [[nodiscard]] virtual Status submit(std::vector<Job> batch) = 0;
  // Waits for all that was submitted and returns the answers in that order.
  [[nodiscard]] virtual Result<std::vector<Measurement>> collect() = 0;
  // Drops what has not been measured yet: collect() returns the rest at once. From any thread, not
  // from a signal handler. The next submit() starts afresh.
  virtual void cancel() = 0;
};

}  // namespace hone::measure
