#include "hone/ir/passes/prefetch_rows.h"

#include <algorithm>
#include <set>

#include "hone/base/round_up.h"
#include "hone/ir/linear.h"
#include "hone/ir/loads.h"
#include "hone/ir/passes/tile_loops.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

constexpr int64_t kLineBytes = 64;

// A place that is computed for one iteration of a loop, and read in the rest of its allocation.
struct Place {
  BufferPtr buffer;
  Expr value;
};

bool is_place(const StmtNode& s) {
  return s.kind == StmtKind::kAlloc && s.buffer->scope == Scope::kStack &&
         s.buffer->shape.empty() && s.body.size() > 1 && s.body[0]->kind == StmtKind::kStore &&
         s.body[0]->buffer == s.buffer;
}

bool is_row_in_vectors(const StmtNode& s) {
  return s.kind == StmtKind::kFor && s.for_kind == ForKind::kVectorized && counts_from_zero(s) &&
         s.body.size() == 1 && s.body[0]->kind == StmtKind::kStore;
}

class Rows {
 public:
  Rows(const Program& program, const PrefetchRowsOptions& options) : options_(options) {
    for (const Param& param : program.params)
      if (param.role == Role::kInput || param.role == Role::kConstant)
        operands_.insert(param.buffer.get());
  }

  Stmt run(const Stmt& s) {
    const bool is_around = s->kind == StmtKind::kFor || s->kind == StmtKind::kIf;
    if (is_around) around_.push_back(s.get());
    Stmt made = map_body(s, [&](const Stmt& child) { return run(child); });
    if (is_around) around_.pop_back();
    return is_place(*made) ? with_hints(made) : made;
  }

 private:
  // Returns the innermost loop around that moves the place; null if there is none, or if a
  // condition inside of it, which some of its iterations may not meet, moves with it.
  [[nodiscard]] const StmtNode* mover_of(const Expr& place) const {
    std::vector<Expr> conditions;
    for (size_t i = around_.size(); i-- > 0;) {
      const StmtNode& s = *around_[i];
      if (s.kind == StmtKind::kIf) {
        conditions.push_back(s.condition);
      } else if (uses(place, s.var.get())) {
        const bool is_tested = std::ranges::any_of(
            conditions, [&](const Expr& condition) { return uses(condition, s.var.get()); });
        return is_tested ? nullptr : &s;
      }
    }
    return nullptr;
  }

  [[nodiscard]] bool is_of_operands(const Expr& e) const {
    bool all = true;
    visit(e, [&](const Expr& node) {
      if (node->op == Op::kLoad) all = all && operands_.contains(node->buffer.get());
    });
    return all;
  }

  Stmt with_hints(const Stmt& alloc) const {
    const Place place{alloc->buffer, alloc->body[0]->value};
    const StmtNode* mover = mover_of(place.value);
    const bool moves = mover != nullptr && counts_from_zero(*mover) &&
                       mover->for_kind != ForKind::kVectorized && mover->extent->int_value > 1;
    const Stmt rest = make_block({alloc->body.begin() + 1, alloc->body.end()});
    const int64_t row = moves ? bytes_of_row(*rest, place) : 0;
    if (row == 0 || !is_of_operands(place.value)) return alloc;
    const int64_t last = mover->extent->int_value - 1;
    const int64_t rows =
        std::min(std::clamp<int64_t>(options_.ahead / row, 1, options_.most_rows), last);
    const BufferPtr ahead = make_buffer("ahead", place.buffer->dtype, {}, Scope::kStack);
    const Expr later = min(variable(mover->var) + rows, constant(last));
    return with_body(
        *alloc,
        {alloc->body[0],
         make_alloc(ahead, {make_store(ahead, {}, substitute(place.value, {{mover->var, later}})),
                            hinted(rest, place, ahead)})});
  }

  // Returns the bytes that all iterations of a nest read of tables at the place; 0 if there is
  // nothing to prefetch.
  [[nodiscard]] int64_t bytes_of_row(const StmtNode& s, const Place& place) const {
    if (is_row_in_vectors(s)) {
      int64_t bytes = 0;
      for (const Expr& load : loads_at(s, place))
        bytes += s.extent->int_value * dtype_bytes(load->buffer->dtype);
      return bytes;
    }
    int64_t bytes = 0;
    for (const Stmt& child : s.body) bytes += bytes_of_row(*child, place);
    const bool repeats = s.kind == StmtKind::kFor && counts_from_zero(s);
    return repeats ? bytes * s.extent->int_value : bytes;
  }

  // Returns the loads of tables at the place that move along with a loop over vectors, each once.
  [[nodiscard]] std::vector<Expr> loads_at(const StmtNode& loop, const Place& place) const {
    std::vector<Expr> found;
    visit(loop.body[0]->value, [&](const Expr& e) {
      if (e->op != Op::kLoad || e->args.empty() || !operands_.contains(e->buffer.get()) ||
          e->buffer->bytes() < options_.min_table)
        return;
      const bool is_at = std::ranges::any_of(
          e->args, [&](const Expr& index) { return loads_from(index, place.buffer.get()); });
      const bool is_known =
          std::ranges::any_of(found, [&](const Expr& other) { return equal(e, other); });
      const bool is_row = linearize(e->args.back()).coefficient(loop.var) == 1;
      const int64_t bytes = loop.extent->int_value * dtype_bytes(e->buffer->dtype);
      if (is_at && is_row && !is_known && bytes <= options_.most_lines * kLineBytes)
        found.push_back(e);
    });
    return found;
  }

  [[nodiscard]] Stmt hinted(const Stmt& s, const Place& place, const BufferPtr& ahead) const {
    if (!is_row_in_vectors(*s))
      return map_body(s, [&](const Stmt& child) { return hinted(child, place, ahead); });
    std::vector<Stmt> made;
    for (const Expr& one : loads_at(*s, place)) {
      const int64_t line = kLineBytes / dtype_bytes(one->buffer->dtype);
      for (int64_t first = 0; first < s->extent->int_value; first += line) {
        std::vector<Expr> at;
        for (const Expr& index : one->args) {
          const Expr moved = rewrite(index, [&](const Expr& e) -> Expr {
            const bool is_it = e->op == Op::kLoad && e->buffer == place.buffer;
            return is_it ? load(ahead, {}) : nullptr;
          });
          at.push_back(substitute(moved, {{s->var, constant(first)}}));
        }
        made.push_back(make_prefetch(one->buffer, std::move(at)));
      }
    }
    if (made.empty()) return s;
    made.push_back(s);
    return make_block(std::move(made));
  }

  const PrefetchRowsOptions& options_;
  std::set<const Buffer*> operands_;
  std::vector<const StmtNode*> around_;  // loops and conditions, the outermost first
};

}  // namespace

Program prefetch_rows(Program program, const PrefetchRowsOptions& options) {
  Rows rows(program, options);
  return map_run_phases(std::move(program), [&](const Stmt& body) { return rows.run(body); });
}

}  // namespace hone::ir
