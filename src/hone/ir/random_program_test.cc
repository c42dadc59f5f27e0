#include "hone/ir/random_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "hone/ir/hoist_guards.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/partition_loops.h"
#include "hone/ir/printer.h"
#include "hone/ir/roll_loops.h"
#include "hone/ir/simplify.h"
#include "hone/ir/verifier.h"

namespace hone::ir {
namespace {

void visit_all(const Stmt& s, const std::function<void(const StmtNode&)>& f) {
  f(*s);
  for (const Stmt& child : s->body) visit_all(child, f);
}

TEST(random_program, programs_are_valid_and_run) {
  std::set<StmtKind> kinds;
  std::set<ForKind> for_kinds;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Program p = random_program(seed);
    const Status valid = verify(p);
    ASSERT_TRUE(valid.ok()) << "seed " << seed << ": " << valid.message() << "\n" << print(p);
    std::vector<Tensor> args = random_arguments(p, seed);
    const Status ran = run(p, args);
    ASSERT_TRUE(ran.ok()) << "seed " << seed << ": " << ran.message() << "\n" << print(p);
    for (const Phase& phase : p.phases) {
      visit_all(phase.body, [&](const StmtNode& s) {
        kinds.insert(s.kind);
        if (s.kind == StmtKind::kFor) for_kinds.insert(s.for_kind);
      });
    }
  }
  EXPECT_EQ(for_kinds.size(), 4U);
  EXPECT_EQ(kinds.size(), 6U) << "everything but extern";
}

TEST(random_program, is_the_same_for_the_same_seed) {
  EXPECT_EQ(print(random_program(7)), print(random_program(7)));
  EXPECT_NE(print(random_program(7)), print(random_program(8)));
}

// Constants that are folded are rounded at each step, which the interpreter does at stores only.
bool same_values(const Tensor& a, const Tensor& b) {
  const double tolerance = !is_float(a.dtype()) ? 0 : a.dtype() == DType::kF16 ? 2e-3 : 1e-5;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.at(i), y = b.at(i);
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                      std::fabs(x - y) <= tolerance * (1 + std::fabs(x));
    if (!same) return false;
  }
  return true;
}

struct Pass {
  const char* name;
  std::function<Program(Program)> run;
};

TEST(random_program, passes_keep_the_results) {
  const Pass passes[] = {
      {"simplify", [](Program p) { return simplify(std::move(p)); }},
      {"hoist_guards", [](Program p) { return hoist_guards(std::move(p)); }},
      {"partition_loops", [](Program p) { return partition_loops(std::move(p)); }},
      {"roll_loops",
       [](Program p) { return roll_loops(std::move(p), {.max_loads = 0, .max_sum_loads = 0}); }}};
  for (const Pass& pass : passes) {
    int64_t changed = 0;
    for (uint64_t seed = 0; seed < 400; ++seed) {
      const Program before = random_program(seed);
      const Program after = pass.run(before);
      const Status valid = verify(after);
      ASSERT_TRUE(valid.ok()) << pass.name << " seed " << seed << ": " << valid.message() << "\n"
                              << print(after);
      std::vector<Tensor> expected = random_arguments(before, seed);
      std::vector<Tensor> found = random_arguments(before, seed);
      ASSERT_TRUE(run(before, expected).ok());
      const Status ran = run(after, found);
      ASSERT_TRUE(ran.ok()) << pass.name << " seed " << seed << ": " << ran.message() << "\n"
                            << print(before) << print(after);
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_TRUE(same_values(expected[i], found[i]))
            << pass.name << " seed " << seed << " param " << i << "\n"
            << print(before) << print(after);
      }
      changed += print(before) != print(after);
    }
    EXPECT_GT(changed, 20) << pass.name;
  }
}

}  // namespace
}  // namespace hone::ir
