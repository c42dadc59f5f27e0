#include "hone/space/rules/rows.h"

#include <algorithm>

namespace hone::space {

using schedule::StageInfo;

int contiguous_reduce_axis(const StageInfo& info) {
  for (const compute::Access& read : info.reads) {
    if (read.index.empty()) continue;
    const compute::AffineRow& last = read.index.back();
    for (size_t a = static_cast<size_t>(info.num_spatial()); a < info.axes.size(); ++a) {
      int terms = 0;
      for (const int64_t coef : last.coef) terms += static_cast<int>(coef != 0);
      if (last.coef[a] == 1 && terms == 1) return static_cast<int>(a);
    }
  }
  return -1;
}

int moving_operands(const StageInfo& info) {
  std::vector<const ir::Buffer*> seen;
  for (const compute::Access& read : info.reads) {
    bool along_row = false;
    for (int a = info.num_spatial(); a < static_cast<int>(info.axes.size()); ++a)
      along_row |= moves(read, a);
    if (along_row && std::count(seen.begin(), seen.end(), read.buffer.get()) == 0)
      seen.push_back(read.buffer.get());
  }
  return static_cast<int>(seen.size());
}

bool is_expensive(const compute::Stage& stage) {
  bool found = false;
  for (const compute::Output& output : stage.outputs) {
    ir::visit(output.value, [&](const ir::Expr& e) {
      found |= (e->op >= ir::Op::kSqrt) || e->op == ir::Op::kPow ||
               (e->op == ir::Op::kDiv && is_float(e->type));
    });
  }
  return found;
}

Status copy_out(SketchBuilder& builder) {
  const schedule::StageState& last = builder.state.stages.back();
  return is_reduction(*last.info) ? builder.add_step(schedule::CacheWrite{last.name()})
                                  : ok_status();
}

}  // namespace hone::space
