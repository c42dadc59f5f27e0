#include "hone/analysis/gpu_measure.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace hone::analysis {
namespace {

using schedule::Annotation;

// Estimates of current GPUs.
constexpr int kSectorBytes = 32;          // unit of traffic between L2 and an SM
constexpr int kBanks = 32;                // of shared memory, 4 bytes wide
constexpr double kSectorsPerCycle = 4;    // that an SM's load unit handles
constexpr double kMathInstructions = 12;  // of exp or tanh, as multiply-adds
constexpr double kDivideInstructions = 8;
constexpr double kGlobalLatency = 500;  // cycles from a load to its value
constexpr double kSharedLatency = 30;
constexpr double kArithmeticLatency = 4;
constexpr double kBarrierCycles = 40;
constexpr double kOtherRegisters = 24;  // addresses and temporaries of a thread
constexpr double kSpillFactor = 4;      // slow-down of arithmetic whose registers do not suffice
constexpr double kL1Bytes = 64 << 10;   // what an SM keeps of global memory for its blocks
constexpr double kCacheShare = 0.7;     // share of L2 that one launch can count on

bool is_thread(const NestLoop& loop) { return schedule::is_thread_loop(loop.annotation); }

double product(const std::vector<NestLoop>& loops, bool (*wanted)(const NestLoop&)) {
  double all = 1;
  for (const NestLoop& loop : loops) all *= wanted(loop) ? static_cast<double>(loop.extent) : 1;
  return all;
}

bool is_grid(const NestLoop& loop) { return loop.annotation == Annotation::kParallel; }

// The first of the innermost loops that are unrolled or vectorized.
size_t body_of(const Nest& nest) {
  size_t first = nest.loops.size();
  while (first > 0 && (nest.loops[first - 1].annotation == Annotation::kUnroll ||
                       nest.loops[first - 1].annotation == Annotation::kVectorize)) {
    --first;
  }
  return first;
}

// The addresses, in bytes from the first one, that the lanes of a warp access at the same time.
std::vector<int64_t> lane_addresses(const Nest& nest, const NestAccess& access, int warp) {
  std::vector<int64_t> addresses;
  const double threads = product(nest.loops, is_thread);
  for (int lane = 0; lane < warp && lane < threads; ++lane) {
    int64_t rest = lane, address = 0;
    for (size_t i = nest.loops.size(); i-- > 0;) {
      if (!is_thread(nest.loops[i])) continue;
      address += rest % nest.loops[i].extent * access.stride(i);
      rest /= nest.loops[i].extent;
    }
    addresses.push_back(address * access.element_bytes);
  }
  return addresses;
}

double sectors_of(const std::vector<int64_t>& addresses) {
  std::set<int64_t> sectors;
  for (const int64_t a : addresses) sectors.insert(a / kSectorBytes);
  return static_cast<double>(sectors.size());
}

// Lanes that want different words of one bank take turns.
double conflicts_of(const std::vector<int64_t>& addresses) {
  std::set<int64_t> words;
  for (const int64_t a : addresses) words.insert(a / 4);
  std::vector<int> wanted(kBanks, 0);
  for (const int64_t word : words) ++wanted[static_cast<size_t>(word % kBanks)];
  return std::max(1, *std::max_element(wanted.begin(), wanted.end()));
}

// Elements of an access that one instruction of a thread moves, at most 16 bytes.
double vector_elements(const Nest& nest, const NestAccess& access) {
  if (nest.loops.empty()) return 1;
  const NestLoop& last = nest.loops.back();
  if (last.annotation != Annotation::kVectorize || access.stride(nest.loops.size() - 1) != 1)
    return 1;
  return std::min<double>(static_cast<double>(last.extent), 16.0 / access.element_bytes);
}

bool is_private(ir::Scope scope) {
  return scope == ir::Scope::kFragment || scope == ir::Scope::kRegister ||
         scope == ir::Scope::kStack || scope == ir::Scope::kThread;
}

void measure_access(const Nest& nest, const NestAccess& access, size_t body, const target::Gpu& gpu,
                    double blocks, GpuStageMeasure& out) {
  if (is_private(access.scope)) return;
  // An element that the unrolled loops touch is loaded once.
  const double elements = access.footprint(nest.loops, body);
  const double requests = elements / vector_elements(nest, access) * out.passes;
  const std::vector<int64_t> addresses = lane_addresses(nest, access, gpu.warp);
  if (access.scope == ir::Scope::kShared) {
    out.shared_requests += requests;
    out.shared_cycles += requests * conflicts_of(addresses);
    return;
  }
  out.global_requests += requests;
  const double sectors = sectors_of(addresses) * elements * out.passes;
  out.global_sectors += sectors;
  size_t inner = 0;  // first loop inside the grid
  while (inner < nest.loops.size() && is_grid(nest.loops[inner])) ++inner;
  const double warps = std::ceil(out.threads / gpu.warp);
  const double once = access.transfer_bytes(nest.loops, inner, kSectorBytes);
  const double each = sectors * kSectorBytes * warps;
  out.l2_bytes += once < kL1Bytes ? std::min(once, each) : each;
  out.unique_bytes += std::min(blocks * once, access.transfer_bytes(nest.loops, 0, kSectorBytes));
}

GpuStageMeasure measure_stage(const Nest& nest, const target::Gpu& gpu, double blocks) {
  GpuStageMeasure out;
  out.stage = nest.stage;
  out.threads = product(nest.loops, is_thread);
  const size_t body = body_of(nest);
  const double per_thread = nest.iterations() / (blocks * out.threads);
  const double points = nest.iterations(body);
  out.passes = per_thread / points;
  const compute::OpCounts& ops = nest.ops;
  const double simple =
      ops.fma + ops.add + std::max(0.0, ops.mul) + ops.compare + ops.select + 0.5 * ops.integer;
  out.arithmetic =
      per_thread * (simple + kMathInstructions * ops.math + kDivideInstructions * ops.div) +
      2 * out.passes;  // the loop around the body
  for (const NestAccess& access : nest.accesses)
    measure_access(nest, access, body, gpu, blocks, out);
  return out;
}

// The storage of a stage that lives in the blocks of a root.
void add_storage(const schedule::State& state, const schedule::Bounds& bounds, int stage,
                 GpuRootMeasure& root) {
  const schedule::StageState& s = state.stages[static_cast<size_t>(stage)];
  const auto& outputs = s.info->stage.outputs;
  for (size_t o = 0; o < outputs.size(); ++o) {
    double elements = 1;
    for (const int64_t d :
         schedule::storage_shape(s, bounds.stages[static_cast<size_t>(stage)], static_cast<int>(o)))
      elements *= static_cast<double>(d);
    elements *= static_cast<double>(std::max<int64_t>(s.pipeline_depth, 1));
    const double bytes = elements * dtype_bytes(outputs[o].buffer->dtype);
    if (s.scope == ir::Scope::kShared) root.shared_bytes += bytes;
    if (s.scope == ir::Scope::kFragment) root.registers += bytes / 4 / root.threads;
    if (s.scope == ir::Scope::kRegister || s.scope == ir::Scope::kStack)
      root.registers += bytes / 4;
  }
}

double resident_blocks(const GpuRootMeasure& root, const target::Gpu& gpu) {
  const double warps = std::ceil(root.threads / gpu.warp);
  if (root.threads > gpu.threads_per_block ||
      root.shared_bytes > static_cast<double>(gpu.shared_bytes_opt_in))
    return 0;
  double blocks = std::min<double>(gpu.blocks_per_sm, std::floor(gpu.warps_per_sm / warps));
  if (gpu.registers_per_sm > 0) {
    const double registers = std::min<double>(root.registers, gpu.registers_per_thread);
    const double each = std::ceil(registers / 8) * 8 * warps * gpu.warp;
    blocks = std::min(blocks, std::floor(gpu.registers_per_sm / each));
  }
  const double shared = root.shared_bytes + static_cast<double>(gpu.shared_bytes_reserved);
  if (shared > 0)
    blocks = std::min(blocks, std::floor(static_cast<double>(gpu.shared_bytes_per_sm) / shared));
  return blocks;
}

void sum_up(const target::Gpu& gpu, GpuRootMeasure& root) {
  for (const GpuStageMeasure& stage : root.stages) {
    const double warps = std::ceil(stage.threads / gpu.warp);
    root.arithmetic_cycles += stage.arithmetic * warps * gpu.warp / gpu.fma_per_cycle;
    root.memory_cycles +=
        warps * (std::max(stage.global_requests, stage.global_sectors / kSectorsPerCycle) +
                 stage.shared_cycles);
    root.l2_cycles += stage.l2_bytes / gpu.l2_bytes_per_cycle;
    root.l2_bytes += stage.l2_bytes * root.blocks;
    root.memory_bytes += stage.unique_bytes;
    // One pass waits for its loads, which are under way together; the next one waits for it.
    const double global = stage.global_requests > 0 ? kGlobalLatency : 0;
    const double shared = stage.shared_requests > 0 ? kSharedLatency : 0;
    root.latency_cycles += std::max(1.0, stage.passes) * std::max(global, shared) +
                           kArithmeticLatency * stage.arithmetic + kBarrierCycles;
  }
  if (root.registers > gpu.registers_per_thread) root.arithmetic_cycles *= kSpillFactor;
  // Blocks share what L2 keeps; what it cannot keep comes from memory for every block anew.
  const double kept = kCacheShare * static_cast<double>(gpu.l2_bytes);
  if (root.memory_bytes > kept) {
    const double lost = 1 - kept / root.memory_bytes;
    root.memory_bytes += lost * std::max(0.0, root.l2_bytes - root.memory_bytes);
  }
}

}  // namespace

double GpuRootMeasure::busiest_blocks(const target::Gpu& gpu) const {
  return std::ceil(blocks / gpu.sms);
}

double GpuRootMeasure::rounds(const target::Gpu& gpu) const {
  return resident_blocks < 1 ? INFINITY : std::ceil(busiest_blocks(gpu) / resident_blocks);
}

double GpuRootMeasure::memory_seconds(const target::Gpu& gpu) const {
  return gpu.memory_bandwidth > 0 ? memory_bytes / gpu.memory_bandwidth : 0;
}

double GpuRootMeasure::seconds(const target::Gpu& gpu) const {
  if (resident_blocks < 1) return INFINITY;
  const double throughput =
      busiest_blocks(gpu) * std::max({arithmetic_cycles, memory_cycles, l2_cycles});
  const double latency = rounds(gpu) * latency_cycles;
  // Other warps hide latency, so both times add up where there are few warps.
  const double cycles = std::max(throughput, latency) + 0.2 * std::min(throughput, latency);
  return std::max(cycles / (gpu.ghz * 1e9), memory_seconds(gpu)) + kLaunchSeconds;
}

double GpuMeasure::seconds(const target::Gpu& gpu) const {
  double total = 0;
  for (const GpuRootMeasure& root : roots) total += root.seconds(gpu);
  return total;
}

GpuMeasure measure_gpu(const schedule::State& state, const schedule::Bounds& bounds,
                       const target::Gpu& gpu) {
  GpuMeasure measure;
  const std::vector<Nest> nests = build_nests(state, bounds);
  const auto root_of = [&](int stage) -> GpuRootMeasure& {
    const auto found = std::find_if(measure.roots.begin(), measure.roots.end(),
                                    [&](const GpuRootMeasure& r) { return r.stage == stage; });
    if (found != measure.roots.end()) return *found;
    measure.roots.push_back({.stage = stage});
    return measure.roots.back();
  };
  for (const Nest& nest : nests) {
    GpuRootMeasure& root = root_of(nest.root);
    root.blocks = std::max(root.blocks, product(nest.loops, is_grid));
    root.threads = std::max(root.threads, product(nest.loops, is_thread));
  }
  for (const Nest& nest : nests) {
    GpuRootMeasure& root = root_of(nest.root);
    root.stages.push_back(measure_stage(nest, gpu, root.blocks));
    if (nest.stage != nest.root) add_storage(state, bounds, nest.stage, root);
  }
  for (GpuRootMeasure& root : measure.roots) {
    root.registers += kOtherRegisters;
    root.resident_blocks = resident_blocks(root, gpu);
    sum_up(gpu, root);
  }
  return measure;
}

}  // namespace hone::analysis
