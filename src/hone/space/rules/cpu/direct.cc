// Each stage of a task by itself, a reduction together with the pointwise stage that follows it.
#include "hone/space/rules/cpu/rules.h"
#include "hone/space/rules/roots.h"

namespace hone::space {

Fit add_direct(SketchBuilder& builder, const Task&) {
  for (const auto& [root, reduction] : roots_of(builder.state)) {  // by name: rules insert stages
    const schedule::StageInfoPtr info = builder.info(root);
    const compute::Stage& stage = info->stage;
    if (stage.is_extern()) {
      if (!add_scan(builder, root)) add_extern(builder, root);
      continue;
    }
    if (!reduction.empty()) {
      if (add_contraction(builder, root, reduction)) continue;
      add_fallback(builder, reduction);
    }
    if (!stage.reduce.empty() || !add_pointwise(builder, root)) add_fallback(builder, root);
  }
  return Fit::kPossible;
}

}  // namespace hone::space
