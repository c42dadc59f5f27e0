#include "hone/ir/visit.h"

#include "hone/ir/pass_testing.h"

namespace hone::ir {
namespace {

// A copy under a guard, and a sum behind it.
Program nest() {
  return testing::parsed(R"(program nest {
  constant w: f32[4]
  packed p: f32[4]
  input x: f32[4]
  output y: f32[4]
  phase prepare { for c in 0..4 { p[c] = w[c] } }
  phase {
    for i in 0..4 {
      alloc stack t: f32[] {
        if i < 3 { t[] = x[i] }
        y[i] = t[] + p[i]
      }
    }
  }
})");
}

std::string kinds(const Stmt& s) {
  std::string text;
  for_each_stmt(*s, [&](const StmtNode& node) {
    text += node.kind == StmtKind::kFor     ? "for "
            : node.kind == StmtKind::kIf    ? "if "
            : node.kind == StmtKind::kAlloc ? "alloc "
                                            : "store ";
  });
  return text;
}

TEST(visit, statements_come_parents_first) {
  const Stmt s = nest().phases[1].body;
  EXPECT_EQ(kinds(s), "for alloc if store store ");
  EXPECT_TRUE(any_stmt(*s, [](const StmtNode& node) { return node.kind == StmtKind::kIf; }));
  EXPECT_FALSE(any_stmt(*s, [](const StmtNode& node) { return node.kind == StmtKind::kExtern; }));
}

TEST(visit, expressions_are_those_of_the_statement_itself) {
  const Stmt s = nest().phases[1].body;
  std::string text;
  for_each_expr(*s, [&](const Expr& e) { text += print(e) + " "; });
  EXPECT_EQ(text, "0 4 ");  // the loop's start and length
  const StmtNode& store = *s->body[0]->body[1];
  EXPECT_TRUE(any_expr(store, [](const Expr& e) { return e->op == Op::kAdd; }));
  EXPECT_FALSE(any_expr(*s, [](const Expr& e) { return e->op == Op::kLoad; }));
}

TEST(visit, what_stays_keeps_its_nodes) {
  const Stmt s = nest().phases[1].body;
  EXPECT_EQ(rewrite_stmts(s, [](const Stmt& node) { return node; }), s);
  // Without the guard around it the store stands in the allocation.
  const Stmt bare = rewrite_stmts(s, [](const Stmt& node) {
    return node->kind == StmtKind::kIf ? make_block(node->body) : node;
  });
  EXPECT_EQ(kinds(bare), "for alloc store store ");
  EXPECT_EQ(bare->body[0]->body[1], s->body[0]->body[1]);
}

TEST(visit, a_body_is_rewritten_before_what_holds_it) {
  std::string order;
  (void)rewrite_stmts(nest().phases[1].body, [&](const Stmt& node) {
    order += std::to_string(static_cast<int>(node->kind)) + " ";
    return node;
  });
  EXPECT_EQ(order, "2 1 2 4 0 ");
}

TEST(visit, buffers_are_replaced_wherever_they_stand) {
  Program program = nest();
  const BufferPtr x = program.params[2].buffer, t = program.phases[1].body->body[0]->buffer;
  const BufferPtr other = make_buffer("z", DType::kF32, {4}),
                  near = make_buffer("near", DType::kF32, {}, Scope::kRegister);
  program.phases[1].body = replace_buffers(program.phases[1].body, {{x, other}, {t, near}});
  program.params[2].buffer = other;
  testing::expect_valid(program);
  const std::string text = print(program.phases[1].body);
  EXPECT_EQ(text.find("x["), text.npos) << text;
  EXPECT_EQ(text.find("t[]"), text.npos) << text;
  EXPECT_NE(text.find("near[] = z[i]"), text.npos) << text;
}

TEST(visit, phases_that_prepare_constants_are_told_from_those_that_run) {
  const auto emptied = [](const Stmt&) { return make_block({}); };
  const auto bodies = [](const Program& program) {
    return program.phases[0].body->body.size() * 10 + program.phases[1].body->body.size();
  };
  EXPECT_EQ(bodies(nest()), 11U);
  EXPECT_EQ(bodies(map_run_phases(nest(), emptied)), 10U);
  EXPECT_EQ(bodies(map_all_phases(nest(), emptied)), 0U);
}

}  // namespace
}  // namespace hone::ir
