#include "hone/remote/link.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/base/installation.h"

namespace hone::remote {
namespace {

constexpr double kStartSeconds = 10;  // of the process
constexpr double kMostSeconds = 10;   // from the first attempt to connect to the welcome
constexpr double kFirstPause = 0.1, kMostPause = 2;  // between attempts to connect
constexpr double kRestSeconds = 60;                  // for the rest of a message that has begun
const std::string kConnect = "--connect";

Result<std::string> find_program() {
  const std::vector<std::string> places = installed_places("libexec/hone/hone-serve");
  const auto found = std::find_if(places.begin(), places.end(), [](const std::string& place) {
    return ::access(place.c_str(), X_OK) == 0;
  });
  if (found != places.end()) return *found;
  return error(Code::kUnsupported,
               "machines elsewhere need the program hone-serve, which is built where gRPC is "
               "(libgrpc++-dev); there is none at {}",
               fmt::join(places, ", "));
}

}  // namespace

bool is_passing(const Status& status) {
  return status.code() == Code::kIo || status.code() == Code::kTimeout;
}

Status try_again(const MachineAddress& address, const std::function<Status()>& attempt,
                 const std::function<bool(double)>& pause) {
  const double end = real_clock().now_seconds() + address.wait_seconds;
  for (double seconds = kFirstPause;; seconds = std::min(2 * seconds, kMostPause)) {
    Status status = attempt();
    if (status.ok() || !is_passing(status)) return status;
    if (real_clock().now_seconds() > end)
      return error(Code::kIo, "{}; it was waited for for {:.0f} s", status.message(),
                   address.wait_seconds);
    if (!pause(seconds)) return status;
  }
}

Result<std::unique_ptr<Link>> Link::open(const MachineAddress& address, const Hello& hello) {
  HONE_ASSIGN_OR_RETURN(const std::string program, find_program());
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<WorkerChild> child,
                        WorkerChild::start(program, {&kConnect, 1}, kStartSeconds));
  std::unique_ptr<Link> link(new Link(address, std::move(child)));
  HONE_RETURN_IF_ERROR(link->greet(address, hello));
  return link;
}

Status Link::greet(const MachineAddress& address, const Hello& hello) {
  HONE_RETURN_IF_ERROR(child_->send(wire::MessageType::kConnect, encode(address.connect)));
  HONE_RETURN_IF_ERROR(send(encode(hello)));
  const double seconds = std::min(kMostSeconds, address.wait_seconds);
  const Result<std::string> answer = receive(seconds);
  if (answer.status().code() == Code::kTimeout)
    return error(Code::kTimeout, "{} does not answer within {} s", name_, seconds);
  HONE_RETURN_IF_ERROR(answer.status());
  Result<Welcome> welcome = decode<Welcome>(*answer);
  const Result<Kind> kind = kind_of(*answer);
  if (!kind.ok() || *kind != Kind::kWelcome || !welcome.ok())
    return invalid("{} does not greet as hone serve does: {}", name_,
                   welcome.ok() ? "another message came first" : welcome.status().message());
  if (welcome->version != kVersion || welcome->job_version != wire::kProtocolVersion)
    return error(Code::kUnsupported,
                 "{} is of hone {} with protocol {}.{}, expected {}.{}: both sides need the same",
                 name_, welcome->hone, welcome->version, welcome->job_version, kVersion,
                 wire::kProtocolVersion);
  welcome_ = *std::move(welcome);
  return ok_status();
}

Status Link::send(std::string_view message) {
  if (static_cast<int64_t>(message.size()) > kMostBytes - 64)
    return error(Code::kUnsupported, "{}: a message of {} bytes, expected {} at most", name_,
                 message.size(), kMostBytes);
  return child_->send(wire::MessageType::kFrame, message);
}

Result<std::string> Link::receive(double seconds) {
  if (!child_->wait(seconds)) return error(Code::kTimeout, "{}: no message in time", name_);
  Result<wire::Message> message = child_->receive(kRestSeconds);
  if (!message.ok())
    return error(Code::kIo, "{}: the process that connects ended: {}", name_, child_->end(true));
  if (message->type == wire::MessageType::kLost) {
    const Result<LostMessage> lost = decode_lost(message->body);
    const bool is_final = lost.ok() && lost->is_final;
    return error(is_final ? Code::kInvalid : Code::kIo, "{}: {}", name_,
                 lost.ok() ? lost->text : lost.status().message());
  }
  if (message->type != wire::MessageType::kFrame) return invalid("{}: no message", name_);
  const Result<Kind> kind = kind_of(message->body);
  if (kind.ok() && *kind == Kind::kRefusal) {
    const Result<std::string> why = decode_refusal(message->body);
    return error(Code::kUnsupported, "{} refuses: {}", name_,
                 why.ok() ? *why : why.status().message());
  }
  return std::move(message->body);
}

}  // namespace hone::remote
