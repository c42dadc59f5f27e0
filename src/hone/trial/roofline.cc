#include "hone/trial/roofline.h"

#include <algorithm>
#include <cmath>

#include "hone/base/assert.h"
#include "hone/base/round_up.h"

namespace hone::trial {
namespace {

bool is_rate(const Rate& rate) {
  return std::isfinite(rate.one) && std::isfinite(rate.all) && rate.one > 0 && rate.all > 0;
}

std::string_view level_name(const RooflineLevel& level) {
  constexpr std::string_view kNames[] = {"memory", "L1", "L2", "L3", "L4"};
  const auto index = static_cast<size_t>(level.level);
  return index < std::size(kNames) ? kNames[index] : "a far cache";
}

}  // namespace

Status check(const Roofline& roofline) {
  if (roofline.cores < 1)
    return invalid("a roofline has {} cores, expected at least 1", roofline.cores);
  if (!is_rate(roofline.flops)) return invalid("a roofline needs positive FLOP/s");
  int fewer = 1;
  for (const auto& [threads, seconds] : roofline.fork_join) {
    if (threads <= fewer || threads > roofline.cores || !std::isfinite(seconds) || seconds <= 0)
      return invalid("a roofline has a fork and join of {} threads in {} s, behind that of {}",
                     threads, seconds, fewer);
    fewer = threads;
  }
  if (!std::isfinite(roofline.host_load)) return invalid("a roofline has no host load");
  if (roofline.levels.empty() || roofline.levels.back().level != 0)
    return invalid("a roofline's last level must be memory");
  for (const RooflineLevel& level : roofline.levels) {
    if (!is_rate(level.read) || !is_rate(level.write))
      return invalid("a roofline needs positive bandwidths of {}", level_name(level));
    const bool memory = &level == &roofline.levels.back();
    if (level.shared_by < 1 || (level.level == 0) != memory || (level.bytes > 0) == memory)
      return invalid("a roofline has a {} of {} bytes shared by {}", level_name(level), level.bytes,
                     level.shared_by);
  }
  return ok_status();
}

const RooflineLevel& level_of(const Roofline& roofline, double working_set, int threads) {
  HONE_ASSERT(!roofline.levels.empty(), "a roofline has a memory");
  const int busy = std::clamp(threads, 1, roofline.cores);
  for (const RooflineLevel& level : roofline.levels) {
    const int caches = ceil_div(busy, level.shared_by);
    if (level.level > 0 && working_set <= static_cast<double>(level.bytes * caches)) return level;
  }
  return roofline.levels.back();
}

Bound bound(double flops, double bytes, double working_set, const Roofline& roofline, int threads,
            std::string_view matrix) {
  const RooflineLevel& level = level_of(roofline, working_set, threads);
  const double bandwidth = level.bandwidth(threads, roofline.cores);
  Bound bound{flops / roofline.flops.of(threads, roofline.cores), "compute"};
  for (const MatrixRate& rate : roofline.matrix) {
    if (rate.type == matrix && flops / rate.flops < bound.seconds)
      bound = {flops / rate.flops, "matrix"};
  }
  if (bytes / bandwidth > bound.seconds) bound = {bytes / bandwidth, level_name(level)};
  if (roofline.launch_seconds > bound.seconds) bound = {roofline.launch_seconds, "launch"};
  return bound;
}

double fork_join_seconds(std::span<const ForkJoin> measured, int threads) {
  if (threads < 2 || measured.empty()) return 0;
  const auto more = std::find_if(measured.begin(), measured.end(),
                                 [&](const ForkJoin& one) { return one.threads >= threads; });
  if (more == measured.end()) return measured.back().seconds;
  if (more == measured.begin()) return more->seconds;
  const ForkJoin& fewer = *(more - 1);
  const double part =
      static_cast<double>(threads - fewer.threads) / (more->threads - fewer.threads);
  return fewer.seconds + part * (more->seconds - fewer.seconds);
}

std::string describe(const Roofline& roofline) {
  std::string text =
      fmt::format("measured peak: {:.1f} GFLOP/s by one core, {:.1f} by {} (float32)\n",
                  roofline.flops.one * 1e-9, roofline.flops.all * 1e-9, roofline.cores);
  for (const RooflineLevel& level : roofline.levels) {
    text += fmt::format(
        "measured {}: read {:.1f} GB/s by one core, {:.1f} by {}; write {:.1f}, {:.1f}\n",
        level_name(level), level.read.one * 1e-9, level.read.all * 1e-9, roofline.cores,
        level.write.one * 1e-9, level.write.all * 1e-9);
  }
  std::string threads, times;
  for (const ForkJoin& one : roofline.fork_join) {
    threads += fmt::format("{}{}", threads.empty() ? "" : ", ", one.threads);
    times += fmt::format("{}{:.2f}", times.empty() ? "" : ", ", one.seconds * 1e6);
  }
  if (!times.empty())
    text += fmt::format("measured fork and join of {} threads: {} us\n", threads, times);
  return text;
}

}  // namespace hone::trial
