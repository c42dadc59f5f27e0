#include "live_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <utility>

#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/base/hash.h"

namespace hone::tool {
namespace {

constexpr size_t kMostRequest = 16 << 10;  // bytes
// A client that is slower than this is left.
constexpr double kReadSeconds = 2, kWriteSeconds = 10;

Result<std::string> make_token() {
  uint64_t random[2];
  if (::getrandom(random, sizeof random, 0) != sizeof random)
    return error(Code::kIo, "--live: no random numbers: {}", errno_text(errno));
  return hash_hex(random[0]) + hash_hex(random[1]);
}

// Takes as long for any two texts of one length.
bool equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

// Waits until the descriptor is ready, `stop` is, or the time is over.
bool ready(int descriptor, short events, int stop, double deadline) {
  pollfd waits[2] = {{descriptor, events, 0}, {stop, POLLIN, 0}};
  while (true) {
    const double left = deadline - real_clock().now_seconds();
    if (left <= 0) return false;
    const int timeout = std::isfinite(left) ? static_cast<int>(std::ceil(left * 1e3)) : -1;
    const int found = ::poll(waits, 2, timeout);
    if (found < 0 && errno == EINTR) continue;
    return found > 0 && waits[1].revents == 0;
  }
}

// The request up to the empty line; shorter or without one if the client sends no more.
std::string read_request(int connection, int stop) {
  std::string request;
  const double deadline = real_clock().now_seconds() + kReadSeconds;
  char buffer[4096];
  while (request.size() < kMostRequest && request.find("\r\n\r\n") == std::string::npos &&
         ready(connection, POLLIN, stop, deadline)) {
    const ssize_t length = ::recv(connection, buffer, sizeof buffer, 0);
    if (length <= 0) break;
    request.append(buffer, static_cast<size_t>(length));
  }
  return request;
}

void write_response(int connection, std::string_view text, int stop) {
  const double deadline = real_clock().now_seconds() + kWriteSeconds;
  while (!text.empty() && ready(connection, POLLOUT, stop, deadline)) {
    const ssize_t length = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (length <= 0) return;
    text.remove_prefix(static_cast<size_t>(length));
  }
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return lower;
}

// The value of a field of the header; "" if it is not there.
std::string field(std::string_view request, std::string_view name) {
  size_t begin = request.find("\r\n");
  while (begin != std::string_view::npos) {
    begin += 2;
    const size_t end = std::min(request.find("\r\n", begin), request.size());
    const std::string_view line = request.substr(begin, end - begin);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && lower_case(line.substr(0, colon)) == name) {
      const std::string_view value = line.substr(colon + 1);
      const size_t first = value.find_first_not_of(" \t");
      return first == std::string_view::npos ? "" : std::string(value.substr(first));
    }
    begin = line.empty() ? std::string_view::npos : request.find("\r\n", begin);
  }
  return "";
}

std::string make_response(std::string_view status, std::string_view type, std::string_view body,
                          bool with_body = true) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
      "Referrer-Policy: no-referrer\r\n\r\n{}",
      status, type, body.size(), with_body ? body : "");
}

std::string refusal(std::string_view status, std::string_view why) {
  return make_response(status, "text/plain", fmt::format("{}\n", why));
}

}  // namespace

Result<std::unique_ptr<LiveServer>> LiveServer::start(int port, Handler handler) {
  HONE_ASSIGN_OR_RETURN(std::string token, make_token());
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Descriptor stop(::eventfd(0, EFD_CLOEXEC));
  if (socket.get() < 0 || stop.get() < 0)
    return error(Code::kIo, "--live: no socket: {}", errno_text(errno));
  const int yes = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::bind(socket.get(), generic, size) != 0 || ::listen(socket.get(), 16) != 0 ||
      ::getsockname(socket.get(), generic, &size) != 0) {
    return invalid("--live: cannot listen on port {} of 127.0.0.1: {}; 0 takes one that is free",
                   port, errno_text(errno));
  }
  return std::unique_ptr<LiveServer>(new LiveServer(std::move(socket), std::move(stop),
                                                    ntohs(address.sin_port), std::move(token),
                                                    std::move(handler)));
}

LiveServer::LiveServer(Descriptor socket, Descriptor stop, int port, std::string token,
                       Handler handler)
    : socket_(std::move(socket)),
      stop_(std::move(stop)),
      port_(port),
      token_(std::move(token)),
      handler_(std::move(handler)) {
  sigset_t all, before;  // signals are for the thread that works
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LiveServer::~LiveServer() {
  const uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

std::string LiveServer::url() const {
  return fmt::format("http://127.0.0.1:{}/{}/", port_, token_);
}

double LiveServer::seconds_since_request() const {
  const double last = last_request_.load();
  return last < 0 ? INFINITY : real_clock().now_seconds() - last;
}

void LiveServer::serve() {
  while (ready(socket_.get(), POLLIN, stop_.get(), INFINITY)) {
    const Descriptor connection(
        ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.get() >= 0) answer(connection.get());
  }
}

void LiveServer::answer(int connection) {
  const std::string request = read_request(connection, stop_.get());
  if (request.empty()) return;
  // An answer that was begun is sent to its end, for kWriteSeconds at most.
  write_response(connection, response(request), -1);
  // What the client may still send is read, as else the system would discard the answer.
  (void)::shutdown(connection, SHUT_WR);
  char rest[4096];
  const double deadline = real_clock().now_seconds() + 0.2;
  while (ready(connection, POLLIN, stop_.get(), deadline) &&
         ::recv(connection, rest, sizeof rest, 0) > 0) {
  }
}

std::string LiveServer::response(std::string_view request) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const size_t first = line.find(' '), second = line.find(' ', first + 1);
  if (request.find("\r\n\r\n") == std::string_view::npos || second == std::string_view::npos ||
      !line.substr(second + 1).starts_with("HTTP/1."))
    return refusal("400 Bad Request", "this is no request of HTTP/1.1");
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD")
    return refusal("405 Method Not Allowed", "expected GET or HEAD");
  // A page of another site could have a name that leads here; it must not read the answer.
  const std::string host = field(request, "host");
  if (host != fmt::format("127.0.0.1:{}", port_) && host != fmt::format("localhost:{}", port_))
    return refusal("403 Forbidden", "expected the host 127.0.0.1 or localhost");
  std::string_view target = line.substr(first + 1, second - first - 1);
  if (!target.starts_with('/') || !equal(target.substr(1, token_.size()), token_) ||
      target.substr(1 + token_.size(), 1) != "/")
    return refusal("403 Forbidden", "the token is wrong: use the address that hone printed");
  target.remove_prefix(token_.size() + 2);
  const LiveAnswer answer = handler_(target);
  if (answer.type.empty()) return refusal("404 Not Found", "there is nothing of this name");
  last_request_ = real_clock().now_seconds();
  return make_response("200 OK", answer.type, answer.body, method == "GET");
}

}  // namespace hone::tool
