#include "hone/ir/passes/renumber_tiles.h"

#include <algorithm>

#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// To ask fewer tiles of a row than so many costs less than their new numbers.
constexpr int64_t kLeastTiles = 8;

// Returns M if an expression is var % M.
int64_t period_of(const Expr& e, const Var* var) {
  const bool is_digit = e->op == Op::kFloorMod && e->args[0]->op == Op::kVar &&
                        e->args[0]->var.get() == var && is_const_int(e->args[1]);
  return is_digit ? e->args[1]->int_value : 0;
}

}  // namespace

std::optional<InnerDigit> inner_digit(const StmtNode& loop, const Need& need,
                                      const Ranges& ranges) {
  if (!is_const_int(loop.min, 0) || !is_const_int(loop.extent)) return std::nullopt;
  for (const auto& [e, c] : need.at.terms) {
    const int64_t tiles = period_of(e, loop.var.get());
    const int64_t all = loop.extent->int_value;
    if (tiles < kLeastTiles || all % tiles != 0 || all == tiles || c <= 0) continue;
    if (ranges.of(without(need.at, e)).lo < 0) continue;
    if (c % need.unit == 0) return InnerDigit{need.form, all / tiles, tiles, c / need.unit};
  }
  return std::nullopt;
}

Stmt renumbered(const StmtNode& loop, const InnerDigit& digit, const BufferPtr& sizes,
                Ranges& ranges) {
  const Expr number = variable(loop.var), size = load(sizes, {constant(digit.form)});
  const Expr needed = floordiv(size + (digit.divisor - 1), digit.divisor);
  const Expr tiles = max(constant(1), min(needed, constant(digit.tiles)));
  const Expr quotient = make(Op::kFloorDiv, {number, tiles});
  const Expr remainder = make(Op::kFloorMod, {number, tiles});
  const VarPtr row = make_var(loop.var->name + "_row"), tile = make_var(loop.var->name + "_tile");
  const auto mark = ranges.mark();
  ranges.bind_loop(row, constant(0), constant(digit.rows));
  ranges.bind_loop(tile, constant(0), constant(digit.tiles));
  const VarMap digits = {{loop.var, variable(row) * digit.tiles + variable(tile)}};
  const Stmt body = simplify(substitute(make_block(loop.body), digits), ranges);
  ranges.reset(mark);
  const auto within = [](const Expr& e, int64_t most) {
    return max(constant(0), min(e, constant(most - 1)));
  };
  const VarMap places = {{row, within(quotient, digit.rows)},
                         {tile, within(remainder, digit.tiles)}};
  const Expr is_there = less(quotient, constant(digit.rows));
  return make_for(loop.var, loop.min, loop.extent, loop.for_kind,
                  {make_if(is_there, {substitute(body, places)})}, loop.peel);
}

}  // namespace hone::ir
