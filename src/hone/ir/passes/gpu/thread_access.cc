#include "hone/ir/passes/gpu/thread_access.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "hone/ir/scalar.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

constexpr size_t kMaxDims = 8;

using CanonicalVars = std::array<VarPtr, kMaxDims>;
CanonicalVars make_vars(const std::string& name) {
  CanonicalVars made;
  for (size_t i = 0; i < kMaxDims; ++i) made[i] = make_var(name + std::to_string(i));
  return made;
}
// The variables that stand for the loop over threads at some depth, and for the elements of a box
// in some dimension, in all accesses.
const VarPtr& canonical_thread_var(size_t depth) {
  static const CanonicalVars vars = make_vars("thread");
  return vars[depth];
}
const VarPtr& canonical_element_var(size_t dimension) {
  static const CanonicalVars vars = make_vars("element");
  return vars[dimension];
}

class Collector {
 public:
  Collector(const SharedBuffers& buffers, std::vector<ThreadAccess>& accesses)
      : buffers_(buffers), accesses_(accesses) {}

  void statement(const StmtNode& s, bool together) {
    for_each_expr(s, [&](const Expr& whole) {
      visit(whole, [&](const Expr& e) {
        if (e->op == Op::kLoad) add(e->buffer, e->args, false, s.async, together);
      });
    });
    if (s.kind == StmtKind::kStore) add(s.buffer, s.indices, true, s.async, together);
    for (size_t b = 0; b < s.boxes.size(); ++b) box(s, s.boxes[b], b == 0);
    for (const BufferPtr& buffer : s.buffers) {
      const std::vector<Expr> anywhere(buffer->shape.size());
      add(buffer, anywhere, true, false, true);
    }
    if (s.kind != StmtKind::kFor) return children(s, together);
    const auto mark = ranges_.mark();
    ranges_.bind_loop(s.var, s.min, s.extent);
    if (is_thread_loop(s.for_kind)) {
      loops_.push_back(&s);
      children(s, s.for_kind == ForKind::kWarp);
      loops_.pop_back();
    } else {
      inner_.emplace_back(s.var, ranges_.of(s.var));
      children(s, together);
      inner_.pop_back();
    }
    ranges_.reset(mark);
  }

 private:
  void children(const StmtNode& s, bool together) {
    for (const Stmt& child : s.body) statement(*child, together);
  }
  void box(const StmtNode& s, const Box& b, bool stores) {
    const size_t inner = inner_.size();
    std::vector<Expr> index;
    for (size_t d = 0; d < b.indices.size(); ++d) {
      index.push_back(d < kMaxDims ? b.indices[d] : nullptr);
      if (b.extents[d] == 1 || d >= kMaxDims) continue;
      inner_.emplace_back(canonical_element_var(d), Interval{0, b.extents[d] - 1});
      index.back() = index.back() + variable(inner_.back().first);
    }
    add(b.buffer, index, stores, s.async, true);
    inner_.resize(inner);
  }
  void add(const BufferPtr& buffer, const std::vector<Expr>& index, bool stores, bool async,
           bool together) {
    if (!buffers_.contains(buffer)) return;
    ThreadAccess made{.buffer = buffer.get(), .stores = stores, .async = async};
    made.nest = thread_nest(loops_);
    made.together = together || made.nest.dims.size() > kMaxDims;
    VarMap names;
    for (size_t i = 0; i < made.nest.dims.size() && i < kMaxDims; ++i) {
      names.emplace_back(made.nest.dims[i].var, variable(canonical_thread_var(i)));
      made.nest.dims[i].var = canonical_thread_var(i);
    }
    for (const Expr& e : index) made.index.push_back(e ? canonical_index(substitute(e, names)) : e);
    made.inner = inner_;
    const auto same = [&](const ThreadAccess& other) { return equal(made, other); };
    if (std::none_of(accesses_.begin(), accesses_.end(), same))
      accesses_.push_back(std::move(made));
  }

  const SharedBuffers& buffers_;
  std::vector<ThreadAccess>& accesses_;
  std::vector<const StmtNode*> loops_;
  std::vector<std::pair<VarPtr, Interval>> inner_;
  Ranges ranges_;
};

// ---- comparing two accesses ----

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
      if (i < kMaxDims) ranges_.bind(canonical_thread_var(i), {0, extent - 1});
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
    if (a_.nest.dims.size() > kMaxDims || b_.nest.dims.size() > kMaxDims) return true;
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

bool equal(const ThreadAccess& a, const ThreadAccess& b) {
  const auto same_index = [](const Expr& x, const Expr& y) {
    return x && y ? equal(x, y) : x == y;
  };
  return a.buffer == b.buffer && a.stores == b.stores && a.async == b.async &&
         a.together == b.together && a.nest.same_threads(b.nest) && a.inner == b.inner &&
         std::equal(a.index.begin(), a.index.end(), b.index.begin(), b.index.end(), same_index);
}

SharedBuffers::SharedBuffers(const StmtNode& phase) {
  for_each_stmt(phase, [&](const StmtNode& s) {
    if (s.kind == StmtKind::kStore) stored_.push_back(s.buffer.get());
    if (!s.boxes.empty()) stored_.push_back(s.boxes[0].buffer.get());
    for (const BufferPtr& b : s.buffers) stored_.push_back(b.get());
  });
}

bool SharedBuffers::contains(const BufferPtr& buffer) const {
  const bool is_shared = buffer->scope == Scope::kShared || buffer->scope == Scope::kGlobal;
  return is_shared && std::find(stored_.begin(), stored_.end(), buffer.get()) != stored_.end();
}

void add_accesses(const StmtNode& s, const SharedBuffers& buffers, bool together,
                  std::vector<ThreadAccess>& accesses) {
  Collector(buffers, accesses).statement(s, together);
}

Expr canonical_index(const Expr& e) {
  const Expr made = rewrite(e, [](const Expr& node) -> Expr {
    const bool divides = node->op == Op::kFloorDiv || node->op == Op::kFloorMod;
    if (!divides || node->type != DType::kI64 || !is_const_int(node->args[1])) return nullptr;
    Linear number = linearize(node->args[0]);
    const int64_t d = node->args[1]->int_value;
    if (node->op == Op::kFloorMod && d > 0) number.constant = floor_mod(number.constant, d);
    return make(node->op, {to_expr(number), node->args[1]});
  });
  return to_expr(linearize(made));
}

bool may_conflict(const ThreadAccess& a, const ThreadAccess& b) {
  if (a.buffer != b.buffer || !(a.stores || b.stores)) return false;
  Comparison both(a, b);
  if (both.are_apart()) return false;
  if (iterations(a) > kMaxProvenIterations || iterations(b) > kMaxProvenIterations) return true;
  return both.may_conflict();
}

}  // namespace hone::ir
