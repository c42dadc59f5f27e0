#include "hone/ir/passes/roll_loops.h"

#include <gtest/gtest.h>

#include <functional>

#include "hone/ir/pass_testing.h"

namespace hone::ir {
namespace {

// The variables of the loops that run step by step, in order, "x r"; the program computes the same.
std::string rolled(const std::string& body, int64_t max_loads, Program* result = nullptr,
                   int64_t max_sum_loads = 1000) {
  const std::string text = R"(program transform {
  constant B: f32[4, 4] = {1.0, 0.0, -1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, -1.0, 1.0, 0.0, 0.0, 1.0, 0.0, -1.0}
  input d: f32[3, 4, 4, 8]
  output y: f32[3, 4, 4, 8]
  phase {
    parallel t in 0..3 {
)" + body + "}\n  }\n}\n";
  const Program before = testing::parsed(text);
  if (before.phases.empty()) return "";
  const Program after =
      roll_loops(before, {.max_loads = max_loads, .max_sum_loads = max_sum_loads});
  testing::expect_valid(after);
  std::vector<Tensor> one = random_arguments(before, 3), two = random_arguments(before, 3);
  EXPECT_TRUE(run(before, one).ok());
  EXPECT_TRUE(run(after, two).ok());
  for (int64_t i = 0; i < one[2].size(); ++i) {
    EXPECT_FALSE(std::isnan(one[2].at(i))) << "every element is written";
    EXPECT_EQ(one[2].at(i), two[2].at(i)) << print(after);
  }
  if (result != nullptr) *result = after;
  std::string loops;
  const std::function<void(const Stmt&)> collect = [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor && s->for_kind == ForKind::kSerial)
      loops += (loops.empty() ? "" : " ") + s->var->name;
    for (const Stmt& child : s->body) collect(child);
  };
  collect(after.phases[0].body);
  return loops;
}

// 4 x 4 points, each one 4 loads: 64 for a transform in one dimension.
constexpr const char* kTransform = R"(
  alloc register v: f32[4, 4, 8] {
    unrolled x in 0..4 { unrolled r in 0..4 { vectorized c in 0..8 {
      v[x, r, c] = B[x, 0] * d[t, 0, r, c] + B[x, 1] * d[t, 1, r, c] + B[x, 2] * d[t, 2, r, c] + B[x, 3] * d[t, 3, r, c]
    } } }
    unrolled a in 0..4 { unrolled b in 0..4 { vectorized c in 0..8 {
      y[t, a, b, c] = B[b, 0] * v[a, 0, c] + B[b, 1] * v[a, 1, c] + B[b, 2] * v[a, 2, c] + B[b, 3] * v[a, 3, c]
    } } }
  })";

TEST(roll_loops, a_transform_runs_along_the_dimension_that_it_does_not_transform) {
  Program after;
  EXPECT_EQ(rolled(kTransform, 63, &after), "r a");
  const Stmt& alloc = after.phases[0].body->body[0];
  ASSERT_EQ(alloc->kind, StmtKind::kAlloc);
  EXPECT_EQ(alloc->buffer->scope, Scope::kStack) << "its elements are chosen at run time";
  const Stmt& loop = alloc->body[0];
  EXPECT_EQ(loop->var->name, "r") << "outside of the loop that stays unrolled";
  ASSERT_EQ(loop->body.size(), 1U);
  EXPECT_EQ(loop->body[0]->for_kind, ForKind::kUnrolled);
  EXPECT_EQ(loop->body[0]->var->name, "x");
}

TEST(roll_loops, short_code_stays_straight_and_in_registers) {
  Program after;
  EXPECT_EQ(rolled(kTransform, 64, &after), "");
  EXPECT_EQ(after.phases[0].body->body[0]->buffer->scope, Scope::kRegister);
}

TEST(roll_loops, as_many_loops_as_it_takes_but_none_that_chooses_known_values) {
  const char* copy = R"(
    unrolled a in 0..4 { unrolled b in 0..4 { if a < 4 { vectorized c in 0..8 {
      y[t, a, b, c] = d[t, a, b, c] * 2.0
    } } } })";
  EXPECT_EQ(rolled(copy, 16), "");
  EXPECT_EQ(rolled(copy, 15), "a");
  EXPECT_EQ(rolled(copy, 3), "a b");
  EXPECT_EQ(rolled(R"(
    unrolled a in 0..4 { unrolled b in 0..4 { vectorized c in 0..8 {
      y[t, a, b, c] = d[t, a, b, c] * B[a, b]
    } } })",
                   0),
            "");
}

TEST(roll_loops, sums_stay_in_registers) {
  EXPECT_EQ(rolled(R"(
    alloc register s: f32[4, 8] {
      unrolled i in 0..4 { vectorized c in 0..8 { s[i, c] = 0.0 } }
      for k in 0..4 {
        unrolled i in 0..4 { vectorized c in 0..8 { s[i, c] = s[i, c] + d[t, i, k, c] } }
      }
      unrolled i in 0..4 { unrolled j in 0..4 { vectorized c in 0..8 {
        y[t, i, j, c] = s[i, c] * d[t, i, j, c]
      } } }
    })",
                   0),
            "k j")
      << "i indexes the registers, j does not";
}

TEST(roll_loops, the_outermost_loops_of_a_long_sum_run_in_order) {
  const char* sum = R"(
    alloc register s: f32[4, 8] {
      unrolled i in 0..4 { vectorized c in 0..8 { s[i, c] = 0.0 } }
      unrolled k in 0..4 { unrolled l in 0..3 { unrolled i in 0..4 { vectorized c in 0..8 {
        s[i, c] = s[i, c] * 0.5 + d[t, i, k, c] * d[t, i, l, c]
      } } } }
      unrolled i in 0..4 { unrolled j in 0..4 { vectorized c in 0..8 { y[t, i, j, c] = s[i, c] } } }
    })";
  Program after;
  EXPECT_EQ(rolled(sum, 1000, &after, 144), "");
  EXPECT_EQ(rolled(sum, 1000, &after, 143), "k");
  EXPECT_EQ(after.phases[0].body->body[0]->buffer->scope, Scope::kRegister);
  EXPECT_EQ(rolled(sum, 1000, &after, 0), "k l") << "not i, which indexes the sums";
  EXPECT_EQ(after.phases[0].body->body[0]->buffer->scope, Scope::kRegister);
}

TEST(roll_loops, elements_that_are_written_twice_keep_their_order) {
  EXPECT_EQ(rolled(R"(
    unrolled a in 0..4 { unrolled b in 0..4 { unrolled e in 0..2 { vectorized c in 0..8 {
      y[t, a, (b + e) % 4, c] = d[t, a, b, c]
    } } } })",
                   4),
            "a")
      << "those of b and e fall together";
  EXPECT_EQ(rolled(R"(
    unrolled a in 0..4 { unrolled b in 0..4 { vectorized c in 0..8 {
      y[t, a, b, c] = d[t, a, b, c]
    } } }
    unrolled a in 1..4 { unrolled b in 0..4 { vectorized c in 0..8 {
      y[t, a, b, c] = y[t, a - 1, b, c]
    } } })",
                   0),
            "a b")
      << "the second nest reads what it writes";
}

}  // namespace
}  // namespace hone::ir
