#include "hone/ir/passes/gpu/thread_conflict.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// An unknown of an equation: a difference of values of an atom in the two accesses.
struct Term {
  Expr atom;  // of threads, the same in both accesses; nothing for what only one access has
  int64_t factor;
  Interval values;
};
// The sum of factor * value of the terms, plus a constant, is 0 where both touch one element.
struct Equation {
  int64_t constant = 0;
  std::vector<Term> terms;
};

class Comparison {
 public:
  Comparison(const ThreadAccess& a, const ThreadAccess& b) : a_(a), b_(b) {
    // Equal variables then mean equal threads.
    const auto same_stride = [](const ThreadDim& x, const ThreadDim& y) {
      return x.stride == y.stride;
    };
    same_threads_ = !a.together && !b.together &&
                    std::equal(a.nest.dims.begin(), a.nest.dims.end(), b.nest.dims.begin(),
                               b.nest.dims.end(), same_stride);
    for (size_t i = 0; i < std::max(a.nest.dims.size(), b.nest.dims.size()); ++i) {
      int64_t extent = 1;
      for (const auto* access : {&a, &b}) {
        if (i < access->nest.dims.size()) extent = std::max(extent, access->nest.dims[i].extent);
      }
      if (i < kMaxAccessDims) ranges_.bind(canonical_thread_var(i), {0, extent - 1});
    }
  }

  // Whether there is a dimension that no loop of the accesses moves in, and in which they differ,
  // as in different slots of a ring.
  bool are_apart() {
    for (size_t d = 0; d < a_.index.size(); ++d) {
      if (!a_.index[d] || !b_.index[d] || !is_of_block(a_.index[d], a_) ||
          !is_of_block(b_.index[d], b_))
        continue;
      const std::optional<Equation> made = equation(a_.index[d], b_.index[d]);
      if (impossible_ || (made && made->constant != 0)) return true;
    }
    return false;
  }

  bool may_conflict() {
    if (a_.nest.dims.size() > kMaxAccessDims || b_.nest.dims.size() > kMaxAccessDims) return true;
    std::vector<Equation> equations;
    for (size_t d = 0; d < a_.index.size(); ++d) {
      if (!a_.index[d] || !b_.index[d]) continue;
      std::optional<Equation> made = equation(a_.index[d], b_.index[d]);
      if (impossible_) return false;
      if (made) equations.push_back(*std::move(made));
    }
    size_t known = 0;
    do {
      known = zero_.size();
      for (const Equation& e : equations) {
        solve(e);
        if (impossible_) return false;
      }
      for (Equation& e : from_digits()) equations.push_back(std::move(e));
    } while (zero_.size() > known);
    return !same_threads_ ||
           !std::all_of(a_.nest.dims.begin(), a_.nest.dims.end(), [&](const ThreadDim& dim) {
             return ranges_.of(dim.var).is_point() || is_zero(variable(dim.var));
           });
  }

 private:
  enum class Kind : uint8_t { kBlock, kThread, kInner, kMixed };
  // Whose variables an atom has.
  Kind kind_of(const Expr& atom, const ThreadAccess& access) const {
    bool block = false, thread = false, inner = false, loads = false;
    visit(atom, [&](const Expr& e) {
      loads |= e->op == Op::kLoad;
      if (e->op != Op::kVar) return;
      const auto is_dim = [&](const ThreadDim& dim) { return dim.var == e->var; };
      const auto is_inner = [&](const auto& pair) { return pair.first == e->var; };
      const auto& dims = access.nest.dims;
      if (std::any_of(dims.begin(), dims.end(), is_dim)) {
        thread = true;
      } else if (std::any_of(access.inner.begin(), access.inner.end(), is_inner)) {
        inner = true;
      } else {
        block = true;
      }
    });
    if (loads || (block && (thread || inner))) return Kind::kMixed;
    return inner ? Kind::kInner : thread ? Kind::kThread : Kind::kBlock;
  }

  bool is_of_block(const Expr& index, const ThreadAccess& access) const {
    const Linear form = linearize(index);
    return std::all_of(form.terms.begin(), form.terms.end(), [&](const auto& term) {
      return kind_of(term.first, access) == Kind::kBlock;
    });
  }

  // The equation of one dimension; nothing if it says nothing.
  std::optional<Equation> equation(const Expr& of_a, const Expr& of_b) {
    Equation made;
    Linear block;
    const Linear a = linearize(of_a);
    Linear b = linearize(of_b);
    for (const auto& [atom, factor] : a.terms) {
      switch (kind_of(atom, a_)) {
        case Kind::kMixed: return std::nullopt;
        case Kind::kBlock: block.terms.emplace_back(atom, factor); break;
        case Kind::kThread: {
          if (same_threads_ && b.coefficient(atom) == factor) {
            const Interval i = ranges_.of(atom);
            if (!finite(i)) return std::nullopt;
            made.terms.push_back({atom, factor, {i.lo - i.hi, i.hi - i.lo}});
            b = without(b, atom);
            break;
          }
          [[fallthrough]];
        }
        case Kind::kInner: made.terms.push_back({nullptr, factor, values(atom, a_)}); break;
      }
    }
    Linear block_b;
    for (const auto& [atom, factor] : b.terms) {
      const Kind kind = kind_of(atom, b_);
      if (kind == Kind::kMixed) return std::nullopt;
      if (kind == Kind::kBlock) {
        block_b.terms.emplace_back(atom, factor);
      } else {
        made.terms.push_back({nullptr, factor, values(atom, b_) * -1});
      }
    }
    for (const Term& term : made.terms) {
      if (!finite(term.values)) return std::nullopt;
    }
    made.constant = a.constant - b.constant;
    const std::optional<Linear> rest = add(block, block_b, -1);
    if (!rest) return std::nullopt;
    if (rest->is_constant()) return made;
    impossible_ |= never_zero(made, *rest);
    return std::nullopt;
  }
  Interval values(const Expr& atom, const ThreadAccess& access) const {
    Ranges ranges;
    for (const ThreadDim& dim : access.nest.dims) ranges.bind(dim.var, {0, dim.extent - 1});
    for (const auto& [var, interval] : access.inner) ranges.bind(var, interval);
    return ranges.of(atom);
  }
  static bool finite(Interval i) {
    constexpr int64_t kFar = int64_t{1} << 40;
    return i.lo > -kFar && i.hi < kFar;
  }

  // Whether an equation with terms of variables that the block shares has no solution.
  static bool never_zero(const Equation& e, const Linear& block) {
    // q * (x % m) - q * (y % m), where x and y differ by no multiple of m: |q| at least.
    if (block.terms.size() == 2) {
      const auto& [x, q] = block.terms[0];
      const auto& [y, p] = block.terms[1];
      const bool remainders = q == -p && x->op == Op::kFloorMod && y->op == Op::kFloorMod &&
                              is_const_int(x->args[1]) && equal(x->args[1], y->args[1]);
      const std::optional<Linear> gap =
          remainders ? add(linearize(x->args[0]), linearize(y->args[0]), -1) : std::nullopt;
      if (gap && gap->is_constant() && gap->constant % x->args[1]->int_value != 0)
        return largest(e, 0) < std::abs(q);
    }
    // All of it is a multiple of g but for the constant.
    int64_t g = 0;
    for (const auto& [atom, factor] : block.terms) {
      if (atom->op != Op::kFloorMod || !is_const_int(atom->args[1])) return false;
      g = std::gcd(g, factor);
    }
    for (const Term& term : e.terms) g = std::gcd(g, term.factor);
    return g != 0 && e.constant % g != 0;
  }
  // The largest absolute value of the constant and the terms with a factor below `factor`; all
  // terms if that is 0.
  static int64_t largest(const Equation& e, int64_t factor) {
    Interval sum = {e.constant, e.constant};
    for (const Term& term : e.terms) {
      if (factor == 0 || std::abs(term.factor) < factor) sum = sum + term.values * term.factor;
    }
    return std::max(std::abs(sum.lo), std::abs(sum.hi));
  }

  bool is_zero(const Expr& atom) const {
    return std::any_of(zero_.begin(), zero_.end(),
                       [&](const Expr& e) { return ir::equal(e, atom); });
  }

  // Finds atoms of threads that are equal in both accesses: where the terms with one factor
  // outweigh all with smaller ones, their sum is 0, as the digits of equal numbers are equal.
  void solve(Equation e) {
    std::erase_if(e.terms, [&](const Term& term) { return term.atom && is_zero(term.atom); });
    Interval all = {e.constant, e.constant};
    int64_t g = 0;
    for (const Term& term : e.terms) {
      all = all + term.values * term.factor;
      g = std::gcd(g, term.factor);
    }
    if (all.lo > 0 || all.hi < 0 || (g != 0 && e.constant % g != 0)) {
      impossible_ = true;
      return;
    }
    while (!e.terms.empty()) {
      int64_t factor = 0;
      for (const Term& term : e.terms) factor = std::max(factor, std::abs(term.factor));
      if (largest(e, factor) >= factor) return;
      const auto begin = std::partition(e.terms.begin(), e.terms.end(), [&](const Term& term) {
        return std::abs(term.factor) != factor;
      });
      if (e.terms.end() - begin == 1 && begin->atom) zero_.push_back(begin->atom);
      e.terms.erase(begin, e.terms.end());
    }
  }

  // The digits x % 4, x // 4 % 8, x // 32 of a number, all equal in both accesses, make it equal.
  struct Digit {
    Expr number;
    int64_t low, high;  // the digit is number % high // low; a high of 0 is infinite
  };
  static Digit digit_of(const Expr& atom) {
    Digit digit{atom, 1, 0};
    if (digit.number->op == Op::kFloorMod && is_const_int(digit.number->args[1])) {
      digit.high = digit.number->args[1]->int_value;
      digit.number = digit.number->args[0];
    }
    if (digit.number->op == Op::kFloorDiv && is_const_int(digit.number->args[1])) {
      digit.low = digit.number->args[1]->int_value;
      digit.high *= digit.low;
      digit.number = digit.number->args[0];
    }
    return digit;
  }
  std::vector<Equation> from_digits() {
    std::vector<Digit> digits;
    for (const Expr& atom : zero_) {
      const Digit digit = digit_of(atom);
      if (digit.low != 1 || digit.high != 0) digits.push_back(digit);
    }
    std::vector<Equation> made;
    for (const Digit& first : digits) {
      const Interval values = ranges_.of(first.number);
      if (first.low != 1 || values.lo < 0 || !finite(values) || is_zero(first.number)) continue;
      int64_t known = first.high;
      for (bool grows = true; grows && known != 0 && known <= values.hi;) {
        grows = false;
        for (const Digit& next : digits) {
          if (next.low != known || !ir::equal(next.number, first.number)) continue;
          known = next.high;
          grows = true;
          break;
        }
      }
      if (known != 0 && known <= values.hi) continue;
      zero_.push_back(first.number);
      Equation sum;
      for (const auto& [atom, factor] : linearize(first.number).terms) {
        const Interval i = ranges_.of(atom);
        sum.terms.push_back({atom, factor, {i.lo - i.hi, i.hi - i.lo}});
      }
      made.push_back(std::move(sum));
    }
    return made;
  }

  const ThreadAccess &a_, &b_;
  bool same_threads_ = false;
  bool impossible_ = false;
  Ranges ranges_;
  std::vector<Expr> zero_;  // atoms of threads that have the same value in both accesses
};

int64_t iterations(const ThreadAccess& access) {
  int64_t n = 1;
  const auto multiply = [&n](int64_t extent) {
    if (extent < 0 || __builtin_mul_overflow(n, extent, &n)) n = kPosInf;
  };
  for (const ThreadDim& dim : access.nest.dims) multiply(dim.extent);
  for (const auto& [var, values] : access.inner) {
    if (values.lo == kNegInf || values.hi == kPosInf) return kPosInf;
    multiply(values.hi - values.lo + 1);
  }
  return n;
}

}  // namespace

bool may_conflict(const ThreadAccess& a, const ThreadAccess& b) {
  if (a.buffer != b.buffer || !(a.stores || b.stores)) return false;
  Comparison both(a, b);
  if (both.are_apart()) return false;
  if (iterations(a) > kMaxProvenIterations || iterations(b) > kMaxProvenIterations) return true;
  return both.may_conflict();
}

}  // namespace hone::ir
