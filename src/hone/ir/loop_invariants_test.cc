// Tests what is computed before loops, and that this changes no result.
#include "hone/ir/loop_invariants.h"

#include <gtest/gtest.h>

#include "hone/ir/interpreter.h"
#include "hone/ir/parser.h"
#include "hone/ir/printer.h"

namespace hone::ir {
namespace {

Program program_of(std::string_view body) {
  const Result<Program> p = parse_program(fmt::format(
      "program p {{ input X: f32[64] input N: i64[1] output Y: f32[64] phase {{ {} }} }}", body));
  EXPECT_TRUE(p.ok()) << p.status().message();
  return *p;
}

// The text of what is computed before the loops over a variable.
std::vector<std::string> before(const Program& program, std::string_view var) {
  std::vector<std::string> texts;
  for (const auto& [loop, invariants] : loop_invariants(*program.phases[0].body)) {
    if (loop->var->name != var) continue;
    for (const Expr* e : invariants) texts.push_back(print(*e));
  }
  return texts;
}
using Texts = std::vector<std::string>;

TEST(loop_invariants, are_placed_before_the_outermost_loop_that_does_not_change_them) {
  const Program p = program_of(
      "for i in 0..4 { for j in 0..2 { for k in 0..8 { Y[i * 16 + j * 8 + k] = X[k * 2 + i * 3] } "
      "} }");
  EXPECT_EQ(before(p, "i"), Texts());
  EXPECT_EQ(before(p, "j"), (Texts{"i * 3", "i * 16"}));
  EXPECT_EQ(before(p, "k"), (Texts{"i * 16 + j * 8"}));
}

TEST(loop_invariants, load_nothing_and_cannot_fail) {
  const Program p = program_of(
      "for i in 0..4 { for j in 0..4 { Y[i * 4 + j] = X[(i + 8) // (i - 2)] + X[i // 2] + X[N[0] + "
      "i] } }");
  EXPECT_EQ(before(p, "i"), Texts());
  EXPECT_EQ(before(p, "j"), (Texts{"i + 8", "i - 2", "i // 2", "i * 4"}));
}

TEST(loop_invariants, of_a_guard_are_conditions) {
  const Program p =
      program_of("for i in 0..9 { for j in 0..8 { if (i * 8 < 57) { Y[j] = 1.0 } } }");
  EXPECT_EQ(before(p, "j"), (Texts{"i * 8 < 57"}));
}

// Sums in place, products in indices, equal parts of several statements, and a loop that some
// iterations leave out.
TEST(loop_invariants, change_no_result) {
  const Program p = program_of(
      "for i in 0..8 { for j in 0..8 { Y[i * 8 + j] = 0.5 } "
      "for k in 0..+(i - 3) { for j in 0..8 { Y[i * 8 + j] = Y[i * 8 + j] + X[k * 8 + j] * X[i * 8 + "
      "k] } } "
      "for j in 0..8 { Y[i * 8 + j] = X[(i * 8 + j) // 3] + Y[i * 8 + j] } }");
  std::vector<Tensor> args = random_arguments(p, 1);
  ASSERT_TRUE(run(p, args).ok());
  const auto x = [&](int64_t i) { return static_cast<float>(args[0].at(i)); };
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = 0.5;
      for (int k = 0; k < i - 3; ++k) {
        const double product =
            static_cast<double>(x(k * 8 + j)) * static_cast<double>(x(i * 8 + k));
        sum = static_cast<float>(static_cast<double>(sum) + product);
      }
      EXPECT_EQ(args[2].at(i * 8 + j),
                static_cast<float>(static_cast<double>(x((i * 8 + j) / 3)) + sum));
    }
  }
}

// A sum in place is a load and a store of the element.
TEST(loop_invariants, keep_what_is_touched) {
  const Program p = program_of("for i in 0..8 { Y[i] = 0.0 for k in 0..4 { Y[i] = Y[i] + X[k] } }");
  std::vector<Tensor> args = random_arguments(p, 1);
  TouchReport report;
  ASSERT_TRUE(run(p, args, {}, &report).ok());
  EXPECT_EQ(report.find(p.params[2].buffer, false)->count, 32);
  EXPECT_EQ(report.find(p.params[2].buffer, true)->count, 40);
  EXPECT_EQ(report.find(p.params[0].buffer, false)->count, 32);
}

}  // namespace
}  // namespace hone::ir
