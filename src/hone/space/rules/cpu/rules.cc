#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

bool always(const Task&) { return true; }
bool is_open(const Task& task) { return !task.covered; }
bool is_one_sum(const Task& task) { return !task.epilogue.empty(); }
bool may_round(const Task& task) { return is_one_sum(task) && task.may_round(); }

template <size_t kTiling>
Fit attention(SketchBuilder& builder, const Task&) {
  return add_attention(builder, kTiling);
}

template <int64_t kOutputs>
Fit winograd(SketchBuilder& builder, const Task& task) {
  return add_winograd(builder, task, kOutputs);
}

constexpr Rule kTaskRules[] = {
    {"rows", is_open, add_rows},
    {"attention", is_open, attention<0>},
    {"separable", is_open, add_separable},
    {"attention_tiles_1", always, attention<1>, true},
    {"attention_tiles_2", always, attention<2>, true},
    {"attention_tiles_3", always, attention<3>, true},
    {"long_rows", always, add_long_rows, true},
};

constexpr Rule kStageRules[] = {
    {"direct", always, add_direct},
    {"scan_parts", always, add_scan_parts},
    {"dot", is_one_sum, add_dot},
    {"row_lanes", is_one_sum, add_row_lanes},
    {"split_sum", is_one_sum, add_split_sum},
    {"im2col", is_one_sum, add_im2col, true},
    {"winograd_2", may_round, winograd<2>, true},
    {"winograd_3", may_round, winograd<3>, true},
    {"winograd_4", may_round, winograd<4>, true},
    {"winograd_6", may_round, winograd<6>, true},
    {"strassen", may_round, add_strassen, true},
};

}  // namespace

std::span<const Rule> cpu_task_rules() { return kTaskRules; }
std::span<const Rule> cpu_stage_rules() { return kStageRules; }

}  // namespace hone::space
