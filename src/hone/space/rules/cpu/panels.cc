#include "hone/space/rules/cpu/panels.h"

#include <algorithm>

#include "hone/space/rules/cpu/loop_nest.h"

namespace hone::space {

using schedule::StageInfo;
using schedule::State;
using schedule::Steps;

std::optional<Panels> Panels::find(const State& state, const std::string& sum,
                                   const std::string& channels, const std::string& shared) {
  const StageInfo& info = *state.stages[static_cast<size_t>(state.find_stage(sum))].info;
  const int lane = axis_named(info, channels), still = axis_named(info, shared);
  const compute::Access* operand = nullptr;
  for (const compute::Access& read : info.reads) {
    if (lane < 0 || !moves(read, lane)) continue;
    if (operand || (still >= 0 && moves(read, still))) return std::nullopt;
    operand = &read;
  }
  if (!operand) return std::nullopt;
  State trial = state;
  const schedule::CacheRead copy{operand->buffer->name, sum};
  if (!schedule::apply_in_place(copy, trial).ok()) return std::nullopt;
  const auto made =
      std::find_if(trial.stages.begin(), trial.stages.end(),
                   [&](const schedule::StageState& s) { return state.find_stage(s.name()) < 0; });
  Panels panels;
  panels.sum_ = sum, panels.buffer_ = copy.buffer;
  panels.stage_ = made->name(), panels.channels_ = channels;
  bool has_channels = false;
  for (size_t d = 0; d < made->info->axes.size(); ++d) {
    const std::string& name = made->info->axes[d].var->name;
    const std::vector<int64_t>& coef = operand->index[d].coef;
    const bool summed =
        std::any_of(coef.begin() + info.num_spatial(), coef.end(), [](auto c) { return c != 0; });
    if (name == channels) {
      has_channels = true;
    } else {
      (summed ? panels.along_ : panels.outer_).push_back(name);
    }
  }
  return has_channels && !panels.along_.empty() ? std::optional(std::move(panels)) : std::nullopt;
}

void Panels::append_copy(Steps& steps) const {
  steps.emplace_back(schedule::CacheRead{buffer_, sum_});
}

void Panels::append_loops(const std::string& stage, const std::string& loop, int64_t width,
                          Steps& steps) const {
  steps.emplace_back(schedule::ComputeAt{stage_, stage, loop});
  append_order(width, steps);
}

void Panels::append_phase(int64_t width, Steps& steps) const {
  append_order(width, steps);
  std::vector<std::string> parallel = outer_;
  parallel.push_back(channels_ + ".0");
  steps.emplace_back(schedule::Parallel{stage_, fuse_loops(stage_, parallel, steps)});
}

void Panels::append_order(int64_t width, Steps& steps) const {
  steps.emplace_back(schedule::Split{stage_, channels_, {width}, schedule::Tail::kMask});
  LoopNest loops{.outer = outer_, .vector = channels_ + ".1"};
  loops.outer.push_back(channels_ + ".0");
  loops.outer.insert(loops.outer.end(), along_.begin(), along_.end());
  append_nest(stage_, loops, steps);
  std::vector<std::string> dims = outer_;
  dims.push_back(quotient(channels_, width));
  dims.insert(dims.end(), along_.begin(), along_.end());
  dims.push_back(remainder(channels_, width));
  steps.emplace_back(schedule::Layout{stage_, std::move(dims)});
}

}  // namespace hone::space
