#include "hone/compute/dag_testing.h"
#include "hone/space/portable_point.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

constexpr int64_t kOdd[] = {1, 2, 3, 7, 13, 17, 31, 33, 97};

// Expects the default to be in partial results of a block's threads.
void expect_rows(const compute::Dag& dag) {
  expect_points(dag, 5);
  const Result<Space> space = Space::create(dag, small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  const std::string steps = schedule::to_string(space->steps(space->default_point()));
  EXPECT_NE(steps.find(", strided)"), std::string::npos) << steps;
}

TEST(gpu_rows, softmax_and_norms) {
  for (const int64_t n : kOdd) {
    expect_rows(softmax(3, n, 1));
    expect_rows(softmax(2, n, 7));
    expect_rows(normalized_rows(5, n));
    expect_rows(softmax(n, 13, 1));
  }
  expect_rows(softmax(1, 300, 1));
}

TEST(gpu_rows, sums_of_rows_and_columns) {
  expect_rows(global_pool(9, 13, 17));
  expect_rows(gemm(1, 33, 97));
  expect_rows(gemm(3, 1, 331));
  for (const int64_t n : kOdd) {
    expect_points(global_pool(n, 3, 5), 5);
    expect_points(gemm(2, n, 31), 5);
  }
}

// Returns the sums of rows of an array (of columns, if `columns`) plus one.
compute::Dag sums(int64_t rows, int64_t n, bool columns) {
  compute::DagBuilder b;
  const auto data = columns ? b.input("data", {n, rows}) : b.input("data", {rows, n});
  const auto out = b.output("out", {rows}), sum = b.intermediate("sum", {rows});
  const auto i = compute::make_axis("i", rows), j = compute::make_axis("i", rows),
             r = compute::make_axis("r", n);
  const ir::Expr vi = ir::variable(i.var), vr = ir::variable(r.var);
  b.sum("sum", {i}, {r}, compute::View(sum),
        columns ? ir::load(data, {vr, vi}) : ir::load(data, {vi, vr}));
  b.pointwise("more", {j}, compute::View(out),
              ir::load(sum, {ir::variable(j.var)}) + ir::constant_float(1));
  return schedule::built(std::move(b));
}

TEST(gpu_rows, threads_have_vectors_of_long_rows) {
  for (const int64_t n : {8, 12, 36, 100, 260, 388, 1000}) {
    n < 32 ? expect_points(sums(3, n, false), 5) : expect_rows(sums(3, n, false));
    expect_points(softmax(2, n, 1), 5);
    expect_points(normalized_rows(3, n), 5);
  }
  const Result<Space> space = Space::create(softmax(4, 256, 1), small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  const std::string steps = schedule::to_string(space->steps(space->default_point()));
  EXPECT_NE(steps.find(".rf, ri)"), std::string::npos) << steps;
}

// Each of few rows of a product reads the other operand once for all of them, in its own order.
TEST(gpu_rows, products_of_few_rows) {
  for (const int64_t m : {1, 2, 3, 7, 8}) {
    expect_rows(gemm(m, 13, 96));
    expect_rows(few_columns(m, 17, 64, false));
    expect_points(few_columns(33, m, 31, false), 3);
  }
  ConvShape shape;
  shape.h = shape.w = 5, shape.kernel = 5, shape.pad = 0, shape.ic = 32, shape.oc = 17;
  expect_rows(conv2d(shape));
  const Result<Space> space = Space::create(gemm(3, 13, 96), small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  const std::string steps = schedule::to_string(space->steps(space->default_point()));
  EXPECT_NE(steps.find("layout(weight.cache, [n, k])"), std::string::npos) << steps;
  EXPECT_NE(steps.find("unroll(matmul.acc.rf, m)"), std::string::npos) << steps;
}

// Parts of long rows are divided among blocks where there are few rows.
TEST(gpu_rows, reductions_of_few_results_have_two_phases) {
  target::Target target = small_gpu();
  target.gpu().sms = 16;
  for (const compute::Dag& dag : {sums(1, 300000, false), sums(3, 99000, false),
                                  sums(33, 8192, true), sums(57, 4950, true)}) {
    const Result<Space> space = Space::create(dag, target);
    ASSERT_TRUE(space.ok()) << space.status().message();
    const Result<Candidate> candidate = space->instantiate(space->default_point());
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    ASSERT_NO_FATAL_FAILURE(expect_candidate(*candidate, 1e-5));
    const Result<ir::Program> program = schedule::lower_raw(candidate->state, candidate->bounds);
    ASSERT_TRUE(program.ok()) << program.status().message();
    EXPECT_EQ(program->phases.size(), 2);
    EXPECT_GT(program->phases[0].num_tiles(), 8) << schedule::to_string(candidate->steps);
  }
  expect_points(sums(1, 300007, false), 1, 1e-5, target);
}

// Returns such a GPU whose lanes exchange values.
target::Target shuffling_gpu() {
  target::Target target = small_gpu();
  target.gpu().subgroups = true;
  return target;
}

// Returns a point with another value of a decision.
Point with_value(const Space& space, Point point, std::string_view role, int64_t value) {
  const std::vector<Decision>& decisions = space.decisions(point.sketch);
  for (size_t d = 0; d < decisions.size(); ++d) {
    if (decisions[d].role_name() != role) continue;
    const auto& options = decisions[d].options;
    const auto at = std::find(options.begin(), options.end(), value);
    EXPECT_NE(at, options.end());
    point.choices[d] = static_cast<int>(at - options.begin());
    return point;
  }
  ADD_FAILURE() << "there is no decision " << role;
  return point;
}

TEST(gpu_rows, lanes_of_a_warp_exchange_their_parts_of_a_row) {
  for (const compute::Dag& dag :
       {softmax(3, 128, 1), softmax(9, 100, 1), normalized_rows(3, 260), sums(5, 36, false)}) {
    const Result<Space> space = Space::create(dag, shuffling_gpu());
    ASSERT_TRUE(space.ok()) << space.status().message();
    Point point = with_value(*space, space->default_point(), "threads", 32);
    point = with_value(*space, with_value(*space, point, "rows", 2), "exchange", 1);
    point = with_value(*space, point, "vector", 1);
    const Result<Candidate> lanes = space->instantiate(point);
    ASSERT_TRUE(lanes.ok()) << lanes.status().message();
    ASSERT_NO_FATAL_FAILURE(expect_candidate(*lanes, 1e-5));
    EXPECT_EQ(shared_bytes(*lanes), 0);
    const Result<Candidate> shared = space->instantiate(with_value(*space, point, "exchange", 0));
    ASSERT_TRUE(shared.ok()) << shared.status().message();
    EXPECT_GT(shared_bytes(*shared), 0);
    expect_points(dag, 4, 1e-5, shuffling_gpu());
  }
}

// Many rows need no more threads than those of a warp each.
TEST(gpu_rows, warps_have_rows_by_themselves_if_there_are_many) {
  const Result<Space> space = Space::create(softmax(4096, 256, 1), shuffling_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  const Point point = space->default_point();
  EXPECT_EQ(point, with_value(*space, point, "exchange", 1));
  // A point of an earlier program says nothing of that, and means shared memory.
  const Point shared = with_value(*space, point, "exchange", 0);
  PortablePoint earlier = to_portable(*space, shared);
  std::erase_if(earlier.choices, [](const auto& choice) { return choice.role == "exchange"; });
  ASSERT_EQ(earlier.choices.size() + 1, shared.choices.size());
  EXPECT_EQ(adapt(earlier, *space)[0], shared);
}

// Where a warp has no whole row, or there is no code for it, parts meet in shared memory.
TEST(gpu_rows, parts_meet_in_shared_memory_where_lanes_exchange_none) {
  const auto has_lanes = [](const compute::Dag& dag, const target::Target& target) {
    const Result<Space> space = Space::create(dag, target);
    const std::vector<Decision>& all = space.value().decisions(0);
    return std::any_of(all.begin(), all.end(),
                       [](const Decision& d) { return d.role_name() == "exchange"; });
  };
  target::Target opencl = shuffling_gpu();
  opencl.gpu().api = target::GpuApi::kOpenCl;
  EXPECT_TRUE(has_lanes(softmax(3, 128, 1), shuffling_gpu()));
  EXPECT_FALSE(has_lanes(softmax(3, 128, 1), opencl));
  EXPECT_FALSE(has_lanes(softmax(3, 128, 1), small_gpu()));
  EXPECT_FALSE(has_lanes(softmax(2, 97, 7), shuffling_gpu()));
  const Result<Space> space = Space::create(softmax(3, 128, 1), shuffling_gpu());
  const Point point = with_value(*space, space->default_point(), "exchange", 1);
  EXPECT_TRUE(space->legal(with_value(*space, point, "threads", 32)));
  EXPECT_FALSE(space->legal(with_value(*space, point, "threads", 64)));
}

// A block of few threads has not even one for each of the rows that it would have together.
TEST(gpu_rows, blocks_of_few_threads_have_fewer_rows) {
  target::Target target = small_gpu();
  target.gpu().threads_per_block = 12;
  expect_points(global_pool(8, 8, 64), 5, 1e-5, target);
  expect_points(softmax(1, 64, 64), 5, 1e-5, target);
}

// Each element is read once for each reduction, and once for the result.
TEST(gpu_rows, a_block_reads_its_rows_once_for_each_reduction) {
  const compute::Dag dag = softmax(4, 97, 1);
  const Result<Space> space = Space::create(dag, small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  const Result<Candidate> candidate = space->instantiate(space->default_point());
  ASSERT_TRUE(candidate.ok()) << candidate.status().message();
  const Result<ir::Program> program = schedule::lower_raw(candidate->state, candidate->bounds);
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::vector<Tensor> args = schedule::integer_arguments(*program, 1);
  ir::TouchReport report;
  ASSERT_TRUE(ir::run(*program, args, {}, &report).ok());
  const ir::Touch* read = report.find(program->params[0].buffer, false);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->count, 3 * 4 * 97);
}

}  // namespace
}  // namespace hone::space
