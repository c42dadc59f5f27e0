// remote/machine_file.h - how users name a machine elsewhere, and the token that both sides share.
#pragma once

#include <string>
#include <string_view>

#include "hone/remote/connect_message.h"
#include "hone/remote/protocol.h"

namespace hone::remote {

struct MachineAddress {
  std::string name;  // as the user gave it, for messages
  ConnectMessage connect;
  double wait_seconds = 120;  // how long a lost machine is waited for
  // How long work may wait there for its turn, which other tuners have before.
  double queue_seconds = kMostQueueSeconds;
};

// Reads grpc://HOST:PORT, whose token is that of default_token_file(), or a file in TOML
// (docs/user/remote.md).
[[nodiscard]] Result<MachineAddress> parse_machine(const std::string& text);

// Returns ~/.config/hone/token.
[[nodiscard]] Result<std::string> default_token_file();
// Reads a token. It is an error if other users may read the file.
[[nodiscard]] Result<std::string> read_token(const std::string& file);
// Reads a token, or makes a file with one that nobody can guess if there is none.
[[nodiscard]] Result<std::string> read_or_make_token(const std::string& file);

}  // namespace hone::remote
