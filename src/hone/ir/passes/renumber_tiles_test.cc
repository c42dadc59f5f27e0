#include "hone/ir/passes/renumber_tiles.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"
#include "hone/ir/passes/limit_loops_testing.h"

namespace hone::ir {
namespace {

// 3 panels of columns, and `tiles` tiles of 4 rows for each.
Program panels(int tiles) {
  return testing::parsed(fmt::format(R"(
program panels {{
  input x: f32[{0}, 48]
  output y: f32[{0}, 48]
  phase {{
    parallel t in 0..{1} {{
      for i in 0..4 {{
        vectorized j in 0..16 {{
          y[t % {2} * 4 + i, t // {2} * 16 + j] = x[t % {2} * 4 + i, t // {2} * 16 + j] * 2.0
        }}
      }}
    }}
  }}
}}
)",
                                     4 * tiles, 3 * tiles, tiles));
}

// Returns what a run stores if it leaves out the tiles from `count` on.
std::vector<float> first_tiles(Program program, int64_t count, int64_t size) {
  Stmt& body = program.phases[0].body;
  body = make_for(body->var, body->min, constant(count), body->for_kind, body->body);
  std::vector<Tensor> arguments;
  for (const Param& param : program.params) {
    Tensor& tensor = arguments.emplace_back(param.buffer->dtype, param.buffer->shape);
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, param.buffer->name == "x" ? 1 : 0);
  }
  arguments.back().set(0, static_cast<double>(size));
  EXPECT_TRUE(run(program, arguments).ok());
  std::vector<float> stored;
  for (int64_t i = 0; i < arguments[1].size(); ++i)
    stored.push_back(static_cast<float>(arguments[1].at(i)));
  return stored;
}

TEST(renumber_tiles, tiles_that_a_run_needs_are_the_first_ones) {
  const Program program = panels(16);
  const std::vector<ParamLimit> limits = {{1, {.form = 0}}};
  const LimitedProgram made = limit_loops(program, limits, make_sizes(1));
  ASSERT_EQ(made.tiles, (std::vector<TileLimit>{{.form = 0, .divisor = 4, .multiplier = 3}}));
  EXPECT_TRUE(verify(made.program).ok()) << verify(made.program).message();
  for (const int64_t size : {1, 4, 5, 9, 63, 64}) {
    SCOPED_TRACE(size);
    EXPECT_EQ(testing::run_limited(program, {limits, {size}}, 1).difference, "");
    const std::vector<float> stored = first_tiles(made.program, (size + 3) / 4 * 3, size);
    for (int64_t i = 0; i < size * 48; ++i) EXPECT_EQ(stored[static_cast<size_t>(i)], 2) << i;
  }
}

TEST(renumber_tiles, few_tiles_of_a_row_keep_their_numbers) {
  const LimitedProgram made = limit_loops(panels(4), {{1, {.form = 0}}}, make_sizes(1));
  EXPECT_EQ(made.tiles, std::vector<TileLimit>(1));
  EXPECT_NE(print(made.program).find("if t % 4 * 4 < sizes[0]"), std::string::npos)
      << print(made.program);
}

TEST(renumber_tiles, a_multiple_of_a_size_that_is_no_multiple_of_a_tile_asks_all) {
  const std::vector<ParamLimit> limits = {{1, {.form = 0, .unit = 3}}};
  const LimitedProgram made = limit_loops(panels(16), limits, make_sizes(1));
  EXPECT_EQ(made.tiles, std::vector<TileLimit>(1)) << "3 * size / 4 is no quotient of the size";
  EXPECT_NE(print(made.program).find("if t % 16 * 4 < sizes[0] * 3"), std::string::npos)
      << print(made.program);
  for (const int64_t size : {1, 3, 8, 21})
    EXPECT_EQ(testing::run_limited(panels(16), {limits, {size}}, 1).difference, "");
}

}  // namespace
}  // namespace hone::ir
