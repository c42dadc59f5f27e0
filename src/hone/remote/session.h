// remote/session.h - a tuner as a server knows it while connections come and go: its jobs, and the
// results that it may not have received. A model that it runs lives as long as a connection. Any
// thread may call it.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "hone/remote/model_host.h"
#include "hone/remote/operand_store.h"
#include "hone/remote/turns.h"

namespace hone::remote {

// The way back to a tuner. Neither function waits.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void send(std::string message) = 0;
  virtual void close() = 0;  // another connection has taken its place
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(OperandStore& store, Turns& turns, ModelHost::Start start_model)
      : store_(store), turns_(turns), start_model_(std::move(start_model)) {}
  ~Session() { turns_.drop(this); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // From now on it answers there, beginning with the results after the job `answered`.
  void attach(std::shared_ptr<Connection> connection, uint64_t answered);
  // Forgets the connection, unless another one has taken its place.
  void detach(const Connection* connection);
  [[nodiscard]] bool is_attached() const;
  [[nodiscard]] double detached_since() const;  // in the seconds of the real clock
  [[nodiscard]] uint64_t last_job() const;
  // Returns whether nothing would be lost with it: no work, and no result that may not have
  // arrived.
  [[nodiscard]] bool is_idle() const;

  // Takes a message of any kind that follows a hello. An error says what is wrong with it.
  [[nodiscard]] Status take(std::string_view message);

 private:
  [[nodiscard]] Status take_offer(std::string_view message);
  [[nodiscard]] Status take_piece(std::string_view message);
  [[nodiscard]] Status take_job(std::string_view message);
  [[nodiscard]] Status take_cancel(std::string_view message);
  [[nodiscard]] Status take_question(std::string_view message);
  [[nodiscard]] Status take_model_call(std::string_view message);
  void answer(const Digest& digest, Result<OperandStore::State> state);
  void wait_for_room();
  void make_room();
  void measure(uint64_t sequence, measure::Job job, const Result<measure::Runner*>& runner);
  void finish(uint64_t sequence, const measure::Measurement& measurement);
  void send(std::string message);

  OperandStore& store_;
  Turns& turns_;
  const ModelHost::Start start_model_;
  mutable std::mutex mutex_;
  std::shared_ptr<Connection> connection_;
  double detached_since_ = 0;
  std::shared_ptr<const measure::Operands> operands_;  // those of the jobs that follow
  bool complete_ = false;
  Digest last_offer_;             // what is said of others does not change operands_
  std::optional<Offer> waiting_;  // for room, until a later offer takes its place
  bool has_turn_ = false;         // among turns_, to make room
  std::shared_ptr<ModelHost> model_;
  uint64_t last_job_ = 0, cancelled_ = 0;
  std::deque<ResultText> results_;  // the last ones
};

}  // namespace hone::remote
