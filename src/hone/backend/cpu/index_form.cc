#include "hone/backend/cpu/index_form.h"

#include <algorithm>

#include "hone/base/assert.h"
#include "hone/ir/scalar.h"

namespace hone::backend::cpu {
namespace {

using ir::floor_div;
using ir::floor_mod;
using ir::Op;

// Ranges saturate, so that sums and products of unknown ranges stay unknown.
int64_t clamp(__int128 value) {
  const __int128 limit = Range::kUnknown;
  return static_cast<int64_t>(std::clamp(value, -limit, limit));
}

bool known(const Range& r) { return r.lo > -Range::kUnknown && r.hi < Range::kUnknown; }

}  // namespace

IndexForm add(const IndexForm& a, const IndexForm& b, int64_t scale_b) {
  IndexForm out;
  out.lane = a.lane + scale_b * b.lane;
  out.constant = a.constant + scale_b * b.constant;
  out.terms.reserve(a.terms.size() + b.terms.size());
  size_t i = 0;
  size_t j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    const bool take_a =
        j == b.terms.size() || (i < a.terms.size() && a.terms[i].first <= b.terms[j].first);
    const bool take_b =
        i == a.terms.size() || (j < b.terms.size() && b.terms[j].first <= a.terms[i].first);
    const int atom = take_a ? a.terms[i].first : b.terms[j].first;
    int64_t coefficient = 0;
    if (take_a) coefficient += a.terms[i++].second;
    if (take_b) coefficient += scale_b * b.terms[j++].second;
    if (coefficient != 0) out.terms.emplace_back(atom, coefficient);
  }
  return out;
}

IndexForm scaled(const IndexForm& a, int64_t factor) { return add(IndexForm(), a, factor); }

int IndexSpace::add_variable(int depth, Range range) {
  atoms_.push_back({Op::kVar, {}, depth, false, false, false, range});
  return num_atoms() - 1;
}

int IndexSpace::add_opaque(int depth, bool varying) {
  atoms_.push_back({Op::kLoad, {}, depth, true, true, varying, Range()});
  return num_atoms() - 1;
}

int IndexSpace::add_fixed() {
  atoms_.push_back({Op::kLoad, {}, 0, false, true, false, Range()});
  return num_atoms() - 1;
}

Range IndexSpace::range(const IndexForm& form) const {
  __int128 lo = form.constant;
  __int128 hi = form.constant;
  const auto term = [&](const Range& r, int64_t coefficient) {
    const __int128 a = static_cast<__int128>(r.lo) * coefficient;
    const __int128 b = static_cast<__int128>(r.hi) * coefficient;
    lo = clamp(lo + std::min(a, b));
    hi = clamp(hi + std::max(a, b));
    if (!known(r)) {
      lo = -Range::kUnknown;
      hi = Range::kUnknown;
    }
  };
  for (const auto& [id, coefficient] : form.terms) {
    term(atom(id).range, coefficient);
    if (!known(atom(id).range)) return Range();
  }
  if (form.lane != 0) term({0, lanes_ - 1}, form.lane);
  return {clamp(lo), clamp(hi)};
}

bool IndexSpace::varying(const IndexForm& form) const {
  if (form.lane != 0) return true;
  return std::any_of(form.terms.begin(), form.terms.end(),
                     [&](const auto& term) { return atom(term.first).varying; });
}

bool IndexSpace::is_strided(const IndexForm& form) const {
  return std::none_of(form.terms.begin(), form.terms.end(),
                      [&](const auto& term) { return atom(term.first).varying; });
}

IndexForm IndexSpace::with_joined_digits(IndexForm form) const {
  const auto equal = [](const IndexForm& a, const IndexForm& b) {
    return a.terms == b.terms && a.lane == b.lane && a.constant == b.constant;
  };
  for (const auto& [rest_id, scale] : form.terms) {
    const Atom& rest = atom(rest_id);
    if (rest.op != Op::kFloorMod || !rest.varying || !rest.args[1].is_constant()) continue;
    for (const auto& [quotient_id, step] : form.terms) {
      const Atom& quotient = atom(quotient_id);
      if (quotient.op != Op::kFloorDiv || step != scale * rest.args[1].constant ||
          !equal(quotient.args[0], rest.args[0]) || !equal(quotient.args[1], rest.args[1]))
        continue;
      const int taken[] = {rest_id, quotient_id};
      const IndexForm whole = scaled(rest.args[0], scale);
      std::erase_if(form.terms, [&](const auto& term) {
        return term.first == taken[0] || term.first == taken[1];
      });
      return with_joined_digits(add(form, whole));
    }
  }
  return form;
}

bool IndexSpace::holds_data(const IndexForm& form) const {
  return std::any_of(form.terms.begin(), form.terms.end(), [&](const auto& term) {
    const Atom& a = atom(term.first);
    return (a.in_place || a.of_data) && a.op != Op::kVar && !known(a.range);
  });
}

IndexForm IndexSpace::compound(Op op, const IndexForm& a, const IndexForm& b) {
  std::vector<int64_t> key = {static_cast<int64_t>(op), lanes_};
  Atom made{op, {a, b}, 0, false, false, false, Range()};
  for (const IndexForm* form : {&a, &b}) {
    key.push_back(static_cast<int64_t>(form->terms.size()));
    for (const auto& [id, coefficient] : form->terms) {
      key.push_back(id);
      key.push_back(coefficient);
      made.depth = std::max(made.depth, atom(id).depth);
      made.in_place |= atom(id).in_place;
      made.of_data |= atom(id).of_data;
    }
    key.push_back(form->lane);
    key.push_back(form->constant);
    made.varying |= varying(*form);
  }
  made.in_place |= made.varying;
  // A division by data that may be 0 stays under the condition that keeps it from running.
  const Range rb = range(b);
  if ((op == Op::kFloorDiv || op == Op::kFloorMod) && rb.lo <= 0 && rb.hi >= 0)
    made.in_place |= made.of_data;
  const auto [it, inserted] = known_.try_emplace(std::move(key), num_atoms());
  if (!inserted) return of_atom(it->second);
  const Range ra = range(a);
  if (op == Op::kFloorMod && b.is_constant() && b.constant > 0) made.range = {0, b.constant - 1};
  if (op == Op::kFloorDiv && b.is_constant() && b.constant > 0 && known(ra)) {
    made.range = {floor_div(ra.lo, b.constant), floor_div(ra.hi, b.constant)};
  }
  if (op == Op::kMin) made.range = {std::min(ra.lo, rb.lo), std::min(ra.hi, rb.hi)};
  if (op == Op::kMax) made.range = {std::max(ra.lo, rb.lo), std::max(ra.hi, rb.hi)};
  atoms_.push_back(std::move(made));
  return of_atom(it->second);
}

// a = divisor * quotient + rest, where the rest holds what the divisor does not divide.
IndexForm IndexSpace::divided(Op op, const IndexForm& a, int64_t divisor) {
  IndexForm quotient;
  IndexForm rest;
  for (const auto& [id, coefficient] : a.terms) {
    if (coefficient % divisor == 0) {
      quotient.terms.emplace_back(id, coefficient / divisor);
    } else {
      rest.terms.emplace_back(id, coefficient);
    }
  }
  (a.lane % divisor == 0 ? quotient.lane : rest.lane) =
      a.lane % divisor == 0 ? a.lane / divisor : a.lane;
  quotient.constant = floor_div(a.constant, divisor);
  rest.constant = floor_mod(a.constant, divisor);
  const Range r = range(rest);
  const bool inside = known(r) && floor_div(r.lo, divisor) == floor_div(r.hi, divisor);
  const int64_t turns = inside ? floor_div(r.lo, divisor) : 0;
  if (op == Op::kFloorDiv) {
    if (!inside) return add(quotient, compound(op, rest, {{}, 0, divisor}));
    quotient.constant += turns;
    return quotient;
  }
  if (!inside) return compound(op, rest, {{}, 0, divisor});
  rest.constant -= turns * divisor;
  return rest;
}

IndexForm IndexSpace::form(const ir::Expr& e, const Opaque& opaque) {
  switch (e->op) {
    case Op::kInt: return {{}, 0, e->int_value};
    case Op::kVar: {
      const auto it = environment_.find(e->var.get());
      HONE_ASSERT(it != environment_.end(), "a variable is used outside its loop");
      return it->second;
    }
    case Op::kAdd: return add(form(e->args[0], opaque), form(e->args[1], opaque));
    case Op::kSub: return add(form(e->args[0], opaque), form(e->args[1], opaque), -1);
    case Op::kNeg: return scaled(form(e->args[0], opaque), -1);
    case Op::kMul: {
      const IndexForm a = form(e->args[0], opaque);
      const IndexForm b = form(e->args[1], opaque);
      if (b.is_constant()) return scaled(a, b.constant);
      if (a.is_constant()) return scaled(b, a.constant);
      return compound(e->op, a, b);
    }
    case Op::kFloorDiv:
    case Op::kFloorMod: {
      const IndexForm a = form(e->args[0], opaque);
      const IndexForm b = form(e->args[1], opaque);
      if (b.is_constant() && b.constant > 0) return divided(e->op, a, b.constant);
      return compound(e->op, a, b);
    }
    case Op::kMin:
    case Op::kMax: {
      const IndexForm a = form(e->args[0], opaque);
      const IndexForm b = form(e->args[1], opaque);
      const Range difference = range(add(a, b, -1));
      if (difference.lo >= 0) return e->op == Op::kMin ? b : a;
      if (difference.hi <= 0) return e->op == Op::kMin ? a : b;
      return compound(e->op, a, b);
    }
    default: return of_atom(opaque(e));
  }
}

}  // namespace hone::backend::cpu
