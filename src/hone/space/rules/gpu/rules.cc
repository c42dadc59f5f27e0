#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

bool always(const Task&) { return true; }

constexpr Rule kTaskRules[] = {
    {"attention", always, add_gpu_attention, true},
    {"block_rows", always, add_block_rows, true},
};

constexpr Rule kStageRules[] = {
    {"tiles", always, add_tiles, true},
    {"points", always, add_points},
};

}  // namespace

std::span<const Rule> gpu_task_rules() { return kTaskRules; }
std::span<const Rule> gpu_stage_rules() { return kStageRules; }

}  // namespace hone::space
