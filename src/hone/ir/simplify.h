// ir/simplify.h - simplifies index and condition expressions to a canonical short form, and removes
// from programs guards that are always true, loops that never run, and code whose result nobody
// reads.
//
// Values of floats never change (sums are not reassociated; finite_math is the one exception).
// Index arithmetic (i64) is assumed not to overflow. The result of simplify is a fixed point of
// every rule below; `fired` lets a test require that each of them is exercised.
#pragma once

#include <array>

#include "hone/ir/ranges.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

// In the rules d, g, m, n are positive constants; Q, R, A, B are linear forms; k is an integer.
enum class Rule : uint8_t {
  kPinned,        // a variable with one possible value -> that value
  kDivWhole,      // (d*Q + R) // d -> Q + k         if R is in [k*d, k*d + d)
  kDivSplit,      // (d*Q + R) // d -> Q + R // d
  kDivReduce,     // (g*A + B) // (g*n) -> A // n    if B is in [0, g)
  kDivNested,     // (x // m + k) // d -> (x + k*m) // (m*d)
  kModWhole,      // (d*Q + R) % d -> R - k*d        if R is in [k*d, k*d + d)
  kModSplit,      // (d*Q + R) % d -> R % d
  kModReduce,     // (g*A + B) % (g*n) -> g * (A % n) + B   if B is in [0, g)
  kModNested,     // (k*(x % m) + R) % d -> (k*x + R) % d   if d divides k*m
  kDivMod,        // (x // d) * d + x % d -> x
  kMinMaxProven,  // min(a, b) -> a                  if a <= b
  kMinMaxNested,  // min(min(x, m), n) -> min(x, min(m, n)), also min(x + m, n)
  kCompareTrue,   // a < b, a <= b, a != b -> true   if the ranges or a fact prove it
  kCompareFalse,
  kCompareCanonical,  // a < b: equal terms cancel, negative terms change sides, gcd divided out
  kNotCompare,        // !(a < b) -> b <= a of integers
  kDeMorgan,          // !(a && b) -> !a || !b
  kAndImplied,        // a && b -> b                     if b implies a, or the other way round
  kOrImplied,         // a || b -> b                     if a implies b
  kSelectProven,      // select(true, a, b) -> a
  kSelectSame,        // select(c, a, a) -> a
  kSelectBool,        // select(c, true, false) -> c
  kLoadValue,         // a buffer with known values at constant indices -> the value
  kFiniteZero,        // x * 0.0 -> 0.0                  only with finite_math
};
inline constexpr int kNumRules = static_cast<int>(Rule::kFiniteZero) + 1;
[[nodiscard]] std::string_view rule_name(Rule rule);

struct SimplifyOptions {
  // Assumes that floats are neither infinite nor NaN, so that x*0 is 0. This is for matrices with
  // known zeros (Winograd's).
  bool finite_math = false;
  std::array<int64_t, kNumRules>* fired = nullptr;  // receives how often each rule was applied
};

[[nodiscard]] Expr simplify(const Expr& e, const Ranges& ranges,
                            const SimplifyOptions& options = {});
// Simplifies a statement in the scope that `ranges` describes.
[[nodiscard]] Stmt simplify(const Stmt& s, const Ranges& ranges,
                            const SimplifyOptions& options = {});
// Simplifies all phases. In addition, a loop that runs once becomes its body (unless it says which
// thread runs that), neighbouring ifs with one condition become one, and stores to allocations that
// nobody reads are removed.
[[nodiscard]] Program simplify(Program program, const SimplifyOptions& options = {});

}  // namespace hone::ir
