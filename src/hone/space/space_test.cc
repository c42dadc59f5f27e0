#include "hone/space/space.h"

#include <algorithm>
#include <array>
#include <set>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/ir/program_hash.h"
#include "hone/schedule/lower.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/sketch.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

struct Case {
  const char* name;
  compute::Dag dag;
};
compute::Dag conv_in_zeros() {
  compute::Dag dag = conv2d({.h = 7, .w = 8, .ic = 5, .oc = 8, .stride = 2, .border = 0});
  dag.params[0].zeros = {0, 1, 1, 0, 0, 1, 1, 0};
  return dag;
}

// out[m, n] = sum over k of x[k, m] * x[k, n], or of x[m, k] * x[n, k]: weights or data.
compute::Dag times_itself(int64_t n, int64_t k, bool is_constant, bool by_rows) {
  compute::DagBuilder b;
  const Shape shape = by_rows ? Shape{n, k} : Shape{k, n};
  const auto x = is_constant ? b.constant("x", shape) : b.input("x", shape);
  const auto out = b.output("out", {n, n});
  const auto i = compute::make_axis("m", n), j = compute::make_axis("n", n),
             r = compute::make_axis("k", k);
  const ir::Expr vi = ir::variable(i.var), vj = ir::variable(j.var), vr = ir::variable(r.var);
  const auto element = [&](const ir::Expr& column) {
    return by_rows ? ir::load(x, {column, vr}) : ir::load(x, {vr, column});
  };
  b.sum("matmul", {i, j}, {r}, compute::View(out), element(vi) * element(vj));
  return finish(std::move(b));
}

std::vector<Case> cases() {
  return {
      {"gemm", gemm(7, 13, 9)},
      {"gemv", gemm(1, 17, 33)},
      {"gemm_far_rows", gemm(9, 7, 512)},
      {"conv3x3", conv2d({.h = 6, .w = 9, .ic = 3, .oc = 11})},
      {"conv1x1_residual", conv2d({.h = 5,
                                   .w = 5,
                                   .ic = 6,
                                   .oc = 9,
                                   .kernel = 1,
                                   .pad = 0,
                                   .border = 0,
                                   .residual = true})},
      {"conv_strided", conv2d({.h = 9, .w = 7, .ic = 5, .oc = 5, .stride = 2, .border = 0})},
      {"conv3x3_winograd",
       conv2d({.h = 6, .w = 9, .ic = 6, .oc = 11, .border = 0, .residual = true})},
      {"conv5x5_winograd",
       conv2d({.h = 7, .w = 8, .ic = 5, .oc = 6, .kernel = 5, .pad = 2, .border = 0})},
      {"conv1x3_winograd", conv2d({.h = 5, .w = 9, .ic = 5, .oc = 6, .kernel = 1, .kernel_w = 3})},
      {"conv3x1_winograd", conv2d({.h = 9, .w = 5, .ic = 5, .oc = 6, .kernel_w = 1})},
      {"depthwise", depthwise(6, 7, 10, 2)},
      {"grouped", grouped_conv2d(7, 9, 3, 5, 6, 2)},
      {"grouped_whole_vectors", grouped_conv2d(4, 6, 4, 3, 2, 1)},
      {"max_pool", max_pool(7, 9, 6)},
      {"global_pool", global_pool(5, 3, 9)},
      {"softmax_rows", softmax(5, 21, 1)},
      {"softmax_columns", softmax(3, 5, 13)},
      {"sum_of_two", sum_of_two(2, 1'009)},
      {"separable", separable(7, 9, 6, 11)},
      {"attention", attention(3, 13, 17, 6)},
      {"attention_causal", attention(2, 21, 19, 6, 0)},
      {"attention_causal_vectors", attention(2, 35, 48, 9, 3)},
      {"attention_one_query", attention(2, 1, 9, 8)},
      {"attention_many_keys", attention(1, 5, 512, 3)},
      {"arg_max", arg_max(3, 5, 21)},
      {"running_sum", running_sum(7, 9)},
      {"running_sum_even", running_sum(8, 5)},
      {"running_sum_columns", running_sum(3, 7, 21)},
      {"running_sum_few_columns", running_sum(2, 7, 3)},
      {"running_sum_one_column", running_sum(5, 7, 1)},
      {"transpose", transpose(3, 5, 9, 1)},
      {"transpose_tiles", transpose(8, 12, 16, 1)},
      {"gemm_five_vectors", gemm(7, 19, 9)},
      {"conv_in_zeros", conv_in_zeros()},
      {"conv_seven_vectors",
       conv2d({.h = 3, .w = 5, .ic = 6, .oc = 28, .kernel = 1, .pad = 0, .border = 0})},
      {"weights_times_themselves", times_itself(17, 5, true, false)},
      {"weights_times_themselves_by_rows", times_itself(33, 9, true, true)},
      {"data_times_itself", times_itself(17, 6, false, false)},
      {"data_times_itself_by_rows", times_itself(9, 33, false, true)}};
}

TEST(space, every_sampled_point_computes_the_same) {
  const target::Target target = narrow();
  for (const Case& c : cases()) {
    const Result<Space> space = Space::create(c.dag, target);
    ASSERT_TRUE(space.ok()) << c.name << ": " << space.status().message();
    Rng rng(7);
    const double tolerance = space->num_sketches() > 1 ? 1e-3 : 0;  // Winograd's algorithm rounds
    for (int sketch = 0; sketch < space->num_sketches(); ++sketch)
      schedule::expect_same(c.dag, space->steps(space->default_point(sketch)), tolerance);
    for (int i = 0; i < 25; ++i) {
      Point point = space->sample(rng);
      if (i % 2 == 1) point = space->mutate(point, rng);
      const schedule::Steps steps = space->steps(point);
      SCOPED_TRACE(std::string(c.name) + "\n" + schedule::to_string(steps));
      schedule::expect_same(c.dag, steps, tolerance);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(space, a_convolution_may_take_fewer_products) {
  const auto sketches = [](const compute::Dag& dag) {
    const Result<Space> space = Space::create(dag, narrow());
    return space.ok() ? space->num_sketches() : 0;
  };
  EXPECT_EQ(sketches(conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8})), 4);  // direct, tiles of 2, 4, 6
  EXPECT_EQ(sketches(conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8, .kernel = 5, .pad = 2})), 3);
  // Its data copied (im2col), tiles of 2, 3, 4.
  EXPECT_EQ(sketches(conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8, .stride = 2})), 5);
  EXPECT_EQ(sketches(conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8, .stride = 3})), 2);
  EXPECT_EQ(sketches(conv2d({.h = 12, .w = 12, .ic = 3, .oc = 8})), 4) << "a first layer";
  EXPECT_EQ(sketches(conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8, .kernel = 1, .pad = 0})), 1);
  EXPECT_EQ(sketches(conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8, .kernel = 1, .kernel_w = 3})), 4);
  EXPECT_EQ(sketches(conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8, .kernel_w = 1})), 4);
  compute::Dag plain = conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8});
  plain.stages[0].plain_sums = true;
  EXPECT_EQ(sketches(plain), 1) << "no algorithm whose terms cancel";
}

TEST(space, data_are_copied_where_their_columns_lie_apart) {
  const auto copies = [](const compute::Dag& dag) {
    const Result<Space> space = Space::create(dag, narrow());
    int found = 0;
    for (int s = 0; space.ok() && s < space->num_sketches(); ++s)
      found += space->algorithm(s) == "im2col" ? 1 : 0;
    return found;
  };
  EXPECT_EQ(copies(conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8, .stride = 2})), 1);
  EXPECT_EQ(copies(conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8})), 0) << "side by side";
  EXPECT_EQ(copies(conv2d({.h = 12, .w = 12, .ic = 512, .oc = 8})), 1) << "2 KiB apart";
  EXPECT_EQ(copies(conv2d({.ic = 1, .stride = 2})), 0) << "nine elements are not worth it";
  EXPECT_EQ(copies(gemm(64, 32, 1024)), 1) << "rows 4 KiB apart";
  EXPECT_EQ(copies(gemm(64, 32, 1000)), 0);
  EXPECT_EQ(copies(gemm(2, 32, 1024)), 0) << "two rows disturb nobody";
  EXPECT_EQ(copies(depthwise(12, 12, 32, 1)), 0) << "nothing is shared";
}

TEST(space, constants_of_16_bits_are_another_sketch_where_they_may_round) {
  const auto algorithms = [](const compute::Dag& dag, trial::Accuracy accuracy) {
    const Result<Space> space = Space::create(dag, narrow(), accuracy);
    std::vector<std::string> names;
    for (int sketch = 0; space.ok() && sketch < space->num_sketches(); ++sketch)
      names.push_back(space->algorithm(sketch));
    return names;
  };
  const compute::Dag dag = gemm(2, 128, 192);  // 96 KB of weights
  EXPECT_EQ(algorithms(dag, trial::Accuracy::kDefault), std::vector<std::string>{"direct"});
  EXPECT_EQ(algorithms(dag, trial::Accuracy::kFast),
            (std::vector<std::string>{"direct", "direct_bf16"}));
  for (const std::string& name : algorithms(gemm(2, 16, 16), trial::Accuracy::kFast))
    EXPECT_FALSE(trial::is_narrow(name)) << "too small to gain";
  const Result<Space> space = Space::create(dag, narrow(), trial::Accuracy::kFast);
  Rng rng(3);
  for (int i = 0; i < 20; ++i) schedule::expect_same(dag, space->steps(space->sample(rng)));
}

TEST(space, the_accuracy_of_an_algorithm_is_that_of_its_steps) {
  std::set<trial::Accuracy> seen;
  for (const compute::Dag& dag :
       {gemm(512, 512, 512), gemm(2, 128, 192), conv2d({.h = 12, .w = 12, .ic = 64, .oc = 64})}) {
    const Space space = Space::create(dag, narrow(), trial::Accuracy::kFast).value();
    Rng rng(7);
    for (int i = 0; i < 100; ++i) {
      const Point point = space.sample(rng);
      const std::string algorithm = space.algorithm(point.sketch);
      const trial::Accuracy accuracy = trial::accuracy_of_algorithm(algorithm);
      EXPECT_EQ(accuracy, trial::accuracy_of(schedule::to_string(space.steps(point)))) << algorithm;
      seen.insert(accuracy);
    }
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST(space, no_schedule_does_with_less_arithmetic_than_the_least) {
  const auto share = [](const compute::Dag& dag, trial::Accuracy accuracy) {
    const Result<Space> space = Space::create(dag, narrow(), accuracy);
    return space.ok() ? space->least_flops() / compute::flops(dag) : 0;
  };
  const compute::Dag conv = conv2d({.h = 12, .w = 12, .ic = 64, .oc = 64});
  // Tiles of 6 x 6 results take 8 x 8 products for 36 * 9; the epilogue takes what it takes.
  EXPECT_NEAR(share(conv, trial::Accuracy::kDefault), 64.0 / (36 * 9), 0.01);
  EXPECT_EQ(share(conv, trial::Accuracy::kStrict), 1);
  // A stride of two: tiles of 3 x 3 results take 7 x 7 products for 9 * 9.
  EXPECT_NEAR(
      share(conv2d({.h = 12, .w = 12, .ic = 64, .oc = 64, .stride = 2}), trial::Accuracy::kDefault),
      49.0 / (9 * 9), 0.01);
  EXPECT_EQ(
      share(conv2d({.h = 12, .w = 12, .ic = 64, .oc = 64, .stride = 3}), trial::Accuracy::kDefault),
      1);
  EXPECT_EQ(share(gemm(7, 13, 9), trial::Accuracy::kDefault), 1);
}

TEST(space, depthwise_and_pointwise_convolution_run_over_blocks_of_rows) {
  const compute::Dag dag = separable(16, 9, 8, 16);
  const Result<Space> space = Space::create(dag, narrow());
  ASSERT_TRUE(space.ok());
  const Result<ir::Program> program = schedule::lower(dag, space->steps(space->default_point()));
  ASSERT_TRUE(program.ok()) << program.status().message();
  // The packing of the weights is done when the model is compiled.
  EXPECT_EQ(program->phases.back().num_tiles(), 8);
}

// A window's vectors are computed one by one where their data would not wait in registers together.
TEST(space, vectors_of_a_window_stand_outside_its_taps_where_registers_lack) {
  const compute::Dag dag = depthwise(8, 9, 16, 1);
  const Result<Space> space = Space::create(dag, narrow());
  ASSERT_TRUE(space.ok());
  Rng rng(5);
  int outside = 0, inside = 0;
  for (int i = 0; i < 400; ++i) {
    const schedule::Steps steps = space->steps(space->sample(rng));
    const std::string text = schedule::to_string(steps);
    inside += text.find("c.0, c.1])\nunroll(depthwise, ") != std::string::npos;
    if (text.find("reorder(depthwise, [c.0, ") == std::string::npos) continue;
    EXPECT_NE(text.find("unroll(depthwise, c.0)"), std::string::npos) << text;
    EXPECT_EQ(text.find("split(relu, c, [1, "), std::string::npos) << "one vector: " << text;
    if (++outside <= 3) schedule::expect_same(dag, steps, 0);
  }
  EXPECT_GT(outside, 0);
  EXPECT_GT(inside, 0);
}

// 5 vectors of half the width are 40 channels; 3 of the whole width would be 48.
TEST(space, five_or_seven_vectors_where_other_tiles_leave_a_rest) {
  target::Target wide = narrow();
  wide.cpu().vector_bytes = 64;
  wide.cpu().vector_registers = 32;
  const auto options = [&](const compute::Dag& dag) {
    const Result<Space> space = Space::create(dag, wide);
    HONE_ASSERT(space.ok(), "a space");
    for (const Decision& decision : space->decisions(0)) {
      if (decision.name.ends_with(".vectors")) return decision.options;
    }
    return std::vector<int64_t>();
  };
  using Options = std::vector<int64_t>;
  EXPECT_EQ(options(gemm(7, 40, 9)), (Options{1, 2, 3, 4, 5}));
  EXPECT_EQ(options(gemm(7, 56, 9)), (Options{1, 2, 3, 4, 6, 7}));
  EXPECT_EQ(options(gemm(7, 48, 9)), (Options{1, 2, 3, 4, 6}));
  EXPECT_EQ(options(gemm(7, 80, 9)), (Options{1, 2, 3, 4, 5, 6, 8}));
  EXPECT_EQ(options(gemm(7, 112, 9)), (Options{1, 2, 3, 4, 6, 7, 8}));
  EXPECT_EQ(options(gemm(7, 160, 9)), (Options{1, 2, 3, 4, 6, 8}));
  EXPECT_EQ(options(depthwise(6, 7, 40, 1)), (Options{1, 2, 3, 4, 5})) << "all channels of a point";
  const compute::Dag dag = gemm(11, 40, 9);
  const Result<Space> space = Space::create(dag, wide);
  ASSERT_TRUE(space.ok());
  Rng rng(1);
  int five = 0;
  for (int i = 0; i < 200; ++i) {
    const schedule::Steps steps = space->steps(space->sample(rng));
    if (schedule::to_string(steps).find("[5, 8]") == std::string::npos) continue;
    if (++five <= 3) schedule::expect_same(dag, steps, 1e-5);
  }
  EXPECT_GT(five, 0);
}

// The weights of a product of one row are read once: they may be asked for ahead of their use.
TEST(space, weights_of_one_row_may_be_prefetched) {
  const auto programs = [](const compute::Dag& dag) {
    const Result<Space> space = Space::create(dag, narrow());
    HONE_ASSERT(space.ok(), "a space");
    std::vector<std::string> texts;
    Point point = space->default_point();
    const std::vector<Decision>& decisions = space->decisions(point.sketch);
    for (size_t d = 0; d < decisions.size(); ++d) {
      if (!decisions[d].name.ends_with(".ahead")) continue;
      for (point.choices[d] = 0; point.choices[d] < std::ssize(decisions[d].options);
           ++point.choices[d]) {
        const Result<ir::Program> program = schedule::lower(dag, space->steps(point));
        texts.push_back(program.ok() ? ir::print(*program) : program.status().message());
      }
      break;
    }
    return texts;
  };
  const std::vector<std::string> one_row = programs(gemm(1, 64, 64));
  ASSERT_EQ(one_row.size(), 2U);
  EXPECT_EQ(one_row[0].find("prefetch"), std::string::npos) << one_row[0];
  EXPECT_NE(one_row[1].find("prefetch weight.cache["), std::string::npos) << one_row[1];
  EXPECT_TRUE(programs(gemm(2, 64, 64)).empty());
}

// All stages run over a block of queries in one parallel loop.
TEST(space, attention_keeps_its_scores_in_the_cache) {
  const compute::Dag dag = attention(2, 256, 64, 16);
  const Result<Space> space = Space::create(dag, narrow());
  ASSERT_TRUE(space.ok());
  const Result<ir::Program> program = schedule::lower(dag, space->steps(space->default_point()));
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ(program->phases.size(), 1U);
  EXPECT_GE(program->phases[0].num_tiles(), 4);
}

int64_t allocated_bytes(const ir::StmtNode& s) {
  int64_t bytes = 0;
  if (s.kind == ir::StmtKind::kAlloc)
    bytes = s.buffer->num_elements() * dtype_bytes(s.buffer->dtype);
  for (const ir::Stmt& child : s.body) bytes += allocated_bytes(*child);
  return bytes;
}

// Of however many keys: a tile's scores are kept, not a row's.
TEST(space, attention_of_many_keys_keeps_the_scores_of_a_tile) {
  for (const int64_t keys : {4'096, 65'536}) {
    const compute::Dag dag = attention(1, 64, keys, 16);
    const Result<Space> space = Space::create(dag, narrow());
    ASSERT_TRUE(space.ok());
    EXPECT_EQ(space->num_sketches(), 1);
    const Result<ir::Program> program = schedule::lower(dag, space->steps(space->default_point()));
    ASSERT_TRUE(program.ok()) << program.status().message();
    ASSERT_EQ(program->phases.size(), 1U);
    EXPECT_GE(program->phases[0].num_tiles(), 2);
    const int64_t kept = allocated_bytes(*program->phases[0].body);
    EXPECT_GT(kept, 0);
    EXPECT_LE(kept, 1 << 20);
  }
}

// However its elements are arranged, a long tensor is work for all cores, and each piece whole if
// there is such a length.
TEST(space, elements_are_shared_by_all_cores) {
  for (const auto& [rows, n] :
       {std::array{1, 4'096}, std::array{3, 1'000}, std::array{1, 1'009}, std::array{300, 40}}) {
    const compute::Dag dag = sum_of_two(rows, n);
    const Result<Space> space = Space::create(dag, narrow());
    ASSERT_TRUE(space.ok());
    const schedule::Steps steps = space->steps(space->default_point());
    const Result<ir::Program> program = schedule::lower(dag, steps);
    ASSERT_TRUE(program.ok()) << program.status().message();
    EXPECT_GE(program->phases[0].num_tiles(), 8) << schedule::to_string(steps);
    const bool tests = ir::print(*program).find("if ") != std::string::npos;
    EXPECT_EQ(tests, n == 1'009) << ir::print(*program);
    schedule::expect_same(dag, steps);
  }
}

// A row stays in one tile: nothing but the result is as large as the data.
TEST(space, rows_are_one_tile) {
  const Result<Space> space = Space::create(softmax(5, 21, 1), narrow());
  ASSERT_TRUE(space.ok());
  const std::string text = schedule::to_string(space->steps(space->default_point()));
  const Result<ir::Program> program =
      schedule::lower(softmax(5, 21, 1), space->steps(space->default_point()));
  ASSERT_TRUE(program.ok()) << program.status().message() << text;
  EXPECT_EQ(program->phases.size(), 1U) << text;
  EXPECT_EQ(program->phases[0].num_tiles(), 5) << text;
}

TEST(space, points_are_found_again_from_their_steps) {
  for (const Case& c : cases()) {
    const Result<Space> space = Space::create(c.dag, narrow());
    ASSERT_TRUE(space.ok());
    Rng rng(3);
    for (int i = 0; i < 10; ++i) {
      const Point point = space->sample(rng);
      const auto found = space->locate(space->steps(point));
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(schedule::to_string(space->steps(*found)), schedule::to_string(space->steps(point)))
          << c.name;
    }
  }
}

TEST(space, neighbours_are_legal_and_one_step_away_or_stand_for_what_is) {
  const Result<Space> space = Space::create(cases()[3].dag, narrow());
  ASSERT_TRUE(space.ok());
  const Point start = space->default_point();
  const std::vector<Point> near = space->neighbours(start);
  EXPECT_GT(near.size(), 5U);
  const auto stands_for = [&](const Point& point, size_t i, int step) {
    Point next = start;
    next.choices[i] += step;
    const auto options = std::ssize(space->decisions(start.sketch)[i].options);
    return next.choices[i] >= 0 && next.choices[i] < options && space->canonical(next) == point;
  };
  for (const Point& point : near) {
    bool found = false;
    for (size_t i = 0; i < start.choices.size(); ++i)
      found = found || stands_for(point, i, -1) || stands_for(point, i, 1);
    EXPECT_TRUE(found);
    EXPECT_TRUE(space->instantiate(point).ok());
    EXPECT_NE(space->canonical(start), point);
    EXPECT_EQ(std::count(near.begin(), near.end(), point), 1);
  }
}

// Also one that is illegal, or not the one that sampling returns.
Point any_point(const Space& space, Rng& rng) {
  Point point = space.default_point(static_cast<int>(rng.below(space.num_sketches())));
  const std::vector<Decision>& decisions = space.decisions(point.sketch);
  for (size_t i = 0; i < decisions.size(); ++i)
    point.choices[i] = static_cast<int>(rng.below(std::ssize(decisions[i].options)));
  return point;
}

TEST(space, every_sampled_point_can_be_made_concrete) {
  target::Target wide = narrow();
  wide.cpu().vector_bytes = 64;
  wide.cpu().vector_registers = 32;
  for (const target::Target& target : {narrow(), wide}) {
    for (const Case& c : cases()) {
      const Result<Space> space = Space::create(c.dag, target);
      ASSERT_TRUE(space.ok()) << c.name << ": " << space.status().message();
      Rng rng(5);
      for (int i = 0; i < 100; ++i) {
        const Point point = space->sample(rng);
        const Status status = space->instantiate(point).status();
        ASSERT_TRUE(status.ok()) << c.name << ": " << status.message();
        EXPECT_TRUE(space->legal(point)) << c.name;
        EXPECT_EQ(space->canonical(point), point) << c.name;
      }
    }
  }
}

TEST(space, the_point_that_stands_for_another_makes_the_same_program) {
  for (const Case& c : cases()) {
    const Result<Space> space = Space::create(c.dag, narrow());
    ASSERT_TRUE(space.ok());
    Rng rng(9);
    for (int i = 0, others = 0; i < 2000 && others < 15; ++i) {
      const Point point = any_point(*space, rng), same = space->canonical(point);
      if (!space->legal(point) || same == point) continue;
      ++others;
      EXPECT_TRUE(space->legal(same)) << c.name;
      EXPECT_EQ(space->canonical(same), same) << c.name;
      const Result<ir::Program> one = schedule::lower(c.dag, space->steps(point));
      const Result<ir::Program> other = schedule::lower(c.dag, space->steps(same));
      ASSERT_TRUE(one.ok() && other.ok()) << c.name;
      EXPECT_EQ(ir::hash(*one), ir::hash(*other))
          << c.name << "\n"
          << schedule::to_string(space->steps(point)) << "\n"
          << schedule::to_string(space->steps(same)) << "\n"
          << ir::print(*one) << ir::print(*other);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(space, the_same_seed_gives_the_same_points) {
  const Result<Space> space = Space::create(cases()[2].dag, narrow());
  ASSERT_TRUE(space.ok());
  Rng a(11), b(11);
  std::set<uint64_t> distinct;
  for (int i = 0; i < 50; ++i) {
    const Point p = space->sample(a);
    EXPECT_EQ(p, space->sample(b));
    distinct.insert(hash(p));
  }
  EXPECT_GT(distinct.size(), 40U);
}

TEST(space, encoding_has_a_fixed_length_within_the_unit_interval) {
  const Result<Space> space = Space::create(cases()[2].dag, narrow());
  ASSERT_TRUE(space.ok());
  Rng rng(5);
  for (int i = 0; i < 20; ++i) {
    const Point point = space->sample(rng);
    const std::vector<float> code = space->encode(point);
    EXPECT_EQ(code.size(), space->decisions(point.sketch).size());
    for (const float x : code) EXPECT_TRUE(x >= 0 && x <= 1);
  }
}

}  // namespace
}  // namespace hone::space
