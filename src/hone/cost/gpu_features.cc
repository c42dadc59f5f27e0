#include "hone/cost/gpu_features.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hone/analysis/gpu_access.h"
#include "hone/analysis/gpu_measure.h"
#include "hone/cost/bound_scores.h"
#include "hone/cost/decision_features.h"

namespace hone::cost {
namespace {

using analysis::GpuMeasure;
using analysis::GpuRootMeasure;
using analysis::GpuStageMeasure;
using analysis::GpuTimes;
using analysis::Nest;
using analysis::NestAccess;
using schedule::Annotation;

constexpr double kMostSeconds = 1e3;  // a first guess for blocks that do not fit

struct GpuParts {
  const GpuRootMeasure* root = nullptr;   // the launch with the most seconds
  const GpuStageMeasure* main = nullptr;  // its stage with the most cycles
  const GpuStageMeasure* second = nullptr;
  const Nest* nest = nullptr;  // of the main stage
  double operations = 0, all_operations = 0;
  double seconds = 0;  // by the measure
};

GpuParts find_parts(std::span<const Nest> nests, const GpuMeasure& measure,
                    const target::Gpu& gpu) {
  GpuParts parts;
  double most = -1;
  for (const GpuRootMeasure& root : measure.roots) {
    const double seconds = std::min(root.seconds(gpu), kMostSeconds);
    parts.seconds += seconds;
    if (seconds > most) most = seconds, parts.root = &root;
  }
  parts.seconds = std::clamp(parts.seconds, 1e-12, kMostSeconds);
  if (parts.root == nullptr) return parts;
  for (const GpuStageMeasure& stage : parts.root->stages) {
    if (!parts.main || stage.busy_cycles > parts.main->busy_cycles)
      parts.second = std::exchange(parts.main, &stage);
    else if (!parts.second || stage.busy_cycles > parts.second->busy_cycles)
      parts.second = &stage;
  }
  for (const Nest& nest : nests) {
    parts.all_operations += nest.operations();
    if (parts.main && nest.stage == parts.main->stage) parts.nest = &nest;
  }
  if (parts.nest) parts.operations = parts.nest->operations();
  return parts;
}

// Writes how the blocks fill the device and which resource limits how many reside on an SM.
void write_launch(const GpuRootMeasure& root, const target::Gpu& gpu, RowWriter& out) {
  const double warps = root.warps(gpu), resident = root.resident_blocks;
  const double rounds = resident < 1 ? 0 : root.rounds(gpu);
  out.count("launch.blocks", root.blocks);
  out.ratio("launch.blocks_per_sm", root.blocks, gpu.sms);
  out.count("launch.threads", root.threads);
  out.plain("launch.lanes_used", root.threads / std::max(1.0, warps * gpu.warp));
  out.plain("launch.resident", resident);
  out.plain("launch.occupancy", resident * warps / gpu.warps_per_sm);
  out.count("launch.rounds", rounds);
  out.plain("launch.filled", root.blocks / std::max(1.0, rounds * resident * gpu.sms));
  out.plain("launch.balance", root.blocks / std::max(1.0, root.busiest_blocks(gpu) * gpu.sms));
  out.plain("launch.busy_warps",
            std::min(resident, root.busiest_blocks(gpu)) * warps / gpu.warps_per_sm);
  out.count("launch.registers", root.registers);
  out.plain("launch.pressure", root.registers / std::max(1.0, root.register_limit));
  out.plain("launch.shared", root.shared_bytes / static_cast<double>(gpu.shared_bytes_per_sm));
  out.plain("launch.stages", static_cast<double>(root.stages.size()));
}

// Writes what limits a launch, as shares of its time.
void write_limits(const GpuRootMeasure& root, const target::Gpu& gpu, RowWriter& out) {
  const GpuTimes times = root.resident_blocks < 1 ? GpuTimes() : root.times(gpu);
  const double all = std::max(times.seconds(), 1e-12);
  out.plain("limit.arithmetic", times.arithmetic / all);
  out.plain("limit.units", times.units / all);
  out.plain("limit.l2", times.l2 / all);
  out.plain("limit.latency", times.latency / all);
  out.plain("limit.memory", times.memory / all);
  out.plain("limit.launch", analysis::kLaunchSeconds / all);
  out.ratio("limit.latency_per_arithmetic", 1e9 * times.latency, 1e9 * times.arithmetic);
  out.ratio("limit.bytes_again", root.l2_bytes, root.memory_bytes);
}

// Writes what one thread or warp of a stage does in each pass and for each instruction.
void write_stage(std::string_view name, const GpuStageMeasure& stage, RowWriter& out) {
  const double requests = stage.global_requests + stage.shared_requests;
  out.count(out.name("{}.threads", name), stage.threads);
  out.count(out.name("{}.passes", name), stage.passes);
  out.count(out.name("{}.turns", name), stage.turns);
  out.count(out.name("{}.independent", name), stage.independent);
  out.ratio(out.name("{}.arithmetic", name), stage.arithmetic, stage.passes);
  out.plain(out.name("{}.matrix", name), stage.matrix / std::max(stage.arithmetic, 1.0));
  out.plain(out.name("{}.ahead", name), stage.ahead);
  out.ratio(out.name("{}.wait", name), stage.wait_cycles, stage.latency_cycles);
  out.ratio(out.name("{}.requests", name), requests, stage.arithmetic);
  out.ratio(out.name("{}.global", name), stage.global_requests, requests);
  out.ratio(out.name("{}.sectors", name), stage.global_sectors, stage.global_requests);
  out.ratio(out.name("{}.conflicts", name), stage.shared_cycles, stage.shared_requests);
  out.ratio(out.name("{}.l2_bytes", name), stage.l2_bytes, stage.arithmetic * stage.threads);
}

void write_shares(const GpuParts& parts, RowWriter& out) {
  double busy = 0, latency = 0;
  if (parts.root) {
    for (const GpuStageMeasure& stage : parts.root->stages)
      busy += stage.busy_cycles, latency += stage.latency_cycles;
  }
  static const GpuStageMeasure kNone;
  const GpuStageMeasure& main = parts.main ? *parts.main : kNone;
  const GpuStageMeasure& second = parts.second ? *parts.second : kNone;
  out.plain("main.busy", main.busy_cycles / std::max(busy, 1.0));
  out.plain("main.latency", main.latency_cycles / std::max(latency, 1.0));
  out.plain("second.busy", second.busy_cycles / std::max(busy, 1.0));
  out.plain("second.latency", second.latency_cycles / std::max(latency, 1.0));
  write_stage("main", main, out);
  write_stage("second", second, out);
}

// Writes how the lanes of a warp access an operand of the main statement.
void write_operand(std::string_view name, const Nest* nest, const NestAccess* access, int warp,
                   RowWriter& out) {
  double scope = -1, lane = -1, vector = 0, cost = 0, body = 0, block = 0, again = 0;
  if (access) {
    const analysis::WarpAccess one = analysis::warp_access(*nest, *access, warp);
    scope = static_cast<double>(access->scope);
    lane = std::log2(1 + static_cast<double>(std::abs(one.lane_bytes)));
    vector = one.elements * access->element_bytes;
    cost = access->scope == ir::Scope::kShared ? one.wavefronts : one.sectors;
    body = access->footprint(nest->loops, analysis::gpu_body(*nest));
    analysis::Extents extents;
    double blocks = 1;
    for (const analysis::NestLoop& loop : nest->loops) {
      const bool grid = loop.annotation == Annotation::kParallel;
      extents.push_back(grid ? 1 : loop.extent);
      blocks *= grid ? static_cast<double>(loop.extent) : 1;
    }
    block = analysis::sector_bytes(*access, extents);
    again =
        blocks * block / std::max(1.0, access->footprint(nest->loops, 0) * access->element_bytes);
  }
  out.plain(out.name("{}.scope", name), scope);
  out.plain(out.name("{}.lane", name), lane);
  out.plain(out.name("{}.vector", name), vector);
  out.plain(out.name("{}.cost", name), cost);
  out.count(out.name("{}.body", name), body);
  out.count(out.name("{}.block", name), block);
  out.count(out.name("{}.again", name), again);
}

enum Where : uint8_t { kVector, kUnrolled, kSerial, kThreads, kTurns, kBlocks };
constexpr std::array<std::string_view, 6> kPlaces = {"vector",  "unrolled", "serial",
                                                     "threads", "turns",    "blocks"};

Where place_of(const Nest& nest, size_t body, size_t first_thread, size_t loop) {
  const Annotation annotation = nest.loops[loop].annotation;
  if (annotation == Annotation::kParallel) return kBlocks;
  if (schedule::is_thread_loop(annotation)) return kThreads;
  if (loop >= body) return annotation == Annotation::kVectorize ? kVector : kUnrolled;
  return loop < first_thread ? kTurns : kSerial;
}

// The product of the extents of all loops of a role in a place.
void write_tiles(const Nest* nest, RowWriter& out) {
  std::array<std::array<double, kPlaces.size()>, kRoles.size()> products;
  for (auto& row : products) row.fill(1);
  if (nest) {
    const std::vector<Role> roles = find_roles(*nest);
    const size_t body = analysis::gpu_body(*nest);
    size_t thread = 0;
    while (thread < nest->loops.size() && !schedule::is_thread_loop(nest->loops[thread].annotation))
      ++thread;
    for (size_t i = 0; i < nest->loops.size(); ++i)
      products[roles[i]][place_of(*nest, body, thread, i)] *=
          static_cast<double>(nest->loops[i].extent);
  }
  for (size_t r = 0; r < kRoles.size(); ++r) {
    for (size_t p = 0; p < kPlaces.size(); ++p)
      out.plain(out.name("tile.{}.{}", kRoles[r], kPlaces[p]), std::log2(products[r][p]));
  }
}

// Writes how many of the stages are where.
void write_scopes(const Query& query, RowWriter& out) {
  double shared = 0, fragment = 0, inside = 0, roots = 0;
  if (query.candidate) {
    for (const schedule::StageState& stage : query.candidate->state.stages) {
      const bool root = stage.compute.kind == schedule::AttachKind::kRoot;
      roots += root && !stage.info->constant;
      inside += !root && analysis::is_private(stage.scope) && stage.scope != ir::Scope::kFragment;
      shared += !root && stage.scope == ir::Scope::kShared;
      fragment += !root && stage.scope == ir::Scope::kFragment;
    }
  }
  out.plain("stages.roots", roots);
  out.plain("stages.shared", shared);
  out.plain("stages.fragment", fragment);
  out.plain("stages.inside", inside);
}

void write_device(const target::Gpu& gpu, RowWriter& out) {
  out.count("device.sms", gpu.sms);
  out.count("device.warps_per_sm", gpu.warps_per_sm);
  out.count("device.fma_per_cycle", gpu.fma_per_cycle);
  out.count("device.l2_bytes_per_cycle", gpu.l2_bytes_per_cycle);
  out.count("device.l2_bytes", static_cast<double>(gpu.l2_bytes));
  out.count("device.shared_bytes", static_cast<double>(gpu.shared_bytes_per_sm));
  out.plain("device.ghz", gpu.ghz);
  const double fma_per_second = gpu.fma_per_cycle * gpu.sms * gpu.ghz * 1e9;
  out.ratio("device.fma_per_byte", fma_per_second, gpu.memory_bandwidth);
  out.flag("device.is_cpu", gpu.is_cpu);
}

void write(const GpuParts& parts, std::span<const Nest> nests, const Query& query, RowWriter& out) {
  static const GpuRootMeasure kNone;
  const target::Gpu& gpu = query.target->gpu();
  const GpuRootMeasure& root = parts.root ? *parts.root : kNone;
  write_launch(root, gpu, out);
  write_limits(root, gpu, out);
  write_shares(parts, out);
  write_operand("first", parts.nest, read_of(parts.nest, 0), gpu.warp, out);
  write_operand("second_read", parts.nest, read_of(parts.nest, 1), gpu.warp, out);
  write_operand("result", parts.nest, parts.nest ? &parts.nest->accesses.back() : nullptr, gpu.warp,
                out);
  write_tiles(parts.nest, out);
  write_tails(parts.nest, query, out);
  write_steps(query, out);
  write_scopes(query, out);
  out.plain("all.statements", static_cast<double>(nests.size()));
  out.plain("all.main_operations", parts.operations / std::max(parts.all_operations, 1.0));
  const double main_seconds = parts.root ? std::min(root.seconds(gpu), kMostSeconds) : 0;
  out.plain("all.main_seconds", main_seconds / parts.seconds);
  out.count("all.nanoseconds", 1e9 * parts.seconds);
  out.ratio("all.nanoseconds_per_operation", 1e9 * parts.seconds, parts.all_operations);
  write_device(gpu, out);
}

}  // namespace

CandidateFeatures gpu_features(const Query& query) {
  CandidateFeatures features;
  features.row.resize(gpu_feature_names().size());
  const space::Candidate& candidate = *query.candidate;
  const target::Gpu& gpu = query.target->gpu();
  const std::vector<Nest> nests = analysis::build_nests(candidate.state, candidate.bounds);
  const GpuMeasure measure = analysis::measure_gpu(nests, candidate.state, candidate.bounds, gpu);
  const GpuParts parts = find_parts(nests, measure, gpu);
  RowWriter writer(features.row);
  write(parts, nests, query, writer);
  features.base_seconds = parts.seconds;
  features.bounds = bounds_of(measure, gpu);
  return features;
}

const std::vector<std::string>& gpu_feature_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    RowWriter writer(names);
    const target::Target target = {.name = "", .part = target::Gpu()};
    write(find_parts({}, GpuMeasure(), target.gpu()), {}, {nullptr, &target, 1, 0}, writer);
    return names;
  }();
  return kNames;
}

}  // namespace hone::cost
