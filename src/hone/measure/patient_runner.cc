#include "hone/measure/patient_runner.h"

#include <algorithm>
#include <utility>

namespace hone::measure {
namespace {

class PatientRunner final : public Runner {
 public:
  PatientRunner(std::unique_ptr<Runner> inner, CoreWatch& watch, double deadline)
      : inner_(std::move(inner)), watch_(watch), deadline_(deadline) {}

  [[nodiscard]] std::string_view name() const override { return inner_->name(); }
  [[nodiscard]] Status submit(std::vector<Job> batch) override {
    const bool threads =
        std::any_of(batch.begin(), batch.end(), [](const Job& job) { return job.threads > 1; });
    if (threads) watch_.wait(deadline_);
    return inner_->submit(std::move(batch));
  }
  [[nodiscard]] Result<std::vector<Measurement>> collect() override { return inner_->collect(); }
  void cancel() override { inner_->cancel(); }

 private:
  std::unique_ptr<Runner> inner_;
  CoreWatch& watch_;
  double deadline_;
};

}  // namespace

std::unique_ptr<Runner> make_patient_runner(std::unique_ptr<Runner> inner, CoreWatch& watch,
                                            double deadline) {
  return std::make_unique<PatientRunner>(std::move(inner), watch, deadline);
}

}  // namespace hone::measure
