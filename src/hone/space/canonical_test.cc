// Points that stand for others, which make the same program.
#include <algorithm>

#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/sketch.h"
#include "hone/space/space.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

using Values = std::vector<std::pair<std::string_view, int64_t>>;

// What stands for the default point of the first sketch with some decisions made otherwise.
Point canonical(const Space& space, const Values& values) {
  const std::vector<Decision>& decisions = space.decisions(0);
  Point point = space.default_point();
  for (const auto& [role, value] : values) {
    for (size_t i = 0; i < decisions.size(); ++i) {
      if (decisions[i].role_name() == role) point.choices[i] = nearest_option(decisions[i], value);
    }
  }
  EXPECT_TRUE(space.legal(point));
  return space.canonical(point);
}

TEST(space, decisions_that_change_nothing_have_one_value) {
  const Result<Space> space = Space::create(gemm(4, 24, 16), narrow());
  ASSERT_TRUE(space.ok());
  const auto same = [&](const Values& a, const Values& b) {
    return canonical(*space, a) == canonical(*space, b);
  };
  const std::pair<std::string_view, int64_t> vectors{"vectors", 2};  // three blocks of channels
  EXPECT_TRUE(same({vectors, {"column", 2}, {"parallel", 1}, {"tail", 0}},
                   {vectors, {"column", 2}, {"parallel", 1}, {"tail", 1}}));
  EXPECT_FALSE(same({vectors, {"column", 3}, {"parallel", 1}, {"tail", 0}},
                    {vectors, {"column", 3}, {"parallel", 1}, {"tail", 1}}));
  EXPECT_TRUE(same({vectors, {"column", 3}, {"parallel", 2}, {"tail", 0}},
                   {vectors, {"column", 3}, {"parallel", 2}, {"tail", 1}}))
      << "a parallel loop is not peeled";
  const std::pair<std::string_view, int64_t> all{"column", 4};  // in one tile
  EXPECT_TRUE(same({vectors, all, {"order", 1}, {"parallel", 1}},
                   {vectors, all, {"order", 2}, {"parallel", 2}}));
  EXPECT_FALSE(
      same({vectors, {"column", 2}, {"order", 1}}, {vectors, {"column", 2}, {"order", 2}}));
}

// Whether there is a decision whose name ends so.
bool offers(const compute::Dag& dag, std::string_view name, const target::Target& target) {
  const Result<Space> space = Space::create(dag, target);
  HONE_ASSERT(space.ok(), "a space");
  return std::ranges::any_of(space->decisions(0),
                             [&](const Decision& d) { return d.name.ends_with(name); });
}

// 20 channels are five vectors: two tiles of two and one, or three of which the last has one only.
TEST(space, the_last_tile_of_channels_may_lie_apart) {
  const compute::Dag dag = gemm(4, 20, 16);
  const Result<Space> space = Space::create(dag, narrow());
  ASSERT_TRUE(space.ok());
  const auto point = [&](int64_t vectors, int64_t parallel, int64_t rest) {
    return canonical(*space, {{"vectors", vectors},
                              {"column", 2},
                              {"order", 2},
                              {"parallel", parallel},
                              {"rest", rest}});
  };
  EXPECT_EQ(point(1, 1, 0), point(1, 1, 1)) << "whole tiles";
  EXPECT_EQ(point(2, 4, 0), point(2, 4, 1)) << "a parallel loop is not peeled";
  const Point whole = point(2, 1, 0), apart = point(2, 1, 1);
  EXPECT_NE(whole, apart);
  // Loads of the input, one for each product.
  const auto products = [&](const Point& made) {
    const ir::TouchReport report =
        schedule::touches_of(dag, schedule::to_string(space->steps(made)));
    const ir::Touch* touch = report.find(dag.params[0].buffer, false);
    return touch != nullptr ? touch->count : 0;
  };
  EXPECT_EQ(products(whole), 4 * 24 * 16);
  EXPECT_EQ(products(apart), 4 * 20 * 16);
  schedule::expect_same(dag, space->steps(apart), 1e-5);
  EXPECT_TRUE(offers(dag, ".rest", narrow()));
  EXPECT_FALSE(offers(gemm(4, 24, 16), ".rest", narrow()))
      << "tiles of two or three vectors leave none";
  EXPECT_FALSE(offers(depthwise(6, 7, 20, 1), ".rest", narrow()))
      << "no operand is shared by the lanes";
}

// Two blocks of rows, the outermost of the fused tile loops, and four threads, each with its range
// of tiles: a grid of two by two, in which a thread reads half of the data and half of the weights.
TEST(space, threads_may_share_rows_and_channels_as_a_grid) {
  const compute::Dag dag =
      conv2d({.h = 8, .w = 4, .ic = 4, .oc = 16, .kernel = 1, .pad = 0, .border = 0});
  const Result<Space> space = Space::create(dag, narrow());
  ASSERT_TRUE(space.ok());
  const Point point = canonical(*space, {{"lanes", 4},
                                         {"vectors", 1},
                                         {"column", 4},
                                         {"row", 1},
                                         {"block", 4},
                                         {"order", 0},
                                         {"parallel", 2}});
  Result<ir::Program> program = schedule::lower(dag, space->steps(point));
  ASSERT_TRUE(program.ok()) << program.status().message();
  ir::Phase& phase = program->phases.back();
  const ir::Stmt loop = phase.body;
  ASSERT_EQ(loop->for_kind, ir::ForKind::kParallel);
  const int64_t tiles = phase.num_tiles();
  ASSERT_EQ(tiles, 2 * 4);
  const ir::BufferPtr packed = program->params.back().buffer;
  for (int64_t thread = 0; thread < 4; ++thread) {
    const int64_t first = tiles * thread / 4, last = tiles * (thread + 1) / 4;
    phase.body = ir::make_for(loop->var, ir::constant(first), ir::constant(last - first),
                              ir::ForKind::kSerial, loop->body);
    std::vector<Tensor> args = schedule::integer_arguments(*program, 1);
    ir::TouchReport report;
    ASSERT_TRUE(ir::run(*program, args, {}, &report).ok());
    const ir::Touch *data = report.find(dag.params[0].buffer, false),
                    *weights = report.find(packed, false);
    ASSERT_TRUE(data && weights);
    EXPECT_EQ(2 * data->distinct, dag.params[0].buffer->num_elements());
    EXPECT_EQ(2 * weights->distinct, packed->num_elements());
  }
}

// The groups' loop has a place of its own, outermost unless another is chosen.
TEST(space, groups_may_lie_inside_of_the_rows) {
  const compute::Dag dag = grouped_conv2d(8, 8, 3, 4, 8, 1);
  const Result<Space> space = Space::create(dag, narrow());
  ASSERT_TRUE(space.ok());
  const auto order = [&](const Values& values) {
    const std::string steps = schedule::to_string(space->steps(canonical(*space, values)));
    const size_t from = steps.find("reorder(relu, [");
    return steps.substr(from, steps.find(')', from) - from + 1);
  };
  const Values tile = {{"vectors", 1}, {"column", 2}, {"row", 1}, {"block", 2}, {"order", 0}};
  const auto with = [&](int64_t groups) {
    Values values = tile;
    values.emplace_back("groups", groups);
    return order(values);
  };
  EXPECT_EQ(order(tile), with(0));
  EXPECT_EQ(with(0), "reorder(relu, [n, g, oh.0, oc.0, oh.1, ow.0, oh.2, ow.1, oc.1, oc.2])");
  EXPECT_EQ(with(1), "reorder(relu, [n, oh.0, g, oc.0, oh.1, ow.0, oh.2, ow.1, oc.1, oc.2])");
  EXPECT_EQ(with(2), "reorder(relu, [n, oh.0, oc.0, oh.1, ow.0, g, oh.2, ow.1, oc.1, oc.2])");
  EXPECT_TRUE(offers(dag, ".groups", narrow()));
  EXPECT_FALSE(offers(depthwise(6, 7, 10, 1), ".groups", narrow())) << "no axis but rows, columns";
}

// Two groups of four channels fill a vector of eight; tiles of several vectors do not go with it.
TEST(space, groups_of_few_channels_may_share_a_vector) {
  const compute::Dag dag = grouped_conv2d(5, 7, 6, 3, 4, 1);
  const Result<Space> space = Space::create(dag, narrow(32));
  ASSERT_TRUE(space.ok());
  const auto steps = [&](const Values& values) {
    return schedule::to_string(space->steps(canonical(*space, values)));
  };
  EXPECT_EQ(steps({{"lanes", 8}, {"vectors", 1}}).find("g.1"), std::string::npos);
  for (const int64_t place : {0, 1, 2}) {
    const std::string joined = steps({{"lanes", 8},
                                      {"vectors", 1},
                                      {"column", 3},
                                      {"row", 1},
                                      {"join", 2},
                                      {"groups", place},
                                      {"block", 2}});
    EXPECT_NE(joined.find("vectorize(relu, g.1@oc)"), std::string::npos) << joined;
    EXPECT_NE(joined.find("vectorize(grouped_conv2d, g@oc)"), std::string::npos) << joined;
    EXPECT_NE(joined.find(", g%2, oc])"), std::string::npos) << joined;
    schedule::expect_same(dag, joined);
    const std::optional<Point> found = space->locate(*schedule::parse_steps(joined));
    EXPECT_EQ(schedule::to_string(space->steps(*found)), joined);
  }
  const auto offered = [&](int64_t groups, int64_t channels, int vector_bytes) {
    return offers(grouped_conv2d(5, 7, groups, 3, channels, 1), ".join", narrow(vector_bytes));
  };
  EXPECT_TRUE(offered(6, 4, 32));
  EXPECT_FALSE(offered(5, 4, 32)) << "a vector would hold one group and nothing";
  EXPECT_FALSE(offered(6, 3, 32)) << "not a whole number of groups";
  EXPECT_FALSE(offered(6, 8, 32)) << "a group fills a vector";
  EXPECT_FALSE(offered(6, 2, 16)) << "lanes that cannot be permuted at will";
}

}  // namespace
}  // namespace hone::space
