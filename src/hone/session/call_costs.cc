#include "hone/session/call_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hone/analysis/cpu_measure.h"
#include "hone/base/round_up.h"
#include "hone/trial/roofline.h"

namespace hone {
namespace {

constexpr int64_t kAllTiles = std::numeric_limits<int64_t>::max();

double tiles_of_busiest(int64_t tiles, int threads) {
  return static_cast<double>((tiles + threads - 1) / threads);
}

graph::CallCost cost_with_tiles(const Kernel& kernel, double seconds, int64_t most_tiles,
                                const TogetherOptions& options) {
  const std::vector<backend::EntryPoint>& phases = kernel.executable.entries;
  const auto phase = std::find_if(phases.begin(), phases.end(), runs);
  graph::CallCost cost;
  cost.alone = !is_one_phase(kernel) || !std::isfinite(seconds) || seconds <= 0;
  if (!cost.alone) {
    const auto tiles = std::clamp<int64_t>(phase->num_tiles, 1, most_tiles);
    const double fork_join = tiles > 1 && options.threads > 1 ? analysis::kForkJoinSeconds : 0;
    cost.tiles = tiles;
    cost.seconds = std::max(seconds - fork_join, 0.1 * seconds) * static_cast<double>(tiles) /
                   tiles_of_busiest(tiles, options.threads);
  }
  return cost;
}

// Returns how many tiles of a kernel's only phase run at the largest size of an interval.
int64_t most_tiles_of(const Kernel& kernel, const artifact::ArtifactInterval& when) {
  const std::vector<backend::EntryPoint>& phases = kernel.executable.entries;
  for (size_t p = 0; p < phases.size(); ++p) {
    if (!runs(phases[p]) || p >= kernel.tiles.size() || kernel.tiles[p].form != when.form) continue;
    const ir::TileLimit& limit = kernel.tiles[p];
    return std::max<int64_t>(ceil_div(when.most, limit.divisor) * limit.multiplier, 1);
  }
  return kAllTiles;
}

}  // namespace

graph::CallCost cost_of(const Kernel& kernel, double seconds, const TogetherOptions& options) {
  return cost_with_tiles(kernel, seconds, kAllTiles, options);
}

graph::CallCost cost_of(const VariantKernel& variant, double seconds,
                        const TogetherOptions& options) {
  return cost_with_tiles(*variant.kernel, seconds * variant.share,
                         most_tiles_of(*variant.kernel, variant.when), options);
}

std::vector<graph::CallCost> call_costs(const graph::TaskList& tasks, const GroupKernels& kernels,
                                        const TogetherOptions& options) {
  std::vector<graph::CallCost> costs;
  for (const graph::TaskCall& call : tasks.calls) {
    const auto g = static_cast<size_t>(call.group);
    costs.push_back(
        cost_of(*kernels.own[g], options.seconds.empty() ? 0 : options.seconds[g], options));
    for (const VariantKernel& variant : kernels.variants[g].others)
      costs.back().alone |= !is_one_phase(*variant.kernel);
  }
  return costs;
}

int threads_of(const graph::CallCost& cost, const TogetherOptions& options) {
  const int all = static_cast<int>(std::min<int64_t>(cost.tiles, options.threads));
  if (cost.alone || all < 2) return all;
  const auto seconds = [&](int threads) {
    return cost.seconds * tiles_of_busiest(cost.tiles, threads) / static_cast<double>(cost.tiles) +
           0.5 * trial::fork_join_seconds(options.fork_join, threads);
  };
  int best = all;
  for (int threads = 1; threads < all; threads *= 2) {
    if (seconds(threads) < seconds(best)) best = threads;
  }
  return best;
}

int thread_limit(const graph::CallCost& cost, const TogetherOptions& options) {
  const int threads = threads_of(cost, options);
  return threads < std::min<int64_t>(cost.tiles, options.threads) ? threads : 0;
}

}  // namespace hone
