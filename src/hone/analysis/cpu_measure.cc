#include "hone/analysis/cpu_measure.h"

#include <algorithm>
#include <cmath>

#include "hone/analysis/cache_rates.h"
#include "hone/analysis/loop_body.h"
#include "hone/tensor/half_tensor.h"

namespace hone::analysis {
namespace {

using schedule::Annotation;

// Cycles per vector instruction beyond the multiply-add and load ports; estimates of the usual
// cores.
constexpr double kMathCycles = 12;  // a polynomial of exp or tanh
constexpr double kDivideCycles = 8;
// Multiply-adds that a vector costs which is loaded in fewer bits: extend and shift.
constexpr double kWidenInstructions = 2;
// A model's own float16 and bfloat16, in vectors of so many bytes, are widened beside the
// multiply-adds, and delay these the more the more such instructions there are in a cycle of
// multiply-adds, up to a part of a cycle each. Fitted to Zen 3: a tile of 4 rows and 2 vectors
// takes 1.09 and 1.16 of float32's time, one of 6 rows 1.00 and 1.03 (docs/studies/models.md).
// Trees have learned what weights cost that a schedule rounds.
constexpr int kHalfVectorBytes = 32;
constexpr double kWidenHalf = 1.5, kWidenBrainFloat = 2;  // instructions of a vector
constexpr double kWidenDelay = 0.16;                      // cycles of one, where each cycle has one
constexpr double kMostWidenDelay = 0.25;
constexpr double kLoopCycles = 1.0;   // per iteration of a loop that is not unrolled
constexpr double kSpillCycles = 1.0;  // per register too many and body
constexpr double kIssueWidth = 4;     // vector instructions and loads started per cycle
constexpr double kTestCycles = 2;     // a test in an unrolled body
// Multiply-adds of half the width or less, a cycle, where those of 64 bytes run in two halves, one
// a cycle: 2, less what twice the instructions cost (fitted to measured schedules of Zen 4).
constexpr double kHalvesPerCycle = 1.6;
constexpr double kHalvingCycles = 6;  // until the lanes of a vector are added to the other half
// For a body whose lanes read elements of several groups, this is the factor over the greatest of
// its limits, which compete for ports (measured on Zen 5: 58 for 45 cycles, 47 to 56 for 36).
constexpr double kPermutedBody = 1.5;
constexpr int64_t kFirstLevelSets = 64;  // a page has this many lines, and the tag is physical

// Loads of a body, and what they keep in registers.
struct Loads {
  double slots = 0;         // of the load ports
  double distinct = 0;      // different vectors
  double widening = 0;      // multiply-adds' worth of making elements as wide as the result's
  double beside = 0;        // instructions that do so beside the multiply-adds
  double permutations = 0;  // of lanes
  double held = 0;          // vectors that wait in registers
  bool shared = false;      // several points share vectors of a window, which wait in registers
  double orders = 0;        // vectors of numbers by which lanes are permuted
};

// Adds what making the elements of so many vectors as wide as the result's takes.
void add_widening(const Nest& nest, const NestAccess& access, const target::Cpu& target,
                  double vectors, Loads& loads) {
  if (access.element_bytes >= nest.accesses.back().element_bytes) return;
  const DType dtype = access.buffer->dtype;
  if (!is_half(dtype) || access.narrowed || target.vector_bytes != kHalfVectorBytes)
    loads.widening += kWidenInstructions * vectors;
  else
    loads.beside += (dtype == DType::kF16 ? kWidenHalf : kWidenBrainFloat) * vectors;
}

Loads measure_loads(const Nest& nest, const Body& body, const target::Cpu& target) {
  Loads loads;
  for (const NestAccess& access : nest.accesses) {
    if (access.write) continue;
    double slots = access.scope == ir::Scope::kRegister ? 0 : access_slots(nest, access, body);
    if (slots > 0) {
      const double distinct =
          distinct_vectors(nest, access, body, access.footprint(nest.loops, body.first));
      loads.distinct += std::min(slots, distinct);
      const double once = distinct * split_factor(nest, access, body.plan.lanes);
      if (once < slots) loads.shared = true, slots = once;
    }
    if (reads_by_parts(nest, access)) {
      loads.permutations += slots;
      // One vector of memory for several terms of the sum, in an order for each.
      if (const double terms = terms_of_vector(nest, access, body); terms > 1)
        loads.orders = terms, loads.shared = true;
    }
    loads.slots += slots;
    add_widening(nest, access, target, slots, loads);
    if (body.is_vector && access.moves_with(nest.loops.size() - 1))
      loads.held = std::max(loads.held, held_vectors(nest, access, body));
  }
  return loads;
}

// Returns the multiply-adds that the target starts in each cycle.
double fmas_per_cycle(const Body& body, const target::Cpu& target) {
  const bool halves = body.is_vector && !body.fused && body.plan.width * 2 <= body.plan.lanes &&
                      target.fma_per_cycle == 1 && target.vector_bytes >= kLineBytes;
  return halves ? kHalvesPerCycle : target.fma_per_cycle;
}

// Returns the cycles by which instructions beside so many cycles of multiply-adds delay these.
double delay_cycles(double instructions, double cycles) {
  if (instructions == 0) return 0;
  return instructions * std::min(kMostWidenDelay, kWidenDelay * instructions / cycles);
}

// Returns the cycles of the tests in an unrolled body.
double test_cycles(const Nest& nest, const Body& body) {
  double tests = nest.ops.select;
  for (size_t i = body.first; i < nest.loops.size(); ++i)
    tests *= nest.tests[i] ? vector_count(nest.loops[i], body.plan.lanes) : 1;
  return kTestCycles * tests;
}

void measure_compute(const Nest& nest, const Body& body, const target::Cpu& target,
                     StageMeasure& out) {
  const NestAccess& write = nest.accesses.back();
  const bool in_registers = write.scope == ir::Scope::kRegister;
  const bool reduces =
      std::any_of(nest.loops.begin() + static_cast<std::ptrdiff_t>(nest.outer), nest.loops.end(),
                  [](const NestLoop& loop) { return loop.reduce; });
  Loads loads = measure_loads(nest, body, target);
  out.distinct_loads = loads.distinct;
  double accumulators = 1;
  for (size_t i = body.first; i < nest.loops.size(); ++i) {
    if (write.moves_with(i)) accumulators *= vector_count(nest.loops[i], body.plan.lanes);
  }
  const double held =
      (loads.shared ? std::max(loads.held, accumulators) : loads.held) + loads.orders;
  const double stores = in_registers ? 0 : access_slots(nest, write, body);
  if (reduces && !in_registers) loads.slots += stores;  // read, add, write back
  const OpCounts& ops = nest.ops;
  // A test that all lanes share chooses an address.
  const double choices = body.is_vector && !nest.tests.back() ? 0 : ops.select;
  const double arithmetic = ops.fma + ops.add + std::max(0.0, ops.mul) + ops.compare + choices;
  const double per_cycle = fmas_per_cycle(body, target);
  double flops =
      body.vectors * arithmetic * (reduces ? unshared_additions(nest, body) : 1) + loads.widening;
  flops += delay_cycles(loads.beside, flops / per_cycle) * per_cycle;
  out.bounds = {flops / per_cycle, loads.slots / target.loads_per_cycle, stores,
                (flops + loads.permutations + 0.5 * loads.slots + stores) / kIssueWidth, 0};
  const BodyCycles& bounds = out.bounds;
  if (reduces)
    out.bounds.latency =
        target.fma_latency * body.vectors / accumulators * std::max(1.0, arithmetic);
  double cycles =
      std::max({bounds.arithmetic, bounds.loads, bounds.stores, bounds.issue, bounds.latency,
                loads.permutations});  // one a cycle, beside the multiply-adds
  if (loads.permutations > 0) cycles *= kPermutedBody;
  cycles += body.vectors * (kMathCycles * ops.math + kDivideCycles * ops.div);
  cycles += test_cycles(nest, body);
  out.registers = in_registers ? accumulators + held + 1 : held + 2;
  cycles += kSpillCycles * std::max(0.0, out.registers - target.vector_registers);
  // The lanes of a register tile are summed up by halves: one after the other, tiles side by side.
  if (body.is_vector && nest.loops.back().reduce && in_registers)
    cycles += std::log2(body.plan.lanes) * (kHalvingCycles + accumulators);
  if (body.is_square()) cycles += body.vectors * std::log2(body.plan.lanes);  // a shuffle a cycle
  cycles += kLoopCycles;
  out.body = body.first;
  out.accumulators = accumulators;
  out.body_instructions = flops + loads.slots + stores;
  out.body_cycles = cycles;
  double iterations = 1;
  for (size_t i = 0; i < body.first; ++i) iterations *= static_cast<double>(nest.loops[i].extent);
  out.compute_cycles = cycles * iterations * nest.useful;
  // An instruction footprint beyond the first-level cache is fetched again and again.
  if (out.body_instructions > 3000) out.compute_cycles *= 1.5;
}

// Bytes that cross into each cache level: the nest's data fit from some loop inwards; one loop
// further out every access is fetched once per iteration of the loops around it, unless it does not
// move with that loop.
void measure_traffic(const Nest& nest, const Body& body, const target::Cpu& target, int threads,
                     StageMeasure& out) {
  const size_t depth = nest.loops.size();
  const size_t count = nest.accesses.size();
  // Per number of loops outside: of each access, of all of them, and of all in the first level.
  std::vector<double> table((depth + 1) * (count + 2), 0);
  const std::span<double> footprint = std::span(table).first((depth + 1) * count);
  const std::span<double> total = std::span(table).subspan((depth + 1) * count, depth + 1);
  const std::span<double> first_level = std::span(table).last(depth + 1);
  // Register tiles of products live on few lines at a time; where nothing is multiplied, lines that
  // fall into the same sets are what decides (docs/studies/other_operators.md).
  const bool conflicts = nest.ops.fma == 0;
  for (size_t a = 0; a < count; ++a) {
    const NestAccess& access = nest.accesses[a];
    if (access.scope == ir::Scope::kRegister || access.scope == ir::Scope::kStack) continue;
    for (size_t k = 0; k <= depth; ++k) {
      footprint[k * count + a] = access.transfer_bytes(nest.loops, k, kLineBytes);
      total[k] += footprint[k * count + a];
      first_level[k] += conflicts
                            ? access.occupied_bytes(nest.loops, k, kLineBytes, kFirstLevelSets)
                            : footprint[k * count + a];
    }
  }
  // A square that is turned in registers touches each of its lines once.
  const size_t innermost = body.is_square() ? depth - 2 : depth;
  out.bytes.reserve(target.caches.size());
  out.caches.reserve(target.caches.size());
  for (size_t level = 0; level < target.caches.size(); ++level) {
    const double capacity = usable_bytes(target.caches[level], threads);
    size_t fits = 0;
    const std::span<double> needed = level == 0 ? first_level : total;
    while (fits < innermost && needed[fits] > capacity) ++fits;
    const size_t outside = fits == 0 ? 0 : fits - 1;
    CacheUse use{fits, needed[fits] / capacity, needed[outside] / capacity};
    double bytes = 0;
    if (fits == 0) {
      bytes = level == 0 ? total[0] : 0;  // warm: it is there already
    } else {
      double repeats = 1;
      for (size_t i = 0; i < outside; ++i) repeats *= static_cast<double>(nest.loops[i].extent);
      for (size_t a = 0; a < count; ++a) {
        const double moved = footprint[outside * count + a] * repeats;
        bytes += moved;
        if (nest.accesses[a].constant) use.constant_bytes += moved;
        if (nest.accesses[a].write) use.written_bytes += moved;
      }
    }
    out.bytes.push_back(bytes);
    out.caches.push_back(use);
  }
}

}  // namespace

CpuMeasure measure_cpu(const schedule::State& state, const schedule::Bounds& bounds,
                       const target::Cpu& target, int threads) {
  return measure_cpu(build_nests(state, bounds), target, threads);
}

CpuMeasure measure_cpu(std::span<const Nest> nests, const target::Cpu& target, int threads) {
  CpuMeasure measure;
  for (const Nest& nest : nests) {
    auto root = std::find_if(measure.roots.begin(), measure.roots.end(),
                             [&](const RootMeasure& r) { return r.stage == nest.root; });
    if (root == measure.roots.end()) {
      measure.roots.push_back({nest.root, 1, {}, 0, std::vector<double>(target.caches.size(), 0)});
      root = measure.roots.end() - 1;
      for (const NestLoop& loop : nest.loops) {
        if (loop.annotation == Annotation::kParallel)
          root->tiles *= static_cast<double>(loop.extent);
      }
    }
    StageMeasure stage;
    stage.stage = nest.stage;
    const Body body = find_body(nest, target);
    measure_compute(nest, body, target, stage);
    measure_traffic(nest, body, target, threads, stage);
    root->compute_cycles += stage.compute_cycles;
    for (size_t level = 0; level < target.caches.size(); ++level)
      root->level_cycles[level] += transfer_cycles(target, level, stage.bytes[level]);
    root->stages.push_back(std::move(stage));
  }
  return measure;
}

double RootMeasure::busiest_share(int threads) const {
  return std::ceil(tiles / std::min<double>(threads, tiles)) / tiles;
}

double RootMeasure::seconds(const target::Cpu& target, int threads) const {
  double slowest = compute_cycles, sum = compute_cycles;
  for (const double cycles : level_cycles) {
    slowest = std::max(slowest, cycles);
    sum += cycles;
  }
  // Transfers hide behind computation, but not wholly.
  const double cycles = slowest + 0.2 * (sum - slowest);
  const double fork_join = std::min<double>(threads, tiles) > 1 ? kForkJoinSeconds : 0;
  return cycles * busiest_share(threads) / (target.ghz * 1e9) + fork_join;
}

double CpuMeasure::seconds(const target::Cpu& target, int threads) const {
  double total = 0;
  for (const RootMeasure& root : roots) total += root.seconds(target, threads);
  return total;
}

}  // namespace hone::analysis
