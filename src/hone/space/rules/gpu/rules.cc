#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

bool always(const Task&) { return true; }

constexpr Rule kStageRules[] = {
    {"tiles", always, add_tiles, true},
    {"points", always, add_points},
};

}  // namespace

std::span<const Rule> gpu_task_rules() { return {}; }
std::span<const Rule> gpu_stage_rules() { return kStageRules; }

}  // namespace hone::space
