#include "hone/remote/service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <future>

#include "hone/base/wire.h"
#include "hone/measure/null_runner.h"
#include "hone/measure/protocol.h"
#include "hone/remote/operand_digest.h"

namespace hone::remote {
namespace {

// The tuner's end of a connection.
class Inbox final : public Connection {
 public:
  void send(std::string message) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    arrived_.notify_all();
  }
  void close() override { is_closed_ = true; }
  // Waits for the next message.
  std::string next() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !messages_.empty(); });
    std::string message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  [[nodiscard]] bool is_closed() const { return is_closed_; }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::string> messages_;
  std::atomic<bool> is_closed_ = false;
};

std::unique_ptr<Service> make_service(int64_t operand_bytes = 1 << 20) {
  ServiceOptions options{.operand_bytes = operand_bytes, .target = target::host(), .hone = "1"};
  options.make_runner = [] {
    return Result<std::unique_ptr<measure::Runner>>(std::make_unique<measure::NullRunner>(
        [](const measure::Job& job) { return 1e-3 * static_cast<double>(job.id); }));
  };
  return Service::create(std::move(options)).value();
}

std::string hello(const std::string& session, uint64_t answered = 0) {
  return encode(
      Hello{.job_version = wire::kProtocolVersion, .session = session, .answered = answered});
}

std::string job(uint64_t sequence, const measure::Job& job) {
  return encode(JobText{sequence, 10, measure::encode_job(job)});
}

struct Client {
  Client(Service& service, const std::string& session, uint64_t answered = 0)
      : peer(service.connect(inbox)) {
    EXPECT_TRUE(peer->take(hello(session, answered)).ok());
    welcome = decode<Welcome>(inbox->next()).value();
  }
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();
  std::unique_ptr<Service::Peer> peer;
  Welcome welcome;
};

measure::Measurement expect_result(Inbox& inbox, uint64_t sequence) {
  EXPECT_EQ(decode<Started>(inbox.next()).value().sequence, sequence);
  const ResultText result = decode<ResultText>(inbox.next()).value();
  EXPECT_EQ(result.sequence, sequence);
  return measure::decode_measurement(result.measurement).value();
}

TEST(service, measures_for_a_tuner) {
  const auto service = make_service();
  Client client(*service, "a");
  EXPECT_EQ(target::device_key(client.welcome.target), target::device_key(target::host()));
  EXPECT_EQ(client.welcome.last_job, 0U);
  ASSERT_TRUE(client.peer->take(job(1, {.id = 4})).ok());
  EXPECT_EQ(expect_result(*client.inbox, 1).timing.centre, 4e-3);
}

TEST(service, goes_on_with_a_session_over_another_connection) {
  const auto service = make_service();
  auto first = std::make_unique<Client>(*service, "a");
  ASSERT_TRUE(first->peer->take(job(1, {.id = 4})).ok());
  ASSERT_TRUE(first->peer->take(job(2, {.id = 5})).ok());
  (void)expect_result(*first->inbox, 1);
  (void)expect_result(*first->inbox, 2);
  // The result of the second job got lost, and the server does not know yet that the connection is.
  Client second(*service, "a", 1);
  EXPECT_TRUE(first->inbox->is_closed());
  EXPECT_EQ(second.welcome.last_job, 2U);
  EXPECT_EQ(second.welcome.instance, first->welcome.instance);
  EXPECT_EQ(decode<ResultText>(second.inbox->next()).value().sequence, 2U);
  first.reset();                                           // it does not take the session along
  ASSERT_TRUE(second.peer->take(job(2, {.id = 5})).ok());  // sent again: it has been measured
  ASSERT_TRUE(second.peer->take(job(3, {.id = 6})).ok());
  EXPECT_EQ(expect_result(*second.inbox, 3).id, 6U);
  EXPECT_NE(make_service()->connect(second.inbox), nullptr);
  EXPECT_NE(Client(*make_service(), "a").welcome.instance, second.welcome.instance);
}

TEST(service, takes_operands_before_jobs) {
  const auto service = make_service();
  Client client(*service, "a");
  const float numbers[] = {1, 2, 3};
  const measure::OperandSpec specs[] = {{ir::Role::kInput, sizeof numbers, numbers}};
  const auto operands = measure::Operands::create(specs).value();
  const Digest digest = digest_of(*operands).value();
  ASSERT_TRUE(client.peer->take(encode(Offer{digest, operands->layout()})).ok());
  EXPECT_EQ(decode<Held>(client.inbox->next()).value().bytes, 0);
  std::string bytes(static_cast<size_t>(operands->layout().total_bytes), '\0');
  std::memcpy(bytes.data(), numbers, sizeof numbers);
  ASSERT_TRUE(client.peer->take(encode(Piece{digest, 0, bytes})).ok());
  EXPECT_EQ(decode<Held>(client.inbox->next()).value().bytes, std::ssize(bytes));
  measure::Job with_operands{.id = 3};
  with_operands.operands = operands;
  ASSERT_TRUE(client.peer->take(job(1, with_operands)).ok());
  EXPECT_EQ(expect_result(*client.inbox, 1).outcome, trial::Outcome::kOk);
  Client other(*service, "b");
  ASSERT_TRUE(other.peer->take(encode(Offer{digest, operands->layout()})).ok());
  EXPECT_EQ(decode<Held>(other.inbox->next()).value().bytes, std::ssize(bytes));
}

TEST(service, says_what_operands_are_too_large) {
  const auto service = make_service(1 << 20);
  Client client(*service, "a");
  measure::OperandLayout layout;
  layout.entries = {{ir::Role::kInput, int64_t{10} << 30, 0}};
  layout.total_bytes = int64_t{10} << 30;
  ASSERT_TRUE(client.peer->take(encode(Offer{{1, 2}, layout})).ok());
  EXPECT_EQ(decode<Held>(client.inbox->next()).value().problem,
            "operands of 10737418240 bytes, but the server's cache holds 1048576 (hone serve "
            "--cache)");
}

// Offers data of so many bytes and sends it.
Held give(Client& client, const measure::Operands& operands) {
  const Digest digest = digest_of(operands).value();
  EXPECT_TRUE(client.peer->take(encode(Offer{digest, operands.layout()})).ok());
  Held held = decode<Held>(client.inbox->next()).value();
  if (!held.problem.empty() || held.bytes == operands.layout().total_bytes) return held;
  std::string bytes(static_cast<size_t>(operands.layout().total_bytes), '\0');
  EXPECT_EQ(::pread(operands.fd(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
  EXPECT_TRUE(client.peer->take(encode(Piece{digest, 0, bytes})).ok());
  return decode<Held>(client.inbox->next()).value();
}

std::shared_ptr<const measure::Operands> operands_of(char fill, size_t bytes) {
  const std::string contents(bytes, fill);
  const measure::OperandSpec specs[] = {
      {ir::Role::kInput, static_cast<int64_t>(bytes), contents.data()}};
  return measure::Operands::create(specs).value();
}

// The operands of the last job stay with the runner, as with a worker, until it ends.
TEST(service, takes_operands_from_an_idle_runner_if_there_is_no_room_for_others) {
  ServiceOptions options{.operand_bytes = 1 << 20, .target = target::host(), .hone = "1"};
  options.make_runner = [] {
    auto kept = std::make_shared<std::shared_ptr<const measure::Operands>>();
    return Result<std::unique_ptr<measure::Runner>>(
        std::make_unique<measure::NullRunner>([kept](const measure::Job& job) {
          *kept = job.operands;
          return 1e-3;
        }));
  };
  const auto service = Service::create(std::move(options)).value();
  Client client(*service, "a");
  const auto first = operands_of('a', 700'000), second = operands_of('b', 700'000);
  EXPECT_EQ(give(client, *first).problem, "");
  measure::Job with_operands{.id = 3};
  with_operands.operands = first;
  ASSERT_TRUE(client.peer->take(job(1, with_operands)).ok());
  EXPECT_EQ(expect_result(*client.inbox, 1).outcome, trial::Outcome::kOk);
  EXPECT_EQ(give(client, *second).problem, "");
  EXPECT_EQ(give(client, *first).problem, "");
  Client other(*service, "b");  // what a tuner is to measure next stays
  EXPECT_EQ(give(other, *second).problem,
            "operands of 700032 bytes do not fit beside those in use in the server's cache of "
            "1048576 bytes (hone serve --cache)");
}

// A connection that is made again offers again; a tuner measures only what it offered last.
TEST(service, keeps_one_offer_that_waits_for_room) {
  std::promise<void> measuring, may_end;
  ServiceOptions options{.operand_bytes = 1 << 20, .target = target::host(), .hone = "1"};
  options.make_runner = [&] {
    return Result<std::unique_ptr<measure::Runner>>(
        std::make_unique<measure::NullRunner>([&](const measure::Job&) {
          measuring.set_value();
          may_end.get_future().wait_for(std::chrono::seconds(20));
          return 1e-3;
        }));
  };
  const auto service = Service::create(std::move(options)).value();
  Client busy(*service, "a"), client(*service, "b");
  const auto first = operands_of('a', 700'000), second = operands_of('b', 700'000),
             third = operands_of('c', 700'000);
  EXPECT_EQ(give(busy, *first).problem, "");
  measure::Job with_operands{.id = 3};
  with_operands.operands = first;
  ASSERT_TRUE(busy.peer->take(job(1, with_operands)).ok());
  measuring.get_future().wait();
  ASSERT_TRUE(busy.peer->take(encode(Offer{{1, 2}, operands_of('d', 1)->layout()})).ok());
  const auto offer_of = [](const auto& operands) {
    return encode(Offer{digest_of(*operands).value(), operands->layout()});
  };
  const auto second_offer = offer_of(second), third_offer = offer_of(third);
  for (int i = 0; i < 100; ++i) {
    for (const auto& offer : {second_offer, third_offer})
      ASSERT_TRUE(client.peer->take(offer).ok());
  }
  ASSERT_TRUE(client.peer->take(encode(Question{1, What::kInCache, -1})).ok());
  ASSERT_TRUE(client.peer->take(encode(Cancel{0})).ok());  // of jobs, not of offers
  ASSERT_TRUE(client.peer->take(encode(Question{2, What::kInCache, -1})).ok());
  may_end.set_value();
  const Held held = decode<Held>(client.inbox->next()).value();
  EXPECT_EQ(held.digest, digest_of(*third).value());
  EXPECT_EQ(held.problem, "");
  EXPECT_EQ(decode<Answer>(client.inbox->next()).value().id, 2U);
}

TEST(service, runs_models_only_if_it_can_start_a_process_for_them) {
  const auto service = make_service();
  Client client(*service, "a");
  EXPECT_EQ(give(client, *operands_of('a', 100)).problem, "");
  const auto reply = [&](ModelFunction function) {
    EXPECT_TRUE(client.peer->take(encode(ModelCall{5, function, 10, ""})).ok());
    return decode<ModelReply>(client.inbox->next()).value();
  };
  EXPECT_EQ(reply(ModelFunction::kLoad).problem, "this server runs no models");
  EXPECT_EQ(reply(ModelFunction::kRun).problem, "no model is loaded");
  EXPECT_EQ(reply(ModelFunction::kFetch).code, Code::kInvalid);
  EXPECT_EQ(reply(ModelFunction::kShape).id, 5U);
}

TEST(service, refuses_peers_that_do_not_keep_to_the_protocol) {
  const auto service = make_service();
  const auto refusal = [&](const std::vector<std::string>& messages) {
    const auto inbox = std::make_shared<Inbox>();
    const auto peer = service->connect(inbox);
    Status status = ok_status();
    for (const std::string& message : messages) {
      if (status.ok()) status = peer->take(message);
    }
    EXPECT_FALSE(status.ok());
    std::string last = inbox->next();
    while (kind_of(last).value() != Kind::kRefusal) last = inbox->next();
    return decode_refusal(last).value();
  };
  EXPECT_EQ(refusal({job(1, {})}), "a message before the hello");
  EXPECT_EQ(refusal({"nonsense"}), "a message of the unknown kind 110");
  EXPECT_EQ(refusal({hello("a"), hello("a")}), "a message of kind 1, which a server does not take");
  EXPECT_EQ(refusal({hello("")}), "a session without a name");
  const std::string of_other_version =
      encode(Hello{.version = kVersion + 1, .job_version = wire::kProtocolVersion, .hone = "9"});
  EXPECT_EQ(refusal({of_other_version}),
            fmt::format("the tuner's protocol is {}.{} (hone 9), expected {}.{} (hone 1)",
                        kVersion + 1, wire::kProtocolVersion, kVersion, wire::kProtocolVersion));
  measure::Job with_operands;
  const char byte = 0;
  const measure::OperandSpec specs[] = {{ir::Role::kInput, 1, &byte}};
  with_operands.operands = measure::Operands::create(specs).value();
  EXPECT_EQ(refusal({hello("b"), job(1, with_operands)}), "a job before its operands");
  EXPECT_EQ(refusal({hello("d"), encode(ModelCall{1, ModelFunction::kLoad, 10, ""})}),
            "a call before its data");
  EXPECT_EQ(refusal({hello("e"), encode(ModelCall{1, ModelFunction::kShape, 1e9, ""})}),
            "a call of 1000000000 seconds, expected 600 at most");
  EXPECT_EQ(refusal({hello("c"), encode(JobText{1, -1, measure::encode_job({})})}),
            "a job of -1 seconds, expected 600 at most");
}

TEST(service, answers_what_the_machine_is_like) {
  const auto service = make_service();
  Client client(*service, "a");
  ASSERT_TRUE(client.peer->take(encode(Question{7, What::kLoad, 0})).ok());
  const Answer load = decode<Answer>(client.inbox->next()).value();
  EXPECT_EQ(load.id, 7U);
  EXPECT_TRUE(load.known);
  EXPECT_GT(load.load.cpu.total, 0);
  ASSERT_TRUE(client.peer->take(encode(Question{8, What::kInCache, -1})).ok());
  EXPECT_FALSE(decode<Answer>(client.inbox->next()).value().in_cache);
}

}  // namespace
}  // namespace hone::remote
