#include "hone/remote/remote_machine.h"

#include <map>
#include <utility>

#include "hone/base/clock.h"
#include "hone/base/wire.h"
#include "hone/machine/local.h"
#include "hone/measure/self_test.h"
#include "hone/remote/names.h"
#include "hone/remote/remote_runner.h"

namespace hone::remote {
namespace {

constexpr double kAnswerSeconds = 10;
constexpr double kCacheSeconds = 60;  // reading hundreds of megabytes, again and again

constexpr const char* kTimesNoModels = "whole models are not timed on a machine elsewhere";

Status times_no_models() { return {Code::kUnsupported, kTimesNoModels}; }

}  // namespace

class RemoteMachine::Timer final : public machine::ModelTimer {
 public:
  [[nodiscard]] std::string unable() const override { return kTimesNoModels; }
  [[nodiscard]] Result<std::vector<std::vector<double>>> time_in_turns(
      const std::vector<std::string>&, int, double) const override {
    return times_no_models();
  }
  [[nodiscard]] Result<std::unique_ptr<machine::TimedModel>> load(const artifact::ArtifactSpec&,
                                                                  int) const override {
    return times_no_models();
  }
};

// Asks the server over a connection of its own. What it does not answer is not known, as on a
// system that does not say it; who measures learns from the runner that the machine is lost.
class RemoteMachine::Conditions final : public machine::Conditions {
 public:
  Conditions(const MachineAddress& address, std::string session, std::unique_ptr<Link> link,
             bool is_elsewhere)
      : address_(address),
        session_(std::move(session)),
        cores_(link->welcome().target.cpu().cores),
        is_elsewhere_(is_elsewhere),
        link_(std::move(link)) {}

  [[nodiscard]] measure::CoreWatch::Look core_look(int threads) const override {
    if (threads < 2 || threads > cores_) return {};
    return [this, threads] {
      const Answer answer = ask(What::kCores, threads, kAnswerSeconds);
      return measure::CoreState{answer.slowdown, answer.exchange};
    };
  }
  [[nodiscard]] measure::HostMonitor::Source load() const override {
    return [this]() -> std::optional<measure::HostMonitor::Sample> {
      Answer answer = ask(What::kLoad, 0, kAnswerSeconds);
      if (!answer.known) return std::nullopt;
      // On this machine, what this process does is none of others' work either.
      const auto here = is_elsewhere_ ? std::nullopt : measure::sample_machine();
      if (here) answer.load.own += here->own;
      return answer.load;
    };
  }
  [[nodiscard]] bool stays_in_cache(int64_t bytes) const override {
    return ask(What::kInCache, bytes, kCacheSeconds).in_cache;
  }
  [[nodiscard]] Result<trial::Roofline> roofline(const target::Target&,
                                                 const measure::RooflineOptions&) const override {
    return error(Code::kUnsupported, "they are not measured on a machine elsewhere");
  }

 private:
  Answer ask(What what, int64_t argument, double seconds) const {
    const std::lock_guard lock(mutex_);
    const Question question{++last_question_, what, argument};
    if (link_ == nullptr) reconnect();
    if (link_ == nullptr) return {};
    Status status = link_->send(encode(question));
    while (status.ok()) {
      const Result<std::string> message = link_->receive(seconds);
      status = message.status();
      if (!status.ok()) break;
      const Result<Answer> answer = decode<Answer>(*message);
      if (answer.ok() && answer->id == question.id) return *answer;
    }
    link_.reset();
    return {};
  }

  // At most once in some seconds, so that a machine that is gone delays nobody for long.
  void reconnect() const {
    constexpr double kBetween = 5;
    const double now = real_clock().now_seconds();
    if (now < next_attempt_) return;
    next_attempt_ = now + kBetween;
    const Hello hello{.job_version = wire::kProtocolVersion, .session = session_};
    Result<std::unique_ptr<Link>> link = Link::open(address_, hello);
    if (link.ok()) link_ = *std::move(link);
  }

  const MachineAddress& address_;
  const std::string session_;  // the same for all its connections
  const int cores_;
  const bool is_elsewhere_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Link> link_;
  mutable uint64_t last_question_ = 0;
  mutable double next_attempt_ = 0;
};

RemoteMachine::RemoteMachine(MachineAddress address, std::string session,
                             std::unique_ptr<Link> link)
    : address_(std::move(address)), target_(link->welcome().target) {
  target_.name = "host";
  const std::string& boot = link->welcome().boot;
  is_elsewhere_ = boot.empty() || boot != boot_name();
  conditions_ =
      std::make_unique<Conditions>(address_, std::move(session), std::move(link), is_elsewhere_);
}

RemoteMachine::~RemoteMachine() = default;

Result<std::unique_ptr<RemoteMachine>> RemoteMachine::open(MachineAddress address) {
  Hello hello{.job_version = wire::kProtocolVersion};
  HONE_ASSIGN_OR_RETURN(hello.session, random_name());
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Link> link, Link::open(address, hello));
  return std::unique_ptr<RemoteMachine>(
      new RemoteMachine(std::move(address), std::move(hello.session), std::move(link)));
}

Result<std::unique_ptr<measure::Runner>> RemoteMachine::make_runner(
    const measure::WorkerOptions& /*worker*/, const target::Target& target) const {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<measure::Runner> runner, make_remote_runner(address_));
  HONE_RETURN_IF_ERROR(measure::self_test(*runner, target));
  return runner;
}

const machine::ModelTimer& RemoteMachine::models() const {
  static const Timer timer;
  return timer;
}

const machine::Conditions& RemoteMachine::conditions() const { return *conditions_; }

Result<target::Gpu> RemoteMachine::gpu_here(const target::Gpu& /*described*/) const {
  return error(Code::kUnsupported, "GPUs of machines elsewhere are not measured");
}

Result<const machine::Machine*> machine_named(const std::string& name) {
  if (name.empty()) return &machine::local();
  // Machines live as long as the process: whoever has one may keep it.
  static std::mutex mutex;
  static auto* const machines = new std::map<std::string, std::unique_ptr<RemoteMachine>>();
  const std::lock_guard lock(mutex);
  auto found = machines->find(name);
  if (found == machines->end()) {
    HONE_ASSIGN_OR_RETURN(MachineAddress address, parse_machine(name));
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<RemoteMachine> machine,
                          RemoteMachine::open(std::move(address)));
    found = machines->emplace(name, std::move(machine)).first;
  }
  return found->second.get();
}

}  // namespace hone::remote
