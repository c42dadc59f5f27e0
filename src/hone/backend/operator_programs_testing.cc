#include "hone/backend/operator_programs_testing.h"

#include <fmt/format.h>

#include <functional>

namespace hone::backend::testing {
namespace {

using ir::constant;
using ir::Expr;
using ir::ForKind;
using ir::Op;
using ir::Stmt;
using ir::variable;
using Make = std::function<Expr(const Expr&, const Expr&)>;

Make binary(Op op) {
  return [op](const Expr& a, const Expr& b) { return ir::make(op, {a, b}); };
}
Make unary(Op op) {
  return [op](const Expr& a, const Expr&) { return ir::make(op, {a}); };
}

// Functions of two values of a type.
std::vector<Make> operators_of(DType type) {
  std::vector<Make> makes;
  for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kMin, Op::kMax})
    makes.push_back(binary(op));
  for (const Op op : {Op::kLt, Op::kLe, Op::kEq, Op::kNe}) {
    makes.push_back([op](const Expr& a, const Expr& b) {
      return ir::select(ir::make(op, {a, b}), a, b);
    });
  }
  makes.push_back([](const Expr& a, const Expr& b) {
    const Expr either =
        ir::make(Op::kOr, {ir::less(a, b), ir::make(Op::kNot, {ir::less_equal(b, a)})});
    return ir::select(ir::logical_and(either, ir::make(Op::kNe, {a, b})), a, a + b);
  });
  // Beyond the other end of the range of what has no sign.
  makes.push_back([](const Expr& a, const Expr& b) {
    return ir::select(ir::less(a - b, b), ir::min(a - b, b), ir::max(a, a - b));
  });
  if (is_float(type)) {
    makes.push_back(binary(Op::kDiv));
    makes.push_back([](const Expr& a, const Expr& b) {
      return ir::make(Op::kRem,
                      {a, ir::max(ir::make(Op::kAbs, {b}), ir::constant_float(0.25, b->type))});
    });
    makes.push_back([](const Expr& a, const Expr& b) {
      return ir::make(Op::kPow, {ir::make(Op::kAbs, {a}), b});
    });
    for (const Op op : {Op::kNeg, Op::kAbs, Op::kExp, Op::kTanh, Op::kErf, Op::kSigmoid, Op::kFloor,
                        Op::kCeil, Op::kRound, Op::kSin, Op::kCos, Op::kAtan}) {
      makes.push_back(unary(op));
    }
    for (const Op op : {Op::kSqrt, Op::kLog}) {
      makes.push_back(
          [op](const Expr& a, const Expr&) { return ir::make(op, {ir::make(Op::kAbs, {a})}); });
    }
  } else {
    for (const Op op : {Op::kBitAnd, Op::kBitOr, Op::kBitXor}) makes.push_back(binary(op));
    for (const Op op : {Op::kShl, Op::kShr}) {
      makes.push_back([op](const Expr& a, const Expr& b) {
        return ir::make(op, {a - b, ir::make(Op::kBitAnd, {b, ir::constant_int(71, b->type)})});
      });
    }
    for (const Op op : {Op::kDiv, Op::kFloorDiv, Op::kFloorMod, Op::kRem}) {
      makes.push_back([op](const Expr& a, const Expr& b) {
        return ir::make(op, {a - b - b, b + 1});
      });
      makes.push_back([op](const Expr& a, const Expr& b) {
        return ir::make(op, {a - b, ir::cast(a->type, constant(3))});
      });
    }
    if (type == DType::kI32 || type == DType::kI64 || type == DType::kI8) {
      for (const Op op : {Op::kNeg, Op::kAbs}) makes.push_back(unary(op));
    }
  }
  return makes;
}

// Adds an output y[v] = value(v) of a type to a program, and the loop that computes it.
class Outputs {
 public:
  Outputs(std::vector<ir::Param> inputs, int64_t n, ForKind kind)
      : program_{"operators", std::move(inputs), {}}, n_(n), kind_(kind) {}
  void add(DType type, const std::function<Expr(const Expr&)>& value) {
    const auto y = ir::make_buffer(fmt::format("y{}", loops_.size()), type, {n_});
    program_.params.push_back({y, ir::Role::kOutput});
    const auto v = ir::make_var("v");
    loops_.push_back(ir::make_for(v, constant(0), constant(n_), kind_,
                                  {ir::make_store(y, {variable(v)}, value(variable(v)))}));
  }
  ir::Program take() && {
    program_.phases = {{ir::make_block(std::move(loops_))}};
    return std::move(program_);
  }

 private:
  ir::Program program_;
  int64_t n_;
  ForKind kind_;
  std::vector<Stmt> loops_;
};

}  // namespace

std::vector<OperatorProgram> operator_programs(int64_t n, ForKind kind) {
  std::vector<OperatorProgram> programs;
  for (const DType type :
       {DType::kF32, DType::kF64, DType::kI64, DType::kI32, DType::kU8, DType::kI8, DType::kI16,
        DType::kU16, DType::kU32, DType::kU64, DType::kF16, DType::kBF16}) {
    const auto a = ir::make_buffer("a", type, {n});
    const auto b = ir::make_buffer("b", type, {n});
    Outputs outputs({{a, ir::Role::kInput}, {b, ir::Role::kInput}}, n, kind);
    for (const Make& make : operators_of(type))
      outputs.add(type, [&](const Expr& v) { return make(ir::load(a, {v}), ir::load(b, {v})); });
    const double tolerance = type == DType::kBF16 ? 0.01 : type == DType::kF16 ? 1e-3 : 1e-6;
    programs.push_back({std::move(outputs).take(), 7, tolerance});
  }
  return programs;
}

OperatorProgram signs_of_zeros(int64_t n, ForKind kind) {
  const auto a = ir::make_buffer("a", DType::kF32, {n});
  const auto b = ir::make_buffer("b", DType::kF32, {n});
  const Expr plus = ir::constant_float(0.0), minus = ir::constant_float(-0.0);
  Outputs outputs({{a, ir::Role::kInput}, {b, ir::Role::kInput}}, n, kind);
  const auto add = [&](const Make& make) {
    outputs.add(DType::kI32, [&](const Expr& v) {
      // Zeros with the signs of the elements.
      const Expr x = ir::load(a, {v}) * plus, y = ir::load(b, {v}) * plus;
      return ir::bit_cast(DType::kI32, make(x, y));
    });
  };
  add([&](const Expr& x, const Expr&) { return x + plus; });
  add([&](const Expr& x, const Expr&) { return plus + x; });
  add([&](const Expr& x, const Expr&) { return plus - x; });
  add([&](const Expr& x, const Expr&) { return x - minus; });
  add([&](const Expr& x, const Expr&) { return minus - x; });
  add([&](const Expr& x, const Expr& y) { return ir::make(Op::kNeg, {x - y}); });
  add([&](const Expr& x, const Expr& y) { return (x - y) * ir::constant_float(-1); });
  add([&](const Expr& x, const Expr& y) { return (x - y) / ir::constant_float(-1); });
  add([&](const Expr& x, const Expr& y) { return x + y; });
  add([&](const Expr& x, const Expr&) {
    return ir::select(ir::make(Op::kEq, {x, plus}), plus, x);
  });
  add([&](const Expr& x, const Expr&) {
    return ir::select(ir::less(x, plus), ir::make(Op::kNeg, {x}), x);
  });
  add([&](const Expr& x, const Expr&) { return ir::make(Op::kAbs, {x}); });
  return {std::move(outputs).take(), 7, 0};
}

std::vector<OperatorProgram> bit_programs(int64_t n, ForKind kind) {
  const std::vector<std::vector<DType>> groups = {
      {DType::kF32, DType::kI32, DType::kU32},
      {DType::kF64, DType::kI64, DType::kU64},
      {DType::kF16, DType::kBF16, DType::kI16, DType::kU16},
      {DType::kI8, DType::kU8}};
  std::vector<OperatorProgram> programs;
  for (const auto& group : groups) {
    for (const DType from : group) {
      const auto x = ir::make_buffer("x", from, {n});
      Outputs outputs({{x, ir::Role::kInput}}, n, kind);
      for (const DType to : group)
        outputs.add(to, [&](const Expr& v) { return ir::bit_cast(to, ir::load(x, {v})); });
      programs.push_back({std::move(outputs).take(), 9, 0});
    }
  }
  return programs;
}

std::vector<OperatorProgram> cast_programs(int64_t n, ForKind kind) {
  const DType types[] = {DType::kF32, DType::kF64,  DType::kI64, DType::kI32,  DType::kU8,
                         DType::kI8,  DType::kBool, DType::kF16, DType::kBF16, DType::kU16,
                         DType::kI16, DType::kU32,  DType::kU64};
  std::vector<OperatorProgram> programs;
  for (const DType from : types) {
    const auto x = ir::make_buffer("x", from, {n});
    Outputs outputs({{x, ir::Role::kInput}}, n, kind);
    for (const DType to : types) {
      for (const bool large : {false, true}) {
        if (large && !is_float(from)) continue;
        outputs.add(to, [&](const Expr& v) {
          const Expr value = ir::load(x, {v});
          return ir::cast(to, large ? value * 1024 : value);
        });
      }
    }
    programs.push_back({std::move(outputs).take(), 8, 0});
  }
  return programs;
}

}  // namespace hone::backend::testing
