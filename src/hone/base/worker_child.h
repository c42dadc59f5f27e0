// base/worker_child.h - a worker program that this process started (tools/worker), with a socket to
// it (wire.h): its start, its messages and its end. One thread owns it; other threads may call only
// interrupt().
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "hone/base/wire.h"

namespace hone {

class WorkerChild {
 public:
  // Starts a program with these arguments, to which "--fd" and the number of its socket are
  // appended, and waits for its hello. If the hello has a text, the worker refuses to work, and the
  // text is the error's, of code kUnsupported.
  [[nodiscard]] static Result<std::unique_ptr<WorkerChild>> start(
      const std::string& program, std::span<const std::string> arguments, double start_seconds);
  ~WorkerChild();  // kills it
  WorkerChild(const WorkerChild&) = delete;
  WorkerChild& operator=(const WorkerChild&) = delete;

  // Limits the memory that it may map beyond what it has mapped by now.
  void limit_memory(int64_t bytes) const;
  // Limits the seconds of CPU time that it may take from now on; after that it is killed.
  void limit_cpu(double seconds) const;
  [[nodiscard]] Status send(wire::MessageType type, std::string_view body, int attached_fd = -1) {
    return wire::send_message(socket_, type, body, attached_fd);
  }
  // Waits until there is something to receive, or the child has ended; false if there is not in
  // time.
  [[nodiscard]] bool wait(double seconds) const;
  // The error is that of wire::receive_message().
  [[nodiscard]] Result<wire::Message> receive(double seconds);
  // Waits for its exit, or kills it with `by_force`, and returns how it ended.
  std::string end(bool by_force);
  [[nodiscard]] bool alive() const { return pid_ > 0; }
  // Returns whether it ended by a SIGKILL or SIGTERM from outside, or by limit_cpu().
  [[nodiscard]] bool was_killed() const { return was_killed_; }
  [[nodiscard]] bool was_too_slow() const { return was_too_slow_; }
  // Makes receive() end soon with an error.
  void interrupt();
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  WorkerChild() = default;
  [[nodiscard]] Status spawn(const std::string& program, std::span<const std::string> arguments);

  pid_t pid_ = -1;
  std::mutex socket_mutex_;  // protects closing the socket against interrupt()
  int socket_ = -1;
  bool was_killed_ = false, was_too_slow_ = false;
};

// The worker's side: closes every descriptor but 0, 1, 2 and `fd`, ignores SIGINT and SIGPIPE, and
// writes no core file.
void isolate_worker(int fd);

}  // namespace hone
