#include "hone/runtime/loops.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace hone::runtime {
namespace {

// A list of loops with an arena, whose steps are told as letters.
class LoopsTest : public ::testing::Test {
 protected:
  template <typename Step>
  int run(uint32_t num_steps, const Step& step) {
    const auto run = [&](uint32_t first, uint32_t end) {
      told_ += "(";
      for (uint32_t i = first; i < end; ++i) {
        told_ += static_cast<char>('a' + i);
        step(i);
      }
      told_ += ")";
      return result_;
    };
    const auto fail = [&](const PlanLoop& loop) {
      told_ += "!" + std::to_string(loop.most);
      return 7;
    };
    const LoopRunner<decltype(run), decltype(fail)> runner(loops_.data(), copies_.data(),
                                                           arena_.data(), run, fail);
    return runner.run(0, num_steps, 0, static_cast<uint32_t>(loops_.size()));
  }
  int run(uint32_t num_steps) {
    return run(num_steps, [](uint32_t) {});
  }
  int64_t number(int64_t offset) const {
    int64_t value = 0;
    std::memcpy(&value, arena_.data() + offset, sizeof value);
    return value;
  }
  void set(int64_t offset, int64_t value) {
    std::memcpy(arena_.data() + offset, &value, sizeof value);
  }
  static PlanLoop loop(uint32_t first, uint32_t end, int64_t most) {
    PlanLoop made = {};
    made.most = most;
    made.condition = made.limit = made.turn = made.turns = -1;
    made.first_step = first;
    made.end_step = end;
    return made;
  }

  std::vector<PlanLoop> loops_;
  std::vector<PlanCopy> copies_;
  std::vector<char> arena_ = std::vector<char>(256, 0);
  std::string told_;
  int result_ = 0;
};

TEST_F(LoopsTest, steps_without_loops_run_in_one_piece) {
  EXPECT_EQ(run(3), 0);
  EXPECT_EQ(told_, "(abc)");
}

TEST_F(LoopsTest, a_limit_in_memory_ends_a_loop) {
  loops_ = {loop(1, 3, 10)};
  loops_[0].limit = 0;
  loops_[0].turns = 8;
  set(0, 2);
  EXPECT_EQ(run(4), 0);
  EXPECT_EQ(told_, "(a)(bc)(bc)(d)");
  EXPECT_EQ(number(8), 2);
  for (const int64_t none : {int64_t{0}, int64_t{-5}}) {
    told_.clear();
    set(0, none);
    EXPECT_EQ(run(4), 0);
    EXPECT_EQ(told_, "(a)(d)");
    EXPECT_EQ(number(8), 0);
  }
}

TEST_F(LoopsTest, a_condition_is_looked_at_before_each_turn) {
  loops_ = {loop(0, 1, 10)};
  loops_[0].condition = 16;
  loops_[0].turn = 8;
  arena_[16] = 1;
  EXPECT_EQ(run(1, [&](uint32_t) { arena_[16] = number(8) < 3 ? 1 : 0; }), 0);
  EXPECT_EQ(told_, "(a)(a)(a)(a)");
  told_.clear();
  EXPECT_EQ(run(1), 0);
  EXPECT_EQ(told_, "");
}

TEST_F(LoopsTest, more_turns_than_the_most_end_the_loop_or_the_run) {
  loops_ = {loop(0, 1, 2)};
  EXPECT_EQ(run(2), 0);
  EXPECT_EQ(told_, "(a)(a)(b)");
  told_.clear();
  loops_[0].may_want_more = 1;
  EXPECT_EQ(run(2), 7);
  EXPECT_EQ(told_, "(a)(a)!2");
}

TEST_F(LoopsTest, loops_lie_in_loops_and_beside_each_other) {
  loops_ = {loop(0, 3, 2), loop(1, 2, 2), loop(2, 2, 1), loop(3, 4, 3)};
  loops_[0].num_nested = 2;
  EXPECT_EQ(run(5), 0);
  EXPECT_EQ(told_, "(a)(b)(b)(c)(a)(b)(b)(c)(d)(d)(d)(e)");
}

TEST_F(LoopsTest, turns_end_with_copies) {
  loops_ = {loop(0, 1, 3)};
  loops_[0].turn = 0;
  loops_[0].num_copies = 2;
  copies_ = {{0, 64, 8, 8}, {0, 128 + 16, 8, -8}};
  EXPECT_EQ(run(1), 0);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(number(64 + 8 * i), i);
    EXPECT_EQ(number(128 + 8 * i), 2 - i);
  }
}

TEST_F(LoopsTest, a_message_names_the_shapes_that_differ) {
  PlanLoop failed = loop(0, 0, 0);
  char message[32];
  write_fault(message, sizeof message, "no shapes", failed, arena_.data());
  EXPECT_STREQ(message, "no shapes");
  failed.shapes = 16;
  failed.rank = 2;
  for (int64_t i = 0; i < 4; ++i) set(16 + 8 * i, 10 + i);
  write_fault(message, sizeof message, "rows", failed, arena_.data());
  EXPECT_STREQ(message, "rows: [10, 11] and [12, 13]");
  char small[12];
  write_fault(small, sizeof small, "rows", failed, arena_.data());
  EXPECT_STREQ(small, "rows: [10, ");
}

TEST_F(LoopsTest, a_step_that_fails_ends_all) {
  loops_ = {loop(0, 1, 3)};
  result_ = 5;
  EXPECT_EQ(run(2), 5);
  EXPECT_EQ(told_, "(a)");
}

}  // namespace
}  // namespace hone::runtime
