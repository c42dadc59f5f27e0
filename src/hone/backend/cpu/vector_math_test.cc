#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "hone/backend/cpu/compiler.h"
#include "hone/backend/cpu/inner_loop_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/runtime/kernel_abi.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

using ir::Op;

double exact(Op op, double x) {
  switch (op) {
    case Op::kExp: return std::exp(x);
    case Op::kPow: return std::exp2(x);
    case Op::kLog: return std::log(x);
    case Op::kTanh: return std::tanh(x);
    case Op::kErf: return std::erf(x);
    case Op::kSigmoid: return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
    case Op::kSub: return std::exp(x - 0.5);
    case Op::kMul: return x * exact(Op::kSigmoid, x);
    case Op::kAtan: return std::atan(x);
    case Op::kSin: return std::sin(x);
    default: return std::cos(x);
  }
}

// Every exponent and sign with 512 mantissas, and the special values.
std::vector<float> inputs() {
  std::vector<float> out;
  for (uint32_t high = 0; high < 512; ++high) {
    for (uint32_t m = 0; m < 512; ++m) {
      const uint32_t mantissa = (m * 16'411U + high * 7U) & 0x7FFFFFU;
      out.push_back(std::bit_cast<float>((high << 23) | (m < 3 ? m : mantissa)));
    }
  }
  // More where exp, tanh and erf bend.
  for (int i = 0; i < 200'000; ++i) out.push_back(static_cast<float>(i - 100'000) * 0.00105F);
  while (out.size() % 64 != 0) out.push_back(0);
  return out;
}

double ulps(float found, double want) {
  if (std::isnan(want)) return std::isnan(found) ? 0 : 1e9;
  const auto nearest = static_cast<float>(want);
  if (nearest == found) return 0;  // infinities, and zeros of either sign
  if (!std::isfinite(found) || !std::isfinite(nearest)) return 1e9;
  int exponent = 0;
  std::frexp(want, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(static_cast<double>(found) - want) / unit;
}

struct Case {
  Op op;             // kPow: of 2; kMul: x sigmoid(x); kSub: e^(x - 1/2)
  double limit;      // ulp
  double domain;     // |x| up to this
  double least = 0;  // errors below this do not count
  double slope = 0;  // ulp more, per unit of |x|
};

ir::Expr function(Op op, const ir::Expr& x) {
  if (op == Op::kPow) return ir::make(op, {ir::constant_float(2), x});
  if (op == Op::kSub) return ir::make(Op::kExp, {x - ir::constant_float(0.5)});
  return op == Op::kMul ? x * ir::make(Op::kSigmoid, {x}) : ir::make(op, {x});
}

// y[v] = f(x[v]) for n elements.
template <typename F>
ir::Program map_program(int64_t n, const F& f, ir::ForKind kind = ir::ForKind::kVectorized) {
  const auto x = ir::make_buffer("x", DType::kF32, {n});
  const auto y = ir::make_buffer("y", DType::kF32, {n});
  const auto v = ir::make_var("v");
  ir::Program program{"math", {{x, ir::Role::kInput}, {y, ir::Role::kOutput}}, {}};
  program.phases.push_back(
      {ir::make_for(v, ir::constant(0), ir::constant(n), kind,
                    {ir::make_store(y, {ir::variable(v)}, f(ir::load(x, {ir::variable(v)})))})});
  return program;
}

TEST(vector_math, errors_stay_within_the_stated_limits) {
  const Case cases[] = {{Op::kExp, 2, 1e40},          {Op::kPow, 3, 1e40},
                        {Op::kLog, 2, 1e40},          {Op::kTanh, 4, 1e40},
                        {Op::kErf, 4, 1e40},          {Op::kSigmoid, 4, 1e40, 0x1p-126},
                        {Op::kSub, 4, 1e40, 0, 2.25}, {Op::kMul, 4, 1e40, 0x1p-119},
                        {Op::kSin, 2, 1e40},          {Op::kCos, 2, 1e40},
                        {Op::kAtan, 3, 1e40}};
  const std::vector<float> in = inputs();
  const auto n = static_cast<int64_t>(in.size());
  for (const target::Target& target : runnable_targets()) {
    for (const ir::ForKind kind : {ir::ForKind::kVectorized, ir::ForKind::kSerial}) {
      for (const Case& c : cases) {
        const ir::Program program = map_program(
            n, [&](const ir::Expr& x) { return function(c.op, x); }, kind);
        std::vector<Tensor> args = {Tensor(DType::kF32, {n}), Tensor(DType::kF32, {n})};
        std::copy(in.begin(), in.end(), args[0].as<float>().begin());
        const Status status = run_machine_code(program, target, args);
        ASSERT_TRUE(status.ok()) << status.message();
        double worst = 0;
        float worst_x = 0;
        for (int64_t i = 0; i < n; ++i) {
          const float at = in[static_cast<size_t>(i)];
          if (std::isfinite(at) && std::fabs(static_cast<double>(at)) > c.domain) continue;
          const double want = exact(c.op, static_cast<double>(at));
          const float found = args[1].as<float>()[static_cast<size_t>(i)];
          if (std::fabs(static_cast<double>(found) - want) < c.least) continue;
          const double slack = c.slope * std::fmin(std::fabs(static_cast<double>(at)), 100.0);
          const double off = ulps(found, want) - (std::isfinite(at) ? slack : 0);
          if (off > worst) {
            worst = off;
            worst_x = at;
          }
        }
        EXPECT_LE(worst, c.limit) << ir::op_info(c.op).name << "(" << worst_x << ") on "
                                  << target.name;
        RecordProperty(std::string(ir::op_info(c.op).name) + "_" + target.name +
                           (kind == ir::ForKind::kSerial ? "_scalar" : ""),
                       std::to_string(worst));
      }
    }
  }
}

enum class Gelu { kErf, kTanh };

// Makes the operator's own form: x 0.5 (f(u) + 1).
ir::Expr gelu(Gelu form, const ir::Expr& x) {
  const ir::Expr u = form == Gelu::kErf ? x * ir::constant_float(std::sqrt(0.5))
                                        : (x + x * x * x * ir::constant_float(0.044715)) *
                                              ir::constant_float(std::sqrt(2 / std::numbers::pi));
  return x * ir::constant_float(0.5) *
         (ir::make(form == Gelu::kErf ? Op::kErf : Op::kTanh, {u}) + ir::constant_float(1));
}

double exact_gelu(Gelu form, double x) {
  if (form == Gelu::kErf) return x / 2 * std::erfc(-x * std::sqrt(0.5));
  return x / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

ir::Program gelu_program(Gelu form, int64_t n) {
  return map_program(n, [&](const ir::Expr& x) { return gelu(form, x); });
}

TEST(vector_math, gelu_is_right_where_it_is_small) {
  const std::vector<float> in = inputs();
  const auto n = static_cast<int64_t>(in.size());
  for (const target::Target& target : runnable_targets()) {
    for (const Gelu form : {Gelu::kErf, Gelu::kTanh}) {
      std::vector<Tensor> args = {Tensor(DType::kF32, {n}), Tensor(DType::kF32, {n})};
      std::copy(in.begin(), in.end(), args[0].as<float>().begin());
      const Status status = run_machine_code(gelu_program(form, n), target, args);
      ASSERT_TRUE(status.ok()) << status.message();
      for (int64_t i = 0; i < n; ++i) {
        const auto x = static_cast<double>(in[static_cast<size_t>(i)]);
        const float found = args[1].as<float>()[static_cast<size_t>(i)];
        if (!std::isfinite(x)) {  // -inf: infinity times 0
          if (x > 0)
            EXPECT_EQ(found, x);
          else
            EXPECT_TRUE(std::isnan(found)) << x;
          continue;
        }
        const double want = exact_gelu(form, x);
        if (std::fabs(want) < 0x1p-119) {  // may be zero
          ASSERT_LE(std::fabs(static_cast<double>(found) - want), 0x1p-119) << x;
        } else {
          ASSERT_LE(ulps(found, want), 4) << x << " on " << target.name;
        }
      }
    }
  }
}

int divisions(const InnerLoop& loop) {
  int count = 0;
  for (const std::string& line : loop.text) count += static_cast<int>(line.starts_with("vdiv"));
  return count;
}

TEST(vector_math, gelu_takes_few_instructions) {
  struct Case {
    Gelu form;
    const char* device;
    int most, divisions;  // a vector
  };
  // Exact tails cost a power of e, and the form by tanh an exponent of two floats.
  for (const Case& c :
       {Case{Gelu::kErf, "x86-64-avx512", 33, 1}, Case{Gelu::kTanh, "x86-64-avx512", 26, 1},
        Case{Gelu::kErf, "x86-64-avx2", 33, 1}, Case{Gelu::kTanh, "x86-64-avx2", 26, 1}}) {
    const InnerLoop loop = inner_loop_of(gelu_program(c.form, 1 << 12), c.device);
    EXPECT_LE(loop.mix.fma + loop.mix.arithmetic + loop.mix.shuffle, c.most) << c.device;
    EXPECT_EQ(divisions(loop), c.divisions) << c.device;
  }
}

TEST(vector_math, erf_by_pieces_is_near_without_a_division) {
  // Denser than the other test, where its pieces meet.
  const int64_t n = 1 << 20;
  const ir::Program program =
      map_program(n, [](const ir::Expr& x) { return function(Op::kErf, x); });
  for (const target::Target& target : runnable_targets()) {
    std::vector<Tensor> args = {Tensor(DType::kF32, {n}), Tensor(DType::kF32, {n})};
    const auto at = [&](int64_t i) { return static_cast<float>(i - n / 2) * 0x1p-17F; };
    for (int64_t i = 0; i < n; ++i) args[0].as<float>()[static_cast<size_t>(i)] = at(i);
    ASSERT_TRUE(run_machine_code(program, target, args).ok());
    const double limit = target.cpu().vector_bytes == 64 ? 3 : 4;
    for (int64_t i = 0; i < n; ++i) {
      const float found = args[1].as<float>()[static_cast<size_t>(i)];
      ASSERT_LE(ulps(found, std::erf(static_cast<double>(at(i)))), limit) << at(i);
      ASSERT_LE(std::fabs(found), 1) << at(i);
    }
  }
}

}  // namespace
}  // namespace hone::backend::cpu
