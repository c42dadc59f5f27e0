#include "hone/ir/passes/share_windows.h"

#include <algorithm>
#include <limits>
#include <set>

#include "hone/ir/linear.h"
#include "hone/ir/loads.h"
#include "hone/ir/passes/store_nest.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

constexpr int64_t kMaxTaps = 16;       // taps along an axis
constexpr int64_t kMaxPlaces = 4'096;  // iterations that are compared

// An extreme has the old value behind the term, so that a NaN in the term is passed over.
bool is_extreme(Op op) { return op == Op::kMax || op == Op::kMin; }

// a[i] = a[i] + term or a[i] = max(term, a[i]); null if the store is something else.
Expr term_of(const StmtNode& store) {
  const Expr& value = store.value;
  if (value->op != Op::kAdd && !is_extreme(value->op)) return nullptr;
  const size_t place = is_extreme(value->op) ? 1 : 0;
  const Expr &own = value->args[place], &term = value->args[1 - place];
  const bool accumulates = own->op == Op::kLoad && own->buffer == store.buffer &&
                           std::equal(own->args.begin(), own->args.end(), store.indices.begin(),
                                      [](const Expr& a, const Expr& b) { return equal(a, b); });
  return accumulates && !loads_from(term, store.buffer.get()) ? term : nullptr;
}

// Indices of all that is loaded; nothing if some index is itself loaded.
std::optional<std::vector<Linear>> indices_of(const Expr& term) {
  std::vector<Linear> indices;
  bool plain = true;
  visit(term, [&](const Expr& e) {
    if (e->op != Op::kLoad) return;
    for (const Expr& index : e->args) {
      plain = plain && !has_load(index);
      indices.push_back(linearize(index));
    }
  });
  return plain && !indices.empty() ? std::optional(std::move(indices)) : std::nullopt;
}

bool is_plain_loop(const Stmt& s) {
  return is_unrolled(s) && is_const_int(s->min) && is_const_int(s->extent);
}

// Unrolled loops of a nest but one, and how often the term is at another place in them.
struct Places {
  int64_t iterations = 1, distinct = 1;
};
std::optional<Places> places_without(const StoreNest& nest, const Stmt& taps,
                                     const std::vector<Linear>& indices) {
  Places places;
  std::set<std::vector<int64_t>> seen = {std::vector<int64_t>(indices.size())};
  for (const Stmt& loop : nest.around) {
    if (loop == taps || !is_unrolled(loop)) continue;
    if (!is_plain_loop(loop)) return std::nullopt;
    places.iterations *= loop->extent->int_value;
    if (places.iterations > kMaxPlaces) return std::nullopt;
    std::set<std::vector<int64_t>> moved;
    for (const std::vector<int64_t>& place : seen) {
      for (int64_t i = 0; i < loop->extent->int_value; ++i) {
        std::vector<int64_t> at = place;
        for (size_t d = 0; d < indices.size(); ++d) at[d] += i * indices[d].coefficient(loop->var);
        moved.insert(std::move(at));
      }
    }
    seen = std::move(moved);
  }
  places.distinct = std::ssize(seen);
  return places;
}

class Window {
 public:
  explicit Window(StoreNest& nest) : nest_(nest), term_(term_of(*nest.store)) {}

  void share() {
    if (!term_) return;
    const std::optional<std::vector<Linear>> indices = indices_of(term_);
    if (!indices) return;
    size_t best = nest_.around.size();
    int64_t least = 0;
    for (size_t i = 0; i < nest_.around.size(); ++i) {
      const Stmt& taps = nest_.around[i];
      if (!may_expand(taps)) continue;
      const std::optional<Places> places = places_without(nest_, taps, *indices);
      if (!places) return;
      const int64_t n = taps->extent->int_value;
      const int64_t joins = no_element(nest_.store->value->op, term_->type) ? n : n - 1;
      const int64_t after = (places->distinct * joins) + places->iterations;
      if (after >= places->iterations * n || (least > 0 && after >= least)) continue;
      least = after;
      best = i;
    }
    if (best == nest_.around.size()) return;
    expand(nest_.around[best]);
    nest_.around.erase(nest_.around.begin() + static_cast<std::ptrdiff_t>(best));
    move_taps_inside();
  }

 private:
  [[nodiscard]] bool is_reduced(const Stmt& loop) const {
    return std::none_of(nest_.store->indices.begin(), nest_.store->indices.end(),
                        [&](const Expr& index) { return uses(index, loop->var.get()); });
  }

  // A reduced axis of few taps that no guard and no other loop depends on.
  [[nodiscard]] bool may_expand(const Stmt& loop) const {
    if (!is_plain_loop(loop) || !is_reduced(loop) || loop->extent->int_value < 2 ||
        loop->extent->int_value > kMaxTaps)
      return false;
    const auto depends = [&](const Expr& e) { return e && uses(e, loop->var.get()); };
    return std::none_of(nest_.around.begin(), nest_.around.end(), [&](const Stmt& s) {
      return depends(s->condition) || depends(s->min) || depends(s->extent);
    });
  }

  void expand(const Stmt& taps) {
    const Op op = nest_.store->value->op;
    const auto joined = [&](const Expr& old, const Expr& term) {
      return is_extreme(op) ? make(op, {term, old}) : make(op, {old, term});
    };
    Expr column = no_element(op, term_->type);
    for (int64_t i = 0; i < taps->extent->int_value; ++i) {
      const Expr tap = substitute(term_, {{taps->var, constant(taps->min->int_value + i)}});
      column = column ? joined(column, tap) : tap;
    }
    const Expr& own = nest_.store->value->args[is_extreme(op) ? 1 : 0];
    nest_.store = make_store(nest_.store->buffer, nest_.store->indices, joined(own, column));
  }

  // What an extreme of floats begins with, so that a NaN in the first term is passed over; else
  // null.
  static Expr no_element(Op op, DType type) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (!is_extreme(op) || !is_float(type)) return nullptr;
    return constant_float(op == Op::kMax ? -kInfinity : kInfinity, type);
  }

  // Columns of a point after each other, so that few wait in registers for the next point.
  void move_taps_inside() {
    const bool guarded = std::any_of(nest_.around.begin(), nest_.around.end(),
                                     [](const Stmt& s) { return s->kind != StmtKind::kFor; });
    const auto end = std::find_if_not(nest_.around.begin(), nest_.around.end(), is_plain_loop);
    if (guarded) return;
    std::stable_partition(nest_.around.begin(), end,
                          [&](const Stmt& loop) { return !is_reduced(loop); });
  }

  StoreNest& nest_;
  Expr term_;
};

}  // namespace

Program share_windows(Program program) {
  // Phases that run once, at compile time, gain too little to round differently.
  return map_run_phases(std::move(program), [](const Stmt& s) {
    return rewrite_nests(s, [](StoreNest& nest) { Window(nest).share(); });
  });
}

}  // namespace hone::ir
