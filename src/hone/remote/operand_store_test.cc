#include "hone/remote/operand_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "hone/remote/operand_digest.h"

namespace hone::remote {
namespace {

// Operands of so many bytes, all of this value.
std::shared_ptr<const measure::Operands> operands_of(int64_t bytes, char value) {
  const std::string data(static_cast<size_t>(bytes), value);
  const measure::OperandSpec specs[] = {{ir::Role::kInput, bytes, data.data()}};
  return measure::Operands::create(specs).value();
}

std::string bytes_of(const measure::Operands& operands) {
  std::string bytes(static_cast<size_t>(operands.layout().total_bytes), '\0');
  EXPECT_EQ(pread(operands.fd(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
  return bytes;
}

Result<OperandStore::State> send_all(OperandStore& store, const measure::Operands& operands) {
  const Digest digest = digest_of(operands).value();
  HONE_ASSIGN_OR_RETURN(OperandStore::State state, store.offer({digest, operands.layout()}));
  if (state.complete) return state;
  return store.add(
      {digest, state.bytes, bytes_of(operands).substr(static_cast<size_t>(state.bytes))});
}

TEST(operand_store, holds_what_was_sent_once) {
  OperandStore store(1 << 20);
  const auto operands = operands_of(1000, 'a');
  const OperandStore::State state = send_all(store, *operands).value();
  ASSERT_TRUE(state.complete);
  EXPECT_EQ(bytes_of(*state.operands), bytes_of(*operands));
  const Offer again = {digest_of(*operands_of(1000, 'a')).value(), operands->layout()};
  EXPECT_TRUE(store.offer(again)->complete);
  EXPECT_NE(digest_of(*operands_of(1000, 'b')).value(), again.digest);
  EXPECT_NE(digest_of(*operands_of(1001, 'a')).value(), again.digest);
}

TEST(operand_store, goes_on_where_sending_was_interrupted) {
  OperandStore store(1 << 20);
  const auto operands = operands_of(1000, 'a');
  const std::string bytes = bytes_of(*operands);
  const Digest digest = digest_of(*operands).value();
  const Offer offer = {digest, operands->layout()};
  EXPECT_EQ(store.offer(offer)->bytes, 0);
  EXPECT_EQ(store.add({digest, 0, bytes.substr(0, 300)})->bytes, 300);
  const OperandStore::State state = store.offer(offer).value();
  EXPECT_EQ(state.bytes, 300);
  EXPECT_FALSE(state.complete);
  EXPECT_EQ(store.add({digest, 400, "x"}).status().code(), Code::kInvalid);  // a gap
  EXPECT_EQ(store.add({digest, 300, std::string(2000, 'x')}).status().code(), Code::kInvalid);
  EXPECT_EQ(store.add({digest, 0, bytes.substr(0, 10)})->bytes, 300);  // of another tuner
  EXPECT_TRUE(store.add({digest, 300, bytes.substr(300)})->complete);
}

TEST(operand_store, refuses_what_is_not_of_its_hash) {
  OperandStore store(1 << 20);
  const auto operands = operands_of(1000, 'a');
  std::string bytes = bytes_of(*operands);
  bytes[500] = 'b';
  const Digest digest = digest_of(*operands).value();
  ASSERT_TRUE(store.offer({digest, operands->layout()}).ok());
  EXPECT_EQ(store.add({digest, 0, bytes}).status().message(), "operands were damaged on their way");
  EXPECT_EQ(store.held_bytes(), 0);
}

TEST(operand_store, makes_room_of_what_nobody_keeps) {
  OperandStore store(3000);
  const auto first = operands_of(1000, 'a'), second = operands_of(1000, 'b'),
             third = operands_of(1900, 'c');
  {
    const OperandStore::State kept = send_all(store, *first).value();
    ASSERT_TRUE(send_all(store, *second).ok());
    EXPECT_LE(store.held_bytes(), 3000);
    ASSERT_TRUE(send_all(store, *third).ok());  // the second one goes, though it came later
    EXPECT_TRUE(send_all(store, *first).value().operands == kept.operands);
    EXPECT_LE(store.held_bytes(), 3000);
    EXPECT_FALSE(send_all(store, *operands_of(2500, 'd')).ok());
  }
  EXPECT_TRUE(send_all(store, *operands_of(2500, 'd')).ok());
  const Status status = send_all(store, *operands_of(4000, 'e')).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(),
            "operands of 4032 bytes, but the server's cache holds 3000 (hone serve --cache)");
}

}  // namespace
}  // namespace hone::remote
