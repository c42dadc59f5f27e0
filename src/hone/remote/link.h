// remote/link.h - a connection to a server that measures elsewhere, after hello and welcome. One
// thread owns it. The connection itself is in another process (grpc/relay.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hone/base/worker_child.h"
#include "hone/remote/machine_file.h"
#include "hone/remote/protocol.h"

namespace hone::remote {

class Link {
 public:
  // Connects, in some seconds at most. The error is kIo or kTimeout if another attempt may succeed.
  [[nodiscard]] static Result<std::unique_ptr<Link>> open(const MachineAddress& address,
                                                          const Hello& hello);
  [[nodiscard]] const Welcome& welcome() const { return welcome_; }
  // Errors are as those of open(). Anything but kTimeout of receive() ends the connection.
  [[nodiscard]] Status send(std::string_view message);
  [[nodiscard]] Result<std::string> receive(double seconds);

 private:
  Link(const MachineAddress& address, std::unique_ptr<WorkerChild> child)
      : name_(address.name), child_(std::move(child)) {}
  [[nodiscard]] Status greet(const MachineAddress& address, const Hello& hello);

  std::string name_;
  std::unique_ptr<WorkerChild> child_;
  Welcome welcome_;
};

// Calls `attempt`, which connects, until it succeeds or has an error that does not pass, for as
// long as the machine is to be waited for. In between, `pause` waits some seconds; if it returns
// false, nobody waits for the connection any more.
[[nodiscard]] Status try_again(const MachineAddress& address,
                               const std::function<Status()>& attempt,
                               const std::function<bool(double)>& pause);

// Returns whether another attempt may succeed after this error of a Link.
[[nodiscard]] bool is_passing(const Status& status);

}  // namespace hone::remote
