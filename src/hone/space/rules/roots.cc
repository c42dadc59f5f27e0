#include "hone/space/rules/roots.h"

#include <algorithm>

#include "hone/space/rules/rows.h"

namespace hone::space {
namespace {

using schedule::State;

// The only pointwise reader of a reduction, if it may hold it; "" else. Of several values that are
// updated together it reads the first one, and nobody reads the others.
std::string epilogue_of(const State& state, int reduction) {
  const schedule::StageInfo& info = *state.stages[reduction].info;
  if (info.stage.is_extern() || info.stage.reduce.empty() || info.stage.where) return "";
  for (size_t o = 1; o < info.stage.outputs.size(); ++o) {
    const ir::BufferPtr& own = info.stage.outputs[o].buffer;
    if (state.is_param(own) || !state.readers(own).empty()) return "";
  }
  const schedule::StageList readers = state.readers(info.stage.outputs[0].buffer);
  if (readers.size() != 1 || state.is_param(info.stage.outputs[0].buffer)) return "";
  const schedule::StageInfo& reader = *state.stages[readers[0]].info;
  return reader.stage.reduce.empty() && !reader.stage.is_extern() ? reader.stage.name : "";
}

}  // namespace

std::vector<Root> roots_of(const State& state) {
  std::vector<Root> roots;
  std::vector<std::string> taken;
  const auto is_taken = [&](const std::string& name) {
    return std::count(taken.begin(), taken.end(), name) > 0;
  };
  for (size_t s = 0; s < state.stages.size(); ++s) {
    const std::string epilogue = epilogue_of(state, static_cast<int>(s));
    if (epilogue.empty() || is_taken(epilogue)) continue;
    roots.push_back({epilogue, state.stages[s].name()});
    taken.insert(taken.end(), {epilogue, state.stages[s].name()});
  }
  for (const schedule::StageState& stage : state.stages) {
    if (!is_taken(stage.name())) roots.push_back({stage.name(), ""});
  }
  return roots;
}

std::optional<std::vector<std::string>> match_axes(const schedule::StageInfo& e,
                                                   const schedule::StageInfo& r) {
  const compute::Access* access = nullptr;
  for (const compute::Access& read : e.reads) {
    if (read.buffer != r.stage.outputs[0].buffer) continue;
    if (access) return std::nullopt;  // one read, maybe chosen by a select: it is inside anyway
    access = &read;
  }
  if (!access) return std::nullopt;
  std::vector<std::string> names(e.axes.size());
  for (size_t d = 0; d < access->index.size(); ++d) {
    int from = -1, to = -1;
    for (size_t a = 0; a < e.axes.size(); ++a) {
      if (access->index[d].coef[a] == 0) continue;
      if (access->index[d].coef[a] != 1 || from >= 0) return std::nullopt;
      from = static_cast<int>(a);
    }
    for (size_t a = 0; a < r.axes.size(); ++a) {
      if (r.writes[0][d].coef[a] == 0) continue;
      if (r.writes[0][d].coef[a] != 1 || to >= 0) return std::nullopt;
      to = static_cast<int>(a);
    }
    if (from < 0 && to < 0) continue;
    if (from < 0 || to < 0 || access->index[d].constant != r.writes[0][d].constant)
      return std::nullopt;
    if (e.axes[from].extent != r.axes[to].extent) return std::nullopt;
    names[from] = r.axes[to].var->name;
  }
  for (const std::string& name : names) {
    if (name.empty()) return std::nullopt;
  }
  return names.size() == static_cast<size_t>(r.num_spatial()) ? std::optional(names) : std::nullopt;
}

Status simplify(Task& task, bool keeps_functions) {
  SketchBuilder& builder = task.stages;
  HONE_RETURN_IF_ERROR(inline_stages(builder, [&](const compute::Stage& stage) {
    return !keeps_functions || !is_expensive(stage) ||
           builder.state.readers(stage.outputs[0].buffer).size() <= 1;
  }));
  // A reduction that writes an output directly gets an accumulator.
  std::vector<std::string> reductions;
  for (const schedule::StageState& stage : builder.state.stages) {
    const compute::Stage& what = stage.info->stage;
    if (what.is_extern() || what.reduce.empty() || what.outputs.size() != 1) continue;
    const schedule::StageList readers = builder.state.readers(what.outputs[0].buffer);
    const bool has_epilogue =
        readers.size() == 1 && builder.state.stages[readers[0]].info->stage.reduce.empty();
    if (!has_epilogue) reductions.push_back(stage.name());
  }
  for (const std::string& name : reductions)
    HONE_RETURN_IF_ERROR(builder.add_step(schedule::CacheWrite{name}));
  const State& state = builder.state;
  if (state.stages.size() != 2 || state.stages[0].info->stage.outputs.size() != 1)
    return ok_status();
  task.epilogue = epilogue_of(state, 0);
  if (!task.epilogue.empty()) task.reduction = state.stages[0].name();
  return ok_status();
}

}  // namespace hone::space
