// measure/null_runner.h - a runner without a device: the cost is what a function says. Same jobs,
// same answers: a whole tune runs with it in tests.
#pragma once

#include <functional>

#include "hone/measure/runner.h"

namespace hone::measure {

class NullRunner final : public Runner {
 public:
  // Seconds of a job, or why it fails (kTimeout: as a timeout, other codes: as a crash).
  using Cost = std::function<Result<double>(const Job&)>;
  explicit NullRunner(Cost cost) : cost_(std::move(cost)) {}

  [[nodiscard]] std::string_view name() const override { return "null"; }
  [[nodiscard]] Status submit(std::vector<Job> batch) override;
  [[nodiscard]] Result<std::vector<Measurement>> collect() override;
  void cancel() override {}  // nothing ever waits

 private:
  Cost cost_;
  std::vector<Measurement> done_;
};

}  // namespace hone::measure
