// Trip counts are limited where keys are hidden from a block of queries by a causal mask.
#include "hone/schedule/trip_limits.h"

#include <cmath>

#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using compute::testing::attention;

// Blocks of 8 queries; their scores 16 keys at a time, rows in vectors.
std::string blocks(int keys_at_a_time) {
  return fmt::format(R"(
split(attention, m, [8])
reorder(attention, [m.0, h, m.1, d])
parallel(attention, m.0)
compute_at(sums, attention, h)
split(sums, r, [4], peel)
compute_at(total, attention, h)
vectorize(total, r)
compute_at(weights, attention, h)
compute_at(most, attention, h)
compute_at(masked, attention, h)
split(masked, n, [{}])
compute_at(scores, masked, n.0)
)",
                     keys_at_a_time);
}

// Returns, per stage and axis, its limit and the step to which it is rounded.
std::string limits_of(const compute::Dag& dag, std::string_view steps) {
  const Result<Steps> parsed = parse_steps(steps);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  const Result<State> state = replay(dag, *parsed);
  EXPECT_TRUE(state.ok()) << state.status().message();
  if (!state.ok()) return "";
  const Result<Bounds> bounds = infer_bounds(*state);
  EXPECT_TRUE(bounds.ok()) << bounds.status().message();
  std::string text;
  for (size_t s = 0; s < state->stages.size(); ++s) {
    for (const TripLimit& end : bounds->stages[s].trip_limits) {
      const StageState& stage = state->stages[s];
      text += fmt::format("{} {} ", stage.name(), stage.loops[static_cast<size_t>(end.loop)].name);
      for (const Term& term : end.limit) {
        const StageState& of = state->stages[static_cast<size_t>(term.stage)];
        text += fmt::format("{}.{}*{}+", of.name(), of.loops[static_cast<size_t>(term.loop)].name,
                            term.coef);
      }
      text += fmt::format("{} by {}\n", end.limit.constant, end.step);
    }
  }
  return text;
}

TEST(trip_limits, follow_what_readers_need) {
  EXPECT_EQ(limits_of(attention(2, 24, 64, 4, 0), blocks(16)),
            "masked n.0 attention.m.0*8+8 by 64\n"
            "most r attention.m.0*8+most.m*1+1 by 1\n"
            "weights n attention.m.0*8+8 by 64\n"
            "total r attention.m.0*8+total.m*1+1 by 64\n"
            "sums r.0 attention.m.0*8+sums.m*1+1 by 4\n");
}

TEST(trip_limits, are_not_where_nothing_is_hidden) {
  EXPECT_EQ(limits_of(attention(2, 24, 64, 4), blocks(16)), "");
  EXPECT_EQ(limits_of(attention(2, 24, 64, 4, 70), blocks(16)), "");  // they see all
  // If one reader needs all of a stage, all is computed: 17 keys are no whole number of vectors.
  const std::string text = limits_of(attention(2, 24, 17, 4, 0), blocks(16));
  EXPECT_EQ(text.find("weights"), std::string::npos) << text;
  EXPECT_EQ(text.find("masked"), std::string::npos) << text;
  EXPECT_NE(text.find("most r"), std::string::npos) << text;
}

TEST(trip_limits, leave_the_result_as_it_is) {
  for (const int64_t keys : {5, 16, 17, 32, 48, 64}) {
    for (const int64_t offset : {0, 1, 9, 40}) {
      for (const int tile : {3, 8, 16}) {
        expect_same(attention(2, 20, keys, 3, offset), blocks(tile), 1e-5);
        expect_same(attention(1, 33, keys, 3, offset), blocks(tile), 1e-5);
      }
    }
  }
}

// This is what docs/user/embedding.md says: a weight of zero times NaN is NaN, unless the NaN is
// not read.
TEST(trip_limits, what_is_hidden_is_not_read) {
  constexpr int64_t kQueries = 24, kKeys = 64, kDepth = 4;
  // Returns whether a row of the result of one head has NaN.
  const auto nan_rows = [](const ir::Program& program, int64_t key, bool of_value) {
    std::vector<Tensor> args = ir::random_arguments(program, 1);
    for (int64_t d = 0; d < kDepth; ++d)
      args[of_value ? 2 : 1].set(of_value ? key * kDepth + d : d * kKeys + key, NAN);
    EXPECT_TRUE(ir::run(program, args).ok());
    std::vector<bool> rows;
    for (int64_t m = 0; m < kQueries; ++m) rows.push_back(std::isnan(args[4].at(m * kDepth)));
    return rows;
  };
  const auto from = [](int64_t first) {
    std::vector<bool> rows(kQueries, false);
    std::fill(rows.begin() + first, rows.end(), true);
    return rows;
  };
  const compute::Dag dag = attention(1, kQueries, kKeys, kDepth, 0);
  const ir::Program naive = compute::naive_program(dag);
  const Result<ir::Program> program = lower(dag, *parse_steps(blocks(16)));
  ASSERT_TRUE(program.ok()) << program.status().message();
  // A key that a selecting mask hides never counts.
  for (const int64_t key : {0, 10, 23, 63}) {
    EXPECT_EQ(nan_rows(naive, key, false), from(std::min(key, kQueries)));
    EXPECT_EQ(nan_rows(*program, key, false), from(std::min(key, kQueries)));
  }
  EXPECT_EQ(nan_rows(naive, 63, true), from(0));
  EXPECT_EQ(nan_rows(*program, 63, true), from(kQueries));
  // If the query sees one key of a block of 4, the others are read, too.
  EXPECT_EQ(nan_rows(*program, 10, true), from(8));
}

TEST(trip_limits, are_the_extents_of_loops) {
  const compute::Dag dag = attention(1, 64, 64, 4, 0);
  const Result<Steps> steps = parse_steps(blocks(16));
  ASSERT_TRUE(steps.ok());
  const Result<ir::Program> program = lower(dag, *steps);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string text = ir::print(*program);
  EXPECT_NE(text.find("for r in 0..+(m_1 + m.0 * 8 + 1)"), std::string::npos) << text;
}

TEST(trip_limits, are_lost_with_the_reduction_in_parts) {
  expect_same(attention(2, 20, 32, 3, 2), "rfactor(total, r, 4)\nrfactor(sums, r, 8)\n", 1e-5);
  expect_same(attention(2, 20, 32, 3, 2),
              "cache_write(sums)\ninline(masked)\nvectorize(total, r)\n", 1e-5);
}

}  // namespace
}  // namespace hone::schedule
