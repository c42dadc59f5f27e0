#include <gtest/gtest.h>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/space.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

// A sum or the largest of all elements, of which nothing is left to index.
compute::Dag all_of(int64_t rows, int64_t n, bool largest) {
  compute::DagBuilder b;
  const ir::BufferPtr x = b.input("data", {rows, n});
  const ir::BufferPtr y = b.output("out", {});
  const std::vector<compute::Axis> reduce = {compute::make_axis("r", rows),
                                             compute::make_axis("k", n)};
  const ir::Expr value = compute::View(x).read(compute::variables(reduce));
  if (largest) {
    b.max("all", {}, reduce, compute::View(y), value);
  } else {
    b.sum("all", {}, reduce, compute::View(y), value);
  }
  return finish(std::move(b));
}

int sketch_of_parts(const Space& space) {
  for (int s = 0; s < space.num_sketches(); ++s) {
    for (const Decision& decision : space.decisions(s)) {
      if (decision.name.ends_with(".row_parts")) return s;
    }
  }
  return -1;
}

TEST(long_rows, few_long_rows_may_be_cut_into_parts) {
  const auto sketch = [](const compute::Dag& dag) {
    const Result<Space> space = Space::create(dag, narrow(64));
    return space.ok() ? sketch_of_parts(*space) : -2;
  };
  EXPECT_EQ(sketch(centred_rows(1, 128256)), 1);
  EXPECT_EQ(sketch(centred_rows(3, 50257)), 1);
  EXPECT_EQ(sketch(centred_rows(1, 1000)), -1) << "too short";
  EXPECT_EQ(sketch(centred_rows(64, 50257)), -1) << "work for all without";
  EXPECT_EQ(sketch(softmax(1, 4096, 64)), -1) << "down columns";
  EXPECT_EQ(sketch(gemm(1, 1, 1 << 17)), -1) << "a product";
  EXPECT_EQ(sketch(all_of(1, 100, false)), 0) << "the only one with vectors";
}

TEST(long_rows, parts_are_for_several_threads) {
  const Result<Space> rows = Space::create(centred_rows(1, 1 << 17), narrow(64));
  ASSERT_TRUE(rows.ok());
  EXPECT_FALSE(rows->is_for_threads(0));
  EXPECT_TRUE(rows->is_for_threads(1));
  const Result<Space> all = Space::create(all_of(1, 1 << 17, false), narrow(64));
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(all->is_for_threads(sketch_of_parts(*all)));
}

TEST(long_rows, every_number_of_parts_computes_the_same) {
  const target::Target target = narrow(64);
  Rng rng(3);
  std::vector<compute::Dag> dags;
  for (const int64_t n : {65536, 65537, 66013, 128256})
    dags.push_back(centred_rows(rng.choice<int64_t>({1, 2, 3, 7}), n));
  for (const int64_t n : {64, 97, 224, 4099, 65536, 65539, 131101}) {
    dags.push_back(all_of(1, n, false));
    dags.push_back(all_of(rng.choice<int64_t>({1, 3, 7, 13}), n, true));
  }
  for (const compute::Dag& dag : dags) {
    const Result<Space> space = Space::create(dag, target);
    ASSERT_TRUE(space.ok()) << space.status().message();
    Point point = space->default_point(std::max(sketch_of_parts(*space), 0));
    for (int i = 0; i < 2; ++i) {
      const schedule::Steps steps = space->steps(point);
      SCOPED_TRACE(compute::describe(dag) + "\n" + schedule::to_string(steps));
      schedule::expect_same(dag, steps, 1e-5);
      if (::testing::Test::HasFailure()) return;
      for (size_t d = 0; d < point.choices.size(); ++d) {
        const auto& options = space->decisions(point.sketch)[d].options;
        point.choices[d] = static_cast<int>(rng.below(std::ssize(options)));
      }
    }
  }
}

// One parallel phase for each reduction and one for the result: threads share them, and each tile
// is one part whoever runs it.
TEST(long_rows, each_reduction_is_a_phase_over_the_parts) {
  const compute::Dag dag = centred_rows(1, 128256);
  const Result<Space> space = Space::create(dag, narrow(64));
  ASSERT_TRUE(space.ok());
  const Result<ir::Program> program = schedule::lower(dag, space->steps(space->default_point(1)));
  ASSERT_TRUE(program.ok());
  int parallel = 0;
  for (const ir::Phase& phase : program->phases) {
    const auto& loop = phase.body;
    parallel += loop->kind == ir::StmtKind::kFor && loop->for_kind == ir::ForKind::kParallel &&
                        loop->extent->int_value == 4
                    ? 1
                    : 0;
  }
  EXPECT_EQ(parallel, 2);
}

}  // namespace
}  // namespace hone::space
