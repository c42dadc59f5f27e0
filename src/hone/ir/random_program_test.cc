#include "hone/ir/random_program.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "hone/ir/interpreter.h"
#include "hone/ir/printer.h"
#include "hone/ir/random_gpu_program.h"
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

TEST(random_program, programs_of_gpus_are_valid_and_run) {
  std::set<StmtKind> kinds;
  std::set<ForKind> for_kinds;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Program p = random_gpu_program(seed);
    const Status valid = verify(p);
    ASSERT_TRUE(valid.ok()) << "seed " << seed << ": " << valid.message() << "\n" << print(p);
    std::vector<Tensor> args = random_arguments(p, seed);
    const Status ran = run(p, args);
    ASSERT_TRUE(ran.ok()) << "seed " << seed << ": " << ran.message() << "\n" << print(p);
    visit_all(p.phases[0].body, [&](const StmtNode& s) {
      kinds.insert(s.kind);
      if (s.kind == StmtKind::kFor) for_kinds.insert(s.for_kind);
    });
  }
  EXPECT_EQ(for_kinds.size(), 7U);
  for (const StmtKind kind : {StmtKind::kIf, StmtKind::kCommit, StmtKind::kWait})
    EXPECT_TRUE(kinds.contains(kind));
}

TEST(random_program, is_the_same_for_the_same_seed) {
  EXPECT_EQ(print(random_program(7)), print(random_program(7)));
  EXPECT_NE(print(random_program(7)), print(random_program(8)));
}

}  // namespace
}  // namespace hone::ir
