#include "hone/compute/affine.h"

#include <algorithm>

namespace hone::compute {
namespace {

using ir::Expr;
using ir::Op;

std::optional<AffineRow> constant_row(int64_t value, size_t n) {
  return AffineRow{value, std::vector<int64_t>(n, 0)};
}

AffineRow combine(const AffineRow& a, const AffineRow& b, int64_t scale) {
  AffineRow sum = a;
  sum.constant += scale * b.constant;
  for (size_t i = 0; i < sum.coef.size(); ++i) sum.coef[i] += scale * b.coef[i];
  return sum;
}

bool is_constant(const AffineRow& row) {
  return std::all_of(row.coef.begin(), row.coef.end(), [](int64_t c) { return c == 0; });
}

// The row of an index. Of one with quotients and remainders by constants there is none, or, if
// `exact` is given, which then becomes false, the one for small values of the axes.
std::optional<AffineRow> row_of(const Expr& index, std::span<const ir::VarPtr> vars, bool* exact) {
  const size_t n = vars.size();
  switch (index->op) {
    case Op::kInt: return constant_row(index->int_value, n);
    case Op::kVar: {
      auto row = constant_row(0, n);
      for (size_t i = 0; i < n; ++i) {
        if (vars[i] == index->var) {
          row->coef[i] = 1;
          return row;
        }
      }
      return std::nullopt;
    }
    case Op::kAdd:
    case Op::kSub: {
      const auto a = row_of(index->args[0], vars, exact), b = row_of(index->args[1], vars, exact);
      if (!a || !b) return std::nullopt;
      return combine(*a, *b, index->op == Op::kAdd ? 1 : -1);
    }
    case Op::kNeg: {
      const auto a = row_of(index->args[0], vars, exact);
      if (!a) return std::nullopt;
      return combine(*constant_row(0, n), *a, -1);
    }
    case Op::kMul: {
      const auto a = row_of(index->args[0], vars, exact), b = row_of(index->args[1], vars, exact);
      if (!a || !b) return std::nullopt;
      if (is_constant(*b)) return combine(*constant_row(0, n), *a, b->constant);
      if (is_constant(*a)) return combine(*constant_row(0, n), *b, a->constant);
      return std::nullopt;
    }
    case Op::kFloorDiv:
    case Op::kFloorMod: {
      if (exact == nullptr || !ir::is_const_int(index->args[1])) return std::nullopt;
      auto row = row_of(index->args[0], vars, exact);
      if (!row) return std::nullopt;
      *exact = false;
      const int64_t divisor = index->args[1]->int_value;
      const auto digit = [&](int64_t& x) {
        x = index->op == Op::kFloorDiv ? x / divisor : x % divisor;
      };
      digit(row->constant);
      for (int64_t& c : row->coef) digit(c);
      return row;
    }
    default: return std::nullopt;
  }
}

// Appends the guards of `condition`; false if it is not a conjunction of affine comparisons.
bool append_guards(const Expr& condition, std::span<const ir::VarPtr> vars,
                   std::vector<Guard>& out) {
  if (condition->op == Op::kAnd) {
    return append_guards(condition->args[0], vars, out) &&
           append_guards(condition->args[1], vars, out);
  }
  if (ir::is_true(condition)) return true;
  if (condition->op != Op::kLt && condition->op != Op::kLe) return false;
  const auto a = affine_row(condition->args[0], vars);
  const auto b = affine_row(condition->args[1], vars);
  if (!a || !b) return false;
  Guard guard{combine(*b, *a, -1)};
  if (condition->op == Op::kLt) guard.row.constant -= 1;
  out.push_back(std::move(guard));
  return true;
}

void collect_reads(const Expr& e, bool guarded, const Stage& stage,
                   std::span<const ir::VarPtr> vars, std::vector<Access>& out) {
  if (e->op == Op::kSelect) {
    collect_reads(e->args[0], guarded, stage, vars, out);
    collect_reads(e->args[1], true, stage, vars, out);
    collect_reads(e->args[2], true, stage, vars, out);
    return;
  }
  for (const Expr& arg : e->args) collect_reads(arg, guarded, stage, vars, out);
  if (e->op != Op::kLoad) return;
  for (const Output& output : stage.outputs) {
    if (e->buffer == output.buffer || e->buffer == output.other) return;
  }
  Access access{e->buffer, {}, guarded};
  for (const Expr& index : e->args) {
    auto row = row_of(index, vars, &access.exact);
    HONE_ASSERT(row.has_value(), "a verified stage reads affinely");
    access.index.push_back(std::move(*row));
  }
  for (Access& known : out) {
    if (known.exact && access.exact && known.buffer == access.buffer &&
        known.index == access.index) {
      known.guarded = known.guarded && guarded;
      return;
    }
  }
  out.push_back(std::move(access));
}

}  // namespace

std::optional<AffineRow> affine_row(const Expr& index, std::span<const ir::VarPtr> vars) {
  return row_of(index, vars, nullptr);
}

bool moves(const Access& read, int axis) {
  return std::any_of(read.index.begin(), read.index.end(), [&](const AffineRow& row) {
    return row.coef[static_cast<size_t>(axis)] != 0;
  });
}

std::vector<ir::VarPtr> stage_vars(const Stage& stage) {
  std::vector<ir::VarPtr> vars;
  for (const Axis& axis : stage.axes) vars.push_back(axis.var);
  for (const Axis& axis : stage.reduce) vars.push_back(axis.var);
  return vars;
}

std::vector<Axis> stage_axes(const Stage& stage) {
  std::vector<Axis> axes = stage.axes;
  axes.insert(axes.end(), stage.reduce.begin(), stage.reduce.end());
  return axes;
}

std::vector<Access> reads(const Stage& stage) {
  std::vector<Access> out;
  const std::vector<ir::VarPtr> vars = stage_vars(stage);
  for (const Output& output : stage.outputs) collect_reads(output.value, false, stage, vars, out);
  return out;
}

std::vector<AffineRow> write_rows(const Stage& stage, const Output& output) {
  std::vector<AffineRow> rows;
  const std::vector<ir::VarPtr> vars = stage_vars(stage);
  for (const Expr& index : output.write) {
    auto row = affine_row(index, vars);
    HONE_ASSERT(row.has_value(), "a verified stage writes affinely");
    rows.push_back(std::move(*row));
  }
  return rows;
}

std::optional<std::vector<Guard>> affine_guards(const Expr& condition,
                                                std::span<const ir::VarPtr> vars) {
  std::vector<Guard> guards;
  if (!append_guards(condition, vars, guards)) return std::nullopt;
  return guards;
}

}  // namespace hone::compute
