// tools/hone/remote_shell.h - commands on another machine by ssh, as the user's own configuration
// reaches it. Nothing is asked: a key that ssh-agent or a file has is needed, as is the machine's
// key in known_hosts.
#pragma once

#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::tool {

struct RemoteShell {
  std::string host;                  // USER@HOST, as ssh takes it
  std::vector<std::string> options;  // more of ssh
};

// Runs a line of sh there, whichever shell the user has, with the contents of a file as its input
// ("": none). Returns the last line that it prints, without its end: what the user's shell prints
// when it starts comes first. If it fails, the error has what it or ssh said last.
[[nodiscard]] Result<std::string> run_there(const RemoteShell& shell, const std::string& line,
                                            const std::string& input_file = "");

// Returns the name or address that ssh connects to for the host: its configuration may have the
// host as an alias.
[[nodiscard]] Result<std::string> address_of(const RemoteShell& shell);

}  // namespace hone::tool
