#include "hone/ir/passes/limit_loops.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"
#include "hone/ir/passes/limit_loops_testing.h"
#include "hone/ir/passes/random_pattern.h"

namespace hone::ir {
namespace {

using testing::LimitCase;
using testing::LimitRun;
using testing::parsed;
using testing::run_limited;

// Rows in tiles of 6, which a workspace passes from one phase to the next.
constexpr const char* kRows = R"(
program rows {
  input x: f32[512, 64]
  workspace w: f32[512, 64]
  output y: f32[512, 64]
  phase {
    parallel t in 0..86 {
      for i in 0..6 { if (t * 6 + i < 512) {
        vectorized j in 0..64 { w[t * 6 + i, j] = x[t * 6 + i, j] + 1.0 }
      } }
    }
  }
  phase {
    parallel t in 0..64 {
      alloc stack s: f32[8] {
        for i in 0..8 {
          s[i] = 0.0
          for j in 0..64 { s[i] = s[i] + w[t * 8 + i, j] }
        }
        for i in 0..8 { vectorized j in 0..64 { y[t * 8 + i, j] = w[t * 8 + i, j] / s[i] } }
      }
    }
  }
}
)";

TEST(limit_loops, tiles_of_all_phases_end_where_rows_end) {
  const Program program = parsed(kRows);
  const std::vector<ParamLimit> limits = {{2, {.form = 1}}};
  const LimitedProgram made = limit_loops(program, limits, make_sizes(4));
  EXPECT_TRUE(made.changed);
  EXPECT_EQ(made.tiles, (std::vector<TileLimit>{{1, 6, 1}, {1, 8, 1}}));
  const std::string text = print(made.program);
  EXPECT_NE(text.find("if t * 6 < sizes[1]"), std::string::npos) << text;
  EXPECT_NE(text.find("if t_1 * 8 < sizes[1]"), std::string::npos) << text;
  for (const int64_t size : {1, 6, 7, 100, 511, 512}) {
    const LimitRun run = run_limited(program, {limits, {0, size}}, 1);
    EXPECT_EQ(run.difference, "");
    // Rows of the last tile at most are too many.
    EXPECT_LE(run.after, run.before * (size + 8) / 512 + 2048) << size;
  }
  // The input is not needed either.
  const SizeLimits found(program, limits);
  EXPECT_EQ(found.of_param(program.params[0].buffer),
            (std::vector<SizeLimit>{{.form = 1, .dimension = 0}}));
}

TEST(limit_loops, tiles_keep_their_numbers_where_the_kernel_alone_knows_the_size) {
  const Program program = parsed(kRows);
  const std::vector<ParamLimit> limits = {{2, {.form = 1}}};
  const LimitedProgram made = limit_loops(program, limits, make_sizes(4), {.first_of_kernel = 1});
  EXPECT_EQ(made.tiles, std::vector<TileLimit>(2));
  const std::string text = print(made.program);
  EXPECT_NE(text.find("if t * 6 < sizes[1]"), std::string::npos) << text;
}

TEST(limit_loops, merged_dimensions) {
  // Rows of 4 x 32, of which sizes[0] x sizes[1] are needed, in tiles of 6, which some rows share.
  const Program program = parsed(R"(
program merged {
  input x: f32[128, 64]
  output y: f32[128, 64]
  phase {
    parallel t in 0..22 {
      for i in 0..6 { if (t * 6 + i < 128) {
        vectorized j in 0..64 { y[t * 6 + i, j] = x[t * 6 + i, j] * 2.0 }
      } }
    }
  }
}
)");
  const std::vector<ParamLimit> limits = {{1, {.form = 0, .unit = 32}},
                                          {1, {.form = 1, .period = 32}}};
  const LimitedProgram made = limit_loops(program, limits, make_sizes(4));
  EXPECT_EQ(made.tiles, (std::vector<TileLimit>{{0, 3, 16}}));
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{1, 1}, {4, 32}, {2, 32}, {3, 7}, {4, 6}, {4, 31}}) {
    const LimitRun run = run_limited(program, {limits, sizes}, 1);
    EXPECT_EQ(run.difference, "");
    EXPECT_LE(run.after, run.before * sizes[0] * (sizes[1] + 12) / 128 + 512);
  }
}

// All dimensions in one loop, whose digits are limited: it becomes a loop of each.
TEST(limit_loops, digits_of_a_serial_loop) {
  const Program program = parsed(R"(
program digits {
  input x: f32[131072]
  output y: f32[131072]
  phase {
    parallel t in 0..2 {
      for i in 0..2048 {
        vectorized j in 0..32 { y[t * 65536 + i * 32 + j] = x[t * 65536 + i * 32 + j] * 2.0 }
      }
    }
  }
}
)");
  // 8 x 128 x 128, of which 8 x sizes[0] x sizes[1] are needed.
  const std::vector<ParamLimit> limits = {{1, {.form = 0, .period = 16384, .unit = 128}},
                                          {1, {.form = 1, .period = 128}}};
  const LimitedProgram made = limit_loops(program, limits, make_sizes(2));
  EXPECT_EQ(print(made.program).find("if "), std::string::npos) << print(made.program);
  const int64_t all = run_limited(program, {limits, {128, 128}}, 1).after;
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{1, 1}, {128, 128}, {16, 16}, {100, 33}, {7, 127}}) {
    const LimitRun run = run_limited(program, {limits, sizes}, 1);
    EXPECT_EQ(run.difference, "");
    EXPECT_LE(run.after, all * sizes[0] * (sizes[1] + 31) / 16384 + 16384);
  }
}

TEST(limit_loops, long_vectorized_loops_end_by_chunks) {
  const Program program = parsed(R"(
program long_rows {
  input x: f32[4, 140]
  output y: f32[4, 140]
  phase {
    parallel t in 0..4 {
      vectorized j in 0..140 { y[t, j] = x[t, j] * 2.0 }
    }
  }
}
)");
  const std::vector<ParamLimit> limits = {{1, {.form = 0, .dimension = 1}}};
  const int64_t all = run_limited(program, {limits, {140}}, 1).after;
  for (const int64_t size : {1, 31, 32, 33, 100, 139, 140}) {
    const LimitRun run = run_limited(program, {limits, {size}}, 1);
    EXPECT_EQ(run.difference, "");
    EXPECT_LE(run.after, all * (size + 44) / 140 + 64) << size;
  }
}

TEST(limit_loops, two_sizes_of_fused_tiles) {
  const Program program = parsed(R"(
program fused {
  input x: f32[4, 32, 64]
  output y: f32[4, 32, 64]
  phase {
    parallel t in 0..16 {
      for i in 0..8 {
        vectorized j in 0..64 { y[t // 4, t % 4 * 8 + i, j] = x[t // 4, t % 4 * 8 + i, j] * 2.0 }
      }
    }
  }
}
)");
  const std::vector<ParamLimit> limits = {{1, {.form = 0}}, {1, {.form = 2, .dimension = 1}}};
  const LimitedProgram made = limit_loops(program, limits, make_sizes(4));
  EXPECT_EQ(made.tiles, (std::vector<TileLimit>{{0, 1, 4}}));
  const LimitRun run = run_limited(program, {limits, {2, 0, 9}}, 1);
  EXPECT_EQ(run.difference, "");
  EXPECT_LE(run.after, run.before * 2 * 16 / 128 + 512);
}

// What is needed although it lies beyond a limit, or may be.
TEST(limit_loops, what_others_need_stays) {
  // A sum over all rows.
  const Program sum = parsed(R"(
program sum {
  input x: f32[2048]
  workspace w: f32[2048]
  output y: f32[2048]
  phase { for i in 0..2048 { w[i] = x[i] * 2.0 } }
  phase { for i in 0..2048 { y[i] = w[i] + w[2047 - i] } }
}
)");
  const std::vector<ParamLimit> limits = {{2, {.form = 0}}};
  const LimitedProgram made = limit_loops(sum, limits, make_sizes(4));
  EXPECT_EQ(print(made.program).find("w[i] = x[i] * 2.0"),
            print(made.program).rfind("w[i] = x[i] * 2.0"));
  EXPECT_NE(print(made.program).find("for i in 0..2048"), std::string::npos);
  EXPECT_EQ(run_limited(sum, {limits, {3}}, 1).difference, "");
  EXPECT_TRUE(SizeLimits(sum, limits).of_param(sum.params[0].buffer).empty());
  // Elements that decide addresses or quotients.
  const Program gather = parsed(R"(
program gather {
  input x: f32[2048]
  input i: i64[2048]
  workspace w: i64[2048]
  output y: f32[2048]
  phase { for k in 0..2048 { w[k] = i[k] % 7 } }
  phase { for k in 0..2048 { y[k] = x[w[k]] } }
}
)");
  const LimitedProgram gathered = limit_loops(gather, {{3, {.form = 0}}}, make_sizes(4));
  EXPECT_TRUE(gathered.changed);
  EXPECT_NE(print(gathered.program).find("for k in 0..2048"), std::string::npos);
}

// Rows in the opposite order, of which each column may have fewer than the run.
TEST(limit_loops, places_that_are_counted_from_the_end_are_within_the_size) {
  const Program program = parsed(R"(
program reversed {
  input x: f32[512, 8]
  input n: i64[1]
  input m: i64[8]
  output y: f32[512, 8]
  phase {
    for i in 0..512 { for j in 0..8 {
      y[i, j] = x[select(i < min(n[0], m[j]), min(n[0], m[j]) - i - 1, i), j]
    } }
  }
}
)");
  const std::vector<ParamLimit> limits = {{3, {.form = 2}}};
  const BufferPtr rows = program.params[0].buffer;
  EXPECT_TRUE(SizeLimits(program, limits).of_param(rows).empty());
  const auto known = [&](int form) {
    RunFacts facts;
    facts.form_of = [&program, form](const Expr& e, const Ranges&) -> std::optional<int> {
      const bool is_size = e->op == Op::kLoad && e->buffer == program.params[1].buffer;
      return is_size ? std::optional(form) : std::nullopt;
    };
    return SizeLimits(program, limits, nullptr, facts);
  };
  EXPECT_EQ(known(2).of_param(rows), (std::vector<SizeLimit>{{.form = 2, .dimension = 0}}));
  EXPECT_TRUE(known(1).of_param(rows).empty());
}

TEST(limit_loops, outputs_that_are_read_keep_what_is_needed) {
  const Program program = parsed(R"(
program both {
  input x: f32[512]
  output a: f32[512]
  output b: f32[1]
  phase { for i in 0..512 { a[i] = x[i] * 2.0 } }
  phase {
    b[0] = 0.0
    for i in 0..512 { b[0] = b[0] + a[i] }
  }
}
)");
  EXPECT_FALSE(limit_loops(program, {{1, {.form = 0}}}, make_sizes(4)).changed);
}

TEST(limit_loops, a_window_needs_rows_behind_the_last_one) {
  const Program program = parsed(R"(
program window {
  input x: f32[514, 16]
  workspace w: f32[514, 16]
  output y: f32[512, 16]
  phase { for i in 0..514 { vectorized j in 0..16 { w[i, j] = x[i, j] * 2.0 } } }
  phase {
    for i in 0..512 { vectorized j in 0..16 {
      y[i, j] = w[i, j] + w[i + 1, j] + w[i + 2, j]
    } }
  }
}
)");
  const std::vector<ParamLimit> limits = {{2, {.form = 0}}};
  EXPECT_EQ(SizeLimits(program, limits).of_param(program.params[0].buffer),
            (std::vector<SizeLimit>{{.form = 0, .dimension = 0, .offset = 2}}));
  const LimitRun run = run_limited(program, {limits, {10}}, 1);
  EXPECT_EQ(run.difference, "");
  EXPECT_LT(run.after, run.before / 20);
}

TEST(limit_loops, no_limits_no_change) {
  const Program program = parsed(kRows);
  const LimitedProgram made = limit_loops(program, {}, make_sizes(4));
  EXPECT_FALSE(made.changed);
  EXPECT_EQ(print(made.program), print(program));
  EXPECT_EQ(made.tiles, std::vector<TileLimit>(2));
}

TEST(limit_loops, random_programs) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Program program = random_case(seed);
    Rng rng(seed);
    const LimitCase limits = testing::random_limits(program, rng);
    const LimitRun run = run_limited(program, limits, seed, testing::kAllLoops);
    EXPECT_EQ(run.difference, "") << "seed " << seed << " " << testing::describe(limits)
                                  << print(program) << print(run.limited.program);
    changed += run.changed ? 1 : 0;
  }
  EXPECT_GT(changed, 10);
}

}  // namespace
}  // namespace hone::ir
