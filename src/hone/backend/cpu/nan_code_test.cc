// A NaN among the elements of a maximum, in machine code: whatever order a schedule has, it is
// passed over, or it is the result (docs/user/embedding.md, "Numbers").
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hone/backend/cpu/guarded_run_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

// The largest of each row, or NaN if there is one in the row and `keeps_nan`.
compute::Dag row_maximum(int64_t rows, int64_t n, bool keeps_nan) {
  compute::DagBuilder b;
  const auto data = b.input("data", {rows, n}), out = b.output("out", {rows});
  const std::vector<compute::Axis> axes = {compute::make_axis("row", rows)};
  const compute::Axis r = compute::make_axis("r", n);
  const ir::Expr row = ir::variable(axes[0].var);
  const ir::Expr element = ir::load(data, {row, ir::variable(r.var)});
  if (!keeps_nan) {
    b.max("reduce_max", axes, {r}, compute::View(out), element);
    return compute::testing::finish(std::move(b));
  }
  compute::Output output{out, {row}, nullptr, nullptr, nullptr, nullptr};
  output.other = ir::make_buffer("other", DType::kF32, out->shape);
  const auto combined = [&](const ir::Expr& x) {
    return ir::select(ir::make(ir::Op::kNe, {x, x}), x, ir::max(x, ir::load(out, {row})));
  };
  output.value = combined(element);
  output.identity = ir::constant_float(-HUGE_VAL);
  output.merge = combined(ir::load(output.other, {row}));
  b.add({"reduce_max", "reduce_max", axes, {r}, nullptr, {std::move(output)}, {}, {}});
  return compute::testing::finish(std::move(b));
}

void check(const compute::Dag& dag, const schedule::Steps& steps, const target::Target& target,
           uint64_t seed) {
  const ir::Program naive = compute::naive_program(dag);
  Tensor data = ir::random_arguments(naive, seed)[0];
  Rng rng(seed);
  for (int64_t i = 0; i < data.size(); ++i) {
    if (rng.chance(0.03)) data.set(i, std::numeric_limits<double>::quiet_NaN());
  }
  std::vector<Tensor> expected = {data, Tensor(DType::kF32, naive.params[1].buffer->shape)};
  ASSERT_TRUE(ir::run(naive, expected).ok());
  const Result<ir::Program> program = schedule::lower(dag, steps);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const auto code = compile(*program, target.cpu());
  ASSERT_TRUE(code.ok()) << code.status().message();
  std::vector<Tensor> args = ir::random_arguments(*program, seed);
  args[0] = data;
  const Status ran = run_guarded(*program, *code, args, {.threads = 7});
  ASSERT_TRUE(ran.ok()) << ran.message();
  for (int64_t i = 0; i < args[1].size(); ++i) {
    const double found = args[1].at(i), wanted = expected[1].at(i);
    EXPECT_TRUE(found == wanted || (std::isnan(found) && std::isnan(wanted)))
        << i << ": " << found << ", expected " << wanted;
  }
}

TEST(nan_code, does_in_a_maximum_what_it_does_in_the_naive_order) {
  for (const compute::Dag& dag :
       {row_maximum(23, 97, false), row_maximum(40, 7, false), row_maximum(23, 97, true),
        row_maximum(40, 7, true), row_maximum(3, 3001, true),
        compute::testing::max_pool(13, 17, 21)}) {
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
