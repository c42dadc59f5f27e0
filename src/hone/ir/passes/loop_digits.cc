#include "hone/ir/passes/loop_digits.h"

#include <fmt/format.h>

#include <algorithm>

#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

constexpr int64_t kChunk = 32;  // lanes: a few vectors, so that a step costs little

// Adds the strides between which a digit of the variable lies. Returns false if the expression
// depends on the variable in another way.
bool add_cuts(const Expr& e, const VarPtr& var, std::vector<int64_t>& cuts) {
  if (!depends(atom(e), var) || e->op == Op::kVar) return true;
  if (!has_positive_divisor(*e)) return false;
  const int64_t divisor = e->args[1]->int_value;
  const Expr& of = e->args[0];
  if (of->op == Op::kVar) {
    cuts.push_back(divisor);
    return true;
  }
  if (!has_positive_divisor(*of) || of->args[0]->op != Op::kVar || of->op == e->op) return false;
  const int64_t inner = of->args[1]->int_value;
  cuts.push_back(inner);
  cuts.push_back(e->op == Op::kFloorMod ? inner * divisor : divisor);
  return true;
}

// Returns the strides of the digits of a loop's number, from the least on; nothing if it has none.
std::vector<int64_t> strides_of(const StmtNode& loop, const std::vector<Need>& needs) {
  std::vector<int64_t> strides = {1};
  for (const Need& need : needs) {
    for (const auto& term : need.at.terms) {
      if (!add_cuts(term.first, loop.var, strides)) return {};
    }
  }
  const int64_t all = loop.extent->int_value;
  std::sort(strides.begin(), strides.end());
  strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
  std::erase_if(strides, [&](int64_t stride) { return stride >= all && stride > 1; });
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t next = i + 1 < strides.size() ? strides[i + 1] : all;
    if (next % strides[i] != 0) return {};
  }
  return strides;
}

bool may_cut(const StmtNode& s) {
  if (s.kind == StmtKind::kBlock || s.kind == StmtKind::kIf || s.kind == StmtKind::kAlloc)
    return std::all_of(s.body.begin(), s.body.end(), [](const Stmt& b) { return may_cut(*b); });
  return s.kind == StmtKind::kStore;
}

bool has_registers(const StmtNode& s) {
  const auto is_one = [](const BufferPtr& b) { return b && b->scope == Scope::kRegister; };
  return any_stmt(s, [&](const StmtNode& part) {
    if (is_one(part.buffer)) return true;
    return any_expr(part, [&](const Expr& e) {
      bool found = false;
      visit(e, [&](const Expr& node) { found = found || is_one(node->buffer); });
      return found;
    });
  });
}

Stmt with_number(const StmtNode& loop, const Expr& number, const Ranges& ranges) {
  const VarMap places = {{loop.var, number}};
  return simplify(substitute(make_block(loop.body), places), ranges);
}

}  // namespace

std::optional<Stmt> cut_into_digits(const StmtNode& loop, const std::vector<Need>& needs,
                                    Ranges& ranges) {
  if (loop.kind != StmtKind::kFor || loop.for_kind != ForKind::kSerial ||
      !is_const_int(loop.min, 0) || !is_const_int(loop.extent))
    return std::nullopt;
  const std::vector<int64_t> strides = strides_of(loop, needs);
  if (strides.size() < 2) return std::nullopt;
  struct Digit {
    VarPtr var;
    Expr extent;
  };
  std::vector<Digit> digits;  // from the last one on
  Expr number = constant(0);
  const auto mark = ranges.mark();
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t next = i + 1 < strides.size() ? strides[i + 1] : loop.extent->int_value;
    const std::string name = fmt::format("{}_{}", loop.var->name, strides.size() - 1 - i);
    digits.push_back({make_var(name), constant(next / strides[i])});
    ranges.bind_loop(digits.back().var, constant(0), digits.back().extent);
    number = number + variable(digits.back().var) * strides[i];
  }
  Stmt made = with_number(loop, number, ranges);
  ranges.reset(mark);
  for (const Digit& digit : digits)
    made = make_for(digit.var, constant(0), digit.extent, ForKind::kSerial, {made});
  return made;
}

std::optional<Stmt> cut_into_chunks(const StmtNode& loop, Ranges& ranges) {
  if (loop.kind != StmtKind::kFor || loop.for_kind != ForKind::kVectorized ||
      !is_const_int(loop.min, 0) || !is_const_int(loop.extent) ||
      loop.extent->int_value < 2 * kChunk)
    return std::nullopt;
  for (const Stmt& s : loop.body)
    if (!may_cut(*s) || has_registers(*s)) return std::nullopt;
  const int64_t chunks = loop.extent->int_value / kChunk, rest = loop.extent->int_value % kChunk;
  const auto lanes = [&](const Expr& first, int64_t count) {
    const auto mark = ranges.mark();
    const VarPtr lane = make_var(loop.var->name);
    ranges.bind_loop(lane, constant(0), constant(count));
    const Stmt body = with_number(loop, first + variable(lane), ranges);
    ranges.reset(mark);
    return make_for(lane, constant(0), constant(count), ForKind::kVectorized, {body});
  };
  const VarPtr chunk = make_var(loop.var->name + "_chunk");
  const auto mark = ranges.mark();
  ranges.bind_loop(chunk, constant(0), constant(chunks));
  const Stmt body = lanes(variable(chunk) * kChunk, kChunk);
  ranges.reset(mark);
  std::vector<Stmt> made = {
      make_for(chunk, constant(0), constant(chunks), ForKind::kSerial, {body})};
  if (rest > 0) made.push_back(lanes(constant(chunks * kChunk), rest));
  return make_block(std::move(made));
}

}  // namespace hone::ir
