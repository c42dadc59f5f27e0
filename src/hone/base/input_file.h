// base/input_file.h - opening a file that a user names. Opening waits for nobody: a pipe without a
// writer would else stop the program. What is neither a file nor, where it may be one, a pipe is an
// error: a device may have no end.
#pragma once

#include <string>
#include <utility>

#include "hone/base/status.h"

namespace hone {

// An open file, which is closed with this object.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

enum class Pipes { kRefused, kAllowed };
// For reading; a pipe does not wait for what its writer has to say (O_NONBLOCK).
[[nodiscard]] Result<Descriptor> open_input(const std::string& path, Pipes pipes = Pipes::kRefused);

}  // namespace hone
