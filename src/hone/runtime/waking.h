// runtime/waking.h - decides whether a run wakes threads that sleep. A system call of about a
// microsecond wakes one, and it comes some to some tens of microseconds later: a short run that is
// called now and then is over by then. Whether threads came in time is remembered. While they do
// not, most runs leave them asleep, and few try again.
#pragma once

#include <stdint.h>

#include <atomic>

namespace hone::runtime {

class Waking {
 public:
  // Longer than most wakings take: longer runs always wake threads.
  static constexpr int64_t kLongRun = 50'000;  // ns
  static constexpr int kMostSkipped = 63;      // runs between two that try

  void begin_run() { answer_ = Answer::kNone; }

  // Called by a run that has work for threads that sleep. A caller that asked less than `spin_ns`
  // ago, which is how long threads stay awake, is likely to come back as soon: threads that are
  // woken now may be late for this run, but not for the next.
  bool pays(int64_t now_ns, int64_t spin_ns) {
    if (answer_ == Answer::kNone) {
      const bool again = asked_before_ && now_ns - asked_ns_ < spin_ns;
      asked_before_ = true;
      asked_ns_ = now_ns;
      if (skips_ > 0 && !again) {
        --skips_;
        answer_ = Answer::kNo;
      } else {
        answer_ = skips_ > 0 ? Answer::kYes : Answer::kTry;
        helped_.store(false, std::memory_order_relaxed);
      }
    } else if (answer_ == Answer::kNo && now_ns - asked_ns_ > kLongRun) {
      forget();
      answer_ = Answer::kYes;
    }
    return answer_ != Answer::kNo;
  }

  // Called by a thread that was not the caller's, once it has done some work.
  void note_help() {
    if (!helped_.load(std::memory_order_relaxed)) helped_.store(true, std::memory_order_relaxed);
  }

  // Returns whether end_run() learns from this run.
  [[nodiscard]] bool learns() const { return answer_ == Answer::kTry || answer_ == Answer::kNo; }
  void end_run(int64_t now_ns) {
    if (now_ns - asked_ns_ > kLongRun) return forget();
    if (answer_ != Answer::kTry) return;
    const bool helped = helped_.load(std::memory_order_relaxed);
    between_ = helped ? 0 : 2 * between_ + 1 < kMostSkipped ? 2 * between_ + 1 : kMostSkipped;
    skips_ = between_;
  }

  // The next runs may have more work than those before.
  void forget() { between_ = skips_ = 0; }

 private:
  enum class Answer : uint8_t { kNone, kNo, kYes, kTry };

  Answer answer_ = Answer::kNone;  // the run that is on has got this answer
  bool asked_before_ = false;
  int between_ = 0;  // runs that are skipped between two tries
  int skips_ = 0;    // runs to come that are skipped
  int64_t asked_ns_ = 0;
  alignas(64) std::atomic<bool> helped_{false};
};

}  // namespace hone::runtime
