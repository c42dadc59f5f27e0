// search/noisy_runner_testing.h - for tests: a machine that exists only as numbers, with the noise
// of a real one: jitter, heavy-tailed interruptions, bursts in which everything is slow, and a slow
// drift of 30%. The timing, duels and statistics are the real ones.
#pragma once

#include <cmath>
#include <functional>
#include <utility>

#include "hone/base/clock.h"
#include "hone/base/hash.h"
#include "hone/base/rng.h"
#include "hone/measure/runner.h"

namespace hone::search {

struct Noise {
  double jitter = 0.01;
  // Share of samples; their length has a Pareto distribution without a variance.
  double interruptions = 0.05;
  double drift = 0.3;        // share by which the machine is slower at worst than at best
  double drift_period = 20;  // seconds of one slow drift back and forth
  double burst_every = 0.5, burst_seconds = 0.03, burst_factor = 2.5;  // mean gap and length
  // The largest share by which code takes longer in one of two memories
  // (measure::Job::swap_memory). It is drawn anew for each job and memory after so many seconds.
  double memory = 0, memory_seconds = 5;
};

class NoisyRunner final : public measure::Runner {
 public:
  // `seconds` returns the seconds of a job on a quiet machine.
  NoisyRunner(uint64_t seed, ManualClock& clock, std::function<double(const measure::Job&)> seconds,
              const Noise& noise = {})
      : rng_(seed), clock_(clock), seconds_(std::move(seconds)), noise_(noise) {}

  [[nodiscard]] std::string_view name() const override { return "noisy"; }
  [[nodiscard]] Status submit(std::vector<measure::Job> batch) override {
    for (const measure::Job& job : batch) done_.push_back(measure(job));
    return ok_status();
  }
  [[nodiscard]] Result<std::vector<measure::Measurement>> collect() override {
    return std::exchange(done_, {});
  }
  void cancel() override {}
  [[nodiscard]] int duels() const { return duels_; }

 private:
  [[nodiscard]] measure::Measurement measure(const measure::Job& job) {
    clock_.advance(0.03);  // to build and load it
    measure::Measurement m{.id = job.id};
    if (job.rival != nullptr) {
      ++duels_;
      m.duel =
          measure::duel(runs(job, job.swap_memory), runs(*job.rival, !job.swap_memory), job.duel);
      m.timing.samples = m.duel.challenger;
      trial::summarise(m.timing);
    } else {
      m.timing = measure::time_adaptively(runs(job, false), job.timing);
    }
    m.verified = job.tolerance > 0;
    return m;
  }

  [[nodiscard]] double memory_factor(uint64_t id, bool second) const {
    const auto period = static_cast<uint64_t>(clock_.now_seconds() / noise_.memory_seconds);
    const uint64_t luck = hash_combine(hash_combine(id, period), second ? 1 : 0);
    return 1 + noise_.memory * static_cast<double>(luck % 1024) / 1023;
  }

  [[nodiscard]] std::function<double(int64_t)> runs(const measure::Job& job, bool second) {
    return [this, quiet = seconds_(job) * memory_factor(job.id, second)](int64_t n) {
      const double now = clock_.now_seconds();
      while (now >= burst_end_) {
        burst_begin_ = burst_end_ - noise_.burst_every * std::log(1 - rng_.uniform());
        burst_end_ = burst_begin_ - noise_.burst_seconds * std::log(1 - rng_.uniform());
        burst_ = 1 + (noise_.burst_factor - 1) * rng_.uniform();
      }
      double seconds = quiet * static_cast<double>(n);
      seconds *= 1 + noise_.drift / 2 * (1 - std::cos(2 * M_PI * now / noise_.drift_period));
      seconds *= 1 + noise_.jitter * std::abs(rng_.normal());
      if (now >= burst_begin_) seconds *= burst_;
      if (rng_.chance(noise_.interruptions)) seconds *= std::pow(1 - rng_.uniform(), -1 / 1.5);
      clock_.advance(seconds);
      return seconds;
    };
  }

  Rng rng_;
  ManualClock& clock_;
  std::function<double(const measure::Job&)> seconds_;
  Noise noise_;
  double burst_begin_ = 0, burst_end_ = 0, burst_ = 1;
  std::vector<measure::Measurement> done_;
  int duels_ = 0;
};

}  // namespace hone::search
