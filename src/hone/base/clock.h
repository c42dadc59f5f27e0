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
  virtual void sleep(double seconds) = 0;  // It returns at once if seconds <= 0.
};

// Returns the machine's monotonic clock.
[[nodiscard]] Clock& real_clock();

// Returns the CPU time of the calling thread. The time of other threads and processes does not
// count.
[[nodiscard]] double thread_seconds();

// This clock stands still until advance() or sleep() moves it.
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
