#include "hone/remote/protocol.h"

#include <gtest/gtest.h>

#include "hone/base/wire.h"

namespace hone::remote {
namespace {

measure::OperandLayout layout_of_two() {
  measure::OperandLayout layout;
  layout.entries = {{ir::Role::kInput, 40, 0}, {ir::Role::kOutput, 16, 0}};
  layout.expected = {{1, DType::kF32, 2, 64, 2, 128}};
  layout.total_bytes = 192;
  return layout;
}

Welcome welcome_of_host() {
  return {.job_version = wire::kProtocolVersion,
          .hone = "1.2.3",
          .instance = "abc",
          .boot = "def",
          .operand_bytes = int64_t{5} << 30,
          .last_job = 7,
          .target = target::host()};
}

// Every beginning of a message, and one with a byte more, is an error.
template <typename T>
void expect_only_whole(const std::string& message) {
  EXPECT_TRUE(decode<T>(message).ok()) << decode<T>(message).status().message();
  for (size_t size = 1; size < message.size(); ++size)
    EXPECT_FALSE(decode<T>(message.substr(0, size)).ok()) << size;
  EXPECT_FALSE(decode<T>(message + 'x').ok());
}

TEST(remote_protocol, messages_are_read_as_they_were_written) {
  const Welcome welcome = decode<Welcome>(encode(welcome_of_host())).value();
  EXPECT_EQ(welcome.hone, "1.2.3");
  EXPECT_EQ(welcome.instance, "abc");
  EXPECT_EQ(welcome.operand_bytes, int64_t{5} << 30);
  EXPECT_EQ(welcome.last_job, 7U);
  EXPECT_EQ(target::describe(welcome.target), target::describe(target::host()));
  EXPECT_EQ(welcome.target.cpu().features, target::host().cpu().features);

  const Offer offer = decode<Offer>(encode(Offer{{3, 4}, layout_of_two()})).value();
  EXPECT_EQ(offer.digest, (Digest{3, 4}));
  EXPECT_EQ(offer.layout.entries[1].bytes, 16);
  EXPECT_EQ(offer.layout.expected[0].values_offset, 128);

  const Piece piece = decode<Piece>(encode(Piece{{3, 4}, 9, std::string("a\0b", 3)})).value();
  EXPECT_EQ(piece.offset, 9);
  EXPECT_EQ(piece.bytes, std::string("a\0b", 3));

  const Answer answer =
      decode<Answer>(encode(Answer{.id = 5, .known = true, .slowdown = 2, .in_cache = true}))
          .value();
  EXPECT_TRUE(answer.known);
  EXPECT_TRUE(answer.in_cache);
  EXPECT_EQ(answer.slowdown, 2);
  EXPECT_EQ(decode_refusal(encode_refusal("why")).value(), "why");
}

TEST(remote_protocol, parts_of_messages_are_errors) {
  expect_only_whole<Hello>(encode(
      Hello{.job_version = wire::kProtocolVersion, .hone = "1", .session = "abc", .answered = 3}));
  expect_only_whole<Welcome>(encode(welcome_of_host()));
  expect_only_whole<Offer>(encode(Offer{{3, 4}, layout_of_two()}));
  expect_only_whole<Held>(encode(Held{{3, 4}, 5, "no room"}));
  expect_only_whole<Piece>(encode(Piece{{3, 4}, 5, "bytes"}));
  expect_only_whole<JobText>(encode(JobText{1, 2, "job"}));
  expect_only_whole<ResultText>(encode(ResultText{1, "result"}));
  expect_only_whole<Question>(encode(Question{1, What::kCores, 2}));
  expect_only_whole<Answer>(encode(Answer{}));
  expect_only_whole<ModelCall>(encode(ModelCall{1, ModelFunction::kRun, 2, "body"}));
  expect_only_whole<ModelReply>(encode(ModelReply{1, Code::kIo, "no file", "body"}));
  EXPECT_FALSE(decode<ModelCall>(encode(ModelCall{.function = ModelFunction{9}})).ok());
  EXPECT_FALSE(decode<ModelReply>(encode(ModelReply{.code = static_cast<Code>(99)})).ok());
  EXPECT_FALSE(kind_of("").ok());
  EXPECT_FALSE(kind_of("\x63").ok());
  EXPECT_FALSE(decode<Question>(encode(Question{1, static_cast<What>(kWhats), 0})).ok());
}

TEST(remote_protocol, of_another_version_only_the_versions_are_read) {
  std::string message = encode(Hello{.version = kVersion + 1, .job_version = 99, .hone = "9.9"});
  message += "fields that this version does not know";
  const Hello hello = decode<Hello>(message).value();
  EXPECT_EQ(hello.version, kVersion + 1);
  EXPECT_EQ(hello.job_version, 99U);
  EXPECT_EQ(hello.hone, "9.9");
  EXPECT_TRUE(hello.session.empty());
}

TEST(remote_protocol, layouts_that_reach_beyond_their_bytes_are_errors) {
  EXPECT_TRUE(check_layout(layout_of_two()).ok());
  const auto is_refused = [](const auto& change) {
    measure::OperandLayout layout = layout_of_two();
    change(layout);
    return !check_layout(layout).ok() && !decode<Offer>(encode(Offer{{}, layout})).ok();
  };
  EXPECT_TRUE(is_refused([](auto& l) { l.total_bytes = 0; }));
  EXPECT_TRUE(is_refused([](auto& l) { l.entries[0].bytes = 193; }));
  EXPECT_TRUE(is_refused([](auto& l) { l.entries[0].offset = -8; }));
  EXPECT_TRUE(is_refused([](auto& l) { l.entries[0].offset = INT64_MAX; }));
  EXPECT_TRUE(is_refused([](auto& l) { l.entries[0].role = static_cast<ir::Role>(99); }));
  EXPECT_TRUE(is_refused([](auto& l) { l.expected[0].operand = 2; }));
  EXPECT_TRUE(is_refused([](auto& l) { l.expected[0].operand = 0; }));
  EXPECT_TRUE(is_refused([](auto& l) { l.expected[0].dtype = static_cast<DType>(200); }));
  EXPECT_TRUE(is_refused([](auto& l) { l.expected[0].num_places = INT64_MAX / 4; }));
  EXPECT_TRUE(is_refused([](auto& l) { l.expected[0].num_values = 3; }));
  EXPECT_TRUE(is_refused([](auto& l) { l.expected[0].values_offset = 185; }));
}

TEST(remote_protocol, a_description_that_no_cpu_has_is_an_error) {
  Welcome welcome = welcome_of_host();
  welcome.target.cpu().cores = 0;
  EXPECT_FALSE(decode<Welcome>(encode(welcome)).ok());
  welcome = welcome_of_host();
  welcome.target.cpu().caches.push_back({3, 0, 64, 1, 8});
  EXPECT_FALSE(decode<Welcome>(encode(welcome)).ok());
}

}  // namespace
}  // namespace hone::remote
