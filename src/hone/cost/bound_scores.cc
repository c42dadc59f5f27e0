#include "hone/cost/bound_scores.h"

#include <algorithm>

#include "hone/analysis/cpu_measure.h"
#include "hone/analysis/gpu_measure.h"

namespace hone::cost {

namespace {

BoundScores shares(double memory, double core) {
  const double all = memory + core;
  if (all <= 0) return {0, 1};
  return {memory / all, core / all};
}

BoundScores static_bounds_of_gpu(const Query& query) {
  const space::Candidate& candidate = *query.candidate;
  const target::Gpu& gpu = query.target->gpu();
  double memory = 0, core = 0;
  for (const analysis::GpuRootMeasure& root :
       analysis::measure_gpu(candidate.state, candidate.bounds, gpu).roots) {
    if (root.resident_blocks < 1) continue;
    const analysis::GpuTimes times = root.times(gpu);
    memory += times.l2 + times.memory;
    core += times.arithmetic + times.units;
  }
  return shares(memory, core);
}

}  // namespace

BoundScores static_bounds(const Query& query) {
  if (query.target->kind() == target::Kind::kGpu) return static_bounds_of_gpu(query);
  const space::Candidate& candidate = *query.candidate;
  const analysis::CpuMeasure measure =
      analysis::measure_cpu(candidate.state, candidate.bounds, query.cpu(), query.threads);
  double memory = 0, core = 0;
  for (const analysis::RootMeasure& root : measure.roots) {
    const double share = root.busiest_share(query.threads);
    core += share * root.compute_cycles;
    for (const double cycles : root.level_cycles) memory += share * cycles;
  }
  return shares(memory, core);
}

BoundScores bound_scores(const Query& query, const std::optional<BoundScores>& counted) {
  return counted ? *counted : static_bounds(query);
}

std::string_view bounds_source(int64_t counted, int64_t all) {
  if (counted == 0) return "static";
  return counted == all ? "counters" : "mixed";
}

}  // namespace hone::cost
