#include "hone/analysis/body_seconds.h"

#include <algorithm>

#include "hone/analysis/body_nests.h"
#include "hone/ir/passes/hoist_places.h"
#include "hone/ir/ranges.h"
#include "hone/ir/visit.h"

namespace hone::analysis {
namespace {

using ir::Expr;
using ir::StmtKind;
using ir::StmtNode;

constexpr double kCycles = 0.25;  // of an operation: several run at a time
constexpr double kHalf = 0.5;

double operations(const Expr& whole) {
  double count = 0;
  ir::visit(whole, [&](const Expr& e) {
    if (!e->args.empty() || e->op == ir::Op::kLoad) ++count;
  });
  return count;
}

class Counter {
 public:
  explicit Counter(int64_t lanes) : lanes_(lanes) {}

  // Returns the operations of one point of the stage's axes.
  double of(const compute::Stage& stage) {
    for (const compute::Axis& axis : stage.axes) ranges_.bind(axis.var, {0, axis.extent - 1});
    double sum = 0;
    for (const ir::Stmt& s : stage.body) sum += of(*s);
    return sum;
  }

 private:
  double of(const StmtNode& s) {
    if (s.kind == StmtKind::kFor) return of_loop(s);
    double sum = s.kind == StmtKind::kStore ? 1 : 0;
    ir::for_each_expr(s, [&](const Expr& e) { sum += operations(e); });
    const double inside = of_children(s);
    const bool by_data = s.kind == StmtKind::kIf && ir::has_load(s.condition);
    return sum + (by_data ? kHalf : 1) * inside;
  }

  double of_children(const StmtNode& s) {
    double sum = 0;
    for (const ir::Stmt& child : s.body) sum += of(*child);
    return sum;
  }

  double of_loop(const StmtNode& s) {
    const int64_t most = ranges_.of(s.extent).hi;
    const int64_t trips = most == ir::kPosInf ? kUnknownTrips : std::max<int64_t>(most, 0);
    const bool in_vectors = s.for_kind == ir::ForKind::kVectorized || ir::is_row_at_place(s);
    const int64_t together = in_vectors ? lanes_ : 1;
    const ir::Ranges::Mark mark = ranges_.mark();
    ranges_.bind_loop(s.var, s.min, s.extent);
    const double inside = of_children(s);
    ranges_.reset(mark);
    return static_cast<double>((trips + together - 1) / together) * inside;
  }

  int64_t lanes_;
  ir::Ranges ranges_;
};

}  // namespace

double body_seconds(const compute::Dag& dag, const target::Cpu& cpu) {
  double cycles = 0;
  for (const compute::Stage& stage : dag.stages) {
    if (!stage.is_extern()) continue;
    const int64_t lanes = std::max<int64_t>(cpu.vector_bytes / 4, 1);
    double points = 1;
    for (const compute::Axis& axis : stage.axes) points *= static_cast<double>(axis.extent);
    cycles += points * kCycles * Counter(lanes).of(stage);
  }
  return cycles / (cpu.ghz * 1e9);
}

}  // namespace hone::analysis
