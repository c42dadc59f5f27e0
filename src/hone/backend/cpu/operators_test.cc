#include <gtest/gtest.h>

#include <functional>

#include "hone/backend/cpu/test_support.h"

namespace hone::backend::cpu {
namespace {

using ir::constant;
using ir::Expr;
using ir::ForKind;
using ir::Op;
using ir::Stmt;
using ir::variable;
using ir::VarPtr;

TEST(compile, every_operator_of_every_type) {
  using Make = std::function<Expr(const Expr&, const Expr&)>;
  const auto binary = [](Op op) {
    return Make([op](const Expr& a, const Expr& b) { return ir::make(op, {a, b}); });
  };
  const auto unary = [](Op op) {
    return Make([op](const Expr& a, const Expr&) { return ir::make(op, {a}); });
  };
  for (const DType type :
       {DType::kF32, DType::kF64, DType::kI64, DType::kI32, DType::kU8, DType::kI8, DType::kI16,
        DType::kU16, DType::kU32, DType::kU64, DType::kF16, DType::kBF16}) {
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
      for (const Op op : {Op::kNeg, Op::kAbs, Op::kExp, Op::kTanh, Op::kErf, Op::kSigmoid,
                          Op::kFloor, Op::kCeil, Op::kRound, Op::kSin, Op::kCos, Op::kAtan}) {
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
    const double tolerance = type == DType::kBF16 ? 0.01 : type == DType::kF16 ? 1e-3 : 1e-6;
    for (const int64_t n : {1, 5, 21}) {
      for (const ForKind kind : {kVector, kSerial}) {
        const auto a = ir::make_buffer("a", type, {n});
        const auto b = ir::make_buffer("b", type, {n});
        std::vector<ir::Param> params = {{a, ir::Role::kInput}, {b, ir::Role::kInput}};
        std::vector<Stmt> loops;
        for (size_t m = 0; m < makes.size(); ++m) {
          params.push_back({ir::make_buffer(fmt::format("y{}", m), type, {n}), ir::Role::kOutput});
          const auto v = ir::make_var("v");
          const Expr value = makes[m](ir::load(a, {variable(v)}), ir::load(b, {variable(v)}));
          loops.push_back(
              loop(v, n, kind, {ir::make_store(params.back().buffer, {variable(v)}, value)}));
        }
        ASSERT_EQ(compare_with_interpreter(program_of(params, ir::make_block(loops)), 7, tolerance),
                  "");
      }
    }
  }
}

TEST(compile, signs_of_zeros) {
  for (const int64_t n : {3, 21}) {
    for (const ForKind kind : {kVector, kSerial}) {
      const auto a = ir::make_buffer("a", DType::kF32, {n});
      const auto b = ir::make_buffer("b", DType::kF32, {n});
      const Expr plus = ir::constant_float(0.0), minus = ir::constant_float(-0.0);
      std::vector<ir::Param> params = {{a, ir::Role::kInput}, {b, ir::Role::kInput}};
      std::vector<Stmt> loops;
      const auto add = [&](const std::function<Expr(const Expr&, const Expr&)>& make) {
        const std::string name = fmt::format("y{}", loops.size());
        params.push_back({ir::make_buffer(name, DType::kI32, {n}), ir::Role::kOutput});
        const auto v = ir::make_var("v");
        // Zeros with the signs of the elements.
        const Expr x = ir::load(a, {variable(v)}) * plus, y = ir::load(b, {variable(v)}) * plus;
        const Expr bits = ir::bit_cast(DType::kI32, make(x, y));
        loops.push_back(
            loop(v, n, kind, {ir::make_store(params.back().buffer, {variable(v)}, bits)}));
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
      ASSERT_EQ(compare_with_interpreter(program_of(params, ir::make_block(loops)), 7, 0), "");
    }
  }
}

TEST(compile, bits_as_another_type) {
  const std::vector<std::vector<DType>> groups = {
      {DType::kF32, DType::kI32, DType::kU32},
      {DType::kF64, DType::kI64, DType::kU64},
      {DType::kF16, DType::kBF16, DType::kI16, DType::kU16},
      {DType::kI8, DType::kU8}};
  for (const auto& group : groups) {
    for (const DType from : group) {
      for (const ForKind kind : {kVector, kSerial}) {
        const auto x = ir::make_buffer("x", from, {19});
        std::vector<ir::Param> params = {{x, ir::Role::kInput}};
        std::vector<Stmt> loops;
        for (const DType to : group) {
          params.push_back(
              {ir::make_buffer("y_" + std::string(dtype_name(to)), to, {19}), ir::Role::kOutput});
          const auto v = ir::make_var("v");
          loops.push_back(loop(v, 19, kind,
                               {ir::make_store(params.back().buffer, {variable(v)},
                                               ir::bit_cast(to, ir::load(x, {variable(v)})))}));
        }
        ASSERT_EQ(compare_with_interpreter(program_of(params, ir::make_block(loops)), 9, 0.0), "");
      }
    }
  }
}

TEST(compile, casts_between_all_types) {
  const DType types[] = {DType::kF32, DType::kF64,  DType::kI64, DType::kI32,  DType::kU8,
                         DType::kI8,  DType::kBool, DType::kF16, DType::kBF16, DType::kU16,
                         DType::kI16, DType::kU32,  DType::kU64};
  for (const DType from : types) {
    for (const ForKind kind : {kVector, kSerial}) {
      const auto x = ir::make_buffer("x", from, {19});
      std::vector<ir::Param> params = {{x, ir::Role::kInput}};
      std::vector<Stmt> loops;
      for (const DType to : types) {
        for (const bool large : {false, true}) {
          if (large && !is_float(from)) continue;
          params.push_back(
              {ir::make_buffer("y_" + std::string(dtype_name(to)), to, {19}), ir::Role::kOutput});
          const auto v = ir::make_var("v");
          const Expr value = ir::load(x, {variable(v)});
          loops.push_back(loop(v, 19, kind,
                               {ir::make_store(params.back().buffer, {variable(v)},
                                               ir::cast(to, large ? value * 1024 : value))}));
        }
      }
      ASSERT_EQ(compare_with_interpreter(program_of(params, ir::make_block(loops)), 8, 0.0), "");
    }
  }
}

TEST(compile, indices_that_are_not_contiguous) {
  const auto x = ir::make_buffer("x", DType::kF32, {40, 40});
  const auto table = ir::make_buffer("t", DType::kI64, {40});
  const auto y = ir::make_buffer("y", DType::kF32, {40, 40});
  const auto i = ir::make_var("i");
  const auto v = ir::make_var("v");
  const Expr vi = variable(v);
  const Expr ii = variable(i);
  for (const int64_t n : {3, 8, 13, 16, 19, 40}) {
    const std::vector<std::vector<Expr>> reads = {
        {vi, ii},
        {ii, constant(39) - vi},
        {ii, ir::floordiv(vi, 3)},
        {ir::floormod(vi, 4), ii},
        {ii, ir::load(table, {vi})},
        {ir::load(table, {ii}), vi},
        {ir::floordiv(vi * 2 + ii, 3), ir::floormod(vi * 2 + ii, 3)},
        {ii, ir::min(vi, ii)},
        {ir::max(vi + (-5), constant(0)), ii},
        {ii, ir::make(Op::kFloorMod, {vi, ii + 1})}};
    for (const auto& read : reads) {
      for (const bool transposed : {false, true}) {
        const std::vector<Expr> write =
            transposed ? std::vector<Expr>{vi, ii} : std::vector<Expr>{ii, vi};
        const Stmt nest =
            loop(i, 40, kSerial,
                 {loop(v, n, kVector, {ir::make_store(y, write, ir::load(x, read) + 1)})});
        ASSERT_EQ(compare_with_interpreter(program_of({{x, ir::Role::kInput},
                                                       {table, ir::Role::kInput},
                                                       {y, ir::Role::kOutput}},
                                                      nest),
                                           10),
                  "");
      }
    }
  }
}

}  // namespace
}  // namespace hone::backend::cpu
