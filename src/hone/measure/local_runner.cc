#include "hone/measure/local_runner.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "hone/base/allocation.h"
#include "hone/base/worker_program.h"

namespace hone::measure {
namespace {

constexpr int kMoreStarts = 4;
constexpr std::chrono::milliseconds kBetweenStarts{50};

class LocalRunner final : public Runner {
 public:
  explicit LocalRunner(WorkerOptions options) : options_(std::move(options)) {}
  ~LocalRunner() override {
    cancel();
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    driver_.join();
  }

  // Starts the thread and waits for the first worker.
  [[nodiscard]] Status open() {
    driver_ = start_thread([this] { drive(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return started_; });
    return broken_;
  }

  [[nodiscard]] std::string_view name() const override { return "local"; }

  [[nodiscard]] Status submit(std::vector<Job> batch) override {
    const std::lock_guard lock(mutex_);
    for (Job& job : batch) queue_.push_back(std::move(job));
    changed_.notify_all();
    return broken_;
  }

  [[nodiscard]] Result<std::vector<Measurement>> collect() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return (queue_.empty() && !running_) || !broken_.ok(); });
    if (!broken_.ok()) return broken_;
    return std::exchange(done_, {});
  }

  void cancel() override {
    const std::lock_guard lock(mutex_);
    ++cancellations_;
    queue_.clear();
    if (running_ && worker_ != nullptr) worker_->interrupt();
    changed_.notify_all();
  }

 private:
  void drive() {
    restart();
    std::unique_lock lock(mutex_);
    started_ = true;
    changed_.notify_all();
    for (;;) {
      changed_.wait(lock, [this] { return !queue_.empty() || closing_; });
      if (closing_) break;
      const Job job = std::move(queue_.front());
      queue_.pop_front();
      running_ = true;
      const int64_t cancellations = cancellations_;
      lock.unlock();
      Measurement m = run(job);
      lock.lock();
      running_ = false;
      if (cancellations == cancellations_ && broken_.ok()) done_.push_back(std::move(m));
      changed_.notify_all();
      lock.unlock();
      restart();  // at once, while the caller thinks about the answer
      lock.lock();
      changed_.notify_all();
    }
    lock.unlock();
    replace(nullptr);
  }

  [[nodiscard]] Measurement run(const Job& job) {
    if (worker_ == nullptr) return failed(job.id, trial::Outcome::kCrash, "no worker");
    Measurement m = worker_->run(job);
    if (worker_->alive() || !worker_->was_killed()) return m;
    // Somebody else killed the worker, or the system did for want of memory: once more.
    restart();
    return worker_ == nullptr ? m : worker_->run(job);
  }

  // Has a living worker afterwards, or broken_ says why not.
  void restart() {
    if (worker_ != nullptr && worker_->alive()) return;
    auto worker = WorkerProcess::start(options_);
    // Where one has started another will, unless somebody kills it or memory is short just now.
    for (int again = 1; again <= kMoreStarts && started_ && !worker.ok(); ++again) {
      std::this_thread::sleep_for(again * kBetweenStarts);
      worker = WorkerProcess::start(options_);
    }
    if (worker.ok()) {
      replace(*std::move(worker));
      return;
    }
    replace(nullptr);
    const std::lock_guard lock(mutex_);
    broken_ = worker.status();
  }

  void replace(std::unique_ptr<WorkerProcess> worker) {
    {
      const std::lock_guard lock(mutex_);
      std::swap(worker_, worker);
    }
    worker.reset();  // not under the lock: it may have to wait for the old one's end
  }

  WorkerOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;
  std::vector<Measurement> done_;
  std::unique_ptr<WorkerProcess>
      worker_;  // the driver's; cancel() reads the pointer under the lock
  Status broken_;
  int64_t cancellations_ = 0;
  bool started_ = false, running_ = false, closing_ = false;
  std::thread driver_;  // the worker dies with it
};

}  // namespace

Result<std::unique_ptr<Runner>> make_local_runner(const WorkerOptions& worker) {
  // All workers of this run are the same program, whatever is installed meanwhile.
  WorkerOptions found = worker;
  HONE_ASSIGN_OR_RETURN(found.executable, find_worker_program(worker.executable));
  auto runner = std::make_unique<LocalRunner>(found);
  HONE_RETURN_IF_ERROR(runner->open());
  return std::unique_ptr<Runner>(std::move(runner));
}

}  // namespace hone::measure
