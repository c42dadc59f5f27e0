// A NaN among the elements of a maximum, in machine code: whatever order a schedule has, the result
// is NaN or the largest of some of the other elements (docs/user/embedding.md, "Numbers"), and the
// same to the bit however tiles are dealt to threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "hone/backend/cpu/guarded_run_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

// The largest of each row.
compute::Dag row_maximum(int64_t rows, int64_t n) {
  compute::DagBuilder b;
  const auto data = b.input("data", {rows, n}), out = b.output("out", {rows});
  const std::vector<compute::Axis> axes = {compute::make_axis("row", rows)};
  const compute::Axis r = compute::make_axis("r", n);
  b.max("reduce_max", axes, {r}, compute::View(out),
        ir::load(data, {ir::variable(axes[0].var), ir::variable(r.var)}));
  return compute::testing::finish(std::move(b));
}

// The naive program's results with another number in place of every NaN.
Tensor with_nan_as(const ir::Program& naive, const Tensor& data, double number) {
  std::vector<Tensor> args = {data, Tensor(DType::kF32, naive.params[1].buffer->shape)};
  for (int64_t i = 0; i < data.size(); ++i) {
    if (std::isnan(data.at(i))) args[0].set(i, number);
  }
  EXPECT_TRUE(ir::run(naive, args).ok());
  return args[1];
}

void check(const compute::Dag& dag, const schedule::Steps& steps, const target::Target& target,
           uint64_t seed) {
  const ir::Program naive = compute::naive_program(dag);
  Tensor data = ir::random_arguments(naive, seed)[0];
  Rng rng(seed);
  for (int64_t i = 0; i < data.size(); ++i) {
    if (rng.chance(0.03)) data.set(i, std::numeric_limits<double>::quiet_NaN());
  }
  const Tensor of_others = with_nan_as(naive, data, -HUGE_VAL);
  const Tensor with_nan = with_nan_as(naive, data, HUGE_VAL);
  const Result<ir::Program> program = schedule::lower(dag, steps);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const auto code = compile(*program, target.cpu());
  ASSERT_TRUE(code.ok()) << code.status().message();
  std::vector<Tensor> args = ir::random_arguments(*program, seed);
  args[0] = data;
  const Status ran = run_guarded(*program, *code, args, {.threads = 7});
  ASSERT_TRUE(ran.ok()) << ran.message();
  std::set<double> elements = {-HUGE_VAL};  // or padding alone
  for (int64_t i = 0; i < data.size(); ++i) {
    if (!std::isnan(data.at(i))) elements.insert(data.at(i));
  }
  for (int64_t i = 0; i < of_others.size(); ++i) {
    const double found = args[1].at(i);
    if (with_nan.at(i) < HUGE_VAL) {
      EXPECT_EQ(found, of_others.at(i)) << i;
    } else if (!std::isnan(found)) {
      EXPECT_LE(found, of_others.at(i)) << i;
      EXPECT_TRUE(elements.contains(found)) << i << ": " << found;
    }
  }
}

TEST(nan_code, in_a_maximum_hides_others_or_is_passed_over) {
  for (const compute::Dag& dag :
       {row_maximum(23, 97), row_maximum(40, 7), compute::testing::max_pool(13, 17, 21)}) {
    for (const target::Target& target : runnable_targets()) {
      const Result<space::Space> space = space::Space::create(dag, target);
      ASSERT_TRUE(space.ok()) << space.status().message();
      Rng rng(1);
      std::vector<space::Point> points = space->default_points();
      for (int i = 0; i < 4; ++i) points.push_back(space->sample(rng));
      for (const space::Point& point : points) {
        const schedule::Steps steps = space->steps(point);
        SCOPED_TRACE(target.name + "\n" + schedule::to_string(steps));
        check(dag, steps, target, rng.next());
      }
    }
  }
}

}  // namespace
}  // namespace hone::backend::cpu
