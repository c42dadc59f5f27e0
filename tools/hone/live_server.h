// tools/hone/live_server.h - serves one page to browsers on this machine while a command runs. It
// listens on the loopback interface only, and a path that does not begin with its token is refused,
// so other users of the machine see nothing. It speaks as much of HTTP/1.1 as that takes: GET and
// HEAD, one request per connection, one connection at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "hone/base/input_file.h"
#include "hone/base/status.h"

namespace hone::tool {

struct LiveAnswer {
  std::string type;  // as of Content-Type; empty: there is nothing of this name
  std::string body;
};

class LiveServer {
 public:
  // Called by the server's thread with what stands behind the token, such as "data.json?known=3".
  using Handler = std::function<LiveAnswer(std::string_view target)>;

  // `port`: 0 for any that is free. It is an error that names --live if the port is in use.
  [[nodiscard]] static Result<std::unique_ptr<LiveServer>> start(int port, Handler handler);
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string url() const;
  // Seconds since the last request that was answered; infinity before the first.
  [[nodiscard]] double seconds_since_request() const;

 private:
  LiveServer(Descriptor socket, Descriptor stop, int port, std::string token, Handler handler);
  void serve();
  void answer(int connection);
  [[nodiscard]] std::string response(std::string_view request);

  Descriptor socket_, stop_;
  const int port_;
  const std::string token_;
  const Handler handler_;
  std::atomic<double> last_request_{-1};  // in the seconds of the real clock
  std::thread thread_;
};

}  // namespace hone::tool
