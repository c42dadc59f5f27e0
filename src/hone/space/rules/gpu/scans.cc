// Scans along long rows, such as running sums: each row is cut into parts, and a thread takes a
// part (schedule/scan_parts.h).
//   phase 1: for rows and parts, in blocks of threads:  the part's total
//   phase 2: for rows and parts, in blocks of threads:  the totals before it, then its steps
#include <algorithm>
#include <cmath>

#include "hone/base/round_up.h"
#include "hone/ir/visit.h"
#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

constexpr int64_t kThreadsPerSm = 512;  // parts of all rows, at most
constexpr int64_t kLeastSteps = 64;     // of a row that is cut

// The first loop of a body; null if there is none.
const ir::StmtNode* loop_of(const compute::Stage& stage) {
  const ir::StmtNode* found = nullptr;
  for (const ir::Stmt& stmt : stage.body) {
    ir::for_each_stmt(*stmt, [&](const ir::StmtNode& s) {
      if (found == nullptr && s.kind == ir::StmtKind::kFor) found = &s;
    });
  }
  return found;
}

}  // namespace

Fit add_gpu_scan(SketchBuilder& builder, const Task&) {
  if (builder.state.stages.size() != 1) return Fit::kNone;
  const schedule::StageInfoPtr info = builder.state.stages[0].info;
  const ir::StmtNode* loop = loop_of(info->stage);
  if (loop == nullptr || info->constant || !ir::is_const_int(loop->extent)) return Fit::kNone;
  const int64_t length = loop->extent->int_value;
  int64_t rows = 1;
  for (const compute::Axis& axis : info->stage.axes) rows *= axis.extent;
  if (length < kLeastSteps) return Fit::kNone;
  // A thread goes through its part and, at most, through as many totals.
  const int64_t most = ceil_div(builder.target.gpu().sms * kThreadsPerSm, rows);
  const int64_t parts =
      std::min(most, static_cast<int64_t>(std::sqrt(static_cast<double>(length))));
  if (parts < 2) return Fit::kNone;
  const std::string stage = info->stage.name;
  const schedule::RFactor step{stage, loop->var->name, ceil_div(length, parts)};
  if (!builder.add_step(step).ok()) return Fit::kNone;
  add_stage_points(builder, stage + ".rf", "");
  add_stage_points(builder, stage, "");
  return Fit::kBest;
}

}  // namespace hone::space
