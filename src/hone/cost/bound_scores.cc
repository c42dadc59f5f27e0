#include "hone/cost/bound_scores.h"

#include <algorithm>

namespace hone::cost {

namespace {

BoundScores shares(double memory, double core) {
  const double all = memory + core;
  if (all <= 0) return {0, 1};
  return {memory / all, core / all};
}

}  // namespace

BoundScores bounds_of(const analysis::CpuMeasure& measure, int threads) {
  double memory = 0, core = 0;
  for (const analysis::RootMeasure& root : measure.roots) {
    const double share = root.busiest_share(threads);
    core += share * root.compute_cycles;
    for (const double cycles : root.level_cycles) memory += share * cycles;
  }
  return shares(memory, core);
}

BoundScores bounds_of(const analysis::GpuMeasure& measure, const target::Gpu& gpu) {
  double memory = 0, core = 0;
  for (const analysis::GpuRootMeasure& root : measure.roots) {
    if (root.resident_blocks < 1) continue;
    const analysis::GpuTimes times = root.times(gpu);
    memory += times.l2 + times.memory;
    core += times.arithmetic + times.units;
  }
  return shares(memory, core);
}

BoundScores static_bounds(const Query& query) {
  const space::Candidate& candidate = *query.candidate;
  if (query.target->kind() == target::Kind::kGpu) {
    const target::Gpu& gpu = query.target->gpu();
    return bounds_of(analysis::measure_gpu(candidate.state, candidate.bounds, gpu), gpu);
  }
  return bounds_of(
      analysis::measure_cpu(candidate.state, candidate.bounds, query.cpu(), query.threads),
      query.threads);
}

Result<std::optional<std::vector<BoundScores>>> predicted_bounds(const CostModel& model,
                                                                 std::span<const Query> queries) {
  const auto* const predictor = dynamic_cast<const BoundsPredictor*>(&model);
  if (predictor == nullptr) return std::optional<std::vector<BoundScores>>();
  return predictor->predict_bounds(queries);
}

std::vector<BoundScores> expected_bounds(const CostModel& model, std::span<const Query> queries) {
  Result<std::optional<std::vector<BoundScores>>> predicted = predicted_bounds(model, queries);
  if (predicted.ok() && *predicted) return **std::move(predicted);
  std::vector<BoundScores> scores;
  for (const Query& query : queries) scores.push_back(static_bounds(query));
  return scores;
}

BoundScores bound_scores(const Query& query, const std::optional<BoundScores>& counted) {
  return counted ? *counted : static_bounds(query);
}

std::string_view bounds_source(int64_t counted, int64_t all) {
  if (counted == 0) return "static";
  return counted == all ? "counters" : "mixed";
}

}  // namespace hone::cost
