#include "hone/remote/remote_runner.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "hone/base/allocation.h"
#include "hone/base/clock.h"
#include "hone/base/log.h"
#include "hone/base/wire.h"
#include "hone/measure/protocol.h"
#include "hone/remote/give_operands.h"
#include "hone/remote/link.h"
#include "hone/remote/names.h"
#include "hone/remote/operand_digest.h"

namespace hone::remote {
namespace {

using measure::Measurement;

constexpr double kSlice = 0.02;      // between looks for new jobs, while others are measured
constexpr double kMoreSeconds = 90;  // beyond a job's own limit: its worker may start anew first
constexpr double kEndSeconds = 1;    // for the server to read that it may drop jobs
constexpr int kMostRestarts = 2;     // of the server, with one and the same job the next

struct Pending {
  uint64_t sequence;
  std::shared_ptr<const measure::Job> job;
  bool is_sent = false;
  double sent = 0;
  double started = 0;  // when the server began to measure it; 0: not yet
  int restarts = 0;    // of the server, while it was the first
};

class RemoteRunner final : public measure::Runner {
 public:
  explicit RemoteRunner(MachineAddress address) : address_(std::move(address)) {}
  ~RemoteRunner() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    if (driver_.joinable()) driver_.join();
  }

  [[nodiscard]] Status open() {
    HONE_ASSIGN_OR_RETURN(session_, random_name());
    HONE_RETURN_IF_ERROR(connect());
    driver_ = start_thread([this] { drive(); });
    return ok_status();
  }

  [[nodiscard]] std::string_view name() const override { return "remote"; }

  [[nodiscard]] Status submit(std::vector<measure::Job> batch) override {
    const std::lock_guard lock(mutex_);
    for (measure::Job& job : batch)
      jobs_.push_back({++last_sequence_, std::make_shared<const measure::Job>(std::move(job))});
    changed_.notify_all();
    return broken_;
  }

  [[nodiscard]] Result<std::vector<Measurement>> collect() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return jobs_.empty() || !broken_.ok(); });
    if (!broken_.ok()) return broken_;
    std::vector<Measurement> answers;
    for (auto& [sequence, answer] : done_) answers.push_back(std::move(answer));
    done_.clear();
    return answers;
  }

  void cancel() override {
    const std::lock_guard lock(mutex_);
    jobs_.clear();
    done_.clear();
    cancelled_ = last_sequence_;
    changed_.notify_all();
  }

 private:
  void drive() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
        if (closing_) {
          const bool is_owed = !jobs_.empty() || told_cancelled_ < cancelled_;
          const uint64_t last = last_sequence_;
          lock.unlock();
          if (is_owed) renounce(last);
          return;
        }
      }
      Status status = exchange();
      if (is_passing(status)) status = reconnect(status);
      if (status.ok()) continue;
      const std::lock_guard lock(mutex_);
      if (closing_) return;
      broken_ = status;
      jobs_.clear();
      changed_.notify_all();
      return;
    }
  }

  // What nobody waits for any more would take the turns of other tuners. The answer to a question
  // behind the cancel says that the server has read both: the connection may end.
  void renounce(uint64_t last) {
    if (link_ == nullptr || !link_->send(encode(Cancel{last})).ok() ||
        !link_->send(encode(Question{})).ok())
      return;
    const double end = real_clock().now_seconds() + kEndSeconds;
    for (double rest = kEndSeconds; rest > 0; rest = end - real_clock().now_seconds()) {
      const Result<std::string> message = link_->receive(rest);
      if (!message.ok()) return;
      const Result<Kind> kind = kind_of(*message);
      if (!kind.ok() || *kind == Kind::kAnswer) return;
    }
  }

  // Sends what may be sent, and takes one message if there is one.
  [[nodiscard]] Status exchange() {
    if (told_cancelled_ < cancelled()) {
      told_cancelled_ = cancelled();
      HONE_RETURN_IF_ERROR(link_->send(encode(Cancel{told_cancelled_})));
    }
    while (const std::optional<Pending> next = next_to_send()) HONE_RETURN_IF_ERROR(send(*next));
    const Result<std::string> message = link_->receive(kSlice);
    if (message.ok()) return take(*message);
    if (message.status().code() != Code::kTimeout) return message.status();
    return check_time();
  }

  [[nodiscard]] uint64_t cancelled() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }

  [[nodiscard]] std::optional<Pending> next_to_send() {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < std::min(jobs_.size(), kMostJobs); ++i) {
      if (!jobs_[i].is_sent) return jobs_[i];
    }
    return std::nullopt;
  }

  [[nodiscard]] Status send(const Pending& pending) {
    const measure::Job& job = *pending.job;
    if (job.operands != nullptr) {
      HONE_ASSIGN_OR_RETURN(const std::string problem, give_operands(*job.operands));
      if (!problem.empty()) {
        finish(pending.sequence, measure::failed(job.id, trial::Outcome::kLoad, problem));
        return ok_status();
      }
    }
    const Status status =
        link_->send(encode(JobText{pending.sequence, job.timeout_seconds, encode_job(job)}));
    if (status.code() == Code::kUnsupported) {  // it is too long
      finish(pending.sequence, measure::failed(job.id, trial::Outcome::kLoad, status.message()));
      return ok_status();
    }
    HONE_RETURN_IF_ERROR(status);
    const double now = real_clock().now_seconds();
    change(pending.sequence, [now](Pending& sent) { sent.is_sent = true, sent.sent = now; });
    return ok_status();
  }

  // Returns why the server cannot have these operands; "" if it has them.
  [[nodiscard]] Result<std::string> give_operands(const measure::Operands& operands) {
    if (given_ == operands.id()) return std::string();
    given_ = 0;
    const auto known = digests_.find(operands.id());
    if (known == digests_.end()) {
      HONE_ASSIGN_OR_RETURN(digests_[operands.id()], digest_of(operands));
    }
    // Results of other jobs may come before the answer.
    const auto take_other = [this](const std::string& message) { return take(message); };
    HONE_ASSIGN_OR_RETURN(std::string problem,
                          give(*link_, operands, digests_[operands.id()], take_other));
    if (problem.empty()) given_ = operands.id();
    return problem;
  }

  [[nodiscard]] Status take(const std::string& message) {
    HONE_ASSIGN_OR_RETURN(const Kind kind, kind_of(message));
    last_answer_ = real_clock().now_seconds();
    if (kind == Kind::kStarted) {
      HONE_ASSIGN_OR_RETURN(const Started started, decode<Started>(message));
      change(started.sequence, [this](Pending& pending) { pending.started = last_answer_; });
    } else if (kind == Kind::kResult) {
      HONE_ASSIGN_OR_RETURN(const ResultText result, decode<ResultText>(message));
      HONE_ASSIGN_OR_RETURN(Measurement measurement,
                            measure::decode_measurement(result.measurement));
      finish(result.sequence, std::move(measurement));
    }
    return ok_status();
  }

  // A server that is alive, but does not end what it has begun, or begins nothing, is as good as
  // lost.
  [[nodiscard]] Status check_time() {
    const double now = real_clock().now_seconds();
    std::optional<Pending> late;
    {
      const std::lock_guard lock(mutex_);
      if (!jobs_.empty() && jobs_.front().is_sent && jobs_.front().started == 0 &&
          now - std::max(jobs_.front().sent, last_answer_) > address_.queue_seconds)
        return error(Code::kInternal, "{} has not begun a job for {} s", address_.name,
                     address_.queue_seconds);
      for (const Pending& pending : jobs_) {
        if (pending.started > 0 &&
            now - pending.started > pending.job->timeout_seconds + kMoreSeconds)
          late = pending;
      }
    }
    if (late) {
      finish(late->sequence,
             measure::failed(late->job->id, trial::Outcome::kTimeout,
                             fmt::format("the server did not end it within {} s",
                                         late->job->timeout_seconds + kMoreSeconds)));
    }
    return ok_status();
  }

  void change(uint64_t sequence, const std::function<void(Pending&)>& how) {
    const std::lock_guard lock(mutex_);
    for (Pending& pending : jobs_) {
      if (pending.sequence == sequence) how(pending);
    }
  }

  void finish(uint64_t sequence, Measurement measurement) {
    const std::lock_guard lock(mutex_);
    const auto pending = std::find_if(jobs_.begin(), jobs_.end(), [&](const Pending& other) {
      return other.sequence == sequence;
    });
    if (pending == jobs_.end()) return;  // it was cancelled
    measurement.id = pending->job->id;
    jobs_.erase(pending);
    done_[sequence] = std::move(measurement);
    changed_.notify_all();
  }

  [[nodiscard]] Status connect() {
    Hello hello{.job_version = wire::kProtocolVersion, .session = session_};
    {
      const std::lock_guard lock(mutex_);
      hello.answered = jobs_.empty() ? last_sequence_ : jobs_.front().sequence - 1;
    }
    HONE_ASSIGN_OR_RETURN(link_, Link::open(address_, hello));
    given_ = 0, told_cancelled_ = 0, last_answer_ = real_clock().now_seconds();
    const Welcome& welcome = link_->welcome();
    const bool is_another = !instance_.empty() && instance_ != welcome.instance;
    instance_ = welcome.instance;
    {
      const std::lock_guard lock(mutex_);
      for (Pending& pending : jobs_) pending.is_sent = pending.sequence <= welcome.last_job;
    }
    if (is_another) blame();
    const std::lock_guard lock(mutex_);
    for (Pending& pending : jobs_) {
      if (!pending.is_sent) pending.started = 0;
    }
    return ok_status();
  }

  // The job that a server was measuring when it ended may have been the reason.
  void blame() {
    std::optional<Pending> first;
    {
      const std::lock_guard lock(mutex_);
      if (jobs_.empty()) return;
      Pending& pending = jobs_.front();
      if (pending.started == 0 && ++pending.restarts < kMostRestarts) return;
      first = pending;
    }
    finish(first->sequence, measure::failed(first->job->id, trial::Outcome::kCrash,
                                            "the server was started again while it measured this"));
  }

  [[nodiscard]] Status reconnect(const Status& why) {
    link_.reset();
    log_warning("{}; connecting again", why.message());
    return try_again(
        address_, [this] { return connect(); },
        [this](double seconds) {
          std::unique_lock lock(mutex_);
          changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                            [this] { return closing_; });
          return !closing_;
        });
  }

  const MachineAddress address_;
  std::string session_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Pending> jobs_;  // without an answer, in the order of submit()
  std::map<uint64_t, Measurement> done_;
  uint64_t last_sequence_ = 0, cancelled_ = 0;
  bool closing_ = false;
  Status broken_;
  // What follows belongs to the driver.
  std::unique_ptr<Link> link_;
  std::string instance_;
  uint64_t given_ = 0;                  // id of the operands that the next job would have
  std::map<uint64_t, Digest> digests_;  // by id
  uint64_t told_cancelled_ = 0;
  double last_answer_ = 0;  // when there was one about a job
  std::thread driver_;
};

}  // namespace

Result<std::unique_ptr<measure::Runner>> make_remote_runner(const MachineAddress& address) {
  auto runner = std::make_unique<RemoteRunner>(address);
  HONE_RETURN_IF_ERROR(runner->open());
  return std::unique_ptr<measure::Runner>(std::move(runner));
}

}  // namespace hone::remote
