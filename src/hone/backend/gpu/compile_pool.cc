#include "hone/backend/gpu/compile_pool.h"

#include <poll.h>

#include <algorithm>
#include <map>

#include "hone/base/allocation.h"
#include "hone/base/log.h"
#include "hone/base/memory_bound.h"
#include "hone/base/worker_program.h"
#include "hone/target/target.h"

namespace hone::backend::gpu {
namespace {

constexpr int kTries = 3;  // of a request whose processes somebody else kills

// A process of NVRTC takes a little more than 100 MB, and large kernels several times as much.
constexpr int64_t kProcessBytes = 512LL << 20;

int most_processes() {
  const int64_t memory = memory_here().main;
  const int64_t by_memory = memory > 0 ? memory / 2 / kProcessBytes : 1 << 10;
  return static_cast<int>(
      std::clamp<int64_t>(target::host().cpu().cores, 1, std::max<int64_t>(by_memory, 1)));
}

std::chrono::steady_clock::duration duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

CompilePool::~CompilePool() {
  if (getpid() != owner_) {  // the processes and the thread are those of the parent
    for (Idle& idle : idle_) (void)idle.child.release();
    if (ender_.joinable()) ender_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (ender_.joinable()) ender_.join();
}

Result<std::string> CompilePool::compile(std::string_view request) {
  if (getpid() != owner_)
    return error(Code::kInternal, "a process that was forked cannot compile for GPUs");
  for (int tries = 1;; ++tries) {
    HONE_ASSIGN_OR_RETURN(ChildPtr child, take());
    child->limit_cpu(options_.compile_seconds);
    const Status sent = child->send(wire::MessageType::kSource, request);
    Result<wire::Message> answer =
        sent.ok() ? child->receive(options_.wait_seconds) : Result<wire::Message>(sent);
    if (answer.ok() && answer->type == wire::MessageType::kCode) {
      give_back(std::move(child));
      return std::move(answer->body);
    }
    const bool late = answer.status().code() == Code::kTimeout;
    const std::string death = child->end(late || answer.status().code() != Code::kIo);
    const bool again = !late && child->was_killed() && tries < kTries;
    const bool slow = child->was_too_slow();
    drop(std::move(child));
    if (again) continue;
    if (late || slow)
      return error(Code::kUnsupported, "the compiler was not done after {} s{}",
                   slow ? options_.compile_seconds : options_.wait_seconds,
                   slow ? " of CPU time" : "");
    return error(Code::kInternal, "the compiler failed: {}", death);
  }
}

int CompilePool::processes() const {
  const std::lock_guard lock(mutex_);
  return processes_;
}

Result<CompilePool::ChildPtr> CompilePool::take() {
  {
    std::unique_lock lock(mutex_);
    HONE_RETURN_IF_ERROR(refused_);
    changed_.wait(lock, [this] { return !idle_.empty() || processes_ < options_.most; });
    if (!idle_.empty()) {
      ChildPtr child = std::move(idle_.back().child);
      idle_.pop_back();
      return child;
    }
    ++processes_;
    if (!ender_.joinable()) ender_ = start_thread([this] { end_idle(); });
  }
  Result<ChildPtr> child =
      WorkerChild::start(options_.program, options_.arguments, options_.start_seconds);
  if (!child.ok()) {
    drop(nullptr);
    if (child.status().code() != Code::kUnsupported) return child.status();
    // Nothing can be compiled here, which says nothing of this source.
    const std::lock_guard lock(mutex_);
    refused_ = error(Code::kNotFound, "{}", child.status().message());
    return refused_;
  }
  (*child)->limit_memory(options_.memory_bytes);
  return child;
}

void CompilePool::give_back(ChildPtr child) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back({std::move(child), std::chrono::steady_clock::now()});
  }
  changed_.notify_all();
}

void CompilePool::drop(ChildPtr child) {
  child.reset();
  {
    const std::lock_guard lock(mutex_);
    --processes_;
  }
  changed_.notify_all();
}

void CompilePool::end_idle() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (idle_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const TimePoint end = idle_.front().since + duration(options_.idle_seconds);
    if (std::chrono::steady_clock::now() < end) {
      changed_.wait_until(lock, end);
      continue;
    }
    ChildPtr oldest = std::move(idle_.front().child);
    idle_.erase(idle_.begin());
    --processes_;
    lock.unlock();
    oldest.reset();
    changed_.notify_all();
    lock.lock();
  }
  idle_.clear();
}

CompilePool* compile_pool(const std::vector<std::string>& arguments) {
  static std::mutex mutex;
  static std::map<std::vector<std::string>, std::unique_ptr<CompilePool>> pools;
  const std::lock_guard lock(mutex);
  const auto [place, added] = pools.try_emplace(arguments);
  if (!added) return place->second.get();
  Result<std::string> program = find_worker_program("");
  if (program.ok())
    place->second = std::make_unique<CompilePool>(CompilePoolOptions{
        .program = *std::move(program), .arguments = arguments, .most = most_processes()});
  else
    log_info("no processes compile code of GPUs: {}", program.status().message());
  return place->second.get();
}

int serve_compiles(int fd, const std::string& refusal,
                   const std::function<std::string(const std::string& request)>& compile) {
  std::thread([fd] {
    pollfd other_side = {fd, POLLRDHUP, 0};
    while (poll(&other_side, 1, -1) <= 0) {
    }
    _exit(0);
  }).detach();
  if (!wire::send_message(fd, wire::MessageType::kHello, refusal).ok() || !refusal.empty())
    return 1;
  for (;;) {
    const Result<wire::Message> request = wire::receive_message(fd, -1);
    if (!request.ok()) return request.status().code() == Code::kIo ? 0 : 1;
    if (request->type != wire::MessageType::kSource) return 1;
    if (!wire::send_message(fd, wire::MessageType::kCode, compile(request->body)).ok()) return 0;
  }
}

}  // namespace hone::backend::gpu
