// Blocks of columns and of the sum, and panels of an operand that is no constant.
#include <algorithm>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/program_hash.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/portable_point.h"
#include "hone/space/sketch.h"
#include "hone/space/space.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

target::Target small_caches() { return with_small_caches(narrow()); }

int find(const Space& space, int sketch, std::string_view role) {
  const std::vector<Decision>& decisions = space.decisions(sketch);
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i].role_name() == role) return static_cast<int>(i);
  }
  return -1;
}

using Values = std::vector<std::pair<std::string_view, int64_t>>;

// The first sketch's default point with some decisions made otherwise.
Point point_of(const Space& space, const Values& values) {
  Point point = space.default_point();
  for (const auto& [role, value] : values) {
    const int decision = find(space, 0, role);
    EXPECT_GE(decision, 0) << role;
    if (decision < 0) continue;
    const auto d = static_cast<size_t>(decision);
    point.choices[d] = nearest_option(space.decisions(0)[d], value);
    EXPECT_EQ(space.decisions(0)[d].options[static_cast<size_t>(point.choices[d])], value) << role;
  }
  return point;
}

TEST(blocks, any_of_them_compute_the_same) {
  const struct {
    const char* name;
    compute::Dag dag;
    bool has_bands, has_panels;
  } cases[] = {
      {"packed", gemm(97, 31, 1031), true, false},
      {"packed_few_rows", gemm(7, 97, 1027), false, false},
      {"two_inputs", product_of_two(1, 97, 17, 1033), true, true},
      {"batched", product_of_two(3, 33, 13, 1030), false, true},
      {"conv", conv2d({.h = 5, .w = 7, .ic = 131, .oc = 13, .border = 0, .residual = true}), false,
       false}};
  for (const auto& [name, dag, has_bands, has_panels] : cases) {
    const Result<Space> space = Space::create(dag, small_caches());
    ASSERT_TRUE(space.ok()) << name << space.status().message();
    Rng rng(3);
    int sums = 0, bands = 0, panels = 0;
    for (int i = 0, tried = 0; i < 4000 && tried < 8; ++i) {
      Point point = space->sample(rng);
      const auto chosen = [&](std::string_view role) {
        const int d = find(*space, point.sketch, role);
        return d >= 0 && point.choices[static_cast<size_t>(d)] > 0;
      };
      const bool cut = chosen("sum_blocks"), banded = chosen("column_blocks"),
                 copied = chosen("panels");
      if (!cut && !banded && !copied) continue;
      ++tried;
      sums += cut ? 1 : 0, bands += banded ? 1 : 0, panels += copied ? 1 : 0;
      const schedule::Steps steps = space->steps(point);
      SCOPED_TRACE(std::string(name) + "\n" + schedule::to_string(steps));
      schedule::expect_same(dag, steps, 0);
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(sums, 0) << name;
    EXPECT_EQ(bands > 0, has_bands) << name;
    EXPECT_EQ(panels > 0, has_panels) << name;
  }
}

// Register tiles of all rows read a block of the sum's operands before the next block's.
TEST(blocks, a_block_of_the_sum_is_read_again_before_the_next_one) {
  const compute::Dag dag = gemm(24, 16, 1024);
  const Result<Space> space = Space::create(dag, small_caches());
  ASSERT_TRUE(space.ok());
  const Values tile = {{"vectors", 2}, {"column", 4}, {"order", 1}, {"parallel", 1}};
  Values cut = tile;
  cut.push_back({"sum_blocks", 4});
  const Point whole = point_of(*space, tile), blocks = point_of(*space, cut);
  ASSERT_TRUE(space->legal(blocks));
  schedule::expect_same(dag, space->steps(blocks), 0);
  const Result<ir::Program> program = schedule::lower(dag, space->steps(blocks));
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_NE(ir::hash(*program), ir::hash(*schedule::lower(dag, space->steps(whole))));
  Values all = cut;
  all[3] = {"parallel", 2};
  EXPECT_FALSE(space->legal(point_of(*space, all))) << "each tile by itself reads a block once";
}

// Eight threads share the tiles of a product of two matrices as a grid of four by two.
TEST(blocks, threads_share_rows_and_columns_of_two_matrices_as_a_grid) {
  const int64_t m = 64, n = 32;
  const compute::Dag dag = product_of_two(1, m, n, 72);
  const Result<Space> space = Space::create(dag, small_caches());
  ASSERT_TRUE(space.ok());
  const Point point = point_of(*space, {{"lanes", 4},
                                        {"vectors", 1},
                                        {"column", 4},
                                        {"order", 0},
                                        {"parallel", 3},
                                        {"column_blocks", 4}});
  ASSERT_TRUE(space->legal(point));
  Result<ir::Program> program = schedule::lower(dag, space->steps(point));
  ASSERT_TRUE(program.ok()) << program.status().message();
  ir::Phase& phase = program->phases.back();
  const ir::Stmt loop = phase.body;
  ASSERT_EQ(loop->for_kind, ir::ForKind::kParallel);
  const int64_t tiles = phase.num_tiles(), threads = 8;
  ASSERT_EQ(tiles, (m / 4) * (n / 4));
  for (int64_t thread = 0; thread < threads; ++thread) {
    const int64_t first = tiles * thread / threads, last = tiles * (thread + 1) / threads;
    phase.body = ir::make_for(loop->var, ir::constant(first), ir::constant(last - first),
                              ir::ForKind::kSerial, loop->body);
    std::vector<Tensor> args = schedule::integer_arguments(*program, 1);
    ir::TouchReport report;
    ASSERT_TRUE(ir::run(*program, args, {}, &report).ok());
    const ir::Touch *left = report.find(dag.params[0].buffer, false),
                    *right = report.find(dag.params[1].buffer, false);
    ASSERT_TRUE(left && right);
    EXPECT_EQ(4 * left->distinct, dag.params[0].buffer->num_elements());
    EXPECT_EQ(2 * right->distinct, dag.params[1].buffer->num_elements());
  }
}

// Panels are made once, in the order in which the register tiles read them.
TEST(blocks, an_operand_in_panels_is_copied_once_for_all_rows) {
  const compute::Dag dag = product_of_two(2, 33, 16, 80);
  const Result<Space> space = Space::create(dag, small_caches());
  ASSERT_TRUE(space.ok());
  const int64_t elements = dag.params[1].buffer->num_elements();
  for (const int64_t place : {0, 1, 2}) {
    const Point point = point_of(*space, {{"vectors", 2},
                                          {"column", 3},
                                          {"order", 1},
                                          {"parallel", 1},
                                          {"row", 1},
                                          {"panels", place}});
    if (place == 2 && !space->legal(point)) continue;  // batches outside: see the default
    ASSERT_TRUE(space->legal(point)) << place;
    schedule::expect_same(dag, space->steps(point), 0);
    const ir::TouchReport report =
        schedule::touches_of(dag, schedule::to_string(space->steps(point)));
    const ir::Touch* right = report.find(dag.params[1].buffer, false);
    ASSERT_NE(right, nullptr);
    EXPECT_EQ(right->distinct, elements);
    EXPECT_EQ(right->count == elements, place > 0);
  }
}

// What is summed up of a block stays near by, also where the panels are made ahead of it all.
TEST(blocks, their_sums_fit_the_cache) {
  const compute::Dag dag = product_of_two(1, 2048, 64, 1024);
  const Result<Space> space = Space::create(dag, small_caches());
  ASSERT_TRUE(space.ok());
  const Values whole = {{"vectors", 2},  {"column", 4}, {"order", 0},
                        {"parallel", 1}, {"panels", 1}, {"sum_blocks", 4}};
  EXPECT_FALSE(space->legal(point_of(*space, whole)));
  Values banded = whole;
  banded[3] = {"parallel", 2};
  banded.emplace_back("column_blocks", 16);
  EXPECT_TRUE(space->legal(point_of(*space, banded)));
  const Point rule = space->default_point();
  for (const std::string_view role : {"panels", "sum_blocks", "column_blocks"})
    EXPECT_GT(rule.choices[static_cast<size_t>(find(*space, 0, role))], 0) << role;
  // Columns that all have an operand of their own share no panel and no block.
  const Result<Space> reduced = Space::create(global_pool(64, 96, 96), small_caches());
  ASSERT_TRUE(reduced.ok());
  for (int sketch = 0; sketch < reduced->num_sketches(); ++sketch)
    EXPECT_LT(find(*reduced, sketch, "sum_blocks"), 0);
}

// By rule of thumb a long sum comes in blocks and a large computed operand in panels; short sums
// and small operands do not.
TEST(blocks, the_default_has_them_where_data_would_leave_the_cache) {
  const auto chosen = [](const compute::Dag& dag, std::string_view role) {
    const Result<Space> space = Space::create(dag, small_caches());
    HONE_ASSERT(space.ok(), "a space");
    const int d = find(*space, 0, role);
    const Point point = space->default_point();
    EXPECT_TRUE(space->legal(point));
    schedule::expect_same(dag, space->steps(point), 0);
    return d >= 0 && point.choices[static_cast<size_t>(d)] > 0;
  };
  EXPECT_TRUE(chosen(gemm(97, 33, 1031), "sum_blocks"));
  EXPECT_FALSE(chosen(gemm(97, 33, 129), "sum_blocks"));
  EXPECT_FALSE(chosen(gemm(7, 33, 1031), "sum_blocks")) << "few rows read a block again";
  EXPECT_TRUE(chosen(product_of_two(1, 97, 33, 527), "panels"));
  EXPECT_FALSE(chosen(product_of_two(1, 97, 33, 31), "panels"));
}

// A record from before there were blocks stands for a schedule without any.
TEST(blocks, a_point_that_does_not_speak_of_blocks_has_none) {
  const compute::Dag dag = product_of_two(1, 97, 31, 1025);
  const Result<Space> space = Space::create(dag, small_caches());
  ASSERT_TRUE(space.ok());
  Point point = space->default_point();
  for (const std::string_view role : {"sum_blocks", "column_blocks", "panels"})
    point.choices[static_cast<size_t>(find(*space, 0, role))] = 0;
  PortablePoint older = to_portable(*space, point);
  std::erase_if(older.choices, [](const PortableChoice& choice) {
    return choice.role == "sum_blocks" || choice.role == "column_blocks" || choice.role == "panels";
  });
  const std::optional<Point> found = exact_point(older, space->steps(point), *space);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found, point);
}

}  // namespace
}  // namespace hone::space
