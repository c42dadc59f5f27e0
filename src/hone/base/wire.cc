#include "hone/base/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace hone::wire {
namespace {

struct Header {
  uint32_t magic, version, type, padding;
  uint64_t length;
};
constexpr uint32_t kMagic = 0x57454e48;  // "HNEW"
// An object file and some lists: far below this. More is nonsense.
constexpr uint64_t kMaxLength = uint64_t{1} << 30;

Status gone() { return error(Code::kIo, "the other side of the worker's socket is gone"); }

Status send_all(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return gone();
    data += sent, size -= static_cast<size_t>(sent);
  }
  return ok_status();
}

class Deadline {
 public:
  explicit Deadline(int timeout_ms)
      : forever_(timeout_ms < 0), end_(Clock::now() + std::chrono::milliseconds(timeout_ms)) {}
  // Waits until there is something to read.
  [[nodiscard]] Status wait(int socket) const {
    for (;;) {
      pollfd p = {socket, POLLIN, 0};
      int left = -1;
      if (!forever_) {
        const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
        left = rest > 0 ? static_cast<int>(rest) : 0;
      }
      const int ready = poll(&p, 1, left);
      if (ready > 0) return ok_status();
      if (ready == 0) return error(Code::kTimeout, "no answer from the worker in time");
      if (errno != EINTR) return gone();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool forever_;
  Clock::time_point end_;
};

// A descriptor may come with any part of the header.
Status receive_some(int socket, const Deadline& deadline, char*& data, size_t& size, int* fd) {
  HONE_RETURN_IF_ERROR(deadline.wait(socket));
  iovec part = {data, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part, message.msg_iovlen = 1;
  if (fd != nullptr) message.msg_control = control, message.msg_controllen = sizeof(control);
  const ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (received < 0 && (errno == EINTR || errno == EAGAIN)) return ok_status();
  if (received <= 0) return gone();
  if (fd != nullptr) {
    const cmsghdr* c = CMSG_FIRSTHDR(&message);
    if (c != nullptr && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
      std::memcpy(fd, CMSG_DATA(c), sizeof(int));
    }
  }
  data += received, size -= static_cast<size_t>(received);
  return ok_status();
}

Status receive_all(int socket, const Deadline& deadline, char* data, size_t size, int* fd) {
  while (size > 0) HONE_RETURN_IF_ERROR(receive_some(socket, deadline, data, size, fd));
  return ok_status();
}

}  // namespace

Status send_message(int socket, MessageType type, std::string_view body, int attached_fd) {
  Header header = {kMagic, kProtocolVersion, static_cast<uint32_t>(type), 0, body.size()};
  iovec part = {&header, sizeof(header)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part, message.msg_iovlen = 1;
  if (attached_fd >= 0) {
    message.msg_control = control, message.msg_controllen = sizeof(control);
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &attached_fd, sizeof(int));
  }
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent <= 0) return gone();
  const auto done = static_cast<size_t>(sent);
  HONE_RETURN_IF_ERROR(
      send_all(socket, reinterpret_cast<const char*>(&header) + done, sizeof(header) - done));
  return send_all(socket, body.data(), body.size());
}

Result<Message> receive_message(int socket, int timeout_ms) {
  const Deadline deadline(timeout_ms);
  Header header;
  Message message;
  Status status =
      receive_all(socket, deadline, reinterpret_cast<char*>(&header), sizeof(header), &message.fd);
  if (status.ok() && (header.magic != kMagic || header.length > kMaxLength)) {
    status = invalid("a message that is not of the worker's protocol");
  } else if (status.ok() && header.version != kProtocolVersion) {
    status = invalid("the worker speaks protocol version {}, expected {}", header.version,
                     kProtocolVersion);
  }
  if (status.ok()) {
    message.type = static_cast<MessageType>(header.type);
    message.body.resize(header.length);
    status = receive_all(socket, deadline, message.body.data(), message.body.size(), nullptr);
  }
  if (status.ok()) return message;
  if (message.fd >= 0) close(message.fd);
  return status;
}

}  // namespace hone::wire
