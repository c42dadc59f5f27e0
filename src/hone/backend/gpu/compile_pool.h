// backend/gpu/compile_pool.h - compiles in several processes of the worker program: a compiler that
// serves one caller at a time then serves as many as there are cores, and one that crashes or hangs
// costs what it was compiling only. Processes start when they are needed, and end when there was
// nothing to do for a while, when the pool is destroyed and when this process is gone.
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hone/base/worker_child.h"

namespace hone::backend::gpu {

struct CompilePoolOptions {
  std::string program;                 // the worker's
  std::vector<std::string> arguments;  // say which compiler it is
  int most = 1;                        // limit of the number of processes
  int64_t memory_bytes = 4LL << 30;    // limit of what each of them maps
  double start_seconds = 60;           // limit until it must say hello
  double compile_seconds = 30;         // limit of CPU time for one source
  double wait_seconds = 300;           // limit of time for it, as a busy machine may need longer
  double idle_seconds = 10;            // after which a process ends
};

class CompilePool {
 public:
  explicit CompilePool(CompilePoolOptions options) : options_(std::move(options)) {}
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  // Sends a request to a process and returns its answer; waits while all are busy. It may be called
  // from any thread. The error is kUnsupported if there is no answer in time, kInternal if the
  // process died or was forked, kNotFound if the worker refuses to work, which is not asked again,
  // and that of WorkerChild::start() if none starts.
  [[nodiscard]] Result<std::string> compile(std::string_view request);
  // Returns the number of processes that there are.
  [[nodiscard]] int processes() const;

 private:
  using ChildPtr = std::unique_ptr<WorkerChild>;
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Idle {
    ChildPtr child;
    TimePoint since;
  };
  [[nodiscard]] Result<ChildPtr> take();
  void give_back(ChildPtr child);
  void drop(ChildPtr child);
  void end_idle();

  const CompilePoolOptions options_;
  const pid_t owner_ = getpid();  // a process that forked has no part in the pool
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Idle> idle_;  // the one that was used last is last
  int processes_ = 0;
  bool closing_ = false;
  Status refused_ = ok_status();
  std::thread ender_;  // ends idle processes; it starts with the first process
};

// Returns the pool of this process whose workers get these arguments; null if there is no worker
// program. It has as many processes as there are cores, and as the machine's memory holds.
[[nodiscard]] CompilePool* compile_pool(const std::vector<std::string>& arguments);

// Serves requests that arrive on the socket `fd` of an isolated worker (isolate_worker()), and
// returns its exit status. The process ends at once when the other side is gone, even while it
// compiles. A `refusal` that is not empty says why nothing can be compiled.
int serve_compiles(int fd, const std::string& refusal,
                   const std::function<std::string(const std::string& request)>& compile);

}  // namespace hone::backend::gpu
