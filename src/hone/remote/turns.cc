#include "hone/remote/turns.h"

#include <algorithm>
#include <utility>

#include "hone/base/allocation.h"

namespace hone::remote {

Turns::Turns(MakeRunner make_runner, std::unique_ptr<measure::Runner> first)
    : make_runner_(std::move(make_runner)),
      runner_(std::move(first)),
      thread_(start_thread([this] { run(); })) {}

Turns::~Turns() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    queues_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void Turns::add(const void* owner, Work work) {
  const std::lock_guard lock(mutex_);
  const auto queue = std::find_if(queues_.begin(), queues_.end(),
                                  [&](const Queue& other) { return other.owner == owner; });
  if (queue != queues_.end()) {
    queue->work.push_back(std::move(work));
  } else {
    queues_.push_back({owner, {}});
    queues_.back().work.push_back(std::move(work));
  }
  changed_.notify_all();
}

void Turns::drop(const void* owner) {
  const std::lock_guard lock(mutex_);
  std::erase_if(queues_, [&](const Queue& queue) { return queue.owner == owner; });
}

size_t Turns::waiting(const void* owner) const {
  const std::lock_guard lock(mutex_);
  for (const Queue& queue : queues_) {
    if (queue.owner == owner) return queue.work.size();
  }
  return 0;
}

bool Turns::is_busy(const void* owner) const {
  const std::lock_guard lock(mutex_);
  return running_ == owner || std::any_of(queues_.begin(), queues_.end(),
                                          [&](const Queue& queue) { return queue.owner == owner; });
}

Result<measure::Runner*> Turns::runner() {
  if (runner_ == nullptr) {
    HONE_ASSIGN_OR_RETURN(runner_, make_runner_());
  }
  return runner_.get();
}

void Turns::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queues_.empty(); });
    if (closing_) break;
    Queue queue = std::move(queues_.front());
    queues_.pop_front();
    const Work work = std::move(queue.work.front());
    queue.work.pop_front();
    running_ = queue.owner;
    if (!queue.work.empty()) queues_.push_back(std::move(queue));
    lock.unlock();
    work(runner());
    // A runner that says that nothing can be measured with it any more is replaced.
    if (runner_ != nullptr && !runner_->submit({}).ok()) runner_.reset();
    lock.lock();
    running_ = nullptr;
  }
  lock.unlock();
  runner_.reset();  // its workers end with the thread that started them
}

measure::Measurement measure_one(const Result<measure::Runner*>& runner, measure::Job job) {
  const uint64_t id = job.id;
  const auto unable = [&](const Status& why) {
    return measure::failed(id, trial::Outcome::kLoad,
                           fmt::format("the server cannot measure: {}", why.message()));
  };
  if (!runner.ok()) return unable(runner.status());
  std::vector<measure::Job> batch;
  batch.push_back(std::move(job));
  if (const Status status = (*runner)->submit(std::move(batch)); !status.ok())
    return unable(status);
  Result<std::vector<measure::Measurement>> answers = (*runner)->collect();
  if (!answers.ok()) return unable(answers.status());
  if (answers->size() != 1) return measure::failed(id, trial::Outcome::kCrash, "it was cancelled");
  return std::move(answers->front());
}

}  // namespace hone::remote
