// ir/expr.h - expressions of the loop program: immutable, shared trees with one node type for all
// operators.
//
// An index expression has type kI64 and a condition kBool; every other type is a value. All
// operands of an arithmetic node have the node's own type, those of a comparison have one type;
// kCast changes it. Compound nodes are built by the functions below, which fold constants and x+0,
// x*1, x*0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/tensor/dtype.h"

namespace hone::ir {

// One line per kind.
// clang-format off
enum class Op : uint8_t {
  // leaves
  kInt,    // integer or bool constant: int_value
  kFloat,  // floating point constant: float_value
  kVar,    // loop variable: var (always kI64)
  kLoad,   // buffer[args...]
  // arithmetic: kDiv is true division of floats and C division of integers, kRem is C's % and fmod
  kAdd, kSub, kMul, kDiv, kFloorDiv, kFloorMod, kRem, kMin, kMax, kPow,
  // operators of integers: a shift by the width or more gives 0 (kShr of a negative: -1); the
  // amount is >= 0
  kBitAnd, kBitOr, kBitXor, kShl, kShr,
  // comparison and logic: the result is kBool
  kLt, kLe, kEq, kNe, kAnd, kOr, kNot,
  kSelect,  // args: condition, value if true, value if false; only the chosen value is evaluated
  kCast,    // args[0] converted to type
  kBits,  // the bits of args[0] as a value of type, which has the same width
  // unary functions of floats
  kNeg, kAbs, kSqrt, kExp, kLog, kTanh, kErf, kSigmoid, kFloor, kCeil, kRound, kSin, kCos, kAtan,
};
// clang-format on
inline constexpr int kNumOps = static_cast<int>(Op::kAtan) + 1;

struct OpInfo {
  std::string_view name;  // name as printed: "add", "floordiv", "exp", ...
  int arity;              // number of operands; -1 if it varies
};
[[nodiscard]] const OpInfo& op_info(Op op);

// A loop variable. Its identity is its address; its name is for people and need not be unique.
struct Var {
  std::string name;
};
using VarPtr = std::shared_ptr<const Var>;
[[nodiscard]] VarPtr make_var(std::string name);

enum class Scope : uint8_t {
  kGlobal,    // memory that all tiles see: parameters and workspace between phases
  kThread,    // scratch memory of the thread that runs the tile
  kStack,     // small memory of fixed size on the thread's stack
  kRegister,  // vector registers; after unrolling every index but the vector lane is constant
  // Scopes of GPUs (docs/formats/ir.md, "Programs of GPUs").
  kShared,    // memory that the threads of a block share
  kFragment,  // registers of all threads of a block: the leading indices of every access are the
              // variables of the loops over threads around it, outermost first, so each thread
              // owns the elements behind its indices
  kSignal,    // counters in shared memory that threads arrive at and wait for
};
inline constexpr int kNumScopes = static_cast<int>(Scope::kSignal) + 1;
[[nodiscard]] std::string_view scope_name(Scope scope);

// A dense row-major array. Its identity is its address.
struct Buffer {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // extents in elements; {} is one element
  Scope scope = Scope::kGlobal;
  std::vector<float> values = {};  // contents if the compiler knows them (Winograd's matrices)
  [[nodiscard]] int64_t num_elements() const;
  [[nodiscard]] int64_t bytes() const { return num_elements() * dtype_bytes(dtype); }
};
using BufferPtr = std::shared_ptr<const Buffer>;
[[nodiscard]] BufferPtr make_buffer(std::string name, DType dtype, std::vector<int64_t> shape,
                                    Scope scope = Scope::kGlobal);

struct ExprNode;
using Expr = std::shared_ptr<const ExprNode>;
struct ExprNode {
  Op op;
  DType type;
  int64_t int_value = 0;
  double float_value = 0;
  VarPtr var;
  BufferPtr buffer;
  std::vector<Expr> args;
};

// These functions make leaves.
[[nodiscard]] Expr constant(int64_t value);  // kI64
[[nodiscard]] Expr constant_bool(bool value);
[[nodiscard]] Expr constant_int(int64_t value, DType type);  // `type` is any integer type
[[nodiscard]] Expr constant_float(double value, DType type = DType::kF32);
[[nodiscard]] Expr variable(const VarPtr& var);
[[nodiscard]] Expr load(const BufferPtr& buffer, std::vector<Expr> indices);
// Makes any other node but a cast (of values or bits) and folds constants. x+0 loses the sign of a
// float zero; x*0 of floats stays, as x may be NaN. Arity and types must be right, which is
// asserted; check_operands tells it of operands that come from outside.
[[nodiscard]] Expr make(Op op, std::vector<Expr> args);
[[nodiscard]] Status check_operands(Op op, const std::vector<Expr>& args);
[[nodiscard]] Expr cast(DType type, const Expr& value);
[[nodiscard]] Expr bit_cast(DType type, const Expr& value);  // both types have the same width
[[nodiscard]] Expr select(const Expr& condition, const Expr& if_true, const Expr& if_false);

[[nodiscard]] Expr operator+(const Expr& a, const Expr& b);
[[nodiscard]] Expr operator-(const Expr& a, const Expr& b);
[[nodiscard]] Expr operator*(const Expr& a, const Expr& b);
[[nodiscard]] Expr operator/(const Expr& a, const Expr& b);
[[nodiscard]] Expr operator+(const Expr& a, int64_t b);  // b becomes a constant of a's type
[[nodiscard]] Expr operator-(const Expr& a, int64_t b);
[[nodiscard]] Expr operator*(const Expr& a, int64_t b);
[[nodiscard]] Expr floordiv(const Expr& a, int64_t b);
[[nodiscard]] Expr floormod(const Expr& a, int64_t b);
[[nodiscard]] Expr min(const Expr& a, const Expr& b);
[[nodiscard]] Expr max(const Expr& a, const Expr& b);
[[nodiscard]] Expr less(const Expr& a, const Expr& b);  // a < b
[[nodiscard]] Expr less_equal(const Expr& a, const Expr& b);
[[nodiscard]] Expr logical_and(const Expr& a, const Expr& b);

[[nodiscard]] bool is_const_int(const Expr& e);
[[nodiscard]] bool is_const_int(const Expr& e, int64_t value);
[[nodiscard]] bool is_true(const Expr& e);
[[nodiscard]] bool is_false(const Expr& e);

// Returns whether two trees are structurally equal. Variables and buffers are compared by identity.
[[nodiscard]] bool equal(const Expr& a, const Expr& b);

// Function substitute() replaces variables by the expressions that the map pairs with them.
// Function rewrite() rebuilds a tree bottom up: `f` gets each node with its operands already
// rewritten and returns its replacement, or nullptr to keep it.
using VarMap = std::vector<std::pair<VarPtr, Expr>>;
[[nodiscard]] Expr substitute(const Expr& e, const VarMap& map);
template <typename F>
[[nodiscard]] Expr rewrite(const Expr& e, const F& f);
// Calls f on every node, parents first.
template <typename F>
void visit(const Expr& e, const F& f);

// ---- template definitions ----
// Returns the same node with new operands.
[[nodiscard]] Expr with_args(const ExprNode& node, std::vector<Expr> args);

template <typename F>
Expr rewrite(const Expr& e, const F& f) {
  Expr node = e;
  if (!e->args.empty()) {
    std::vector<Expr> args;
    args.reserve(e->args.size());
    bool changed = false;
    for (const Expr& a : e->args) {
      args.push_back(rewrite(a, f));
      changed |= args.back() != a;
    }
    if (changed) node = with_args(*e, std::move(args));
  }
  Expr replacement = f(node);
  return replacement ? replacement : node;
}

template <typename F>
void visit(const Expr& e, const F& f) {
  f(e);
  for (const Expr& a : e->args) visit(a, f);
}

}  // namespace hone::ir
