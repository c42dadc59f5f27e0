#include "hone/measure/null_runner.h"

#include <chrono>
#include <thread>
#include <utility>

namespace hone::measure {

Status NullRunner::submit(std::vector<Job> batch) {
  for (const Job& job : batch) {
    const Result<double> cost = cost_(job);
    if (!cost.ok()) {
      const bool late = cost.status().code() == Code::kTimeout;
      done_.push_back(failed(job.id, late ? trial::Outcome::kTimeout : trial::Outcome::kCrash,
                             cost.status().message()));
      continue;
    }
    Measurement m{.id = job.id};
    m.timing = {.samples = {*cost},
                .centre = *cost,
                .low = *cost,
                .high = *cost,
                .runs = 1,
                .stopped_early = *cost > job.timing.best * job.timing.stop_ratio};
    if (job.rival != nullptr) {
      const Result<double> rival = cost_(*job.rival);
      const size_t pairs = 7;
      m.duel = {std::vector(pairs, *cost), std::vector(pairs, rival.ok() ? *rival : *cost)};
    }
    m.verified = job.tolerance > 0;
    done_.push_back(std::move(m));
  }
  return ok_status();
}

Result<std::vector<Measurement>> NullRunner::collect() {
  const double seconds = wait_seconds_ * static_cast<double>(done_.size());
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return std::exchange(done_, {});
}

}  // namespace hone::measure
