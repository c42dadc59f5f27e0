#include "hone/schedule/reader_limit.h"

#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

// Blocks of 8 rows of a product, whose sums are computed in register tiles of 3 rows: 3, 3 and 2.
std::string blocks(std::string_view rest = "peel") {
  return fmt::format(R"(
cache_write(matmul)
cache_write(matmul.acc)
split(matmul, m, [8], mask)
reorder(matmul, [m.0, m.1, n])
compute_at(matmul.acc, matmul, m.0)
split(matmul.acc, m, [3], {})
reorder(matmul.acc, [m.0, m.1, n])
compute_at(matmul.acc.acc, matmul.acc, m.0)
reorder(matmul.acc.acc, [k, m, n])
unroll(matmul.acc.acc, m)
)",
                     rest);
}

struct Lowered {
  State state;
  Bounds bounds;
};

Lowered lowered(const compute::Dag& dag, std::string_view steps) {
  Result<State> state = replay(dag, *parse_steps(steps));
  EXPECT_TRUE(state.ok()) << state.status().message();
  Bounds bounds = *infer_bounds(*state);
  return {*std::move(state), std::move(bounds)};
}

TEST(reader_limit, is_the_rest_of_the_readers_tile) {
  const Lowered product = lowered(compute::testing::gemm(24, 5, 4), blocks());
  const int tile = product.state.find_stage("matmul.acc.acc");
  const std::optional<ReaderLimit> limit = reader_limit(product.state, product.bounds, tile, 0);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->end, 8);
  EXPECT_EQ(range(limit->value, product.bounds), std::pair(int64_t{0}, int64_t{8}));
  EXPECT_EQ(limit->value.terms.size(), 2) << "the loop over blocks is not one of them";
  EXPECT_FALSE(reader_limit(product.state, product.bounds, tile, 1)) << "of n all are needed";
  EXPECT_FALSE(reader_limit(product.state, product.bounds, tile, 2)) << "a sum";
}

TEST(reader_limit, is_none_where_the_block_may_pass_the_end) {
  const Lowered product = lowered(compute::testing::gemm(20, 5, 4), blocks());
  const int tile = product.state.find_stage("matmul.acc.acc");
  EXPECT_FALSE(reader_limit(product.state, product.bounds, tile, 0));
  const int root = product.state.find_stage("matmul");
  EXPECT_FALSE(reader_limit(product.state, product.bounds, root, 0));
}

// A test of the number of the block would stay in the innermost loop of the last tile.
TEST(reader_limit, leaves_no_test_in_the_sum) {
  const Result<ir::Program> program =
      lower(compute::testing::gemm(24, 5, 4), *parse_steps(blocks()));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string text = ir::print(*program);
  EXPECT_EQ(text.find("if "), std::string::npos) << text;
  EXPECT_NE(text.find("in 0..2"), std::string::npos) << text;
}

// The sums of a block are computed in the loop around the tiles that read them.
TEST(reader_limit, is_none_outside_of_the_readers_loops) {
  constexpr std::string_view kSteps = R"(
cache_write(matmul)
cache_write(matmul.acc)
split(matmul, m, [2, 4], mask)
reorder(matmul, [m.0, m.1, m.2, n])
compute_at(matmul.acc, matmul, m.1)
split(matmul.acc, m, [3], mask)
compute_at(matmul.acc.acc, matmul, m.0)
split(matmul.acc.acc, m, [3], mask)
)";
  const compute::Dag dag = compute::testing::gemm(24, 5, 4);
  const Lowered product = lowered(dag, kSteps);
  EXPECT_FALSE(
      reader_limit(product.state, product.bounds, product.state.find_stage("matmul.acc.acc"), 0));
  expect_same(dag, kSteps);
}

TEST(reader_limit, keeps_the_meaning) {
  for (const int64_t rows : {5, 8, 16, 20, 24, 25}) {
    for (const std::string_view rest : {"peel", "mask"}) {
      SCOPED_TRACE(fmt::format("{} rows, {}", rows, rest));
      expect_same(compute::testing::gemm(rows, 5, 4), blocks(rest));
    }
  }
}

}  // namespace
}  // namespace hone::schedule
