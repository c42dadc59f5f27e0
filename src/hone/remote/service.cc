#include "hone/remote/service.h"

#include <utility>

#include "hone/base/clock.h"
#include "hone/base/memory_bound.h"
#include "hone/base/wire.h"
#include "hone/remote/names.h"

namespace hone::remote {
namespace {

constexpr size_t kMostSessions = 32;
constexpr double kKeptSeconds = 600;  // a session without a connection
constexpr size_t kMostName = 64;

}  // namespace

Service::Service(ServiceOptions options, std::unique_ptr<measure::Runner> runner,
                 std::string instance)
    : options_(std::move(options)),
      instance_(std::move(instance)),
      boot_(boot_name()),
      store_(options_.operand_bytes),
      turns_(options_.make_runner, std::move(runner)) {}

Result<std::unique_ptr<Service>> Service::create(ServiceOptions options) {
  if (options.operand_bytes == 0) options.operand_bytes = memory_here().main / 4;
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<measure::Runner> runner, options.make_runner());
  HONE_ASSIGN_OR_RETURN(std::string instance, random_name());
  return std::unique_ptr<Service>(
      new Service(std::move(options), std::move(runner), std::move(instance)));
}

std::unique_ptr<Service::Peer> Service::connect(std::shared_ptr<Connection> connection) {
  return std::unique_ptr<Peer>(new Peer(*this, std::move(connection)));
}

Result<std::shared_ptr<Session>> Service::session_of(const std::string& name) {
  if (name.empty() || name.size() > kMostName) return invalid("a session without a name");
  const double now = real_clock().now_seconds();
  std::erase_if(sessions_, [&](const auto& entry) {
    const Session& session = *entry.second;
    return entry.first != name && !session.is_attached() &&
           now - session.detached_since() > kKeptSeconds;
  });
  const auto found = sessions_.find(name);
  if (found != sessions_.end()) return found->second;
  HONE_RETURN_IF_ERROR(make_room_for_session());
  return sessions_.emplace(name, std::make_shared<Session>(store_, turns_, options_.start_model))
      .first->second;
}

// The tuner whose session makes room sends its jobs again if it comes back.
Status Service::make_room_for_session() {
  if (sessions_.size() < kMostSessions) return ok_status();
  auto oldest = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    if (it->second->is_attached()) continue;
    if (oldest == sessions_.end() ||
        it->second->detached_since() < oldest->second->detached_since())
      oldest = it;
  }
  if (oldest == sessions_.end())
    return error(Code::kUnsupported, "{} connections of tuners use this server, which is its limit",
                 kMostSessions);
  sessions_.erase(oldest);
  return ok_status();
}

Service::Peer::~Peer() {
  if (session_ == nullptr) return;
  const std::lock_guard lock(service_.mutex_);
  session_->detach(connection_.get());
  if (!session_->is_attached() && session_->is_idle())
    std::erase_if(service_.sessions_, [&](const auto& entry) { return entry.second == session_; });
}

Status Service::Peer::take(std::string_view message) {
  const Status status = session_ == nullptr ? greet(message) : session_->take(message);
  if (!status.ok()) connection_->send(encode_refusal(status.message()));
  return status;
}

Status Service::Peer::greet(std::string_view message) {
  HONE_ASSIGN_OR_RETURN(const Kind kind, kind_of(message));
  if (kind != Kind::kHello) return invalid("a message before the hello");
  HONE_ASSIGN_OR_RETURN(const Hello hello, decode<Hello>(message));
  const ServiceOptions& options = service_.options_;
  Welcome welcome{.job_version = wire::kProtocolVersion,
                  .hone = options.hone,
                  .instance = service_.instance_,
                  .boot = service_.boot_,
                  .operand_bytes = service_.store_.most_bytes(),
                  .target = options.target};
  if (hello.version != kVersion || hello.job_version != wire::kProtocolVersion) {
    // The tuner says it better: it knows how it calls this machine.
    connection_->send(encode(welcome));
    return invalid("the tuner's protocol is {}.{} (hone {}), expected {}.{} (hone {})",
                   hello.version, hello.job_version, hello.hone, kVersion, wire::kProtocolVersion,
                   options.hone);
  }
  const std::lock_guard lock(service_.mutex_);
  HONE_ASSIGN_OR_RETURN(session_, service_.session_of(hello.session));
  welcome.last_job = session_->last_job();
  connection_->send(encode(welcome));
  session_->attach(connection_, hello.answered);
  return ok_status();
}

}  // namespace hone::remote
