// Conversions of floats, and that no generated code needs a function that is not there, on every
// kind of processor: also on x86-64 without F16C, which this machine runs as well.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "hone/backend/cpu/check_symbols.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/base/rng.h"
#include "hone/target/target.h"
#include "hone/tensor/half.h"

namespace hone::backend::cpu {
namespace {

using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::variable;

constexpr DType kFloats[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};
constexpr DType kIntegers[] = {DType::kI64, DType::kI32, DType::kU8,  DType::kI8, DType::kBool,
                               DType::kU16, DType::kI16, DType::kU32, DType::kU64};

target::Target generic() { return *target::of_key("sse2-x86-64-4c-32K-256K-8M"); }

std::vector<target::Target> all_targets() {
  return {*target::find("x86-64-avx2"), *target::find("x86-64-avx512"), generic(),
          *target::find("aarch64-neon")};
}

std::vector<target::Target> targets_here() {
  std::vector<target::Target> targets = runnable_targets();
#if defined(__x86_64__)
  targets.push_back(generic());
#endif
  return targets;
}

// A program of one operand and many results, each in a loop of vectors and one of a single element.
struct Results {
  ir::BufferPtr x;
  std::vector<ir::Param> params;
  std::vector<Stmt> loops;
  explicit Results(DType from, int64_t n = 19)
      : x(ir::make_buffer("x", from, {n})), params({{x, ir::Role::kInput}}) {}
  template <typename F>
  void add(const F& value) {
    for (const ir::ForKind kind : {kVector, kSerial}) {
      const auto v = ir::make_var("v");
      const Expr e = value(ir::load(x, {variable(v)}));
      const ir::BufferPtr y = ir::make_buffer("y", e->type, x->shape);
      params.push_back({y, ir::Role::kOutput});
      loops.push_back(loop(v, x->shape[0], kind, {ir::make_store(y, {variable(v)}, e)}));
    }
  }
  [[nodiscard]] ir::Program program() const { return program_of(params, ir::make_block(loops)); }
};

void expect_compiles(const ir::Program& program, DType of) {
  for (const target::Target& target : all_targets()) {
    const Result<ObjectCode> code = compile(program, target.cpu());
    EXPECT_TRUE(code.ok()) << dtype_name(of) << " on " << target.name << ": "
                           << code.status().message();
  }
}

TEST(float_cast, every_pair_of_types_compiles_for_every_processor) {
  for (const DType from : kFloats) {
    Results results(from);
    for (const DType to : kFloats) {
      results.add([&](const Expr& x) { return ir::cast(to, x); });
      for (const DType between : kFloats) {
        results.add([&](const Expr& x) {
          return ir::cast(to, ir::cast(between, x)) * ir::constant_float(2, to);
        });
      }
    }
    for (const DType to : kIntegers) results.add([&](const Expr& x) { return ir::cast(to, x); });
    expect_compiles(results.program(), from);
  }
  for (const DType from : kIntegers) {
    Results results(from);
    for (const DType to : kFloats) results.add([&](const Expr& x) { return ir::cast(to, x); });
    for (const DType to : kIntegers) results.add([&](const Expr& x) { return ir::cast(to, x); });
    expect_compiles(results.program(), from);
  }
}

TEST(float_cast, every_operator_compiles_for_every_processor) {
  for (const DType type : kFloats) {
    Results results(type);
    for (int op = static_cast<int>(Op::kNeg); op < ir::kNumOps; ++op)
      results.add([&](const Expr& x) { return ir::make(static_cast<Op>(op), {x}); });
    for (const Op op : {Op::kDiv, Op::kRem, Op::kMin, Op::kMax, Op::kPow})
      results.add([&](const Expr& x) { return ir::make(op, {x, x + x}); });
    expect_compiles(results.program(), type);
  }
  for (const DType type : kIntegers) {
    if (type == DType::kBool) continue;
    Results results(type);
    for (const Op op : {Op::kMul, Op::kDiv, Op::kFloorDiv, Op::kFloorMod, Op::kRem, Op::kShl,
                        Op::kShr, Op::kMin, Op::kMax}) {
      results.add([&](const Expr& x) { return ir::make(op, {x, x + 1}); });
      results.add([&](const Expr& x) { return ir::make(op, {x, ir::constant_int(3, type)}); });
    }
    expect_compiles(results.program(), type);
  }
}

TEST(check_symbols, a_function_that_is_not_there_is_refused) {
  const auto x = ir::make_buffer("x", DType::kF32, {4});
  const auto y = ir::make_buffer("y", DType::kF32, {4});
  const std::vector<ir::Param> params = {{x, ir::Role::kInput}, {y, ir::Role::kOutput}};
  const ir::Program calls = program_of(params, ir::make_extern("__truncdfhf2", {x, y}));
  for (const target::Target& target : all_targets()) {
    const Result<ObjectCode> code =
        compile(calls, target.cpu());  // the program asks for it by name
    ASSERT_TRUE(code.ok()) << code.status().message();
    const Status status = check_symbols(code->object, program_of(params, ir::make_block({})));
    EXPECT_EQ(status.code(), Code::kInternal);
    EXPECT_NE(status.message().find("__truncdfhf2"), std::string::npos) << status.message();
  }
}

// The bits of the results of type `to`, of double operands.
std::vector<uint16_t> bits_of(const std::vector<double>& values, DType between, DType to,
                              const target::Target& target) {
  Results results(DType::kF64, std::ssize(values));
  results.add([&](const Expr& x) { return ir::cast(to, ir::cast(between, x)); });
  std::vector<Tensor> args = {Tensor(DType::kF64, {std::ssize(values)})};
  for (size_t i = 0; i < values.size(); ++i) args[0].set(static_cast<int64_t>(i), values[i]);
  for (int i = 0; i < 2; ++i) args.emplace_back(to, args[0].shape());
  const Status status = run_machine_code(results.program(), target, args);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<uint16_t> bits(2 * values.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    const Tensor& result = args[1 + i / values.size()];
    bits[i] = static_cast<const uint16_t*>(result.data())[i % values.size()];
  }
  return bits;
}

// Where two roundings differ from one, the ends of the ranges, and numbers of all magnitudes.
std::vector<double> doubles() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0,      -0.0,      1,           65504,      65519.99999999999,
                                65520,  65536,     1e5,         1e300,      kInf,
                                -kInf,  0x1p-14,   0x1p-24,     0x1p-25,    0x1p-26,
                                1e-300, 0x1.8p-25, 0x1.ffcp-15, 0x1.ffep-15};
  for (const double base : {1.0, 0x1p-14, 0x1p-15, 0x1p-20, 1234.0, 60000.0, 0x1p-120, 0x1p120}) {
    for (const double place : {0x1p-11, 0x1p-8}) {  // half of a last place of half, of bfloat16
      for (const double off : {0.0, 0x1p-30, -0x1p-30, 0x1p-50, -0x1p-50})
        values.push_back(base * (1 + place + off));
    }
  }
  Rng rng(43);
  for (int i = 0; i < 400; ++i)
    values.push_back(std::ldexp(2 * rng.uniform() - 1, static_cast<int>(rng.below(60)) - 40));
  return values;
}

TEST(float_cast, a_double_is_rounded_as_often_as_the_program_says) {
  const std::vector<double> values = doubles();
  for (const target::Target& target : targets_here()) {
    for (const DType to : {DType::kF16, DType::kBF16}) {
      const auto rounded = [&](double v) {
        return to == DType::kF16 ? double_to_f16(v) : double_to_bf16(v);
      };
      for (const DType between : {DType::kF64, DType::kF32}) {
        const std::vector<uint16_t> bits = bits_of(values, between, to, target);
        int differs = 0;
        for (size_t i = 0; i < bits.size(); ++i) {
          const double v = values[i % values.size()];
          const double wide =
              between == DType::kF32 ? static_cast<double>(static_cast<float>(v)) : v;
          EXPECT_EQ(bits[i], rounded(wide)) << v << " by " << dtype_name(between) << " to "
                                            << dtype_name(to) << " on " << target.name;
          differs += rounded(wide) != rounded(v) ? 1 : 0;
        }
        EXPECT_EQ(differs > 0, between == DType::kF32) << "the numbers tell one from two roundings";
      }
    }
  }
}

TEST(float_cast, every_half_is_the_float_that_it_stands_for) {
  Results results(DType::kF16, 1 << 16);
  results.add([](const Expr& x) { return ir::cast(DType::kF32, x); });
  results.add([](const Expr& x) { return ir::cast(DType::kF16, ir::cast(DType::kF32, x)); });
  for (const target::Target& target : targets_here()) {
    std::vector<Tensor> args;
    for (const ir::Param& param : results.params)
      args.emplace_back(param.buffer->dtype, param.buffer->shape);
    auto* const halves = static_cast<uint16_t*>(args[0].data());
    for (int i = 0; i < 1 << 16; ++i) halves[i] = static_cast<uint16_t>(i);
    const Status status = run_machine_code(results.program(), target, args);
    ASSERT_TRUE(status.ok()) << status.message();
    int wrong = 0;
    for (int i = 0; i < 1 << 16; ++i) {
      const auto expected = static_cast<float>(f16_to_double(static_cast<uint16_t>(i)));
      for (const size_t y : {1, 2}) {
        const float found = static_cast<const float*>(args[y].data())[i];
        wrong += std::isnan(expected)
                     ? !std::isnan(found)
                     : std::bit_cast<uint32_t>(found) != std::bit_cast<uint32_t>(expected);
      }
      for (const size_t y : {3, 4}) {
        const uint16_t found = static_cast<const uint16_t*>(args[y].data())[i];
        wrong += std::isnan(expected) ? !std::isnan(f16_to_double(found)) : found != i;
      }
    }
    EXPECT_EQ(wrong, 0) << target.name;
  }
}

}  // namespace
}  // namespace hone::backend::cpu
