#include "hone/ir/passes/size_limits.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"
#include "hone/ir/passes/limit_loops_testing.h"

namespace hone::ir {
namespace {

using testing::parsed;

// The rows of a tile of Winograd's algorithm are read one by one, and each mixes with all others.
constexpr const char* kWindow = R"(
program window {
  input x: f32[41]
  output y: f32[40]
  phase {
    for t in 0..10 {
      alloc stack s: f32[1] {
        s[0] = x[t * 4] + x[t * 4 + 1] + x[t * 4 + 2] + x[t * 4 + 3]
        for i in 0..4 { y[t * 4 + i] = s[0] }
      }
    }
  }
}
)";

std::vector<SizeLimit> limits_of_input(const std::string& text, const SizeLimit& of_output,
                                       RunFacts facts = {}) {
  const Program program = parsed(text);
  const size_t output = program.params.size() - 1;
  const SizeLimits found(program, {{output, of_output}}, nullptr, std::move(facts));
  return found.of_param(program.params[0].buffer);
}

TEST(size_limits, a_window_read_in_parts_needs_its_last_row) {
  EXPECT_EQ(limits_of_input(kWindow, {}), (std::vector<SizeLimit>{{.offset = 3}}));
  // More rows than are asked one by one.
  std::string nine = kWindow;
  nine.replace(nine.find(" + x[t * 4 + 3]"), 15,
               " + x[t * 4 + 3] + x[t * 4 + 4] + x[t * 4 + 5] + x[t * 4 + 6]"
               " + x[t * 4 + 7] + x[t * 4 + 8]");
  nine.replace(nine.find("[41]"), 4, "[45]");
  EXPECT_EQ(limits_of_input(nine, {}), (std::vector<SizeLimit>{{.offset = 8}}));
}

TEST(size_limits, tiles_end_where_a_size_that_is_their_multiple_does) {
  EXPECT_EQ(limits_of_input(kWindow, {}, {.multiples = {4}}), (std::vector<SizeLimit>{{}}));
  EXPECT_EQ(limits_of_input(kWindow, {}, {.multiples = {2}}),
            (std::vector<SizeLimit>{{.offset = 2}}));
  EXPECT_EQ(limits_of_input(kWindow, {.unit = 4}), (std::vector<SizeLimit>{{.unit = 4}}));
}

TEST(size_limits, what_a_condition_leaves_out_is_not_read) {
  const Program program = parsed(R"(
program taken {
  input x: f32[40]
  input n: i64[1]
  output y: f32[40]
  phase { for i in 0..40 { if (i < n[0]) { y[i] = x[i] } } }
}
)");
  RunFacts facts;
  facts.needs_of_condition = [](const Expr& condition, bool holds, const Ranges&) {
    const bool is_mask = holds && condition->op == Op::kLt;
    return is_mask ? std::vector<Need>{{0, linearize(condition->args[0]), 1}} : std::vector<Need>();
  };
  const SizeLimits found(program, {}, nullptr, facts);
  EXPECT_EQ(found.of_param(program.params[0].buffer), (std::vector<SizeLimit>{{}}));
  EXPECT_TRUE(found.of_param(program.params[1].buffer).empty());
}

TEST(size_limits, gathers_read_what_a_run_has) {
  // Rows of 8 by 5, of which the first sizes[0] * sizes[1] indices are of elements that there are.
  const Program program = parsed(R"(
program gather {
  input x: f32[3, 40]
  input at: i64[40]
  output y: f32[3, 40]
  phase {
    for i in 0..3 { for j in 0..40 { y[i, j] = x[i, min(max(at[j], 0), 39)] } }
  }
}
)");
  const BufferPtr data = program.params[0].buffer, indices = program.params[1].buffer;
  const std::vector<SizeLimit> grid = {{.form = 0, .unit = 5}, {.form = 1, .period = 5}};
  const auto limits = [&](int within, const std::vector<ParamLimit>& of_output) {
    const SizeLimits found(program, of_output, nullptr,
                           {.places = {{indices, data, within, grid}}});
    return found.of_param(data);
  };
  const std::vector<ParamLimit> list = {{2, {.form = 2, .dimension = 1}}};
  const std::vector<SizeLimit> both = {{.form = 0, .dimension = 1, .unit = 5},
                                       {.form = 1, .dimension = 1, .period = 5}};
  EXPECT_EQ(limits(2, list), both);
  EXPECT_EQ(limits(-1, {}), both);  // all indices are of elements that there are
  // Elements behind the list are needed, or nobody says so.
  EXPECT_TRUE(limits(2, {}).empty());
  EXPECT_TRUE(limits(2, {{2, {.form = 2, .dimension = 1, .offset = 1}}}).empty());
  EXPECT_TRUE(limits(3, list).empty());
}

TEST(size_limits, indices_are_needed_as_far_as_what_they_find) {
  const auto limits = [](const char* place) {
    return limits_of_input(std::string(R"(
program gather {
  input at: i64[40]
  input x: f32[16]
  output y: f32[40]
  phase { for j in 0..40 { y[j] = x[)") +
                               place + "] } }\n}\n",
                           {});
  };
  EXPECT_EQ(limits("min(max(at[j], 0), 15)"), (std::vector<SizeLimit>{{}}));
  EXPECT_EQ(limits("min(max(select(at[j] < 0, at[j] + 16, at[j]), 0), 15)"),
            (std::vector<SizeLimit>{{}}));
  // An element that is undefined would be read from anywhere, or divide by zero.
  EXPECT_TRUE(limits("at[j]").empty());
  EXPECT_TRUE(limits("min(max(at[j], 0), 16)").empty());
  EXPECT_TRUE(limits("min(max(7 // at[j], 0), 15)").empty());
}

TEST(size_limits, what_is_computed_of_an_index_is_no_place) {
  for (const char* place : {"at[j] // 2", "at[j] % 8", "min(at[j] + at[j], 39)"}) {
    const Program program = parsed(std::string(R"(
program gather {
  input x: f32[40]
  input at: i64[40]
  output y: f32[40]
  phase { for j in 0..40 { y[j] = x[)") +
                                   place + "] } }\n}\n");
    const SizeLimits found(program, {}, nullptr,
                           {.places = {{program.params[1].buffer,
                                        program.params[0].buffer,
                                        -1,
                                        {{.form = 1, .period = 5}}}}});
    EXPECT_TRUE(found.of_param(program.params[0].buffer).empty()) << place;
  }
}

// Running sums of rows; `more` comes behind the loop over a row, `around` stands around it.
std::string running_sums(const std::string& around = "", const std::string& more = "") {
  return "program sums {\n  input x: f32[4, 512]\n  output z: f32[4]\n"
         "  output y: f32[4, 512]\n  phase {\n    parallel i in 0..4 {\n"
         "      alloc stack s: f32[1] {\n        s[0] = 0.0\n        " +
         around + "{ for n in 0..512 { s[0] = s[0] + x[i, n]\n y[i, n] = s[0] } }\n        " +
         more + "\n      }\n    }\n  }\n}\n";
}

TEST(size_limits, running_sums_end_where_a_row_does) {
  const std::vector<SizeLimit> along_rows = {{.dimension = 1}};
  EXPECT_EQ(limits_of_input(running_sums("if i < 4 "), {.dimension = 1}), along_rows);
  const std::string more = "z[i] = 1.0";
  EXPECT_EQ(limits_of_input(running_sums("if i < 4 ", more), {.dimension = 1}), along_rows);
  // The last sum is a result, or goes through the row once more.
  EXPECT_TRUE(limits_of_input(running_sums("if i < 4 ", "z[i] = s[0]"), {.dimension = 1}).empty());
  EXPECT_TRUE(limits_of_input(running_sums("for k in 0..2 "), {.dimension = 1}).empty());
  const std::string again = "for n in 0..512 { s[0] = s[0] + x[i, n]\n y[i, n] = s[0] }";
  EXPECT_TRUE(limits_of_input(running_sums("if i < 4 ", again), {.dimension = 1}).empty());
}

TEST(size_limits, loops_of_running_sums_run_the_first_iterations) {
  for (const std::string loop : {"for", "vectorized"}) {
    for (const std::string body : {"{ s[0] = s[0] + x[i, n]\n y[i, n] = s[0] }",
                                   "{ y[i, n] = s[0]\n s[0] = s[0] + x[i, n] }"}) {
      const Program program = parsed(
          "program sums {\n  input x: f32[4, 500]\n  output y: f32[4, 500]\n  phase {\n"
          "    parallel i in 0..4 { alloc stack s: f32[1] { s[0] = 0.0\n " +
          loop + " n in 0..500 " + body + " } }\n  }\n}\n");
      for (const int64_t size : {1, 3, 480, 490, 500}) {
        const testing::LimitRun run =
            testing::run_limited(program, {{{1, {.dimension = 1}}}, {size}}, 1);
        EXPECT_TRUE(run.changed);
        EXPECT_EQ(run.difference, "");
        EXPECT_LE(run.after, run.before * (size + 40) * 3 / 1000);
      }
    }
  }
}

}  // namespace
}  // namespace hone::ir
