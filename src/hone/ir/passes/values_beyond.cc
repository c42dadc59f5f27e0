#include "hone/ir/passes/values_beyond.h"

#include <algorithm>
#include <cmath>

#include "hone/ir/scan_loop.h"
#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// Whether what lies beyond one place lies beyond another one.
bool implies(const Need& beyond, const Need& other, const Ranges& ranges) {
  if (beyond.form != other.form) return false;
  const auto scaled = scale(other.at, beyond.unit);
  const auto gap = scaled ? add(*scaled, beyond.at, -other.unit) : std::nullopt;
  return gap && ranges.proves_nonnegative(*gap);
}

Need place_of(const SizeLimit& limit, const Expr& index, const Ranges& ranges) {
  const Expr at = (limit.period > 0 ? floormod(index, limit.period) : index) * limit.scale;
  return {limit.form, linearize(simplify(at - limit.offset, ranges)), limit.unit};
}

// The row-major number of an element.
Expr flat_place(const Expr& load) {
  Expr flat = constant(0);
  for (size_t d = 0; d < load->args.size(); ++d)
    flat = flat * load->buffer->shape[d] + load->args[d];
  return flat;
}

std::optional<double> result_of(const ExprNode& e, std::optional<double> a,
                                std::optional<double> b) {
  constexpr double kLow = -INFINITY;
  switch (e.op) {
    case Op::kAdd:
      if (a == kLow || b == kLow) return kLow;
      return a && b ? std::optional(*a + *b) : std::nullopt;
    case Op::kSub:
      if (a == kLow && b != kLow) return kLow;
      return a && b ? std::optional(*a - *b) : std::nullopt;
    case Op::kMul:
      if (a && b) return *a * *b;
      if ((a == 0.0 && !b) || (b == 0.0 && !a)) return 0;
      return std::nullopt;
    case Op::kDiv: return a == 0.0 && !b ? std::optional(0.0) : std::nullopt;
    case Op::kPow: return a && b ? std::optional(std::pow(*a, *b)) : std::nullopt;
    case Op::kAnd: return a == 0.0 || b == 0.0 ? std::optional(0.0) : std::nullopt;
    case Op::kExp: return a ? std::optional(std::exp(*a)) : std::nullopt;
    case Op::kNot: return a ? std::optional(*a == 0 ? 1.0 : 0.0) : std::nullopt;
    default: return std::nullopt;
  }
}

// What changes nothing if it is joined to a value; nothing for other operators.
std::optional<double> neutral_of(Op op) {
  switch (op) {
    case Op::kAdd: return 0;
    case Op::kMax: return -INFINITY;
    case Op::kMin: return INFINITY;
    default: return std::nullopt;
  }
}

Ranges scope_of(const std::vector<const StmtNode*>& around) {
  Ranges ranges;
  for (const StmtNode* s : around) {
    if (s->kind == StmtKind::kFor) ranges.bind_loop(s->var, s->min, s->extent);
  }
  return ranges;
}

}  // namespace

ValuesBeyond::ValuesBeyond(const Program& program, SizeOperands operands)
    : known_(std::move(operands)) {
  for (const Phase& phase : program.phases) {
    std::vector<const StmtNode*> around;
    if (phase.body && !phase.prepare) collect(*phase.body, around);
  }
  std::vector<const Buffer*> done;
  for (const Phase& phase : program.phases) {
    if (!phase.body || phase.prepare) continue;
    for_each_stmt(*phase.body, [&](const StmtNode& s) {
      if (s.kind != StmtKind::kStore ||
          std::find(done.begin(), done.end(), s.buffer.get()) != done.end())
        return;
      done.push_back(s.buffer.get());
      follow(s.buffer.get(), sites_[s.buffer.get()]);
    });
  }
  sites_.clear();  // they point into the program
}

void ValuesBeyond::collect(const StmtNode& s, std::vector<const StmtNode*>& around) {
  if (s.kind == StmtKind::kStore) sites_[s.buffer.get()].push_back({&s, around});
  around.push_back(&s);
  for (const Stmt& child : s.body) collect(*child, around);
  around.pop_back();
}

void ValuesBeyond::follow(const Buffer* buffer, const std::vector<Site>& sites) {
  const bool plain = std::all_of(sites.begin(), sites.end(), [](const Site& site) {
    return std::all_of(site.around.begin(), site.around.end(), [](const StmtNode* s) {
      return s->kind == StmtKind::kFor || s->kind == StmtKind::kBlock;
    });
  });
  if (!plain) return;
  if (sites.size() == 1) follow_points(buffer, sites[0]);
  if (sites.size() == 2) follow_reduction(buffer, sites[0], sites[1]);
}

std::optional<int> ValuesBeyond::form_of(const Expr& e, const Ranges& ranges) const {
  const Expr& value = e->op == Op::kCast ? e->args[0] : e;
  if (value->op != Op::kLoad) return std::nullopt;
  const auto it = known_.sizes.find(value->buffer.get());
  if (it == known_.sizes.end()) return std::nullopt;
  const Expr flat = simplify(flat_place(value), ranges);
  if (!is_const_int(flat) || flat->int_value < 0 || flat->int_value >= std::ssize(it->second))
    return std::nullopt;
  const int form = it->second[static_cast<size_t>(flat->int_value)];
  return form >= 0 ? std::optional(form) : std::nullopt;
}

// Where a comparison of a place with a size becomes false.
std::optional<Need> ValuesBeyond::mark_of(const Expr& comparison, const Ranges& ranges) const {
  if (comparison->op != Op::kLt) return std::nullopt;
  const std::optional<int> form = form_of(comparison->args[1], ranges);
  const Expr& a = comparison->args[0];
  const Expr& place = a->op == Op::kCast ? a->args[0] : a;
  if (!form) return std::nullopt;
  if (place->type == DType::kI64 && !has_load(place))
    return Need{*form, linearize(simplify(place, ranges)), 1};
  if (place->op != Op::kLoad) return std::nullopt;
  const auto it = known_.places.find(place->buffer.get());
  if (it == known_.places.end()) return std::nullopt;
  const Expr at = floormod(floordiv(flat_place(place), it->second.inner), it->second.most);
  return Need{*form, linearize(simplify(at, ranges)), 1};
}

// The places from which on some part of a value is known.
std::vector<Need> ValuesBeyond::marks_of(const Expr& value, const Ranges& ranges) const {
  std::vector<Need> marks;
  visit(value, [&](const Expr& node) {
    if (const auto mark = mark_of(node, ranges)) marks.push_back(*mark);
    if (node->op != Op::kLoad) return;
    const auto it = known_.beyond.find(node->buffer.get());
    if (it == known_.beyond.end()) return;
    for (const KnownBeyond& one : it->second) {
      marks.push_back(
          place_of(one.limit, node->args[static_cast<size_t>(one.limit.dimension)], ranges));
    }
  });
  return marks;
}

std::optional<double> ValuesBeyond::evaluate(const Expr& e, const Need& beyond,
                                             const Ranges& ranges) const {
  if (e->op == Op::kInt) return static_cast<double>(e->int_value);
  if (e->op == Op::kFloat) return e->float_value;
  if (e->op == Op::kCast) return evaluate(e->args[0], beyond, ranges);
  if (e->op == Op::kLoad) {
    const auto it = known_.beyond.find(e->buffer.get());
    if (it == known_.beyond.end()) return std::nullopt;
    for (const KnownBeyond& one : it->second) {
      const Need own =
          place_of(one.limit, e->args[static_cast<size_t>(one.limit.dimension)], ranges);
      if (implies(beyond, own, ranges)) return one.value;
    }
    return std::nullopt;
  }
  if (const auto mark = mark_of(e, ranges); mark && implies(beyond, *mark, ranges)) return 0;
  if (e->op == Op::kSelect) {
    const auto condition = evaluate(e->args[0], beyond, ranges);
    if (condition) return evaluate(e->args[*condition != 0 ? 1 : 2], beyond, ranges);
    const auto a = evaluate(e->args[1], beyond, ranges), b = evaluate(e->args[2], beyond, ranges);
    return a && b && *a == *b ? a : std::nullopt;
  }
  if (e->args.empty() || e->args.size() > 2) return std::nullopt;
  const auto a = evaluate(e->args[0], beyond, ranges);
  const auto b = e->args.size() > 1 ? evaluate(e->args[1], beyond, ranges) : std::nullopt;
  return result_of(*e, a, b);
}

void ValuesBeyond::follow_points(const Buffer* buffer, const Site& site) {
  const Ranges ranges = scope_of(site.around);
  const StmtNode& store = *site.store;
  if (const std::optional<int> form = form_of(store.value, ranges);
      form && buffer->num_elements() == 1) {
    known_.sizes[buffer] = {*form};
    return;
  }
  for (const Need& mark : marks_of(store.value, ranges)) {
    const std::optional<double> value = evaluate(store.value, mark, ranges);
    if (!value || mark.at.terms.size() != 1) continue;
    const auto& [e, c] = mark.at.terms[0];
    for (size_t d = 0; d < store.indices.size(); ++d) {
      SizeLimit limit{.form = mark.form,
                      .dimension = static_cast<int>(d),
                      .scale = c,
                      .offset = -mark.at.constant,
                      .unit = mark.unit};
      const Linear index = linearize(simplify(store.indices[d], ranges));
      const bool is_modulo = e->op == Op::kFloorMod && is_const_int(e->args[1]);
      if (is_modulo) limit.period = e->args[1]->int_value;
      if (c <= 0 || !equal(index, is_modulo ? linearize(e->args[0]) : atom(e))) continue;
      known_.beyond[buffer].push_back({limit, *value});
      break;
    }
  }
}

void ValuesBeyond::follow_reduction(const Buffer* buffer, const Site& init, const Site& update) {
  const Expr& whole = update.store->value;
  const Expr& value = is_nan_or_extreme(whole) ? whole->args[2] : whole;
  const auto neutral = neutral_of(value->op);
  if (!neutral) return;
  const auto is_own = [&](const Expr& e) {
    return e->op == Op::kLoad && e->buffer.get() == buffer;
  };
  // A sum has the old value before the term, an extreme behind it.
  const size_t own = is_own(value->args[0]) ? 0 : 1;
  if (!is_own(value->args[own])) return;
  const Expr& term = value->args[1 - own];
  // The loops that the initial value does not have.
  std::vector<const StmtNode*> reduced;
  for (const StmtNode* s : update.around) {
    const bool is_new = s->kind == StmtKind::kFor &&
                        std::find(init.around.begin(), init.around.end(), s) == init.around.end();
    if (is_new) reduced.push_back(s);
  }
  if (reduced.size() != 1) return;
  const Ranges ranges = scope_of(update.around);
  for (const Need& mark : marks_of(term, ranges)) {
    const bool is_loop = mark.at.terms.size() == 1 && mark.at.coefficient(reduced[0]->var) == 1;
    if (!is_loop || evaluate(term, mark, ranges) != neutral) continue;
    ends_[buffer] = {mark.form, mark.unit, mark.at.constant};
    return;
  }
}

std::optional<ReductionEnd> ValuesBeyond::end_of(const BufferPtr& buffer) const {
  const auto it = ends_.find(buffer.get());
  return it == ends_.end() ? std::nullopt : std::optional(it->second);
}

std::vector<Need> ValuesBeyond::needs_of(const Expr& condition, bool holds,
                                         const Ranges& ranges) const {
  std::vector<Need> needs;
  for (const Need& mark : marks_of(condition, ranges)) {
    const auto value = evaluate(condition, mark, ranges);
    if (value && (*value != 0) != holds) needs.push_back(mark);
  }
  return needs;
}

}  // namespace hone::ir
