#include "hone/backend/cpu/vector_math.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <vector>

#include "hone/base/assert.h"
#include "hone/ir/gelu.h"

namespace hone::backend::cpu {
namespace {

using ir::Op;
using llvm::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMagic = 0x1.8p23;  // adding it rounds a small float to an integer in its low bits
constexpr double kBiased = kMagic + 127;  // the same, as the exponent of a float
constexpr double kMagic64 = 0x1.8p52;
constexpr unsigned kLanes512 = 16;
// Arguments at which negative_power() reaches the ends of what it takes.
constexpr double kNothing = 127.25 * std::numbers::ln2, kInfinite = 127.75 * std::numbers::ln2;

// Coefficients, highest first: minimax fits (reweighted least squares) of the named function over
// the range after reduction; the error before rounding to float is below 0.1 ulp each
// unless said.
constexpr std::initializer_list<double> kExp = {  // e^r, |r| <= ln 2 / 2
    0x1.6dbc64p-10, 0x1.124148p-7, 0x1.555454p-5, 0x1.555486p-3, 0x1p-1, 1, 1};
constexpr std::initializer_list<double> kExp2 = {  // 2^r, 0 <= r <= 1, exact at the ends; 0.8 ulp
    0x1.eca6fp-10, 0x1.269dfp-7, 0x1.c9444p-5, 0x1.ebd8ap-3, 0x1.62e4c8p-1, 1};
constexpr std::initializer_list<double> kLog = {  // (log(1 + f) - f) / f^2, |f| <= 1/3
    -0x1.109f24p-3, 0x1.1ed906p-3,  -0x1.eeb8ecp-4, 0x1.1ebca2p-3, -0x1.55cd0ep-3,
    0x1.99d212p-3,  -0x1.fffd6ap-3, 0x1.555502p-2,  -0x1p-1};
// e^(t^2 / 2) (1 - the normal distribution at t) as P / (slope t P + Q), 0 <= t <= 13.3, which
// comes to 1 / (slope t): so the rounding of P and Q counts little where t is large. 0.3 ulp.
constexpr double kTailSlope = 2.5066282746310002;  // sqrt(2 pi)
constexpr std::initializer_list<double> kTailP = {0x1.387776p-8, 0x1.70502cp-5, 0x1.915548p-3,
                                                  0x1.d23922p-2, 0x1p-1};
constexpr std::initializer_list<double> kTailQ = {0x1.700fbp-20, 0x1.85a5fep-7, 0x1.d23bcep-4,
                                                  0x1.d21662p-2, 1};
// tanh(x) / x as slope + P / Q in x^2, |x| <= kTanhEnd, where it is 1 to the last place; erf alike.
// The slope is a power of 2, so that the rounding of P / Q counts for a part of the result alone.
constexpr double kTanhEnd = 9.02, kTanhSlope = 0.125, kErfEnd = 3.925, kErfSlope = 0.25;
constexpr std::initializer_list<double> kTanhP = {-0x1.6782cep-24, -0x1.572e22p-16, 0x1.10c81p-12,
                                                  0x1.34dcbap-4, 0x1.cp-1};
constexpr std::initializer_list<double> kTanhQ = {0x1.a0b704p-21, 0x1.58416p-12, 0x1.a7defap-6,
                                                  0x1.de5764p-2, 0x1p+0};
constexpr std::initializer_list<double> kErfP = {-0x1.f50692p-18, -0x1.9a4c8p-18, 0x1.bf17p-16,
                                                 0x1.8ce094p-6,   0x1.0a5cap-4,   0x1.c1bae8p-1};
constexpr std::initializer_list<double> kErfQ = {0x1.3f2aacp-15, 0x1.3115bp-10, 0x1.eaf4cap-7,
                                                 0x1.d3af48p-4,  0x1.012558p-1, 0x1p+0};
// erf(k kErfStep + r) in r, |r| <= kErfStep / 2, for k = 0 to 15, highest power first; odd for k =
// 0, and 1 for k = 15. Least squares at Chebyshev's nodes with the constant term a float.
constexpr double kErfStep = 0x1.0bf258p-2;
constexpr double kErfPieces[6][16] = {
    {0x1.cb5e9cp-4, 0x1.3a39ep-4, 0x1.3b428cp-11, -0x1.d9d9d6p-5, -0x1.11bf1p-4, -0x1.438abap-5,
     -0x1.e834cp-8, 0x1.48c522p-7, 0x1.a139fap-7, 0x1.1e23fap-7, 0x1.1d2ccep-8, 0x1.bf4be4p-10,
     0x1.1dc9c2p-11, 0x1.2f28aep-13, 0x1.0e0d9cp-15, 0},
    {0, 0x1.0b6b08p-3, 0x1.750974p-3, 0x1.1f8fbcp-3, 0x1.b4bbb4p-5, -0x1.28246ap-6, -0x1.8c130ep-5,
     -0x1.6c84dcp-5, -0x1.d24c06p-6, -0x1.d4f55p-7, -0x1.7fcfd2p-8, -0x1.07eebep-9, -0x1.b9c956p-13,
     0x1.e10c2cp-16, -0x1.c36e14p-13, 0},
    {-0x1.81262p-2, -0x1.36689ep-2, -0x1.08e928p-3, 0x1.82b5d2p-5, 0x1.32c2acp-3, 0x1.510eap-3,
     0x1.015d0ap-3, 0x1.33197cp-4, 0x1.2b0938p-5, 0x1.e5763ep-7, 0x1.4c825cp-8, 0x1.835178p-10,
     0x1.81a22p-12, 0x1.496708p-14, 0x1.e41aa6p-17, 0},
    {0, -0x1.1a54dcp-2, -0x1.cbcfap-2, -0x1.e9c75p-2, -0x1.946094p-2, -0x1.10f3f2p-2,
     -0x1.34723ep-3, -0x1.278822p-4, -0x1.e3b814p-6, -0x1.53a9aep-7, -0x1.9aa42p-9, -0x1.ac1666p-11,
     -0x1.923a24p-13, -0x1.4b18dep-15, -0x1.157bd8p-19, 0},
    {0x1.20dd74p+0, 0x1.0dbfa2p+0, 0x1.b7520ap-1, 0x1.37f65p-1, 0x1.82598ap-2, 0x1.a13dd4p-3,
     0x1.88efccp-4, 0x1.42b0b8p-5, 0x1.ce2d0ep-7, 0x1.209ed8p-8, 0x1.3a581p-10, 0x1.2a8bd6p-12,
     0x1.ee82f8p-15, 0x1.652428p-17, 0x1.c1d82ep-20, 0},
    {0, 0x1.27959cp-2, 0x1.14defcp-1, 0x1.7754cep-1, 0x1.b8ecf4p-1, 0x1.df1742p-1, 0x1.f27c0ap-1,
     0x1.fb175ep-1, 0x1.fe6d52p-1, 0x1.ff8e5cp-1, 0x1.ffe3ccp-1, 0x1.fff9dap-1, 0x1.fffed4p-1,
     0x1.ffffcep-1, 0x1.fffff8p-1, 0x1p+0},
};
constexpr std::initializer_list<double> kAtan = {  // (atan(x) - x) / x^3 in x^2, |x| <= tan(pi / 8)
    -0.0645869398564159, 0.10746035042156703, -0.14264198659691102, 0.19999548460573974,
    -0.3333333179263273};
constexpr std::initializer_list<double> kSin = {  // (sin(x) - x) / x^3 in x^2, |x| <= pi / 4
    0x1.6cbecep-19, -0x1.a00f32p-13, 0x1.111108p-7, -0x1.555556p-3};
constexpr std::initializer_list<double> kCos = {  // (cos(x) - 1 + x^2 / 2) / x^4 in x^2
    -0x1.2417dep-22, 0x1.a010c4p-16, -0x1.6c16b8p-10, 0x1.555556p-5};

// Short names for building one function; all values have x's shape.
class Math {
 public:
  Math(llvm::IRBuilder<>& builder, Value* x, bool has_avx512)
      : b_(builder), float_(x->getType()), int_(shaped(builder.getInt32Ty())) {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(float_);
    avx512_ = has_avx512 && vector != nullptr && vector->getNumElements() == kLanes512;
  }

  Value* exp(Value* x);
  Value* exp2(Value* x);
  Value* loose_exp(Value* x) { return exp2(b_.CreateFMul(x, f(std::numbers::log2e))); }
  Value* log(Value* x);
  Value* tanh(Value* x);
  Value* erf(Value* x, double scale = 1);
  Value* logistic(Value* y, Value* x, double scale = 1);
  Value* gelu(Value* x);
  Value* gelu_by_tanh(Value* x);
  Value* sin_cos(Value* x, bool cosine);
  Value* atan(Value* x);

 private:
  llvm::Type* shaped(llvm::Type* element) { return float_->getWithNewType(element); }
  Value* f(double v) { return llvm::ConstantFP::get(float_, v); }
  Value* i(int32_t v) { return llvm::ConstantInt::getSigned(int_, v); }
  Value* fma(Value* a, Value* b, Value* c) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, c});
  }
  template <typename Coefficients>
  Value* poly(Value* x, const Coefficients& coefficients) {
    Value* sum = nullptr;
    for (const double c : coefficients) sum = sum ? fma(sum, x, f(c)) : f(c);
    return sum;
  }
  Value* abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* copysign(Value* x, Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign);
  }
  // NaN stays NaN.
  Value* at_most(Value* x, double limit) {
    return b_.CreateSelect(b_.CreateFCmpOGT(x, f(limit)), f(limit), x);
  }
  Value* at_least(Value* x, double limit) {
    return b_.CreateSelect(b_.CreateFCmpOLT(x, f(limit)), f(limit), x);
  }
  Value* bits(Value* x) { return b_.CreateBitCast(x, int_); }
  Value* from_bits(Value* x) { return b_.CreateBitCast(x, float_); }
  Value* odd_step(Value* x, double end, double slope, std::initializer_list<double> p,
                  std::initializer_list<double> q);
  Value* erf_by_pieces(Value* x, double scale);
  Value* near_sin_cos(Value* x, bool cosine);
  Value* of_each_lane(const char* name, Value* x);
  // Returns what a product lacks because it is rounded.
  Value* lost(Value* a, Value* b, Value* product) { return fma(a, b, b_.CreateFNeg(product)); }
  struct Power {
    Value *factor, *power_of_2;  // of 2^-127 it is 0, of 2^128 infinity
  };
  Power negative_power(Value* x, double scale, Value* rest);
  Value* scale(Value* p, Value* n);
  Value* scale_shifted(Value* p, Value* shifted);
  Value* power_of_2(Value* n) { return from_bits(b_.CreateShl(b_.CreateAdd(n, i(127)), 23)); }

  llvm::IRBuilder<>& b_;
  llvm::Type* float_;
  llvm::Type* int_;
  bool avx512_ = false;  // x is a whole register of it
};

// x = n ln 2 + r; e^r by polynomial.
Value* Math::exp(Value* x) {
  constexpr double kInfinite = 90.0, kZero = -105.0;  // beyond them nothing changes
  x = at_least(at_most(x, kInfinite), kZero);
  Value* shifted = fma(x, f(std::numbers::log2e), f(kMagic));
  Value* n = b_.CreateFSub(shifted, f(kMagic));
  Value* r = fma(n, f(-0x1.62e4p-1), x);
  r = fma(n, f(-0x1.7f7d1cp-20), r);
  Value* p = poly(r, kExp);
  return avx512_ ? scale(p, n) : scale_shifted(p, shifted);
}

// 2^x = 2^r 2^n with n the integer below x. Nothing is lost in r but where n is -1.
Value* Math::exp2(Value* x) {
  if (avx512_) {
    constexpr int kFloor = 9;  // r = x - floor(x), exceptions suppressed; 0 for infinities
    Value* all = llvm::ConstantInt::getSigned(b_.getInt16Ty(), -1);
    constexpr int kCurrentRounding = 4;
    Value* r = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_reduce_ps_512, {},
                                  {x, b_.getInt32(kFloor), x, all, b_.getInt32(kCurrentRounding)});
    return scale(poly(r, kExp2), x);
  }
  constexpr double kInfinite = 130.0, kZero = -152.0;  // beyond them nothing changes
  x = at_least(at_most(x, kInfinite), kZero);
  Value* n = b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
  return scale_shifted(poly(b_.CreateFSub(x, n), kExp2), b_.CreateFAdd(n, f(kMagic)));
}

// p 2^n in two factors, so that denormal results are right; n = shifted - kMagic.
Value* Math::scale_shifted(Value* p, Value* shifted) {
  Value* exponent = b_.CreateSub(bits(shifted), bits(f(kMagic)));
  Value* half = b_.CreateAShr(exponent, 1);
  p = b_.CreateFMul(p, power_of_2(half));
  return b_.CreateFMul(p, power_of_2(b_.CreateSub(exponent, half)));
}

// p 2^floor(n), rounded once.
Value* Math::scale(Value* p, Value* n) {
  Value* all = llvm::ConstantInt::getSigned(b_.getInt16Ty(), -1);
  constexpr int kCurrentRounding = 4;
  return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                            {p, n, p, all, b_.getInt32(kCurrentRounding)});
}

// x = 2^e m with m in [2/3, 4/3).
Value* Math::log(Value* x) {
  Value* tiny = b_.CreateFCmpOLT(x, f(0x1p-126));
  Value* normal = b_.CreateSelect(tiny, b_.CreateFMul(x, f(0x1p23)), x);
  Value* offset = b_.CreateSelect(tiny, f(-23.0), f(0.0));
  Value* e = b_.CreateAShr(b_.CreateSub(bits(normal), i(0x3f2aaaab)), 23);
  Value* m = from_bits(b_.CreateSub(bits(normal), b_.CreateShl(e, 23)));
  Value* exponent = b_.CreateFAdd(b_.CreateSIToFP(e, float_), offset);
  Value* t = b_.CreateFSub(m, f(1.0));
  Value* low = fma(exponent, f(0x1.7f7d1cp-20), b_.CreateFMul(b_.CreateFMul(t, t), poly(t, kLog)));
  Value* result = fma(exponent, f(0x1.62e4p-1), b_.CreateFAdd(t, low));
  result = b_.CreateSelect(b_.CreateFCmpOLT(x, f(kInfinity)), result, x);  // inf and NaN
  result = b_.CreateSelect(b_.CreateFCmpOLT(x, f(0.0)), f(std::numeric_limits<double>::quiet_NaN()),
                           result);
  return b_.CreateSelect(b_.CreateFCmpOEQ(x, f(0.0)), f(-kInfinity), result);
}

// An odd function that is 1 from `end` on, as x (slope + P(x^2) / Q(x^2)).
Value* Math::odd_step(Value* x, double end, double slope, std::initializer_list<double> p,
                      std::initializer_list<double> q) {
  x = at_least(at_most(x, end), -end);
  Value* s = b_.CreateFMul(x, x);
  Value* result = fma(x, b_.CreateFDiv(poly(s, p), poly(s, q)), b_.CreateFMul(x, f(slope)));
  return at_least(at_most(result, 1.0), -1.0);
}

Value* Math::tanh(Value* x) { return odd_step(x, kTanhEnd, kTanhSlope, kTanhP, kTanhQ); }

// erf(scale x).
Value* Math::erf(Value* x, double scale) {
  if (avx512_) return erf_by_pieces(x, scale);
  if (scale != 1) x = b_.CreateFMul(x, f(scale));
  return odd_step(x, kErfEnd, kErfSlope, kErfP, kErfQ);
}

// A polynomial around the nearest multiple of a step, whose coefficients a register of 16 holds: no
// division, and permutations run beside the products.
Value* Math::erf_by_pieces(Value* x, double scale) {
  const double step = kErfStep / scale;
  Value* size = at_most(abs(x), 15 * step);
  Value* shifted = fma(size, f(1 / step), f(kMagic));
  Value* piece = bits(shifted);  // its low 4 bits
  Value* r = fma(b_.CreateFSub(shifted, f(kMagic)), f(-step), size);
  Value* sum = nullptr;
  for (int power = 5; power >= 0; --power) {
    std::vector<llvm::Constant*> pieces;
    for (const double c : kErfPieces[5 - power])
      pieces.push_back(llvm::ConstantFP::get(b_.getFloatTy(), c * std::pow(scale, power)));
    Value* coefficient = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                                            {llvm::ConstantVector::get(pieces), piece});
    sum = sum ? fma(sum, r, coefficient) : coefficient;
  }
  return copysign(sum, x);
}

// e^(-scale (x + rest)) as a product, by -scale x = n ln 2 - scale r. The exponent has to be from
// -127 to 128. Nothing is lost in r, so the error does not grow with the exponent.
Math::Power Math::negative_power(Value* x, double scale, Value* rest) {
  Value* shifted = fma(x, f(-scale * std::numbers::log2e), f(kBiased));
  Value* n = b_.CreateFSub(shifted, f(kBiased));
  const double step = std::numbers::ln2 / scale;
  const double unit = std::ldexp(1.0, std::ilogb(step) - 14);  // n times 15 bits is a float
  const double high = std::floor(step / unit) * unit;
  Value* r = fma(n, f(step - high), fma(n, f(high), x));
  if (rest) r = b_.CreateFAdd(r, rest);
  std::vector<double> coefficients;
  for (const double c : kExp) {
    const auto power = static_cast<int>(kExp.size() - coefficients.size()) - 1;
    coefficients.push_back(c * std::pow(-scale, power));
  }
  return {poly(r, coefficients), from_bits(b_.CreateShl(bits(shifted), 23))};
}

// y / (1 + e^(-scale x)).
Value* Math::logistic(Value* y, Value* x, double scale) {
  constexpr double kMost = 0x1p10;  // powers of the scale are far from the ends of the range
  if (scale > kMost || scale < 1 / kMost) {
    x = b_.CreateFMul(x, f(scale));
    scale = 1;
  }
  x = at_least(at_most(x, kNothing / scale), -kInfinite / scale);
  const Power power = negative_power(x, scale, nullptr);
  return b_.CreateFDiv(y, fma(power.factor, power.power_of_2, f(1.0)));
}

// x / 2 (1 + erf(x / sqrt 2)) = max(0, x) - |x| (1 - the normal distribution at |x|), where nothing
// cancels. A negative infinity times 0 is NaN.
Value* Math::gelu(Value* x) {
  constexpr double kEnd = 13.27;  // the power of 2 is 0 here
  Value* negative = b_.CreateFNeg(x);
  Value* t = at_most(abs(x), kEnd);
  Value* size = b_.CreateSelect(b_.CreateFCmpOGT(negative, t), negative, t);
  Value* s = b_.CreateFMul(t, t);
  const Power power = negative_power(s, 0.5, lost(t, t, s));
  Value* p = poly(t, kTailP);
  Value* q = fma(b_.CreateFMul(t, f(kTailSlope)), p, poly(t, kTailQ));
  Value* tail = b_.CreateFMul(size, b_.CreateFDiv(p, q));
  tail = b_.CreateFMul(tail, power.factor);
  return fma(b_.CreateFNeg(tail), power.power_of_2, at_least(x, 0));
}

// x / (1 + e^(-scale (x + cube x^3))). The exponent is a sum of two floats, as a small error of a
// large one is a large error of the result.
Value* Math::gelu_by_tanh(Value* y) {
  constexpr double kCube = ir::kGeluCube;
  const auto place_of = [&](double of) {  // of x + cube x^3, by Newton's method from above
    double at = of;
    for (int i = 0; i < 60; ++i) at -= (at + kCube * at * at * at - of) / (1 + 3 * kCube * at * at);
    return at;
  };
  const double end = place_of(kNothing / ir::kGeluScale);
  Value* x = at_least(at_most(y, end), -place_of(kInfinite / ir::kGeluScale));
  constexpr auto kRounded = static_cast<double>(static_cast<float>(kCube));
  Value* s = b_.CreateFMul(x, x);
  Value* p = fma(s, f(kRounded), f(1.0));
  Value* s_rest = fma(s, f((kCube - kRounded) / kRounded), lost(x, x, s));
  Value* p_rest = fma(s, f(kRounded), b_.CreateFSub(f(1.0), p));
  p_rest = fma(s_rest, f(kRounded), p_rest);
  Value* u = b_.CreateFMul(x, p);
  const Power power = negative_power(u, ir::kGeluScale, fma(x, p_rest, lost(x, p, u)));
  return b_.CreateFDiv(y, fma(power.factor, power.power_of_2, f(1.0)));
}

// The multiple of pi / 2 is taken off in double precision. Where that has not enough digits, the C
// library is called.
Value* Math::sin_cos(Value* x, bool cosine) {
  constexpr double kFar = 0x1p30;
  Value* is_far = b_.CreateFCmpOGT(abs(x), f(kFar));
  if (is_far->getType()->isVectorTy()) is_far = b_.CreateOrReduce(is_far);
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = b_.getContext();
  auto* far = llvm::BasicBlock::Create(context, "far", function);
  auto* near = llvm::BasicBlock::Create(context, "near", function);
  auto* after = llvm::BasicBlock::Create(context, "after", function);
  b_.CreateCondBr(is_far, far, near, llvm::MDBuilder(context).createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(far);
  Value* of_far = of_each_lane(cosine ? "cosf" : "sinf", x);
  b_.CreateBr(after);
  b_.SetInsertPoint(near);
  Value* of_near = near_sin_cos(x, cosine);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* result = b_.CreatePHI(float_, 2);
  result->addIncoming(of_far, far);
  result->addIncoming(of_near, near);
  return result;
}

Value* Math::of_each_lane(const char* name, Value* x) {
  llvm::Type* element = b_.getFloatTy();
  const llvm::FunctionCallee callee = b_.GetInsertBlock()->getModule()->getOrInsertFunction(
      name, llvm::FunctionType::get(element, {element}, false));
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(float_);
  if (!vector) return b_.CreateCall(callee, {x});
  Value* out = llvm::Constant::getNullValue(float_);
  for (uint64_t i = 0; i < vector->getNumElements(); ++i) {
    Value* one = b_.CreateCall(callee, {b_.CreateExtractElement(x, i)});
    out = b_.CreateInsertElement(out, one, i);
  }
  return out;
}

// |x| is at most 2^30.
Value* Math::near_sin_cos(Value* x, bool cosine) {
  llvm::Type* wide = shaped(b_.getDoubleTy());
  const auto d = [&](double v) { return llvm::ConstantFP::get(wide, v); };
  Value* x64 = b_.CreateFPExt(x, wide);
  Value* shifted = fma(x64, d(2 / std::numbers::pi), d(kMagic64));
  Value* n = b_.CreateFSub(shifted, d(kMagic64));
  Value* r64 = fma(n, d(-0x1.921fb54442d18p0), x64);
  r64 = fma(n, d(-0x1.1a62633145c07p-54), r64);
  Value* r = b_.CreateFPTrunc(r64, float_);
  Value* quadrant = b_.CreateTrunc(b_.CreateBitCast(shifted, shaped(b_.getInt64Ty())), int_);
  if (cosine) quadrant = b_.CreateAdd(quadrant, i(1));
  Value* s = b_.CreateFMul(r, r);
  Value* sine = copysign(fma(b_.CreateFMul(s, poly(s, kSin)), r, r), r);  // of -0, too
  Value* rest = fma(poly(s, kCos), s, f(-0.5));
  Value* cosine_value = fma(rest, s, f(1.0));
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(quadrant, i(1)), i(0));
  Value* chosen = b_.CreateSelect(odd, cosine_value, sine);
  Value* sign = b_.CreateShl(b_.CreateAnd(quadrant, i(2)), 30);
  return from_bits(b_.CreateXor(bits(chosen), sign));
}

// atan t = offset + atan z, with z of at most tan(pi / 8) after turning by pi / 4 or pi / 2.
Value* Math::atan(Value* x) {
  Value* t = abs(x);
  Value* steep = b_.CreateFCmpOGT(t, f(2.4142135623730950));
  Value* middle = b_.CreateFCmpOGT(t, f(0.4142135623730950));
  Value* top =
      b_.CreateSelect(steep, f(-1.0), b_.CreateSelect(middle, b_.CreateFSub(t, f(1.0)), t));
  Value* bottom =
      b_.CreateSelect(steep, t, b_.CreateSelect(middle, b_.CreateFAdd(t, f(1.0)), f(1.0)));
  Value* z = b_.CreateFDiv(top, bottom);
  Value* offset = b_.CreateSelect(steep, f(std::numbers::pi / 2),
                                  b_.CreateSelect(middle, f(std::numbers::pi / 4), f(0.0)));
  Value* s = b_.CreateFMul(z, z);
  Value* angle = fma(b_.CreateFMul(s, poly(s, kAtan)), z, z);
  return copysign(b_.CreateFAdd(offset, angle), x);
}

}  // namespace

Value* math_f32(llvm::IRBuilder<>& builder, Op op, Value* x, bool has_avx512) {
  Math math(builder, x, has_avx512);
  switch (op) {
    case Op::kExp: return math.exp(x);
    case Op::kLog: return math.log(x);
    case Op::kTanh: return math.tanh(x);
    case Op::kErf: return math.erf(x);
    case Op::kSigmoid: return math.logistic(llvm::ConstantFP::get(x->getType(), 1.0), x);
    case Op::kSin: return math.sin_cos(x, false);
    case Op::kCos: return math.sin_cos(x, true);
    case Op::kAtan: return math.atan(x);
    default: break;
  }
  HONE_ASSERT(false, "not a function of float32");
}

Value* exp2_f32(llvm::IRBuilder<>& builder, Value* x, bool has_avx512) {
  return Math(builder, x, has_avx512).exp2(x);
}

Value* loose_exp_f32(llvm::IRBuilder<>& builder, Value* x, bool has_avx512) {
  return Math(builder, x, has_avx512).loose_exp(x);
}

Value* logistic_f32(llvm::IRBuilder<>& builder, Value* y, Value* x, double scale, bool has_avx512) {
  return Math(builder, x, has_avx512).logistic(y, x, scale);
}

Value* gelu_f32(llvm::IRBuilder<>& builder, Value* x, bool by_tanh, bool has_avx512) {
  Math math(builder, x, has_avx512);
  return by_tanh ? math.gelu_by_tanh(x) : math.gelu(x);
}

Value* erf_f32(llvm::IRBuilder<>& builder, Value* x, double scale, bool has_avx512) {
  return Math(builder, x, has_avx512).erf(x, scale);
}

}  // namespace hone::backend::cpu
