#include "hone/compute/half_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using compute::testing::attention;
using compute::testing::half_attention;

constexpr int64_t kOdd[] = {1, 2, 3, 7, 13, 17, 31, 33, 97};

Space space_of(const compute::Dag& dag, trial::Accuracy accuracy = trial::Accuracy::kDefault) {
  Result<Space> space = Space::create(dag, matrix_gpu(), accuracy);
  EXPECT_TRUE(space.ok()) << space.status().message();
  return *std::move(space);
}

// Runs points of the rule until it has run `count` whose steps have all these parts.
void expect_points_with(const compute::Dag& dag, std::initializer_list<const char*> parts,
                        int count, double tolerance,
                        trial::Accuracy accuracy = trial::Accuracy::kDefault) {
  const Space space = space_of(dag, accuracy);
  Rng rng(11);
  int seen = 0;
  for (int i = 0; i < 400 && seen < count; ++i) {
    const Result<Candidate> candidate = space.instantiate(space.sample(rng));
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    const std::string steps = schedule::to_string(candidate->steps);
    if (std::any_of(parts.begin(), parts.end(),
                    [&](const char* part) { return steps.find(part) == std::string::npos; }))
      continue;
    ++seen;
    ASSERT_NO_FATAL_FAILURE(expect_candidate(*candidate, tolerance));
  }
  EXPECT_EQ(seen, count);
}

TEST(gpu_attention_matrix, odd_extents) {
  for (const int64_t n : kOdd) {
    expect_points(half_attention(2, n, 98 - n, 5), 2, 4e-3, matrix_gpu(), 2);
    expect_points(half_attention(1, 13, n, 8, DType::kBF16), 1, 2e-2, matrix_gpu(), 2);
    expect_points(half_attention(2, 7, 31, n), 1, 4e-3, matrix_gpu(), 2);
  }
}

TEST(gpu_attention_matrix, float32_is_rounded_only_where_the_accuracy_is_fast) {
  for (const int64_t n : {3, 17, 97})
    expect_points(attention(2, 98 - n, n, 13), 2, 1e-4, matrix_gpu(), 2, trial::Accuracy::kFast);
  const compute::Dag dag = attention(2, 64, 128, 64);
  const auto steps = [&](trial::Accuracy accuracy) {
    const Space space = space_of(dag, accuracy);
    return schedule::to_string(space.steps(space.default_point()));
  };
  EXPECT_EQ(steps(trial::Accuracy::kDefault).find("tensorize"), std::string::npos);
  EXPECT_EQ(trial::accuracy_of(steps(trial::Accuracy::kFast)), trial::Accuracy::kFast);
}

// Causal attention ends at the last key that a query of the block sees.
TEST(gpu_attention_matrix, keys_that_a_query_does_not_see) {
  for (const int64_t n : {3, 17, 33, 67}) {
    for (const int64_t offset : {int64_t{0}, n / 2}) {
      const compute::Dag dag = half_attention(n < 60 ? 2 : 1, n, n + 3, 8, DType::kF16, offset);
      expect_points(dag, 1, 4e-3, matrix_gpu(), 2);
    }
  }
}

// What is added to the scores may differ between queries: it has no rows beyond the last one.
TEST(gpu_attention_matrix, masks_of_each_query) {
  for (const int64_t n : {7, 33}) {
    compute::Dag dag = half_attention(2, n, 40 - n, 8);
    compute::testing::widen_mask(dag, n);
    expect_points(dag, 3, 4e-3, matrix_gpu(), 2);
    const Space space = space_of(dag);
    const std::string steps = schedule::to_string(space.steps(space.default_point()));
    EXPECT_NE(steps.find("scope(mask.cache, shared)"), std::string::npos) << steps;
  }
}

TEST(gpu_attention_matrix, copies_work_ahead) {
  const compute::Dag dag = half_attention(1, 33, 96, 16);
  expect_points_with(dag, {"whole)", "pipeline(key.right, 3", "pipeline(value.right, 3"}, 2, 4e-3);
  expect_points_with(attention(1, 17, 96, 16), {"whole)", "pipeline(value.right, 2, async)"}, 1,
                     1e-4, trial::Accuracy::kFast);
}

// A query has work for one block: others have parts of the keys, which a second launch joins.
TEST(gpu_attention_matrix, one_query_of_many_keys) {
  const compute::Dag dag = half_attention(2, 1, 520, 8);
  const Space space = space_of(dag);
  const std::string steps = schedule::to_string(space.steps(space.default_point()));
  EXPECT_NE(steps.find("rfactor(sums, t, "), std::string::npos) << steps;
  ASSERT_NO_FATAL_FAILURE(expect_candidate(*space.instantiate(space.default_point()), 4e-3));
  for (const int64_t keys : {97, 129}) {
    for (const int64_t queries : {1, 2, 3, 17})
      expect_points_with(half_attention(1, queries, keys, 8), {"whole)", "rfactor(sums, t, "}, 2,
                         4e-3);
  }
}

// The sums of a query fit into the registers of a warp.
TEST(gpu_attention_matrix, no_more_channels_than_registers_have) {
  for (const auto& [channels, fits] : {std::pair{128, true}, std::pair{1024, false}}) {
    const Space space = space_of(half_attention(1, 16, 64, channels));
    bool found = false;
    for (const Point& point : space.default_points()) {
      EXPECT_TRUE(space.legal(point));
      const std::string steps = schedule::to_string(space.steps(point));
      found |= steps.find("whole)\nmatrix_product(scores") != std::string::npos;
    }
    EXPECT_EQ(found, fits) << channels;
  }
}

// Scores, weights and sums stay in registers; shared memory has operands alone.
TEST(gpu_attention_matrix, scores_stay_in_registers) {
  const Space space = space_of(half_attention(4, 128, 128, 64));
  const Result<Candidate> candidate = space.instantiate(space.default_point());
  ASSERT_TRUE(candidate.ok()) << candidate.status().message();
  for (const schedule::StageState& stage : candidate->state.stages) {
    if (stage.scope != ir::Scope::kShared) continue;
    const std::string& name = stage.name();
    EXPECT_TRUE(name == "query.left" || name == "key.right" || name == "value.right") << name;
  }
  EXPECT_EQ(candidate->state.stages[0].scope, ir::Scope::kShared);
}

}  // namespace
}  // namespace hone::space
