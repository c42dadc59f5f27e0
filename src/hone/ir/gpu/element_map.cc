#include "hone/ir/gpu/element_map.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/scalar.h"
#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

constexpr int64_t kMaxIterations = 1 << 14;  // of one access
constexpr int64_t kMaxResidues = 1 << 16;
constexpr size_t kMaxDifferences = 64;
constexpr int kUnknownThread = -1;
constexpr int kManyThreads = -2;

class Collector {
 public:
  explicit Collector(std::vector<BlockAccess>& found) : found_(found) {}
  void statement(const StmtNode& s, bool together) {
    for_each_expr(s, [&](const Expr& whole) {
      visit(whole, [&](const Expr& e) {
        if (e->op == Op::kLoad) add({.buffer = e->buffer, .index = e->args}, s, together);
      });
    });
    if (s.kind == StmtKind::kStore)
      add({.buffer = s.buffer, .index = s.indices, .stores = true}, s, together);
    for (size_t b = 0; b < s.boxes.size(); ++b) box(s, b);
    for (const BufferPtr& buffer : s.buffers)
      add({buffer, std::vector<Expr>(buffer->shape.size()), true}, s, true);
    const bool is_loop = s.kind == StmtKind::kFor;
    const bool is_threads = is_loop && is_thread_loop(s.for_kind);
    if (is_loop) loops_.push_back(&s);
    for (const Stmt& child : s.body) {
      statement(*child, is_threads ? s.for_kind == ForKind::kWarp : together);
    }
    if (is_loop) loops_.pop_back();
  }

 private:
  void box(const StmtNode& s, size_t number) {
    const Box& b = s.boxes[number];
    BlockAccess made{.buffer = b.buffer, .index = b.indices, .stores = number == 0};
    for (size_t d = 0; d < b.extents.size(); ++d) {
      if (b.extents[d] == 1) continue;
      made.elements.push_back(make_var("element"));
      made.extents.push_back(b.extents[d]);
      made.index[d] = made.index[d] + variable(made.elements.back());
    }
    add(std::move(made), s, true);
  }
  void add(BlockAccess made, const StmtNode& s, bool together) {
    const Scope scope = made.buffer->scope;
    if (scope != Scope::kShared && scope != Scope::kGlobal) return;
    made.async = s.async;
    made.together = together;
    made.loops = loops_;
    found_.push_back(std::move(made));
  }

  std::vector<BlockAccess>& found_;
  std::vector<const StmtNode*> loops_;
};

// The iterations of an access, one after the other.
class Iterations {
 public:
  explicit Iterations(const BlockAccess& access) {
    Ranges ranges;
    std::vector<const StmtNode*> threads;
    for (const StmtNode* loop : access.loops) {
      ranges.bind_loop(loop->var, loop->min, loop->extent);
      if (is_thread_loop(loop->for_kind)) threads.push_back(loop);
      variables_.push_back({loop->var.get(), ranges.of(loop->var), 0});
    }
    for (const ThreadDim& dim : thread_nest(threads).dims) {
      for (Variable& v : variables_) {
        if (v.var == dim.var.get()) v.stride = dim.stride;
      }
    }
    for (size_t i = 0; i < access.elements.size(); ++i)
      variables_.push_back({access.elements[i].get(), {0, access.extents[i] - 1}, 0});
  }

  // Whether an expression has variables of these iterations alone; it may then be evaluated.
  enum class Part : uint8_t { kOwn, kShared, kMixed };
  [[nodiscard]] Part part(const Expr& e) const {
    bool own = false, shared = false, mixed = false;
    visit(e, [&](const Expr& node) {
      mixed |= node->op == Op::kLoad;
      if (node->op != Op::kVar) return;
      const Variable* v = find(node->var.get());
      (v != nullptr ? own : shared) = true;
      mixed |= v != nullptr && (v->values.lo == kNegInf || v->values.hi == kPosInf);
    });
    return mixed || (own && shared) ? Part::kMixed : own ? Part::kOwn : Part::kShared;
  }

  // Calls f(thread) for each value of the variables that `forms` use and of those over threads;
  // returns false if there are too many.
  template <typename F>
  bool run(const std::vector<Linear>& forms, const F& f) {
    std::vector<Variable*> used;
    int64_t total = 1;
    for (Variable& v : variables_) {
      const bool needed =
          v.stride != 0 || std::any_of(forms.begin(), forms.end(), [&](auto& form) {
            return std::any_of(form.terms.begin(), form.terms.end(),
                               [&](const auto& term) { return uses(term.first, v.var); });
          });
      if (!needed) continue;
      const int64_t n = v.values.hi - v.values.lo + 1;
      if (n <= 0) return true;
      if (__builtin_mul_overflow(total, n, &total) || total > kMaxIterations) return false;
      v.now = v.values.lo;
      used.push_back(&v);
    }
    for (int64_t i = 0; i < total; ++i) {
      int64_t thread = 0;
      for (const Variable* v : used) thread += v->now * v->stride;
      f(static_cast<int>(thread));
      for (Variable* v : used) {
        if (++v->now <= v->values.hi) break;
        v->now = v->values.lo;
      }
    }
    return true;
  }

  [[nodiscard]] int64_t value(const Linear& form) const {
    int64_t sum = form.constant;
    for (const auto& [atom, factor] : form.terms) sum += value(*atom) * factor;
    return sum;
  }

 private:
  struct Variable {
    const Var* var;
    Interval values;
    int64_t stride;  // in the number of the thread
    int64_t now = 0;
  };
  const Variable* find(const Var* var) const {
    for (const Variable& v : variables_) {
      if (v.var == var) return &v;
    }
    return nullptr;
  }
  [[nodiscard]] int64_t value(const ExprNode& e) const {
    if (e.op == Op::kInt) return e.int_value;
    if (e.op == Op::kVar) return find(e.var.get())->now;
    if (e.op == Op::kSelect) return value(*e.args[value(*e.args[0]) != 0 ? 1 : 2]);
    const int64_t a = value(*e.args[0]);
    if (e.args.size() == 1) return apply_unary(e.op, a);
    const int64_t b = value(*e.args[1]);
    if (is_compare(e.op)) return compare_integers(e.op, DType::kI64, a, b) ? 1 : 0;
    if (is_division(e.op) && b == 0) return 0;
    return apply_binary(e.op, a, b);
  }

  std::vector<Variable> variables_;
};

// Returns what a form may be that is known up to multiples of a number, as (k + 2) % 4 - k is: the
// difference of two indices of a dimension with so many elements.
std::optional<std::set<int64_t>> congruent_values(const Linear& form, int64_t elements) {
  int64_t modulus = 0;
  std::optional<Linear> rest = Linear{form.constant, {}};
  for (const auto& [atom, factor] : form.terms) {
    const bool is_remainder = atom->op == Op::kFloorMod && is_const_int(atom->args[1]);
    if (is_remainder) {
      if (modulus != 0 && modulus != atom->args[1]->int_value) return std::nullopt;
      modulus = atom->args[1]->int_value;
    }
    if (rest) rest = add(*rest, linearize(is_remainder ? atom->args[0] : atom), factor);
  }
  if (modulus <= 0 || elements > modulus || !rest) return std::nullopt;
  for (const auto& [atom, factor] : rest->terms) {
    if (factor % modulus != 0) return std::nullopt;
  }
  const int64_t residue = floor_mod(rest->constant, modulus);
  return std::set<int64_t>{residue, residue - modulus};
}

// What a form of shared variables may be: one number, or some if it has remainders only; nothing if
// that is not known.
std::optional<std::set<int64_t>> possible_values(const Linear& form, int64_t elements) {
  if (form.is_constant()) return std::set<int64_t>{form.constant};
  std::vector<Linear> numbers;  // that remainders are taken of, without their constants
  int64_t period = 1;
  for (const auto& [atom, factor] : form.terms) {
    if (atom->op != Op::kFloorMod || !is_const_int(atom->args[1]))
      return congruent_values(form, elements);
    const int64_t m = atom->args[1]->int_value;
    if (m <= 0 || m > kMaxResidues) return std::nullopt;
    period = std::lcm(period, m);
    if (period > kMaxResidues) return std::nullopt;
    Linear number = linearize(atom->args[0]);
    number.constant = 0;
    const auto same = [&](const Linear& other) { return equal(number, other); };
    if (std::none_of(numbers.begin(), numbers.end(), same)) numbers.push_back(std::move(number));
  }
  int64_t total = 1;
  for (size_t i = 0; i < numbers.size(); ++i) total = std::min(total * period, kMaxResidues + 1);
  if (total > kMaxResidues) return std::nullopt;
  std::set<int64_t> values;
  for (int64_t i = 0; i < total && values.size() <= kMaxDifferences; ++i) {
    int64_t sum = form.constant;
    for (const auto& [atom, factor] : form.terms) {
      Linear number = linearize(atom->args[0]);
      const int64_t offset = std::exchange(number.constant, 0);
      int64_t residues = i;
      for (const Linear& other : numbers) {
        if (equal(number, other)) break;
        residues /= period;
      }
      sum += factor * floor_mod(residues % period + offset, atom->args[1]->int_value);
    }
    values.insert(sum);
  }
  if (values.size() > kMaxDifferences) return std::nullopt;
  return values;
}

// The dimensions that can be compared: what each access adds for its own, and the differences
// between what both share.
struct Dimensions {
  std::vector<Linear> earlier, later;
  std::vector<std::vector<int64_t>> differences;
  // Returns whether there is a dimension in which both accesses have one index, and never the
  // same, as in different slots of a ring.
  [[nodiscard]] bool are_apart() const {
    for (size_t i = 0; i < earlier.size(); ++i) {
      if (!earlier[i].is_constant() || !later[i].is_constant()) continue;
      const int64_t gap = earlier[i].constant - later[i].constant;
      if (std::count(differences[i].begin(), differences[i].end(), gap) == 0) return true;
    }
    return false;
  }
};
Dimensions dimensions(const BlockAccess& earlier, const SharedValues& values,
                      const BlockAccess& later, const Iterations& of_earlier,
                      const Iterations& of_later) {
  Dimensions made;
  for (size_t d = 0; d < earlier.index.size(); ++d) {
    if (!earlier.index[d] || !later.index[d]) continue;
    const Linear forms[] = {linearize(simplify(substitute(earlier.index[d], values), Ranges())),
                            linearize(simplify(later.index[d], Ranges()))};
    Linear own[2], shared[2];
    bool mixed = false;
    for (int side = 0; side < 2; ++side) {
      own[side].constant = forms[side].constant;
      for (const auto& term : forms[side].terms) {
        const auto part = (side == 0 ? of_earlier : of_later).part(term.first);
        mixed |= part == Iterations::Part::kMixed;
        (part == Iterations::Part::kOwn ? own : shared)[side].terms.push_back(term);
      }
    }
    const std::optional<Linear> difference = add(shared[1], shared[0], -1);
    if (mixed || !difference) continue;
    const std::optional<std::set<int64_t>> possible =
        possible_values(*difference, earlier.buffer->shape[d]);
    if (!possible) continue;
    made.earlier.push_back(own[0]);
    made.later.push_back(own[1]);
    made.differences.emplace_back(possible->begin(), possible->end());
  }
  return made;
}

}  // namespace

std::vector<BlockAccess> block_accesses(const StmtNode& s, bool warp) {
  std::vector<BlockAccess> found;
  // A loop over threads or lanes says who runs what; everything else is done together.
  Collector(found).statement(s, warp || s.kind != StmtKind::kFor);
  return found;
}

Meeting meeting(const BlockAccess& earlier, const SharedValues& values, const BlockAccess& later) {
  if (earlier.buffer != later.buffer || !(earlier.stores || later.stores)) return Meeting::kNever;
  Iterations of_earlier(earlier), of_later(later);
  const Dimensions d = dimensions(earlier, values, later, of_earlier, of_later);
  if (d.are_apart()) return Meeting::kNever;
  std::map<std::vector<int64_t>, int> threads;  // of elements
  std::vector<int64_t> element(d.earlier.size());
  const bool few = of_earlier.run(d.earlier, [&](int thread) {
    for (size_t i = 0; i < element.size(); ++i) element[i] = of_earlier.value(d.earlier[i]);
    const int own = earlier.together ? kUnknownThread : thread;
    const auto [it, added] = threads.try_emplace(element, own);
    if (!added && it->second != own) it->second = kManyThreads;
  });
  if (!few) return Meeting::kOtherThreads;
  size_t combinations = 1;
  for (const auto& list : d.differences)
    combinations = std::min(combinations * list.size(), kMaxDifferences + 1);
  if (combinations > kMaxDifferences) return Meeting::kOtherThreads;
  Meeting found = Meeting::kNever;
  const bool few_later = of_later.run(d.later, [&](int thread) {
    for (size_t c = 0; c < combinations && found != Meeting::kOtherThreads; ++c) {
      size_t rest = c;
      for (size_t i = 0; i < element.size(); ++i) {
        const auto& list = d.differences[i];
        element[i] = of_later.value(d.later[i]) + list[rest % list.size()];
        rest /= list.size();
      }
      const auto it = threads.find(element);
      if (it == threads.end()) continue;
      found = it->second == thread && !later.together ? std::max(found, Meeting::kSameThread)
                                                      : Meeting::kOtherThreads;
    }
  });
  return few_later ? found : Meeting::kOtherThreads;
}

}  // namespace hone::ir
