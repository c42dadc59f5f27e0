#include "hone/remote/session.h"

#include <algorithm>
#include <utility>

#include "hone/base/clock.h"
#include "hone/base/memory_bound.h"
#include "hone/measure/core_state.h"
#include "hone/measure/host_load.h"
#include "hone/measure/protocol.h"
#include "hone/measure/sweep.h"

namespace hone::remote {
namespace {

constexpr size_t kKeptResults = 4 * kMostJobs;
constexpr double kMostSeconds = 600;  // of a job or a call; tuners ask for some ten for a job

Answer answer_to(const Question& question) {
  Answer answer{.id = question.id};
  switch (question.what) {
    case What::kLoad:
      if (const auto sample = measure::sample_machine()) answer.known = true, answer.load = *sample;
      break;
    case What::kCores:
      if (question.argument < 1 || question.argument > 4096) break;
      if (const auto look = measure::look_at_threads(static_cast<int>(question.argument))) {
        const measure::CoreState state = look();
        answer.known = true, answer.slowdown = state.slowdown, answer.exchange = state.exchange;
      }
      break;
    case What::kInCache:
      answer.known = true;
      answer.in_cache = question.argument > 0 && question.argument < memory_here().main / 8 &&
                        measure::stays_in_cache(question.argument);
      break;
  }
  return answer;
}

}  // namespace

void Session::attach(std::shared_ptr<Connection> connection, uint64_t answered) {
  const std::lock_guard lock(mutex_);
  if (connection_ != nullptr && connection_ != connection) {
    connection_->close();
    if (model_ != nullptr) model_->stop();  // as in detach(), which the old one calls too late
    model_ = nullptr;
  }
  connection_ = std::move(connection);
  std::erase_if(results_, [&](const ResultText& result) { return result.sequence <= answered; });
  for (const ResultText& result : results_) connection_->send(encode(result));
}

void Session::detach(const Connection* connection) {
  const std::lock_guard lock(mutex_);
  if (connection_.get() != connection) return;
  connection_.reset();
  if (model_ != nullptr) model_->stop();  // the tuner loads it again: its library is still here
  model_ = nullptr;
  detached_since_ = real_clock().now_seconds();
}

bool Session::is_attached() const {
  const std::lock_guard lock(mutex_);
  return connection_ != nullptr;
}

double Session::detached_since() const {
  const std::lock_guard lock(mutex_);
  return detached_since_;
}

uint64_t Session::last_job() const {
  const std::lock_guard lock(mutex_);
  return last_job_;
}

bool Session::is_idle() const {
  if (turns_.is_busy(this)) return false;
  const std::lock_guard lock(mutex_);
  return results_.empty();
}

void Session::send(std::string message) {
  const std::lock_guard lock(mutex_);
  if (connection_ != nullptr) connection_->send(std::move(message));
}

Status Session::take(std::string_view message) {
  HONE_ASSIGN_OR_RETURN(const Kind kind, kind_of(message));
  switch (kind) {
    case Kind::kOffer: return take_offer(message);
    case Kind::kPiece: return take_piece(message);
    case Kind::kJob: return take_job(message);
    case Kind::kCancel: return take_cancel(message);
    case Kind::kQuestion: return take_question(message);
    case Kind::kModelCall: return take_model_call(message);
    default:
      return invalid("a message of kind {}, which a server does not take", static_cast<int>(kind));
  }
}

void Session::answer(const Digest& digest, Result<OperandStore::State> state) {
  Held held{.digest = digest};
  {
    const std::lock_guard lock(mutex_);
    if (digest == last_offer_) {
      complete_ = state.ok() && state->complete;
      operands_ = state.ok() ? state->operands : nullptr;
    }
  }
  if (state.ok()) {
    held.bytes = state->bytes;
  } else {
    held.problem = state.status().message();
  }
  send(encode(held));
}

Status Session::take_offer(std::string_view message) {
  HONE_ASSIGN_OR_RETURN(Offer offer, decode<Offer>(message));
  {
    const std::lock_guard lock(mutex_);
    operands_.reset();  // they may make room
    last_offer_ = offer.digest;
    waiting_.reset();
  }
  Result<OperandStore::State> state = store_.offer(offer);
  if (state.ok() || offer.layout.total_bytes > store_.most_bytes()) {
    answer(offer.digest, std::move(state));
    return ok_status();
  }
  const std::lock_guard lock(mutex_);
  // Another connection of this session may have offered something else meanwhile.
  if (!(offer.digest == last_offer_)) return ok_status();
  waiting_ = std::move(offer);
  if (!has_turn_) wait_for_room();
  return ok_status();
}

// The process that measures keeps operands of earlier jobs, which may be what is in the way.
void Session::wait_for_room() {
  has_turn_ = true;
  turns_.add(this, [self = weak_from_this()](const Result<measure::Runner*>&) {
    const std::shared_ptr<Session> session = self.lock();
    if (session != nullptr) session->make_room();
  });
}

void Session::make_room() {
  std::optional<Offer> offer;
  {
    const std::lock_guard lock(mutex_);
    has_turn_ = false;
    offer = std::exchange(waiting_, std::nullopt);
  }
  if (!offer) return;
  turns_.end_runner();
  answer(offer->digest, store_.offer(*offer));
}

Status Session::take_piece(std::string_view message) {
  HONE_ASSIGN_OR_RETURN(const Piece piece, decode<Piece>(message));
  Result<OperandStore::State> state = store_.add(piece);
  if (state.status().code() == Code::kInvalid) return state.status();
  // Only the last piece is answered, or what is wrong with one.
  if (!state.ok() || state->complete) answer(piece.digest, std::move(state));
  return ok_status();
}

Status Session::take_job(std::string_view message) {
  HONE_ASSIGN_OR_RETURN(const JobText text, decode<JobText>(message));
  HONE_ASSIGN_OR_RETURN(measure::JobMessage decoded, measure::decode_job(text.job));
  if (!(text.timeout_seconds > 0 && text.timeout_seconds <= kMostSeconds))
    return invalid("a job of {} seconds, expected {} at most", text.timeout_seconds, kMostSeconds);
  if (turns_.waiting(this) > kMostJobs) return invalid("more than {} jobs at a time", kMostJobs);
  measure::Job& job = decoded.job;
  job.timeout_seconds = text.timeout_seconds;
  {
    const std::lock_guard lock(mutex_);
    if (text.sequence <= last_job_) return ok_status();  // it was sent again
    if (decoded.operands != 0 && (operands_ == nullptr || !complete_))
      return invalid("a job before its operands");
    last_job_ = text.sequence;
    if (decoded.operands != 0) job.operands = operands_;
  }
  turns_.add(this, [self = weak_from_this(), sequence = text.sequence,
                    kept = std::make_shared<measure::Job>(std::move(job))](
                       const Result<measure::Runner*>& runner) {
    if (const std::shared_ptr<Session> session = self.lock())
      session->measure(sequence, std::move(*kept), runner);
  });
  return ok_status();
}

void Session::measure(uint64_t sequence, measure::Job job, const Result<measure::Runner*>& runner) {
  {
    const std::lock_guard lock(mutex_);
    if (sequence <= cancelled_) return;
  }
  send(encode(Started{sequence}));
  finish(sequence, measure_one(runner, std::move(job)));
}

void Session::finish(uint64_t sequence, const measure::Measurement& measurement) {
  const std::lock_guard lock(mutex_);
  results_.push_back({sequence, measure::encode(measurement)});
  if (results_.size() > kKeptResults) results_.pop_front();
  if (connection_ != nullptr) connection_->send(encode(results_.back()));
}

Status Session::take_cancel(std::string_view message) {
  HONE_ASSIGN_OR_RETURN(const Cancel cancel, decode<Cancel>(message));
  const std::lock_guard lock(mutex_);
  cancelled_ = std::max(cancelled_, std::min(cancel.sequence, last_job_));
  if (cancelled_ != last_job_) return ok_status();
  turns_.drop(this);  // what waits makes room for other jobs
  has_turn_ = false;
  if (waiting_) wait_for_room();
  return ok_status();
}

Status Session::take_question(std::string_view message) {
  HONE_ASSIGN_OR_RETURN(const Question question, decode<Question>(message));
  if (question.what == What::kLoad) {
    send(encode(answer_to(question)));
    return ok_status();
  }
  if (turns_.waiting(this) > kMostJobs)
    return invalid("more than {} questions at a time", kMostJobs);
  // What takes time on the cores waits for its turn.
  turns_.add(this, [self = weak_from_this(), question](const Result<measure::Runner*>&) {
    if (const std::shared_ptr<Session> session = self.lock())
      session->send(encode(answer_to(question)));
  });
  return ok_status();
}

Status Session::take_model_call(std::string_view message) {
  HONE_ASSIGN_OR_RETURN(const ModelCall call, decode<ModelCall>(message));
  if (!(call.timeout_seconds > 0 && call.timeout_seconds <= kMostSeconds))
    return invalid("a call of {} seconds, expected {} at most", call.timeout_seconds, kMostSeconds);
  if (turns_.waiting(this) > kMostJobs) return invalid("more than {} calls at a time", kMostJobs);
  std::shared_ptr<const measure::Operands> data;
  std::shared_ptr<ModelHost> model;
  {
    const std::lock_guard lock(mutex_);
    if (call.function == ModelFunction::kLoad || call.function == ModelFunction::kRun) {
      if (operands_ == nullptr || !complete_) return invalid("a call before its data");
      data = operands_;
    }
    if (model_ == nullptr) model_ = std::make_shared<ModelHost>();
    model = model_;
  }
  if (call.function == ModelFunction::kFetch) {
    send(encode(model->fetch(call)));
    return ok_status();
  }
  turns_.add(this, [self = weak_from_this(), model, call, data](const Result<measure::Runner*>&) {
    if (const std::shared_ptr<Session> session = self.lock())
      session->send(encode(model->call(call, data, session->start_model_)));
  });
  return ok_status();
}

}  // namespace hone::remote
