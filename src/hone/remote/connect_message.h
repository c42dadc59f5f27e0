// remote/connect_message.h - a tuner's message to the process that connects (grpc/relay.h), and the
// answer of that process when there is no connection.
#pragma once

#include <string>
#include <string_view>

#include "hone/base/status.h"

namespace hone::remote {

struct ConnectMessage {
  std::string address;  // host:port
  std::string token;
  std::string tls_roots;  // certificates as PEM; empty: no TLS
  std::string tls_name;   // the name in the server's certificate; empty: that of the address
};

struct LostMessage {
  bool is_final = false;  // to connect again would end in the same way
  std::string text;
};

[[nodiscard]] std::string encode(const ConnectMessage& message);
[[nodiscard]] Result<ConnectMessage> decode_connect(std::string_view bytes);
[[nodiscard]] std::string encode(const LostMessage& message);
[[nodiscard]] Result<LostMessage> decode_lost(std::string_view bytes);

}  // namespace hone::remote
