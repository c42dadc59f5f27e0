// base/input_file.h - opens a file that a user names. Opening never waits, as a pipe without a
// writer would stop the program. A device is an error, as it may have no end; so is a pipe where
// pipes are not allowed.
#pragma once

#include <string>
#include <utility>

#include "hone/base/status.h"

namespace hone {

// An open file, which is closed when this object is destroyed.
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
// Opens a file for reading. Reads of a pipe do not wait for its writer (O_NONBLOCK).
[[nodiscard]] Result<Descriptor> open_input(const std::string& path, Pipes pipes = Pipes::kRefused);

}  // namespace hone
