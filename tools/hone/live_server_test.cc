#include "live_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>

namespace hone::tool {
namespace {

LiveAnswer echo(std::string_view target) {
  if (target == "none") return {};
  return {"text/plain", "you asked for '" + std::string(target) + "'"};
}

Descriptor connect_to(int port) {
  Descriptor connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return connection;
}

// What the server answers to these bytes.
std::string ask(const LiveServer& server, const std::string& request) {
  const Descriptor connection = connect_to(server.port());
  EXPECT_EQ(::send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string response;
  char buffer[4096];
  for (ssize_t length = 0; (length = ::recv(connection.get(), buffer, sizeof buffer, 0)) > 0;)
    response.append(buffer, static_cast<size_t>(length));
  return response;
}

std::string path_of(const LiveServer& server) {
  const std::string url = server.url();
  return url.substr(url.find('/', 7));
}

std::string request(const LiveServer& server, const std::string& path,
                    const std::string& method = "GET") {
  return fmt::format("{} {} HTTP/1.1\r\nAccept: */*\r\nHost: 127.0.0.1:{}\r\n\r\n", method, path,
                     server.port());
}

std::unique_ptr<LiveServer> started() { return std::move(LiveServer::start(0, echo)).value(); }

TEST(live_server, answers_behind_its_token) {
  const std::unique_ptr<LiveServer> server = started();
  EXPECT_TRUE(std::isinf(server->seconds_since_request()));
  const std::string path = path_of(*server);
  EXPECT_EQ(path.size(), 34U);  // 128 bits
  const std::string found = ask(*server, request(*server, path + "data.json?known=3"));
  EXPECT_TRUE(found.starts_with("HTTP/1.1 200 OK\r\n")) << found;
  EXPECT_TRUE(found.ends_with("\r\n\r\nyou asked for 'data.json?known=3'")) << found;
  EXPECT_NE(found.find("Content-Length: 33\r\n"), std::string::npos) << found;
  EXPECT_LT(server->seconds_since_request(), 60);
  EXPECT_TRUE(ask(*server, request(*server, path, "HEAD")).ends_with("\r\n\r\n"));
  EXPECT_TRUE(ask(*server, request(*server, path + "none")).starts_with("HTTP/1.1 404"));
  EXPECT_NE(started()->url(), server->url());
}

TEST(live_server, refuses_what_others_may_send) {
  const std::unique_ptr<LiveServer> server = started();
  const std::string path = path_of(*server);
  const auto status = [&](const std::string& text) { return ask(*server, text).substr(9, 3); };
  for (const std::string& wrong :
       {std::string("/"), std::string("/data.json"), "/" + std::string(32, '0') + "/",
        path.substr(0, 33), path.substr(0, 33) + "x/", path.substr(1)})
    EXPECT_EQ(status(request(*server, wrong)), "403") << wrong;
  EXPECT_EQ(status("GET " + path + " HTTP/1.1\r\nHost: example.org\r\n\r\n"), "403");
  EXPECT_EQ(status("GET " + path + " HTTP/1.1\r\n\r\n"), "403");
  EXPECT_EQ(status(request(*server, path, "POST")), "405");
  for (const char* wrong : {"x", "GET", "GET /", "", "GET / SMTP"})
    EXPECT_EQ(status(std::string(wrong) + "\r\n\r\n"), "400") << wrong;
  EXPECT_EQ(status(std::string(20'000, 'x')), "400");
  EXPECT_EQ(status(request(*server, path)), "200");
}

TEST(live_server, a_port_in_use_is_an_error) {
  const std::unique_ptr<LiveServer> server = started();
  const Result<std::unique_ptr<LiveServer>> second = LiveServer::start(server->port(), echo);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kInvalid);
  EXPECT_EQ(second.status().message(),
            fmt::format("--live: cannot listen on port {} of 127.0.0.1: address already in use; 0 "
                        "takes one that is free",
                        server->port()));
}

}  // namespace
}  // namespace hone::tool
