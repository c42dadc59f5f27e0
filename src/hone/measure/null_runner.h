// measure/null_runner.h - a runner without a device, whose times come from a function. Jobs and
// answers are like those of others, so a whole tune can run with it in tests.
#pragma once

#include <functional>

#include "hone/measure/runner.h"

namespace hone::measure {

class NullRunner final : public Runner {
 public:
  // Returns the seconds of a job, or why it fails (kTimeout is a timeout, other codes are crashes).
  using Cost = std::function<Result<double>(const Job&)>;
  // collect() waits this long for each job, as a device would need time for it.
  explicit NullRunner(Cost cost, double wait_seconds = 0)
      : cost_(std::move(cost)), wait_seconds_(wait_seconds) {}

  [[nodiscard]] std::string_view name() const override { return "null"; }
  [[nodiscard]] Status submit(std::vector<Job> batch) override;
  [[nodiscard]] Result<std::vector<Measurement>> collect() override;
  void cancel() override {}  // has no effect

 private:
  Cost cost_;
  double wait_seconds_;
  std::vector<Measurement> done_;
};

}  // namespace hone::measure
