#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

bool always(const Task&) { return true; }
bool may_round(const Task& task) { return !task.epilogue.empty() && task.may_round(); }

template <int64_t kOutputs>
Fit winograd(SketchBuilder& builder, const Task& task) {
  return add_gpu_winograd(builder, task, kOutputs);
}

constexpr Rule kTaskRules[] = {
    {"attention_matrix", has_matrix_instructions, add_gpu_attention_matrix, true},
    {"attention", always, add_gpu_attention, true},
    {"attention_tiles", always, add_gpu_attention_tiles, true},
    {"block_rows", always, add_block_rows, true},
};

constexpr Rule kStageRules[] = {
    {"matrix_tiles", has_matrix_instructions, add_matrix_tiles, true},
    {"tiles", always, add_tiles, true},
    {"shared_windows", always, add_shared_windows, true},
    {"points", always, add_points},
    {"updates", always, add_updates, true},
    {"block_bodies", always, add_block_bodies, true},
    {"scans", always, add_gpu_scan, true},
    {"winograd_2", may_round, winograd<2>, true},
    {"winograd_4", may_round, winograd<4>, true},
};

}  // namespace

std::span<const Rule> gpu_task_rules() { return kTaskRules; }
std::span<const Rule> gpu_stage_rules() { return kStageRules; }

}  // namespace hone::space
