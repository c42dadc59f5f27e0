// Which sketches a space has.
#include <algorithm>

#include "hone/schedule/needed_flops.h"
#include "hone/space/finished_sketch.h"

namespace hone::space {

using schedule::State;

namespace {

// Smaller constants stay in a cache of the core's own: half their bytes gain nothing.
constexpr int64_t kNarrowBytes = 64 << 10;

// Structural part: pointwise intermediates disappear into their readers; a reduction that writes an
// output directly gets an accumulator.
Status simplify_structure(SketchBuilder& builder) {
  HONE_RETURN_IF_ERROR(inline_stages(builder, [](const compute::Stage&) { return true; }));
  std::vector<std::string> reductions;
  for (const schedule::StageState& stage : builder.state.stages) {
    const compute::Stage& what = stage.info->stage;
    if (what.is_extern() || what.reduce.empty() || what.outputs.size() != 1) continue;
    const schedule::StageList readers = builder.state.readers(what.outputs[0].buffer);
    const bool has_epilogue =
        readers.size() == 1 && builder.state.stages[readers[0]].info->stage.reduce.empty();
    if (!has_epilogue) reductions.push_back(stage.name());
  }
  for (const std::string& name : reductions) {
    HONE_RETURN_IF_ERROR(builder.add_step(schedule::CacheWrite{name}));
  }
  return ok_status();
}

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

// Gives every stage to a rule.
void add_groups(SketchBuilder& builder) {
  // Names first: rules insert stages.
  std::vector<std::pair<std::string, std::string>> plan;  // (root stage, reduction inside or "")
  std::vector<std::string> taken;
  for (size_t s = 0; s < builder.state.stages.size(); ++s) {
    const std::string epilogue = epilogue_of(builder.state, static_cast<int>(s));
    if (epilogue.empty() || std::count(taken.begin(), taken.end(), epilogue) > 0) continue;
    plan.push_back({epilogue, builder.state.stages[s].name()});
    taken.push_back(epilogue);
    taken.push_back(builder.state.stages[s].name());
  }
  for (const schedule::StageState& stage : builder.state.stages) {
    if (std::count(taken.begin(), taken.end(), stage.name()) == 0)
      plan.push_back({stage.name(), ""});
  }
  for (const auto& [root, reduction] : plan) {
    const schedule::StageInfo& info = *builder.state.stages[builder.state.find_stage(root)].info;
    if (info.stage.is_extern()) {
      if (!add_scan(builder, root)) add_extern(builder, root);
      continue;
    }
    if (!reduction.empty()) {
      if (add_contraction(builder, root, reduction)) continue;
      add_fallback(builder, reduction);
      if (!add_pointwise(builder, root)) add_fallback(builder, root);
      continue;
    }
    if (!info.stage.reduce.empty() || !add_pointwise(builder, root)) add_fallback(builder, root);
  }
}

// Of all but the transforms; `direct`: the stage that `state` does by a bilinear algorithm.
double bilinear_flops(const compute::Dag& dag, const schedule::StageState& direct,
                      const State& state) {
  double flops = compute::flops(dag) - compute::flops(direct.info->stage);
  for (const schedule::StageState& stage : state.stages) {
    if (stage.name().starts_with(direct.name() + ".m")) flops += compute::flops(stage.info->stage);
  }
  return flops;
}

// The same sketch with its large constants in 16 bits; nothing if there are none.
std::optional<SketchBuilder> narrowed(SketchBuilder builder) {
  bool any = false;
  std::vector<std::string> constants;
  for (const schedule::StageState& stage : builder.state.stages) {
    const ir::Buffer& buffer = *stage.buffer();
    if (stage.info->constant && buffer.bytes() >= kNarrowBytes) constants.push_back(stage.name());
  }
  for (const std::string& stage : constants)
    any = builder.add_step(schedule::Narrow{stage, DType::kBF16}).ok() || any;
  return any ? std::optional(std::move(builder)) : std::nullopt;
}

}  // namespace

Result<Space> Space::create(const compute::Dag& dag, const target::Target& target,
                            trial::Accuracy accuracy) {
  Space space;
  space.dag_ = std::make_shared<const compute::Dag>(dag);
  const auto add = [&](SketchBuilder builder) -> Status {
    const auto sketch = std::make_shared<Sketch>(
        Sketch{std::move(builder.state), std::move(builder.structure), std::move(builder.decisions),
               std::move(builder.groups), builder.for_threads});
    space.sketches_.push_back(sketch);
    const Point point = space.default_point(space.num_sketches() - 1);
    sketch->usual_steps = space.steps(point).size();
    for (size_t i = 0; i < sketch->decisions.size(); ++i) {
      if (sketch->decisions[i].before >= 0)
        sketch->usual_newer.emplace_back(static_cast<int>(i), point.choices[i]);
    }
    return space.instantiate(point).status();
  };
  const auto finish = [&](SketchBuilder builder) -> Status {
    std::optional<SketchBuilder> narrow =
        accuracy == trial::Accuracy::kFast ? narrowed(builder) : std::nullopt;
    HONE_RETURN_IF_ERROR(add(std::move(builder)));
    if (narrow && !add(*std::move(narrow)).ok()) space.sketches_.pop_back();
    return ok_status();
  };
  const SketchBuilder start{target, schedule::initial_state(dag), {}, {}, {}};
  space.least_flops_ = schedule::needed_flops(start.state);
  SketchBuilder builder = start, parts = start, scan = start;
  const Fit scan_fit = add_scan_parts(scan);
  const bool has_parts = add_long_rows(parts);
  const auto finish_parts = [&]() {
    if (has_parts && !finish(std::move(parts)).ok()) space.sketches_.pop_back();
  };
  const auto finish_tilings = [&]() {
    for (size_t tiling = 1;; ++tiling) {
      SketchBuilder tiled = start;
      if (!add_attention(tiled, tiling)) return;
      if (!finish(std::move(tiled)).ok()) space.sketches_.pop_back();
    }
  };
  if (add_rows(builder) || add_attention(builder) || add_separable(builder)) {
    HONE_RETURN_IF_ERROR(finish(std::move(builder)));
    finish_tilings();
    finish_parts();
    return space;
  }
  if (finish_tilings(); space.num_sketches() > 0) return space;
  finish_parts();  // first: the others have no vectors for such
  if (scan_fit == Fit::kBest) HONE_RETURN_IF_ERROR(finish(std::move(scan)));
  HONE_RETURN_IF_ERROR(simplify_structure(builder));
  const State& state = builder.state;
  const bool one_reduction =
      state.stages.size() == 2 && state.stages[0].info->stage.outputs.size() == 1;
  const std::string epilogue = one_reduction ? epilogue_of(state, 0) : "";
  SketchBuilder direct = builder, dot = builder, rows = builder;
  add_groups(direct);
  const Fit fit = epilogue.empty() ? Fit::kNone : add_dot(dot, epilogue, state.stages[0].name());
  const Fit rows_fit =
      epilogue.empty() ? Fit::kNone : add_row_lanes(rows, epilogue, state.stages[0].name());
  if (fit == Fit::kBest) HONE_RETURN_IF_ERROR(finish(std::move(dot)));
  if (rows_fit == Fit::kBest) HONE_RETURN_IF_ERROR(finish(std::move(rows)));
  HONE_RETURN_IF_ERROR(finish(std::move(direct)));
  if (scan_fit == Fit::kPossible) HONE_RETURN_IF_ERROR(finish(std::move(scan)));
  if (fit == Fit::kPossible) HONE_RETURN_IF_ERROR(finish(std::move(dot)));
  if (rows_fit == Fit::kPossible) HONE_RETURN_IF_ERROR(finish(std::move(rows)));
  SketchBuilder split = builder;
  if (!epilogue.empty() && add_split_sum(split, epilogue, state.stages[0].name()))
    HONE_RETURN_IF_ERROR(finish(std::move(split)));
  SketchBuilder copied = builder;
  if (!epilogue.empty() && add_im2col(copied, epilogue, state.stages[0].name()) &&
      !finish(std::move(copied)).ok())
    space.sketches_.pop_back();
  if (accuracy == trial::Accuracy::kStrict) return space;
  if (epilogue.empty()) return space;
  const auto try_bilinear = [&](const auto& rule) {
    SketchBuilder bilinear = builder;
    if (!rule(bilinear, state.stages[0].name())) return;
    const double flops = bilinear_flops(dag, state.stages[0], bilinear.state);
    if (finish(std::move(bilinear)).ok()) {
      space.least_flops_ = std::min(space.least_flops_, flops);
    } else {
      space.sketches_.pop_back();
    }
  };
  for (const int64_t outputs : {2, 3, 4, 6}) {
    try_bilinear([&](SketchBuilder& to, const std::string& conv) {
      return add_winograd(to, epilogue, conv, outputs);
    });
  }
  try_bilinear([&](SketchBuilder& to, const std::string& product) {
    return add_strassen(to, epilogue, product);
  });
  return space;
}

}  // namespace hone::space
