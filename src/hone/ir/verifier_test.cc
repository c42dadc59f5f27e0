#include "hone/ir/verifier.h"

#include <gtest/gtest.h>

#include "hone/ir/parser.h"

namespace hone::ir {
namespace {

std::string error_of(std::string_view body, std::string_view second = "phase { }") {
  const Result<Program> p = parse_program(fmt::format(
      "program p {{ input X: f32[4] constant W: f32[4] packed P: f32[4] workspace S: f32[4] output Y: f32[4] {} {} }}",
      body, second));
  if (!p.ok()) return "syntax: " + p.status().message();
  const Status status = verify(*p);
  return status.ok() ? "" : status.message();
}

TEST(verifier, accepts_what_is_well_formed) {
  EXPECT_EQ(
      error_of(
          "phase prepare { parallel t in 0..4 { P[t] = W[t] + P[0] } }",
          "phase { parallel t in 0..4 { alloc stack T: f32[2] { for k in t..+4 - t { T[0] = X[k] S[k] = T[0] } Y[t] = S[t] + P[t] + W[t] } } }"),
      "");
}

TEST(verifier, roles_say_who_writes) {
  EXPECT_EQ(error_of("phase { X[0] = 1.0 }"), "phase 0: a phase writes X, which is input");
  EXPECT_EQ(error_of("phase { W[0] = 1.0 }"), "phase 0: a phase writes W, which is constant");
  EXPECT_EQ(error_of("phase { P[0] = 1.0 }"), "phase 0: a phase writes P, which is packed");
  EXPECT_EQ(error_of("phase { extern sort(Y, X) }"), "phase 0: a phase writes X, which is input");
  EXPECT_EQ(error_of("phase prepare { Y[0] = 1.0 }"),
            "phase 0: a prepare phase writes Y, which is output");
  EXPECT_EQ(error_of("phase prepare { P[0] = X[0] }"),
            "phase 0: a prepare phase reads X, which is input");
  EXPECT_EQ(error_of("phase prepare { P[0] = S[0] }"),
            "phase 0: a prepare phase reads S, which is workspace");
}

TEST(verifier, parallel_loops_are_outermost_and_from_zero) {
  EXPECT_EQ(error_of("phase { for i in 0..4 { parallel t in 0..4 { Y[t] = 1.0 } } }"),
            "phase 0: parallel loop t is not outermost");
  EXPECT_EQ(error_of("phase { Y[0] = 1.0 parallel t in 0..4 { Y[t] = 1.0 } }"),
            "phase 0: parallel loop t is not outermost");
  EXPECT_EQ(error_of("phase { parallel t in 1..4 { Y[t] = 1.0 } }"),
            "phase 0: parallel loop t does not start at 0");
}

TEST(verifier, extents_are_constant_where_they_must_be) {
  EXPECT_EQ(error_of("phase { for i in 0..4 { unrolled j in 0..+i { Y[j] = 1.0 } } }"),
            "phase 0: the extent of unrolled loop j is not constant");
  EXPECT_EQ(error_of("phase { for i in 0..4 { vectorized j in 0..+i { Y[j] = 1.0 } } }"), "");
  EXPECT_EQ(error_of("phase { for i in 0..4 { for j in 0..+i { Y[j] = 1.0 } } }"), "");
}

// These programs cannot be written by the parser.
const BufferPtr kY = make_buffer("Y", DType::kF32, {4});
const VarPtr kI = make_var("i");
std::string error_of(const Stmt& s, std::vector<Param> params = {{kY, Role::kOutput}}) {
  const Status status = verify({"p", std::move(params), {{s}}});
  return status.ok() ? "" : status.message();
}
Stmt store(const Expr& index) { return make_store(kY, {index}, constant_float(1)); }
Stmt loop(std::vector<Stmt> body) {
  return make_for(kI, constant(0), constant(4), ForKind::kSerial, std::move(body));
}

TEST(verifier, scopes) {
  const BufferPtr t = make_buffer("T", DType::kF32, {4}, Scope::kStack);
  EXPECT_EQ(error_of(store(variable(kI))), "phase 0: variable i is used outside of its loop");
  EXPECT_EQ(error_of(loop({loop({store(variable(kI))})})),
            "phase 0: variable i is bound again inside its own loop");
  EXPECT_EQ(error_of(make_block({loop({store(variable(kI))}), loop({store(variable(kI))})})), "");
  EXPECT_EQ(error_of(make_store(t, {constant(0)}, constant_float(1))),
            "phase 0: store of T outside of its scope");
  EXPECT_EQ(error_of(make_store(kY, {constant(0)}, load(t, {constant(0)}))),
            "phase 0: load of T outside of its scope");
  EXPECT_EQ(error_of(make_alloc(t, {make_alloc(t, {})})),
            "phase 0: T is allocated inside its own scope");
  EXPECT_EQ(error_of(make_extern("f", {t})),
            "phase 0: extern f uses a buffer outside of its scope");
}

TEST(verifier, parameters) {
  const BufferPtr local = make_buffer("L", DType::kF32, {4}, Scope::kStack);
  EXPECT_EQ(error_of(store(constant(0)), {{kY, Role::kOutput}, {kY, Role::kInput}}),
            "parameter Y stands twice in the list");
  EXPECT_EQ(error_of(store(constant(0)), {{local, Role::kOutput}}),
            "parameter L is stack, expected global");
  Buffer values{"V", DType::kF32, {2}, Scope::kGlobal, {1, 2, 3}};
  EXPECT_EQ(error_of(make_block({}), {{std::make_shared<const Buffer>(values), Role::kConstant}}),
            "V has 3 values, expected 2");
  const BufferPtr huge = make_buffer("H", DType::kF32, {int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_EQ(error_of(make_block({}), {{huge, Role::kOutput}}), "H is too large");
}

TEST(verifier, nodes_made_by_hand) {
  const auto broken = [](Op op, DType type, std::vector<Expr> args) {
    auto node = std::make_shared<ExprNode>();
    node->op = op, node->type = type, node->args = std::move(args);
    return Expr(node);
  };
  const Expr f = constant_float(1);
  EXPECT_EQ(error_of(make_store(kY, {constant(0)}, broken(Op::kAdd, DType::kF32, {f}))),
            "phase 0: 'add' has 1 operands, expected 2");
  EXPECT_EQ(error_of(make_store(kY, {constant(0)},
                                broken(Op::kAdd, DType::kF32, {constant(1), constant(2)}))),
            "phase 0: 'add' is f32, expected i64");
  EXPECT_EQ(error_of(make_store(kY, {constant(0)}, broken(Op::kInt, DType::kF32, {}))),
            "phase 0: an integer constant of type f32");
}

}  // namespace
}  // namespace hone::ir
