#include <gtest/gtest.h>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/space.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

// The sketches with lanes along rows are "rows", in their order among the others.
std::string ways(const compute::Dag& dag) {
  const Result<Space> space = Space::create(dag, narrow(64));
  HONE_ASSERT(space.ok(), "a space");
  std::string found;
  for (int sketch = 0; sketch < space->num_sketches(); ++sketch) {
    const std::string steps = schedule::to_string(space->steps(space->default_point(sketch)));
    const bool rows = steps.find("vectorize(matmul.acc, m.1)") != std::string::npos;
    found += rows ? "rows " : steps.find("strided") != std::string::npos ? "dot " : "other ";
  }
  return found;
}

TEST(row_lanes, run_where_columns_are_few_and_rows_neighbours_or_packed) {
  for (const bool transposed : {false, true}) {
    EXPECT_EQ(ways(few_columns(64, 3, 48, transposed)), "rows other ");
    EXPECT_EQ(ways(few_columns(64, 12, 48, transposed)), "other rows ");
    EXPECT_EQ(ways(few_columns(64, 17, 48, transposed)), "other rows ") << "half a vector is idle";
    EXPECT_EQ(ways(few_columns(64, 16, 48, transposed)), "other ");
    EXPECT_EQ(ways(few_columns(15, 3, 48, transposed)), "other ") << "rows fill no vector";
  }
  EXPECT_EQ(ways(few_columns(64, 1, 48, true)), "rows other ");
  EXPECT_EQ(ways(few_columns(64, 1, 48, false)), "dot rows other ");
  EXPECT_EQ(ways(gemm(64, 3, 48)), "dot other ") << "rows of an input that lie apart";
}

TEST(row_lanes, every_point_computes_the_same_for_odd_shapes) {
  const target::Target target = narrow(32);
  Rng rng(12);
  for (const int64_t m : {8, 13, 17, 31, 33, 97}) {
    for (const int64_t n : {1, 2, 3, 5, 9}) {
      for (const bool transposed : {false, true}) {
        const int64_t k = rng.choice<int64_t>({1, 2, 3, 13, 33});
        SCOPED_TRACE(fmt::format("{}x{}x{} {}", m, n, k, transposed));
        const compute::Dag dag = few_columns(m, n, k, transposed);
        const Result<Space> space = Space::create(dag, target);
        ASSERT_TRUE(space.ok()) << space.status().message();
        ASSERT_GE(space->num_sketches(), 2);
        for (int i = 0; i < 6; ++i) {
          const Point point =
              i < space->num_sketches() ? space->default_point(i) : space->sample(rng);
          schedule::expect_same(dag, space->steps(point));
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// A register tile's vectors are whole: rows that fill no last one leave no odd place behind them.
TEST(row_lanes, results_lie_in_registers_as_whole_vectors) {
  const compute::Dag dag = few_columns(33, 5, 97, true);
  const Result<Space> space = Space::create(dag, narrow(64));
  ASSERT_TRUE(space.ok());
  const std::string steps = schedule::to_string(space->steps(space->default_point()));
  EXPECT_NE(steps.find("layout(matmul.acc, [n, m/16, m%16])"), std::string::npos) << steps;
}

// Rows far apart are read a line or more at a time.
TEST(row_lanes, tiles_of_rows_that_lie_apart_are_whole_lines) {
  target::Target target = narrow(32);
  target.cpu().caches = {{1, 32 << 10, 64, 1, 64}};
  const Result<Space> space = Space::create(few_columns(1024, 4, 1024, true), target);
  ASSERT_TRUE(space.ok());
  const std::string steps = schedule::to_string(space->steps(space->default_point()));
  EXPECT_NE(steps.find("split(matmul, m, [2, 8]"), std::string::npos) << steps;
}

}  // namespace
}  // namespace hone::space
