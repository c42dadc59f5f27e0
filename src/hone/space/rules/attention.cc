#include "hone/space/rules/attention.h"

#include <algorithm>

#include "hone/space/rules/rows.h"

namespace hone::space {
namespace {

using schedule::StageInfo;

bool applies(const schedule::State& state) {
  static constexpr bool kReduces[kParts] = {true, false, true, false, true, true, false};
  static const schedule::StageList kReaders[kParts] = {
      {kMasked}, {kMost, kWeights}, {kWeights}, {kTotal, kSums}, {kResult}, {kResult}, {}};
  if (state.stages.size() != kParts) return false;
  for (size_t i = 0; i < kParts; ++i) {
    const StageInfo& info = *state.stages[i].info;
    if (info.stage.is_extern() || info.stage.where || info.constant ||
        info.stage.outputs.size() != 1 || is_reduction(info) != kReduces[i] ||
        state.readers(info.stage.outputs[0].buffer) != kReaders[i])
      return false;
  }
  return true;
}

// The longest axis of the product with the values along which only the weights move.
int query_axis(const StageInfo& sums, const StageInfo& weights) {
  int best = -1;
  for (int a = 0; a < sums.num_spatial(); ++a) {
    const auto axis = static_cast<size_t>(a);
    if (axis_named(weights, sums.axes[axis].var->name) < 0) continue;
    const bool still =
        std::all_of(sums.reads.begin(), sums.reads.end(), [&](const compute::Access& read) {
          return read.buffer == weights.stage.outputs[0].buffer || !moves(read, a);
        });
    if (still && (best < 0 || sums.axes[axis].extent > sums.axes[static_cast<size_t>(best)].extent))
      best = a;
  }
  return best;
}

}  // namespace

std::optional<Attention> find_attention(SketchBuilder& builder) {
  if (!inline_chains(builder).ok() || !applies(builder.state)) return std::nullopt;
  Attention found;
  for (size_t i = 0; i < kParts; ++i) found.stage[i] = builder.state.stages[i].name();
  const StageInfo& result = *builder.info(found.stage[kResult]);
  const StageInfo& sums = *builder.info(found.stage[kSums]);
  const StageInfo& masked = *builder.info(found.stage[kMasked]);
  const int lane = unit_stride_axis(result);
  const int query = query_axis(sums, *builder.info(found.stage[kWeights]));
  if (lane < 0 || query < 0) return std::nullopt;
  found.lane = result.axes[static_cast<size_t>(lane)].var->name;
  found.query = sums.axes[static_cast<size_t>(query)].var->name;
  found.queries = sums.axes[static_cast<size_t>(query)].extent;
  found.keys = sums.stage.reduce[0].extent;
  found.ends_early = sums.stage.until != nullptr;
  if (found.lane == found.query || axis_named(result, found.query) < 0) return std::nullopt;
  for (const compute::Axis& axis : result.stage.axes) {
    const std::string& name = axis.var->name;
    if (name == found.lane || name == found.query) continue;
    if (axis_named(masked, name) < 0) return std::nullopt;
    found.outer.push_back(name);
    found.blocks_outside *= axis.extent;
  }
  return found;
}

}  // namespace hone::space
