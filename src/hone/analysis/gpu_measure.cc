#include "hone/analysis/gpu_measure.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "hone/analysis/gpu_access.h"
#include "hone/analysis/gpu_body_measure.h"
#include "hone/analysis/gpu_estimates.h"
#include "hone/analysis/gpu_registers.h"

namespace hone::analysis {
namespace {

using schedule::Annotation;

// Estimates of current GPUs.
constexpr double kMatrixLatency = 33;
constexpr double kRequestBytes = 512;      // that a warp moves by one instruction at most
constexpr double kWavefrontBytes = 128;    // that shared memory gives in a cycle
constexpr double kOtherRegisters = 24;     // addresses and temporaries of a thread
constexpr double kSpillFactor = 4;         // slow-down of arithmetic whose registers do not suffice
constexpr double kL1Bytes = 24 << 10;      // of an SM beyond its shared memory, which it adds to
constexpr double kLeastL1Bytes = 2 << 10;  // what a block can count on
constexpr double kCacheShare = 0.7;        // share of L2 that one launch can count on
constexpr double kMemoryShare = 0.9;       // of the bandwidth that copies reach
constexpr double kOverlap = 0.8;  // part of the shorter of two times that the longer one hides

bool is_thread(const NestLoop& loop) { return schedule::is_thread_loop(loop.annotation); }
bool is_grid(const NestLoop& loop) { return loop.annotation == Annotation::kParallel; }

double product(const std::vector<NestLoop>& loops, bool (*wanted)(const NestLoop&)) {
  double all = 1;
  for (const NestLoop& loop : loops) all *= wanted(loop) ? static_cast<double>(loop.extent) : 1;
  return all;
}

// Returns whether the lanes of a warp run the inner loops together.
bool is_of_warps(const Nest& nest) {
  const auto has = [&](Annotation annotation) {
    return std::any_of(nest.loops.begin(), nest.loops.end(),
                       [&](const NestLoop& loop) { return loop.annotation == annotation; });
  };
  return has(Annotation::kWarp) && !has(Annotation::kLane);
}

// Returns whether a warp reduces what its lanes have, each one term of a sum.
bool reduces_lanes(const Nest& nest, const schedule::State& state) {
  if (!is_of_warps(nest)) return false;
  return std::any_of(nest.accesses.begin(), nest.accesses.end(), [&](const NestAccess& access) {
    if (access.write || access.scope != ir::Scope::kFragment) return false;
    return std::any_of(
        state.stages.begin(), state.stages.end(), [&](const schedule::StageState& stage) {
          const auto threads = stage.thread_loops();
          return stage.buffer().get() == access.buffer && !threads.empty() &&
                 stage.loops[static_cast<size_t>(threads.back())].annotation == Annotation::kLane;
        });
  });
}

double threads_of(const Nest& nest, const target::Gpu& gpu) {
  return product(nest.loops, is_thread) * (is_of_warps(nest) ? gpu.warp : 1);
}

// The fastest instruction for the matrices of a nest; null if it has none or there is none.
const target::MatrixInstruction* matrix_of(const Nest& nest, const target::Gpu& gpu) {
  if (nest.loops.empty() || nest.loops.back().annotation != Annotation::kMatrix) return nullptr;
  const target::MatrixInstruction* best = nullptr;
  for (const target::MatrixInstruction& one : gpu.matrix) {
    if (one.warp_group || one.input != nest.accesses.front().buffer->dtype ||
        one.accumulator != nest.accesses.back().buffer->dtype)
      continue;
    if (best == nullptr || one.fma_per_cycle > best->fma_per_cycle) best = &one;
  }
  return best;
}

// Traffic with memory of all blocks: what they touch together, once if L2 keeps it. Else the blocks
// that run at the same time share what they touch, and the next ones fetch it again.
// They touch `unique` bytes of the loops' `extents`.
double memory_bytes(const Nest& nest, const NestAccess& access, Extents extents, double unique,
                    double running, double kept) {
  if (unique <= kept) return unique;
  double together = 1, rounds = 1;  // neighbouring blocks run together
  for (size_t i = nest.loops.size(); i-- > 0;) {
    if (!is_grid(nest.loops[i])) continue;
    const auto extent = static_cast<double>(nest.loops[i].extent);
    const double part = std::clamp(std::floor(running / together), 1.0, extent);
    extents[i] = static_cast<int64_t>(part);
    together *= part, rounds *= std::ceil(extent / part);
  }
  const double again = std::max(0.0, rounds * sector_bytes(access, extents) - unique);
  return unique + (1 - kept / unique) * again;
}

// The loops, as stage and loop, that have other stages inside.
using LoopSet = std::set<std::pair<int, int>>;

class StageMeter {
 public:
  // `exchanges`: the nest reduces_lanes().
  StageMeter(const Nest& nest, const target::Gpu& gpu, const GpuRootMeasure& root,
             const LoopSet& shared, bool exchanges)
      : nest_(nest),
        gpu_(gpu),
        root_(root),
        shared_(shared),
        body_(gpu_body(nest)),
        lanes_(is_of_warps(nest) ? gpu.warp : 1),
        matrix_(matrix_of(nest, gpu)),
        exchanges_(exchanges) {}

  GpuStageMeasure measure(int64_t slots) {
    out_.stage = nest_.stage;
    out_.threads = threads_of(nest_, gpu_);
    out_.ahead = static_cast<double>(std::max<int64_t>(slots - 1, 0));
    const double per_thread = nest_.iterations() / (root_.blocks * out_.threads);
    out_.passes = per_thread / nest_.iterations(body_) * lanes_;
    for (const NestLoop& loop : nest_.loops) {
      if (is_thread(loop)) break;
      if (!is_grid(loop) && shared_.contains({loop.stage, loop.loop}))
        out_.turns *= static_cast<double>(loop.extent);
    }
    out_.turns = std::min(out_.turns, out_.passes);
    for (size_t i = body_; i < nest_.loops.size(); ++i) {
      if (nest_.accesses.back().moves_with(i))
        out_.independent *= static_cast<double>(nest_.loops[i].extent);
    }
    count_instructions(per_thread);
    measure_accesses();
    if (exchanges_) add_shuffles(per_thread);
    find_cycles();
    return out_;
  }

 private:
  // The lanes reduce in as many steps as it takes to double one lane's terms to all of the warp, in
  // each of which one waits for another. The unit of shared memory passes their values on.
  void add_shuffles(double results) {
    const double steps = results * std::log2(gpu_.warp);
    out_.arithmetic += steps - results;
    out_.shared_requests += steps;
    out_.shared_cycles += steps;
    shuffles_ = steps;
  }

  void count_instructions(double per_thread) {
    const compute::OpCounts& ops = nest_.ops;
    double instructions = ops.fma + ops.add + std::max(0.0, ops.mul) + ops.compare + ops.select +
                          0.5 * ops.integer + kMathInstructions * ops.math +
                          kDivideInstructions * ops.div;
    if (matrix_ != nullptr) {
      const double points = static_cast<double>(matrix_->m) * matrix_->n * matrix_->k;
      out_.independent = std::max(1.0, out_.independent / (matrix_->m * matrix_->n));
      out_.matrix = per_thread * gpu_.warp / points;
      instructions = gpu_.warp / points;
    }
    out_.arithmetic = per_thread * instructions + 2 * out_.passes;  // the loop around the body
  }

  // Returns what a warp that runs the body together needs for an access: it moves a box of
  // elements.
  [[nodiscard]] WarpAccess box_access(const NestAccess& access) const {
    Extents inside;
    for (size_t i = 0; i < nest_.loops.size(); ++i)
      inside.push_back(i < body_ ? 1 : nest_.loops[i].extent);
    const double bytes = access.footprint(nest_.loops, body_) * access.element_bytes;
    const double requests = std::ceil(bytes / kRequestBytes);
    return {.elements = access.footprint(nest_.loops, body_) / requests,
            .sectors = sector_bytes(access, inside) / kSectorBytes / requests,
            .wavefronts = std::ceil(bytes / kWavefrontBytes) / requests};
  }

  // Blocks that an SM has at the same time.
  [[nodiscard]] double blocks_together() const {
    return std::max(1.0, std::min(root_.resident_blocks, root_.busiest_blocks(gpu_)));
  }

  // An element that the unrolled loops touch is loaded once; the box around those may have others.
  [[nodiscard]] double elements_of_body(const NestAccess& access) const {
    double points = access.reads;
    for (size_t i = body_; i < nest_.loops.size(); ++i)
      points *= access.moves_with(i) ? static_cast<double>(nest_.loops[i].extent) : 1;
    return std::min(access.footprint(nest_.loops, body_), points);
  }

  void measure_accesses() {
    const double together = blocks_together();
    const double free =
        static_cast<double>(gpu_.shared_bytes_per_sm) + kL1Bytes - root_.shared_bytes * together;
    const double cache = std::max(kLeastL1Bytes, free / together);
    const CachedLoops cached = cached_loops(nest_, body_, cache);
    const double running = root_.resident_blocks * gpu_.sms;
    const double share = kCacheShare * static_cast<double>(gpu_.l2_bytes);
    Extents all;
    for (const NestLoop& loop : nest_.loops) all.push_back(loop.extent);
    for (const NestAccess& access : nest_.accesses) {
      if (is_private(access.scope)) continue;
      const WarpAccess warp =
          lanes_ > 1 ? box_access(access) : warp_access(nest_, access, gpu_.warp);
      const double requests = std::ceil(elements_of_body(access) / warp.elements) * out_.passes;
      if (access.scope == ir::Scope::kShared) {
        out_.shared_requests += requests;
        out_.shared_cycles += requests * warp.wavefronts;
        continue;
      }
      out_.global_requests += requests;
      out_.global_sectors += requests * warp.sectors;
      const double each =
          requests * warp.sectors * kSectorBytes * std::ceil(out_.threads / gpu_.warp);
      const double kept = cached.times * sector_bytes(access, cached.extents);
      const double l2 = cached.fits ? std::min(each, kept) : each;
      out_.l2_bytes += l2;
      if (!access.write) {
        loads_ += requests;
        loaded_bytes_ += l2;
        touched_bytes_ += requests * warp.sectors * kSectorBytes;
      }
      const double unique = sector_bytes(access, all);
      out_.memory_bytes += std::min(memory_bytes(nest_, access, all, unique, running, share),
                                    std::max(unique, l2 * root_.blocks));
    }
  }

  void find_cycles() {
    const double warps = std::ceil(out_.threads / gpu_.warp);
    const double each = warps * gpu_.warp / gpu_.fma_per_cycle;
    const double requests = out_.global_requests + out_.shared_requests;
    const double issue = warps * (out_.arithmetic + requests) / kSchedulers;
    out_.unit_cycles =
        warps * (std::max(out_.global_requests, out_.global_sectors / kSectorsPerCycle) +
                 out_.shared_cycles);
    out_.compute_cycles = std::max((out_.arithmetic - out_.matrix) * each, issue);
    double slot = std::max(1.0, kSchedulers * gpu_.warp / gpu_.fma_per_cycle);
    double latency_of_one = kArithmeticLatency;
    if (matrix_ != nullptr) {
      const double points = static_cast<double>(matrix_->m) * matrix_->n * matrix_->k;
      const double cycles = points / matrix_->fma_per_cycle;
      out_.compute_cycles = std::max(out_.compute_cycles, warps * out_.matrix * cycles);
      slot = std::max(1.0, kSchedulers * cycles);
      latency_of_one = kMatrixLatency;
    }
    out_.busy_cycles =
        std::max({out_.compute_cycles, out_.unit_cycles, out_.l2_bytes / gpu_.l2_bytes_per_cycle});
    // A thread that sums up starts its loads of global memory one after the other: kernels of an
    // H100 that load operands where they use them take 50 to 180 cycles for each. Others start
    // those of some passes together.
    const double waits = out_.turns * std::ceil(out_.passes / out_.turns / kPassesTogether);
    const bool sums = std::any_of(
        nest_.loops.begin() + static_cast<std::ptrdiff_t>(nest_.outer), nest_.loops.end(),
        [](const NestLoop& loop) { return loop.reduce && loop.extent > 1; });
    const double loads = sums ? loads_ : std::min(loads_, waits);
    const double far =
        std::clamp(out_.memory_bytes / std::max(1.0, out_.l2_bytes * root_.blocks), 0.0, 1.0);
    // Blocks that reside on an SM find in part what others have brought there.
    const double missed =
        std::clamp(loaded_bytes_ / std::max(1.0, touched_bytes_ * warps), 0.0, 1.0) /
        std::sqrt(blocks_together());
    const double latency = kL1Latency + missed * (kL2Latency + far * (kMemoryLatency - kL2Latency));
    const double shared = out_.shared_requests > shuffles_ ? kSharedLatency : 0;
    out_.wait_cycles = loads * latency + waits * shared + shuffles_ * kShuffleLatency;
    if (out_.ahead > 0) out_.wait_cycles = out_.turns * latency;  // nothing waits for its start
    out_.latency_cycles = requests +
                          out_.arithmetic * std::max(slot, latency_of_one / out_.independent) +
                          (exchanges_ ? 0 : out_.turns * kBarrierCycles);
  }

  const Nest& nest_;
  const target::Gpu& gpu_;
  const GpuRootMeasure& root_;
  const LoopSet& shared_;
  size_t body_;
  double lanes_;                             // that run the body together
  const target::MatrixInstruction* matrix_;  // null: the lanes compute
  bool exchanges_;
  double shuffles_ = 0;  // instructions by which the lanes exchange values
  // Requests of a warp for loads from global memory, the bytes of their sectors, and the bytes that
  // come from L2 for all warps.
  double loads_ = 0, touched_bytes_ = 0, loaded_bytes_ = 0;
  GpuStageMeasure out_;
};

// The shared memory of a stage that lives in the blocks of a root.
void add_storage(const schedule::State& state, const schedule::Bounds& bounds, int stage,
                 GpuRootMeasure& root) {
  const schedule::StageState& s = state.stages[static_cast<size_t>(stage)];
  if (s.scope != ir::Scope::kShared) return;
  const auto& outputs = s.info->stage.outputs;
  for (size_t o = 0; o < outputs.size(); ++o) {
    double elements = 1;
    for (const int64_t d :
         schedule::storage_shape(s, bounds.stages[static_cast<size_t>(stage)], static_cast<int>(o)))
      elements *= static_cast<double>(d);
    elements *= static_cast<double>(std::max<int64_t>(s.pipeline_depth, 1));
    root.shared_bytes += elements * dtype_bytes(outputs[o].buffer->dtype);
  }
}

// A compiler is told the size of a block, so that the registers of its threads fit an SM.
double register_limit(const GpuRootMeasure& root, const target::Gpu& gpu) {
  double limit = gpu.registers_per_thread;
  if (gpu.registers_per_sm > 0)
    limit =
        std::min(limit, std::floor(gpu.registers_per_sm / (root.warps(gpu) * gpu.warp * 8)) * 8);
  return std::max(limit, 8.0);
}

double resident_blocks(const GpuRootMeasure& root, const target::Gpu& gpu) {
  const double warps = root.warps(gpu);
  if (root.threads > gpu.threads_per_block ||
      root.shared_bytes > static_cast<double>(gpu.shared_bytes_opt_in))
    return 0;
  double blocks = std::min<double>(gpu.blocks_per_sm, std::floor(gpu.warps_per_sm / warps));
  if (gpu.registers_per_sm > 0) {
    const double registers = std::min(root.registers, root.register_limit);
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
    root.arithmetic_cycles += stage.compute_cycles;
    root.memory_cycles += stage.unit_cycles;
    root.l2_cycles += stage.l2_bytes / gpu.l2_bytes_per_cycle;
    root.l2_bytes += stage.l2_bytes * root.blocks;
    root.memory_bytes += stage.memory_bytes;
    root.latency_cycles += stage.latency_cycles + (stage.ahead > 0 ? 0 : stage.wait_cycles);
  }
  // Loads that are started ahead arrive while the block does the turns between.
  double ahead = 0;
  for (const GpuStageMeasure& stage : root.stages) {
    if (stage.ahead > 0) ahead = std::max(ahead, stage.wait_cycles / stage.ahead);
  }
  root.latency_cycles = std::max(root.latency_cycles, ahead);
  if (root.registers > root.register_limit) root.arithmetic_cycles *= kSpillFactor;
}

}  // namespace

size_t gpu_body(const Nest& nest) {
  size_t first = nest.loops.size();
  if (is_of_warps(nest)) {
    while (!is_thread(nest.loops[first - 1])) --first;
    return first;
  }
  while (first > 0 && (nest.loops[first - 1].annotation == Annotation::kUnroll ||
                       nest.loops[first - 1].annotation == Annotation::kVectorize)) {
    --first;
  }
  return first;
}

double GpuRootMeasure::warps(const target::Gpu& gpu) const { return std::ceil(threads / gpu.warp); }

double GpuRootMeasure::busiest_blocks(const target::Gpu& gpu) const {
  return std::ceil(blocks / gpu.sms);
}

double GpuRootMeasure::rounds(const target::Gpu& gpu) const {
  return resident_blocks < 1 ? INFINITY : std::ceil(busiest_blocks(gpu) / resident_blocks);
}

double GpuTimes::seconds() const {
  // Other warps hide what one waits for, so times add up in part where there are few warps.
  const double throughput = std::max({arithmetic, units, l2});
  const double on_sm =
      std::max(throughput, latency) + (1 - kOverlap) * std::min(throughput, latency);
  return std::max(on_sm, memory) + kLaunchSeconds;
}

GpuTimes GpuRootMeasure::times(const target::Gpu& gpu) const {
  const double cycle = 1e-9 / gpu.ghz, busiest = busiest_blocks(gpu) * cycle;
  return {.arithmetic = busiest * arithmetic_cycles,
          .units = busiest * memory_cycles,
          .l2 = busiest * l2_cycles,
          .latency = rounds(gpu) * latency_cycles * cycle,
          .memory =
              gpu.memory_bandwidth > 0 ? memory_bytes / (kMemoryShare * gpu.memory_bandwidth) : 0};
}

double GpuRootMeasure::seconds(const target::Gpu& gpu) const {
  return resident_blocks < 1 ? INFINITY : times(gpu).seconds();
}

double GpuMeasure::seconds(const target::Gpu& gpu) const {
  double total = 0;
  for (const GpuRootMeasure& root : roots) total += root.seconds(gpu);
  return total;
}

GpuMeasure measure_gpu(std::span<const Nest> nests, const schedule::State& state,
                       const schedule::Bounds& bounds, const target::Gpu& gpu) {
  GpuMeasure measure;
  const auto root_of = [&](int stage) -> GpuRootMeasure& {
    const auto found = std::find_if(measure.roots.begin(), measure.roots.end(),
                                    [&](const GpuRootMeasure& r) { return r.stage == stage; });
    if (found != measure.roots.end()) return *found;
    measure.roots.push_back({.stage = stage, .registers = kOtherRegisters});
    return measure.roots.back();
  };
  for (const Nest& nest : nests) {
    GpuRootMeasure& root = root_of(nest.root);
    root.blocks = std::max(root.blocks, product(nest.loops, is_grid));
    root.threads = std::max(root.threads, threads_of(nest, gpu));
  }
  for (const Nest& nest : nests) {
    if (nest.stage != nest.root) add_storage(state, bounds, nest.stage, root_of(nest.root));
  }
  for (GpuRootMeasure& root : measure.roots)
    root.registers += live_registers(state, bounds, root.stage, root.threads);
  const std::vector<GpuRootMeasure> bodies = measure_bodies(state, bounds, gpu);
  measure.roots.insert(measure.roots.end(), bodies.begin(), bodies.end());
  std::stable_sort(measure.roots.begin(), measure.roots.end(),
                   [](const auto& a, const auto& b) { return a.stage < b.stage; });
  for (GpuRootMeasure& root : measure.roots) {
    root.registers = std::max(root.registers, kOtherRegisters);
    root.register_limit = register_limit(root, gpu);
    root.resident_blocks = resident_blocks(root, gpu);
  }
  LoopSet shared;
  for (const Nest& nest : nests) {
    for (size_t i = 0; i < nest.outer; ++i) shared.emplace(nest.loops[i].stage, nest.loops[i].loop);
  }
  for (const Nest& nest : nests) {
    GpuRootMeasure& root = root_of(nest.root);
    const int64_t slots = state.stages[static_cast<size_t>(nest.stage)].pipeline_depth;
    root.stages.push_back(
        StageMeter(nest, gpu, root, shared, reduces_lanes(nest, state)).measure(slots));
  }
  for (GpuRootMeasure& root : measure.roots) sum_up(gpu, root);
  return measure;
}

GpuMeasure measure_gpu(const schedule::State& state, const schedule::Bounds& bounds,
                       const target::Gpu& gpu) {
  return measure_gpu(build_nests(state, bounds), state, bounds, gpu);
}

}  // namespace hone::analysis
