#include "hone/session/size_costs.h"

#include <algorithm>
#include <cmath>

#include "hone/analysis/cpu_measure.h"
#include "hone/base/hash.h"
#include "hone/base/round_up.h"
#include "hone/compute/dag.h"
#include "hone/graph/size_values.h"

namespace hone {
namespace {

using schedule::StageState;

// The axis of a stage that a dimension of its result moves along alone, and how far; -1: none.
std::pair<int, int64_t> axis_of(const compute::AffineRow& row) {
  std::pair<int, int64_t> found{-1, 0};
  for (size_t a = 0; a < row.coef.size(); ++a) {
    if (row.coef[a] == 0) continue;
    if (found.first >= 0 || row.coef[a] < 0) return {-1, 0};
    found = {static_cast<int>(a), row.coef[a]};
  }
  return found;
}

ConstantPlaces places_of(const space::Candidate& candidate) {
  ConstantPlaces places;
  for (size_t s = 0; s < candidate.state.stages.size(); ++s) {
    const StageState& stage = candidate.state.stages[s];
    if (!stage.info->constant || stage.compute.kind != schedule::AttachKind::kRoot) continue;
    std::vector<int64_t>& place = places.emplace_back();
    place.push_back(static_cast<int64_t>(hash_bytes(stage.name().data(), stage.name().size())));
    place.push_back(static_cast<int64_t>(stage.buffer()->dtype));
    for (const schedule::LayoutDim& dim : stage.layout)
      place.insert(place.end(), {dim.axis, dim.divide, dim.modulo, dim.pad});
    for (const int64_t extent : schedule::storage_shape(stage, candidate.bounds.stages[s]))
      place.push_back(extent);
  }
  return places;
}

// A few rows read each weight once, which arithmetic hides less than RootMeasure::seconds() says: a
// token of BERT took the sum of both (Zen 4).
constexpr double kExposed = 0.7;

double seconds_of(const analysis::CpuMeasure& measure, const target::Cpu& cpu, int threads) {
  double seconds = 0;
  for (const analysis::RootMeasure& root : measure.roots) {
    double slowest = root.compute_cycles, sum = root.compute_cycles;
    for (const double cycles : root.level_cycles) {
      slowest = std::max(slowest, cycles);
      sum += cycles;
    }
    const double cycles = slowest + kExposed * (sum - slowest);
    seconds += cycles * root.busiest_share(threads) / (cpu.ghz * 1e9);
    if (std::min<double>(threads, root.tiles) > 1) seconds += analysis::kForkJoinSeconds;
  }
  return seconds;
}

}  // namespace

SizedTask::SizedTask(const compute::Dag& dag, const KernelLimits& limits)
    : dag_(dag),
      limits_(limits),
      naive_(compute::naive_program(dag)),
      found_(naive_, limits.outputs) {}

std::vector<SizedAxis> SizedTask::axes_of(const schedule::State& state) const {
  std::vector<SizedAxis> axes;
  for (size_t s = 0; s < state.stages.size(); ++s) {
    add_limits(static_cast<int>(s), state.stages[s], axes);
    add_end(static_cast<int>(s), state.stages[s], axes);
  }
  return axes;
}

std::vector<ir::SizeLimit> SizedTask::limits_of(const ir::BufferPtr& buffer) const {
  std::vector<ir::SizeLimit> own;
  for (const ir::ParamLimit& limit : limits_.outputs)
    if (dag_.params[limit.param].buffer == buffer) own.push_back(limit.limit);
  return own.empty() ? found_.of_buffer(buffer) : own;
}

void SizedTask::add_limits(int s, const StageState& stage, std::vector<SizedAxis>& axes) const {
  if (stage.info->writes.empty()) return;  // a body of statements
  const std::vector<compute::AffineRow>& rows = stage.info->writes[0];
  const Shape& shape = stage.buffer()->shape;
  for (const ir::SizeLimit& limit : limits_of(stage.buffer())) {
    const auto d = static_cast<size_t>(limit.dimension);
    if (d >= rows.size()) continue;
    const auto [axis, coef] = axis_of(rows[d]);
    const bool repeats = limit.period > 0 && limit.period < shape[d];
    if (axis < 0 || (repeats && limit.period % coef != 0)) continue;
    axes.push_back({s, axis, limit.form, limit.unit, -limit.offset, limit.scale * coef,
                    ceil_div(repeats ? limit.period : shape[d], coef),
                    repeats ? limit.period / coef : 0});
  }
}

// A schedule may compute a reduction in stages of other names: "scores.acc".
void SizedTask::add_end(int s, const StageState& stage, std::vector<SizedAxis>& axes) const {
  const int axis = stage.info->num_spatial();
  if (stage.info->axes.size() != static_cast<size_t>(axis) + 1) return;
  const int64_t extent = stage.info->axes.back().extent;
  for (const auto& [index, end] : limits_.ends) {
    const compute::Stage& of = dag_.stages[index];
    const bool same = stage.name() == of.name || stage.name().starts_with(of.name + ".");
    if (!same || of.reduce[0].extent != extent) continue;
    axes.push_back({s, axis, end.form, end.unit, end.offset, 1, extent, 0});
    return;
  }
}

std::optional<SizedSchedule> SizedSchedule::create(const SizedTask& task, schedule::Steps steps) {
  Result<space::Candidate> candidate = space::make_candidate(task.dag(), steps);
  if (!candidate.ok()) return std::nullopt;
  SizedSchedule made;
  made.axes_ = task.axes_of(candidate->state);
  made.nests_ = analysis::build_nests(candidate->state, candidate->bounds);
  std::vector<analysis::AxisPart> parts;
  for (const SizedAxis& axis : made.axes_)
    parts.push_back({axis.stage, axis.axis, axis.most, axis.period});
  made.limits_ = {candidate->state, candidate->bounds, parts, made.nests_};
  made.places_ = places_of(*candidate);
  made.candidate_ = *std::move(candidate);
  return made;
}

double SizedSchedule::seconds(const std::vector<int64_t>& sizes, const target::Cpu& cpu,
                              int threads) const {
  std::vector<int64_t> points;
  for (const SizedAxis& axis : axes_) {
    const int64_t end = axis.unit * sizes[static_cast<size_t>(axis.form)] - axis.beyond;
    const int64_t needed = end <= 0 ? 1 : ceil_div(end, axis.scale);
    points.push_back(std::clamp<int64_t>(needed, 1, axis.most));
  }
  std::vector<analysis::Nest> nests = nests_;
  limits_.shorten(points, nests);
  return seconds_of(analysis::measure_cpu(nests, cpu, threads), cpu, threads);
}

std::vector<int64_t> SizeRange::at(double part) const {
  return graph::sizes_of(varying_, symbols(part));
}

std::vector<int64_t> SizeRange::symbols(double part) const {
  std::vector<int64_t> symbols;
  for (const graph::SizeSymbol& symbol : varying_.symbols) {
    const auto least = static_cast<double>(std::max<int64_t>(symbol.min, 1));
    const double ratio = static_cast<double>(std::max<int64_t>(symbol.max, 1)) / least;
    symbols.push_back(
        std::clamp<int64_t>(std::llround(least * std::pow(ratio, part)), symbol.min, symbol.max));
  }
  return symbols;
}

std::vector<double> SizeRange::grid(int count) const {
  std::vector<double> parts;
  for (int i = 0; i < count; ++i) {
    const double part = static_cast<double>(i) / (count - 1);
    if (parts.empty() || value(part) > value(parts.back())) parts.push_back(part);
  }
  return parts;
}

}  // namespace hone
