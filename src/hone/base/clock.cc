#include "hone/base/clock.h"

#include <chrono>
#include <ctime>
#include <thread>

#include "hone/base/assert.h"

namespace hone {
namespace {

class RealClock : public Clock {
 public:
  [[nodiscard]] double now_seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void sleep(double seconds) override {
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
};

}  // namespace

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

double thread_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double ManualClock::now_seconds() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return now_;
}

void ManualClock::advance(double seconds) {
  HONE_ASSERT(seconds >= 0, "time does not run backwards");
  const std::lock_guard<std::mutex> lock(mutex_);
  now_ += seconds;
}

}  // namespace hone
