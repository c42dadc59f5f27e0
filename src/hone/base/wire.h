// base/wire.h - messages between Hone and its worker program over a stream socket: a header (magic,
// version, type, length), then the body. A file descriptor may be attached. Numbers are
// little-endian.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "hone/base/status.h"

namespace hone::wire {

// The version of the messages' contents. A worker with another version is refused when it starts.
inline constexpr uint32_t kProtocolVersion = 6;

enum class MessageType : uint32_t {
  kHello = 1,        // from the worker, once it is ready; or its body says why it will never be
  kOperands = 2,     // from the tuner: operands of a task, with the descriptor of their memory
  kForget = 3,       // from the tuner: those operands are not needed any more
  kJob = 4,          // from the tuner: a candidate
  kResult = 5,       // from the worker: its measurement
  kSource = 6,       // to a worker that compiles: the source of kernels
  kCode = 7,         // from it: their code, or why there is none
  kConnect = 8,      // to a program that connects: to which server
  kFrame = 9,        // to it and from it: a message to and from that server (remote/protocol.h)
  kLost = 10,        // from it: there is no connection, and why
  kModelCall = 11,   // to a process that runs a model (remote/protocol.h), with library or inputs
  kModelReply = 12,  // from it, with the memory of outputs
};

struct Message {
  MessageType type{};
  std::string body;
  int fd = -1;  // owned by the receiver, which must close it
};

// Sends a message. The error is kIo if the other side is gone.
[[nodiscard]] Status send_message(int socket, MessageType type, std::string_view body,
                                  int attached_fd = -1);
// Receives a message. The error is kTimeout after `timeout_ms` (-1: never), kIo if the other side
// is gone, and kInvalid for malformed data.
[[nodiscard]] Result<Message> receive_message(int socket, int timeout_ms);

class Writer {
 public:
  template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) Writer& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Writer& put(std::string_view text) {
    put(static_cast<uint64_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  Writer& put(const std::string& text) { return put(std::string_view(text)); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads values from a body. After a read beyond the end, all reads give zeros and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T get() {
    if constexpr (std::is_same_v<T, bool>) return get<uint8_t>() != 0;
    T value{};
    if (!take(sizeof(T))) return value;
    std::memcpy(&value, taken_.data(), sizeof(T));
    return value;
  }
  std::string get_string() {
    const auto size = get<uint64_t>();
    return take(size) ? std::string(taken_) : std::string();
  }
  // Returns the number of elements of a list, each of which has at least one byte.
  size_t get_count() {
    const auto count = get<uint64_t>();
    if (count > rest_.size()) ok_ = false;
    return ok_ ? static_cast<size_t>(count) : 0;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }

 private:
  bool take(uint64_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return false;
    taken_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  std::string_view rest_, taken_;
  bool ok_ = true;
};

}  // namespace hone::wire
