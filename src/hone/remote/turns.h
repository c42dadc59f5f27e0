// remote/turns.h - the work that a server does on its machine's cores for several tuners: one piece
// at a time, so that nothing disturbs what is measured, and in turns, so that nobody waits for all
// that another one has.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "hone/measure/runner.h"

namespace hone::remote {

class Turns {
 public:
  // How a runner is made; it is made again after an error.
  using MakeRunner = std::function<Result<std::unique_ptr<measure::Runner>>()>;
  // The runner, or why there is none.
  using Work = std::function<void(const Result<measure::Runner*>&)>;

  // `first` is a runner that was made already, or null.
  Turns(MakeRunner make_runner, std::unique_ptr<measure::Runner> first);
  ~Turns();  // what has not begun is dropped
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Puts work behind the owner's other work. The thread that does it calls it.
  void add(const void* owner, Work work);
  // Drops what the owner has and what has not begun.
  void drop(const void* owner);
  // Ends the runner, which is made again for the next work. Only work may call it.
  void end_runner() { runner_.reset(); }
  [[nodiscard]] size_t waiting(const void* owner) const;
  // Returns whether the owner has work that has not ended.
  [[nodiscard]] bool is_busy(const void* owner) const;

 private:
  struct Queue {
    const void* owner;
    std::deque<Work> work;
  };
  void run();
  [[nodiscard]] Result<measure::Runner*> runner();

  const MakeRunner make_runner_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queue> queues_;       // none is empty; the next turn is the first one's
  const void* running_ = nullptr;  // the owner of what the thread does
  bool closing_ = false;
  std::unique_ptr<measure::Runner> runner_;  // the thread's
  std::thread thread_;
};

// Measures one job. Every failure is an answer; after an error of the runner itself, the runner is
// of no use.
[[nodiscard]] measure::Measurement measure_one(const Result<measure::Runner*>& runner,
                                               measure::Job job);

}  // namespace hone::remote
