// base/clock.h - time behind an interface, so that budgets and time-outs can be tested without
// waiting. Seconds are monotonic and count from an arbitrary start. All clocks are safe to use from
// many threads.
#pragma once

#include <mutex>

namespace hone {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual double now_seconds() const = 0;
  virtual void sleep(double seconds) = 0;  // returns at once for seconds <= 0
};

// The machine's monotonic clock.
[[nodiscard]] Clock& real_clock();

// CPU time of the calling thread: others on the machine do not count.
[[nodiscard]] double thread_seconds();

// Stands still but for advance() and sleep().
class ManualClock : public Clock {
 public:
  explicit ManualClock(double start = 0) : now_(start) {}
  [[nodiscard]] double now_seconds() const override;
  void sleep(double seconds) override { advance(seconds > 0 ? seconds : 0); }
  void advance(double seconds);  // seconds >= 0

 private:
  mutable std::mutex mutex_;
  double now_;
};

}  // namespace hone
