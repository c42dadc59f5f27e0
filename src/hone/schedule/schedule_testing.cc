#include "hone/schedule/schedule_testing.h"

#include <algorithm>
#include <cmath>

#include "hone/base/rng.h"
#include "hone/compute/dag_text.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/known_zeros.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/ir/printer.h"
#include "hone/ir/verifier.h"

namespace hone::schedule {

std::string product_in_threads(const ThreadTiles& t) {
  return fmt::format(R"(
cache_write(matmul)
cache_read(data, matmul.acc)
cache_read(weight, matmul.acc)
split(matmul, m, [{0}, {1}], pad)
split(matmul, n, [{2}, {3}], pad)
reorder(matmul, [m.0, n.0, m.1, n.1, m.2, n.2])
fuse(matmul, [m.0, n.0])
parallel(matmul, m.0@n.0)
bind(matmul, m.1, thread)
bind(matmul, n.1, thread)
unroll(matmul, m.2)
unroll(matmul, n.2)
compute_at(matmul.acc, matmul, m.0@n.0)
scope(matmul.acc, fragment)
layout(matmul.acc, [m/{1}, n/{3}, m%{1}, n%{3}])
split(matmul.acc, m, [{1}])
split(matmul.acc, n, [{3}])
split(matmul.acc, k, [{4}], peel)
reorder(matmul.acc, [k.0, m.0, n.0, k.1, m.1, n.1])
bind(matmul.acc, m.0, thread)
bind(matmul.acc, n.0, thread)
unroll(matmul.acc, m.1)
unroll(matmul.acc, n.1)
compute_at(data.cache, matmul.acc, k.0)
scope(data.cache, shared)
fuse(data.cache, [m, k])
split(data.cache, m@k, [{5}])
reorder(data.cache, [m@k.1, m@k.0])
bind(data.cache, m@k.1, thread)
compute_at(weight.cache, matmul.acc, k.0)
scope(weight.cache, shared)
layout(weight.cache, [n, k])
bind(weight.cache, n, thread)
)",
                     t.m_threads, t.m, t.n_threads, t.n, t.k, t.m_threads * t.n_threads);
}

std::string convolution_in_threads(bool taps_in_one_loop) {
  return fmt::format(R"(
inline(bias)
im2col(conv2d, data)
split(relu, ow, [2, 3], pad)
split(relu, oc, [4, 2])
reorder(relu, [n, oh, ow.0, oc.0, ow.1, oc.1, ow.2, oc.2])
fuse(relu, [n, oh, ow.0, oc.0])
parallel(relu, n@oh@ow.0@oc.0)
bind(relu, ow.1, thread)
bind(relu, oc.1, thread)
unroll(relu, ow.2)
unroll(relu, oc.2)
compute_at(conv2d, relu, n@oh@ow.0@oc.0)
scope(conv2d, fragment)
layout(conv2d, [ow/3, oc/2, oh, ow%3, oc%2])
split(conv2d, ow, [3])
split(conv2d, oc, [2])
split(conv2d, ic, [2])
reorder(conv2d, [kh, kw, ic.0, n, oh, ow.0, oc.0, ic.1, ow.1, oc.1])
{}bind(conv2d, ow.0, thread)
bind(conv2d, oc.0, thread)
unroll(conv2d, ow.1)
unroll(conv2d, oc.1)
compute_at(data.col, conv2d, {})
scope(data.col, shared)
fuse(data.col, [ow, kh, kw, ic])
split(data.col, ow@kh@kw@ic, [8])
reorder(data.col, [ow@kh@kw@ic.1, ow@kh@kw@ic.0])
bind(data.col, ow@kh@kw@ic.1, thread)
)",
                     taps_in_one_loop ? "fuse(conv2d, [kh, kw, ic.0])\n" : "",
                     taps_in_one_loop ? "kh@kw@ic.0" : "ic.0");
}

std::vector<Tensor> integer_arguments(const ir::Program& program, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> args;
  for (const ir::Param& param : program.params) {
    Tensor tensor(param.buffer->dtype, param.buffer->shape);
    if (param.role == ir::Role::kInput || param.role == ir::Role::kConstant) {
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.set(i, static_cast<double>(rng.between(-4, 4)));
    }
    ir::put_known_zeros(param, tensor);
    args.push_back(std::move(tensor));
  }
  return args;
}

bool has_threads(const ir::Program& program) {
  return std::any_of(program.phases.begin(), program.phases.end(),
                     [](const ir::Phase& phase) { return ir::is_gpu_code(*phase.body); });
}

std::vector<Tensor> outputs_of(const ir::Program& program, uint64_t seed,
                               const ir::InPlacePair* shared) {
  if (const Status status = ir::verify(program); !status.ok()) {
    ADD_FAILURE() << status.message();
    return {};
  }
  std::vector<Tensor> args = integer_arguments(program, seed);
  if (shared != nullptr) args[shared->output] = args[shared->input];
  if (const Status status = ir::run(
          program, args, {.keep_outputs = shared != nullptr, .check_races = has_threads(program)});
      !status.ok()) {
    ADD_FAILURE() << status.message();
    return {};
  }
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < args.size(); ++i) {
    if (program.params[i].role == ir::Role::kOutput) outputs.push_back(args[i]);
  }
  return outputs;
}

const std::vector<Tensor>& naive_outputs(const compute::Dag& dag, uint64_t seed) {
  static std::string kept;
  static std::vector<Tensor> outputs;
  std::string text = fmt::format("{}\n{}", seed, compute::to_text(dag));
  if (text != kept) {
    outputs = outputs_of(compute::naive_program(dag), seed);
    kept = std::move(text);
  }
  return outputs;
}

void expect_close(const std::vector<Tensor>& want, const std::vector<Tensor>& got,
                  double tolerance) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t o = 0; o < want.size(); ++o) {
    double largest = 1;
    for (int64_t i = 0; i < want[o].size(); ++i) {
      if (!std::isnan(want[o].at(i))) largest = std::max(largest, std::abs(want[o].at(i)));
    }
    for (int64_t i = 0; i < want[o].size(); ++i) {
      if (std::isnan(want[o].at(i)) && std::isnan(got[o].at(i)))
        continue;  // not written, as it is a border
      ASSERT_NEAR(want[o].at(i), got[o].at(i), tolerance * largest)
          << "output " << o << " element " << i;
    }
  }
}

void expect_same(const compute::Dag& dag, const Steps& steps, double tolerance, uint64_t seed) {
  const Result<ir::Program> scheduled = lower(dag, steps);
  ASSERT_TRUE(scheduled.ok()) << scheduled.status().message();
  const std::vector<Tensor>& want = naive_outputs(dag, seed);
  expect_close(want, outputs_of(*scheduled, seed), tolerance);
  for (const ir::InPlacePair& pair : ir::in_place_pairs(*scheduled)) {
    SCOPED_TRACE("in place of " + scheduled->params[pair.input].buffer->name);
    expect_close(want, outputs_of(*scheduled, seed, &pair), tolerance);
  }
}

void expect_same(const compute::Dag& dag, std::string_view steps, double tolerance) {
  const Result<Steps> parsed = parse_steps(steps);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  expect_same(dag, *parsed, tolerance);
}

double rounding_of(const compute::Dag& dag, const std::string& text) {
  const ir::Program naive = compute::naive_program(dag);
  const Result<Steps> steps = parse_steps(text);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  if (!steps.ok()) return 0;
  const Result<ir::Program> program = lower(dag, *steps);
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return 0;
  std::vector<Tensor> exact = ir::random_arguments(naive, 1);
  // The task's params come first, in order.
  std::vector<Tensor> found = ir::random_arguments(*program, 1);
  size_t out = 0;
  while (naive.params[out].role != ir::Role::kOutput) ++out;
  exact[out] = Tensor(DType::kF64, exact[out].shape());
  EXPECT_TRUE(ir::run(naive, exact, {.float64 = true}).ok());
  EXPECT_TRUE(ir::run(*program, found).ok());
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < exact[out].size(); ++i) {
    largest = std::max(largest, std::fabs(exact[out].at(i)));
    worst = std::max(worst, std::fabs(exact[out].at(i) - found[out].at(i)));
  }
  return worst / largest;
}

std::string refusal(const compute::Dag& dag, std::string_view text) {
  const Result<Steps> steps = parse_steps(text);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  const Result<State> state = replay(dag, *steps);
  return state.ok() ? "" : state.status().message();
}

ir::TouchReport touches_of(const compute::Dag& dag, std::string_view text) {
  ir::TouchReport report;
  const Result<ir::Program> program = lower(dag, *parse_steps(text));
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return report;
  std::vector<Tensor> args = integer_arguments(*program, 1);
  EXPECT_TRUE(ir::run(*program, args, {}, &report).ok());
  return report;
}

compute::Dag built(compute::DagBuilder&& builder) {
  Result<compute::Dag> dag = std::move(builder).build();
  EXPECT_TRUE(dag.ok()) << dag.status().message();
  return *std::move(dag);
}

Result<ir::Program> lower_threads(const compute::Dag& dag, std::string_view text) {
  HONE_ASSIGN_OR_RETURN(const Steps steps, parse_steps(text));
  return lower(dag, steps, ir::gpu_pipeline(), {});
}

void expect_threads(const compute::Dag& dag, std::string_view text, double tolerance) {
  const Result<ir::Program> program = lower_threads(dag, text);
  ASSERT_TRUE(program.ok()) << program.status().message();
  SCOPED_TRACE(ir::print(*program));
  expect_close(naive_outputs(dag, 1), outputs_of(*program, 1), tolerance);
}

}  // namespace hone::schedule
