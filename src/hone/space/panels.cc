#include "hone/space/panels.h"

#include <algorithm>

namespace hone::space {

using schedule::StageInfo;
using schedule::State;
using schedule::Steps;

std::optional<Panels> Panels::find(const State& state, const std::string& sum,
                                   const std::string& vector, const std::string& fixed) {
  const StageInfo& info = *state.stages[static_cast<size_t>(state.find_stage(sum))].info;
  const int lane = axis_named(info, vector);
  if (lane < 0) return std::nullopt;
  Panels panels;
  panels.sum_ = sum, panels.vector_ = vector;
  for (const compute::Access& read : info.reads) {
    if (!moves(read, lane)) continue;
    if (!panels.buffer_.empty()) return std::nullopt;
    panels.buffer_ = read.buffer->name;
  }
  if (panels.buffer_.empty()) return std::nullopt;
  State trial = state;
  if (!schedule::apply_in_place(schedule::Im2col{sum, panels.buffer_}, trial).ok())
    return std::nullopt;
  const auto made =
      std::find_if(trial.stages.begin(), trial.stages.end(),
                   [&](const schedule::StageState& s) { return state.find_stage(s.name()) < 0; });
  panels.stage_ = made->name();
  for (const compute::Axis& axis : made->info->axes) {
    const std::string& name = axis.var->name;
    if (name == fixed) return std::nullopt;
    if (name == vector) continue;
    (axis_named(info, name) < info.num_spatial() ? panels.outer_ : panels.along_).push_back(name);
  }
  return panels.along_.empty() ? std::nullopt : std::optional(std::move(panels));
}

void Panels::append_copy(Steps& steps) const {
  steps.emplace_back(schedule::Im2col{sum_, buffer_});
}

void Panels::append_loops(const std::string& stage, const std::string& loop, int64_t width,
                          Steps& steps) const {
  steps.emplace_back(schedule::ComputeAt{stage_, stage, loop});
  steps.emplace_back(schedule::Split{stage_, vector_, {width}, schedule::Tail::kMask});
  std::vector<std::string> order = outer_, dims = outer_;
  order.push_back(vector_ + ".0");
  dims.push_back(quotient(vector_, width));
  for (const std::string& axis : along_) {
    order.push_back(axis);
    dims.push_back(axis);
  }
  order.push_back(vector_ + ".1");
  dims.push_back(remainder(vector_, width));
  steps.emplace_back(schedule::Reorder{stage_, std::move(order)});
  steps.emplace_back(schedule::Vectorize{stage_, vector_ + ".1"});
  steps.emplace_back(schedule::Layout{stage_, std::move(dims)});
}

}  // namespace hone::space
