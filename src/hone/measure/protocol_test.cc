#include "hone/measure/protocol.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "hone/base/rng.h"
#include "hone/base/wire.h"
#include "hone/measure/null_runner.h"
#include "hone/measure/verify.h"

namespace hone::measure {
namespace {

using wire::kProtocolVersion;
using wire::MessageType;
using wire::receive_message;
using wire::send_message;

Job sample_job() {
  Job job;
  job.id = 7;
  job.executable.kind = target::Kind::kGpu;
  job.executable.code = std::string("\0any", 4);
  job.executable.prepare_code = std::string("of phase a");
  job.executable.entries = {{"a", 3, true}, {"b", 5, false, 128, 4096}};
  job.executable.scratch_bytes = 640;
  job.arguments = {{ir::Role::kInput, 64, 0}, {ir::Role::kPacked, 128, -1}};
  job.threads = 2;
  job.timing.best = 0.25;
  job.weights = Weights::kShared;
  job.own_cache_bytes = 77;
  job.tolerance = 1e-4;
  job.count_bounds = true;
  return job;
}

TEST(protocol, job_round_trips) {
  const Job job = sample_job();
  const auto back = decode_job(encode_job(job));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->operands, 0U);
  EXPECT_EQ(encode_job(back->job), encode_job(job));
  EXPECT_EQ(back->job.executable.kind, target::Kind::kGpu);
  EXPECT_EQ(back->job.executable.prepare_code.str(), "of phase a");
  EXPECT_EQ(back->job.executable.entries[1].symbol, "b");
  EXPECT_EQ(back->job.executable.entries[1].threads, 128);
  EXPECT_EQ(back->job.executable.entries[1].shared_bytes, 4096);
  EXPECT_EQ(back->job.arguments[1].operand, -1);
  EXPECT_EQ(back->job.timing.best, 0.25);
  EXPECT_TRUE(back->job.count_bounds);
}

TEST(protocol, a_duel_round_trips) {
  Job job = sample_job();
  Job rival = sample_job();
  rival.executable.code = std::string("other");
  job.rival = std::make_shared<Job>(rival);
  job.duel.max_pairs = 11;
  job.swap_memory = true;
  const auto back = decode_job(encode_job(job));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(encode_job(back->job), encode_job(job));
  EXPECT_EQ(back->job.rival->executable.code.str(), "other");
  EXPECT_EQ(back->job.duel.max_pairs, 11);
  EXPECT_TRUE(back->job.swap_memory);
  Measurement m{.id = 3};
  m.duel = {{1, 2}, {3, 4}};
  const auto answer = decode_measurement(encode(m));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->duel.challenger, m.duel.challenger);
  EXPECT_EQ(answer->duel.incumbent, m.duel.incumbent);
  m.duel.incumbent.pop_back();
  EXPECT_FALSE(decode_measurement(encode(m)).ok());
}

TEST(protocol, measurement_round_trips) {
  Measurement m = failed(9, trial::Outcome::kWrongAnswer, "off");
  m.timing = {
      .samples = {1, 2, 3}, .centre = 2, .low = 1, .high = 3, .runs = 30, .stopped_early = true};
  m.error = 0.5;
  const auto back = decode_measurement(encode(m));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(encode(*back), encode(m));
  EXPECT_EQ(back->timing.samples, m.timing.samples);
  EXPECT_EQ(back->message, "off");
  EXPECT_FALSE(back->bounds.has_value());
  m.bounds = {{0.25, 0.5}, "amd_zen5"};
  const auto counted = decode_measurement(encode(m));
  ASSERT_TRUE(counted.ok());
  EXPECT_EQ(counted->bounds->scores.memory, 0.25);
  EXPECT_EQ(counted->bounds->scores.core, 0.5);
  EXPECT_EQ(counted->bounds->source, "amd_zen5");
}

TEST(protocol, any_truncation_or_tail_is_refused) {
  Job job = sample_job();
  job.rival = std::make_shared<Job>(sample_job());
  const std::string bytes = encode_job(job);
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(decode_job(std::string_view(bytes).substr(0, n)).ok()) << n;
  EXPECT_FALSE(decode_job(bytes + "x").ok());
}

TEST(protocol, random_bytes_never_crash) {
  Rng rng(3);
  const std::string good = encode(failed(9, trial::Outcome::kCrash, "some text"));
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (int j = 0; j < 3; ++j)
      bytes[static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())))] =
          static_cast<char>(rng.next());
    const auto m = decode_measurement(bytes);
    if (m.ok()) {
      EXPECT_LE(m->message.size(), bytes.size());
    }
  }
}

class SocketPair {
 public:
  SocketPair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds_), 0); }
  ~SocketPair() { close_end(0), close_end(1); }
  void close_end(int i) {
    if (fds_[i] >= 0) close(fds_[i]);
    fds_[i] = -1;
  }
  int operator[](int i) const { return fds_[i]; }

 private:
  int fds_[2] = {-1, -1};
};

TEST(wire, a_message_carries_bytes_and_a_descriptor) {
  const SocketPair pair;
  const int fd = memfd_create("test", 0);
  ASSERT_EQ(write(fd, "abc", 3), 3);
  ASSERT_TRUE(send_message(pair[0], MessageType::kOperands, "body", fd).ok());
  ASSERT_TRUE(send_message(pair[0], MessageType::kJob, "").ok());
  close(fd);
  const auto first = receive_message(pair[1], 1000);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->body, "body");
  char text[3] = {};
  EXPECT_EQ(pread(first->fd, text, 3, 0), 3);
  EXPECT_EQ(std::string(text, 3), "abc");
  close(first->fd);
  const auto second = receive_message(pair[1], 1000);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->type, MessageType::kJob);
  EXPECT_EQ(second->fd, -1);
}

TEST(wire, silence_is_a_timeout_and_the_end_an_error) {
  SocketPair pair;
  EXPECT_EQ(receive_message(pair[1], 10).status().code(), Code::kTimeout);
  ASSERT_EQ(send(pair[0], "half", 4, 0), 4);
  EXPECT_EQ(receive_message(pair[1], 10).status().code(), Code::kTimeout);
  pair.close_end(0);
  EXPECT_EQ(receive_message(pair[1], 10).status().code(), Code::kIo);
  EXPECT_EQ(send_message(pair[1], MessageType::kJob, "x").code(), Code::kIo);
}

TEST(wire, nonsense_and_another_version_are_refused) {
  const SocketPair pair;
  const std::string nonsense(24, 'x');
  ASSERT_EQ(send(pair[0], nonsense.data(), nonsense.size(), 0), 24);
  EXPECT_EQ(receive_message(pair[1], 1000).status().code(), Code::kInvalid);
  const uint32_t other_version[] = {0x57454e48, kProtocolVersion + 1, 1, 0, 0, 0};
  ASSERT_EQ(send(pair[0], other_version, sizeof(other_version), 0), 24);
  EXPECT_EQ(receive_message(pair[1], 1000).status().message(),
            fmt::format("the worker speaks protocol version {}, expected {}", kProtocolVersion + 1,
                        kProtocolVersion));
}

// No memory is taken for what a header announces.
TEST(wire, a_message_of_10_gb_is_refused) {
  const SocketPair pair;
  const uint64_t length = 10'000'000'000;
  const uint32_t header[] = {0x57454e48,
                             kProtocolVersion,
                             1,
                             0,
                             static_cast<uint32_t>(length),
                             static_cast<uint32_t>(length >> 32)};
  ASSERT_EQ(send(pair[0], header, sizeof(header), 0), 24);
  EXPECT_EQ(receive_message(pair[1], 1000).status().message(),
            "a message that is not of the worker's protocol");
}

TEST(operands, bad_specifications_are_refused) {
  const float data[4] = {};
  const OperandSpec in{ir::Role::kInput, 16, data}, out{ir::Role::kOutput, 16, nullptr};
  EXPECT_TRUE(Operands::create(std::vector{in, out}).ok());
  EXPECT_FALSE(Operands::create(std::vector{OperandSpec{ir::Role::kInput, 16, nullptr}}).ok());
  const auto with = [&](const Expected& e) {
    return Operands::create(std::vector{in, out}, std::vector{e}).ok();
  };
  EXPECT_TRUE(with({.operand = 1, .values = {1, 2, 3, 4}}));
  EXPECT_TRUE(with({.operand = 1, .places = {3}, .values = {1}}));
  EXPECT_FALSE(with({.operand = 0, .values = {1, 2, 3, 4}}));
  EXPECT_FALSE(with({.operand = 1, .values = {1, 2, 3}}));
  EXPECT_FALSE(with({.operand = 1, .places = {4}, .values = {1}}));
  EXPECT_FALSE(with({.operand = 2, .values = {1}}));
}

TEST(verify, error_is_relative_to_the_greatest_value) {
  const float data[] = {1, 2, 4, 8.5F};
  const std::vector<double> all = {1, 2, 4, 8};
  EXPECT_EQ(relative_error(data, DType::kF32, {}, all), 0.0625);
  EXPECT_EQ(
      relative_error(data, DType::kF32, std::vector<int64_t>{0, 2}, std::vector<double>{1, 4}), 0);
  const int32_t zeros[] = {0, 3};
  EXPECT_EQ(relative_error(zeros, DType::kI32, {}, std::vector<double>{0, 0}), 3);
}

TEST(verify, nan_and_infinity_must_match) {
  const double inf = std::numeric_limits<double>::infinity();
  const float data[] = {NAN, INFINITY, 1};
  EXPECT_EQ(relative_error(data, DType::kF32, {}, std::vector<double>{NAN, inf, 1}), 0);
  EXPECT_EQ(relative_error(data, DType::kF32, {}, std::vector<double>{0, inf, 1}), inf);
  EXPECT_EQ(relative_error(data, DType::kF32, {}, std::vector<double>{NAN, -inf, 1}), inf);
  EXPECT_EQ(relative_error(data, DType::kF32, {}, std::vector<double>{NAN, inf, NAN}), inf);
}

TEST(null_runner, says_what_its_function_says_in_order) {
  NullRunner runner([](const Job& job) -> Result<double> {
    if (job.id == 2) return error(Code::kTimeout, "late");
    if (job.id == 3) return invalid("bad");
    return 1e-3 * static_cast<double>(job.id);
  });
  std::vector<Job> batch(4);
  for (uint64_t i = 0; i < 4; ++i) batch[i].id = i + 1, batch[i].tolerance = 1e-4;
  ASSERT_TRUE(runner.submit(batch).ok());
  const auto all = runner.collect();
  ASSERT_EQ(all->size(), 4U);
  EXPECT_EQ((*all)[0].timing.centre, 1e-3);
  EXPECT_TRUE((*all)[0].verified);
  EXPECT_EQ((*all)[1].outcome, trial::Outcome::kTimeout);
  EXPECT_EQ((*all)[2].outcome, trial::Outcome::kCrash);
  EXPECT_EQ((*all)[3].timing.centre, 4e-3);
  EXPECT_TRUE(runner.collect()->empty());
}

}  // namespace
}  // namespace hone::measure
