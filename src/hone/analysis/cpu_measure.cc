#include "hone/analysis/cpu_measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone::analysis {
namespace {

using schedule::Annotation;

// Cycles per vector instruction beyond the multiply-add and load ports; estimates of the usual
// cores.
constexpr double kMathCycles = 12;  // a polynomial of exp or tanh
constexpr double kDivideCycles = 8;
// For a vector that is loaded in fewer bits: extend and shift.
constexpr double kWidenInstructions = 2;
// Load or store slots per element of a strided vector access.
constexpr double kGatherSlots = 1.6, kScatterSlots = 1.2;
constexpr double kLoopCycles = 1.0;   // per iteration of a loop that is not unrolled
constexpr double kSpillCycles = 1.0;  // per register too many and body
constexpr double kIssueWidth = 4;     // vector instructions and loads started per cycle
constexpr double kCacheShare = 0.75;  // share of a cache that one loop nest can count on
constexpr double kTestCycles = 2;     // a test in an unrolled body
// Multiply-adds of half the width or less, a cycle, where those of 64 bytes run in two halves, one
// a cycle: 2, less what twice the instructions cost (fitted to measured schedules of Zen 4).
constexpr double kHalvesPerCycle = 1.6;
constexpr double kHalvingCycles = 6;  // until the lanes of a vector are added to the other half
// For a body whose lanes read elements of several groups, this is the factor over the greatest of
// its limits, which compete for ports (measured on Zen 5: 58 for 45 cycles, 47 to 56 for 36).
constexpr double kPermutedBody = 1.5;
constexpr int kLineBytes = 64;
constexpr int64_t kFirstLevelSets = 64;  // a page has this many lines, and the tag is physical

// The lanes run along two loops that were fused: this is not the last one.
bool is_outer_digit(const Nest& nest, size_t loop) {
  return loop + 1 < nest.loops.size() && nest.loops[loop].annotation == Annotation::kVectorize &&
         nest.loops[loop + 1].annotation == Annotation::kVectorize;
}

struct Body {
  int lanes = 1;        // lanes of the result's vectors
  size_t first = 0;     // loops from here on are unrolled or vectorized
  double vectors = 1;   // vector operations per operation of a point
  bool turned = false;  // a square in registers before it is stored
};

double vector_count(const NestLoop& loop, int lanes) {
  return loop.annotation == Annotation::kVectorize
             ? std::ceil(static_cast<double>(loop.extent) / lanes)
             : static_cast<double>(loop.extent);
}

// Share of the vectors along loop `lane` that begin in one cache line and end in the next: each
// costs twice.
double split_share(const Nest& nest, const NestAccess& access, size_t lane, int lanes) {
  const int64_t width = std::min<int64_t>(nest.loops[lane].extent, lanes) * access.element_bytes;
  int64_t step = std::gcd<int64_t>(kLineBytes, width);  // between the vectors' beginnings
  for (size_t i = 0; i < nest.loops.size(); ++i) {
    if (i != lane) step = std::gcd(step, access.stride(i) * access.element_bytes);
  }
  int64_t splits = 0;
  for (int64_t at = 0; at < kLineBytes; at += step) splits += at + width > kLineBytes ? 1 : 0;
  return static_cast<double>(splits * step) / kLineBytes;
}

// A square of an unrolled loop and the vector, stored across the lanes: whole vectors, after they
// were turned in registers (backend/cpu/emit_transposed.cc).
bool is_turned(const Nest& nest, int lanes) {
  const size_t depth = nest.loops.size();
  if (depth < nest.outer + 2 || nest.accesses.back().element_bytes != 4) return false;
  const NestLoop &row = nest.loops[depth - 2], &lane = nest.loops[depth - 1];
  const NestAccess& write = nest.accesses.back();
  return row.annotation == Annotation::kUnroll && lane.annotation == Annotation::kVectorize &&
         row.extent == lanes && lane.extent == lanes && !row.reduce && !lane.reduce &&
         write.stride(depth - 2) == 1 && write.stride(depth - 1) > 1;
}

Body find_body(const Nest& nest, const target::Target& target) {
  Body body;
  body.lanes = std::max(1, target.lanes(nest.accesses.back().element_bytes));
  body.first = nest.loops.size();
  while (body.first > nest.outer) {
    const NestLoop& loop = nest.loops[body.first - 1];
    const bool flat = loop.annotation == Annotation::kUnroll ||
                      loop.annotation == Annotation::kVectorize || loop.extent == 1;
    if (!flat) break;
    --body.first;
    body.vectors *= vector_count(loop, body.lanes);
  }
  body.turned = is_turned(nest, body.lanes);
  return body;
}

// Returns the cost of a vector load of an access, which is infinite if its lanes are far apart.
double split_factor(const Nest& nest, const NestAccess& access, int lanes) {
  const size_t last = nest.loops.size() - 1;
  if (nest.loops.empty() || nest.loops[last].annotation != Annotation::kVectorize ||
      !access.moves_with(last))
    return 1;
  return access.stride(last) == 1 ? 1 + split_share(nest, access, last, lanes) : INFINITY;
}

// Each part of the lanes reads one element of a vector.
bool is_permuted(const Nest& nest, const NestAccess& access) {
  const size_t depth = nest.loops.size();
  return depth > 1 && is_outer_digit(nest, depth - 2) && access.moves_with(depth - 2) &&
         !access.moves_with(depth - 1);
}

// Terms of the sum, in a body, whose elements lie in the same vector of memory.
double terms_of_vector(const Nest& nest, const NestAccess& access, const Body& body) {
  double terms = 1;
  for (size_t i = body.first; i < nest.loops.size(); ++i) {
    if (nest.loops[i].reduce && std::abs(access.stride(i)) == 1)
      terms *= static_cast<double>(nest.loops[i].extent);
  }
  return terms;
}

// Loads (or stores) of one access in a body, as load-port slots.
double access_slots(const Nest& nest, const NestAccess& access, const Body& body) {
  const int lanes = body.lanes;
  double slots = access.reads;
  if (access.write && body.turned) {
    for (size_t i = body.first; i + 1 < nest.loops.size(); ++i)
      slots *= static_cast<double>(nest.loops[i].extent);
    return slots * (1 + split_share(nest, access, nest.loops.size() - 2, lanes));
  }
  for (size_t i = body.first; i < nest.loops.size(); ++i) {
    const NestLoop& loop = nest.loops[i];
    if (loop.extent == 1 || !access.moves_with(i)) continue;
    if (loop.annotation != Annotation::kVectorize) {
      slots *= static_cast<double>(loop.extent);
      continue;
    }
    if (is_outer_digit(nest, i)) continue;  // reads the same vector, or a permutation of one
    const int64_t stride = access.stride(i);
    const double n = std::ceil(static_cast<double>(loop.extent) / lanes);
    const double strided =
        (access.write ? kScatterSlots : kGatherSlots) * static_cast<double>(loop.extent);
    slots *= stride == 1 ? n * (1 + split_share(nest, access, i, lanes)) : strided;
  }
  return slots;
}

// Vectors of an access that a body touches, of so many elements: those that several points of an
// unrolled window share are loaded once.
double distinct_vectors(const Nest& nest, const NestAccess& access, const Body& body,
                        double elements) {
  if (nest.loops.empty()) return elements;
  const NestLoop& last = nest.loops.back();
  if (last.annotation != Annotation::kVectorize) return elements;
  const size_t outer = nest.loops.size() - 2;
  if (nest.loops.size() > 1 && is_outer_digit(nest, outer) && access.moves_with(outer))
    elements /= static_cast<double>(nest.loops[outer].extent);
  if (!access.moves_with(nest.loops.size() - 1)) return elements;
  if (std::abs(access.stride(nest.loops.size() - 1)) != 1) return elements;
  return elements / static_cast<double>(last.extent) * vector_count(last, body.lanes);
}

// The part of a body's additions (or comparisons) that is left where points share the sums of their
// windows' columns (ir/passes/share_windows.h).
double unshared_additions(const Nest& nest, const Body& body) {
  const NestAccess* read = nullptr;
  for (const NestAccess& access : nest.accesses) {
    if (access.write) continue;
    if (read) return 1;
    read = &access;
  }
  if (!read || nest.ops.fma > 0) return 1;
  double part = 1;
  for (size_t i = body.first; i < nest.loops.size(); ++i) {
    if (!nest.loops[i].reduce || nest.loops[i].extent == 1 ||
        nest.loops[i].annotation == Annotation::kVectorize)
      continue;
    const double elements = read->footprint_without(nest.loops, body.first, i);
    const double columns = distinct_vectors(nest, *read, body, elements) / body.vectors;
    const auto taps = static_cast<double>(nest.loops[i].extent);
    part = std::min(part, (columns * (taps - 1)) + (1 / taps));
  }
  return part;
}

// Vectors of an operand that wait in registers while the register tile uses them.
double held_vectors(const Nest& nest, const NestAccess& access, const Body& body) {
  double held = 1;
  for (size_t i = body.first; i < nest.loops.size(); ++i) {
    const bool broadcast = !access.moves_with(i) || nest.loops[i].reduce;
    if (!broadcast) held *= vector_count(nest.loops[i], body.lanes);
  }
  return std::min(held, 8.0);
}

void measure_compute(const Nest& nest, const Body& body, const target::Target& target,
                     StageMeasure& out) {
  const int lanes = body.lanes;
  const bool is_vector =
      !nest.loops.empty() && nest.loops.back().annotation == Annotation::kVectorize;
  const NestAccess& write = nest.accesses.back();
  const bool reduces =
      std::any_of(nest.loops.begin() + static_cast<std::ptrdiff_t>(nest.outer), nest.loops.end(),
                  [](const NestLoop& loop) { return loop.reduce; });
  double loads = 0, widest = 0, widening = 0;
  bool shared = false;  // vectors of a window by several points, which wait in registers
  double permutations = 0, orders = 0;
  for (const NestAccess& access : nest.accesses) {
    if (access.write) continue;
    double slots = access.scope == ir::Scope::kRegister ? 0 : access_slots(nest, access, body);
    if (slots > 0) {
      const double distinct =
          distinct_vectors(nest, access, body, access.footprint(nest.loops, body.first));
      out.distinct_loads += std::min(slots, distinct);
      const double once = distinct * split_factor(nest, access, lanes);
      if (once < slots) shared = true, slots = once;
    }
    if (is_permuted(nest, access)) {
      permutations += slots;
      // One vector of memory for several terms of the sum, in an order for each.
      if (const double terms = terms_of_vector(nest, access, body); terms > 1)
        orders = terms, shared = true;
    }
    loads += slots;
    if (access.element_bytes < write.element_bytes) widening += kWidenInstructions * slots;
    if (is_vector && access.moves_with(nest.loops.size() - 1))
      widest = std::max(widest, held_vectors(nest, access, body));
  }
  double accumulators = 1;
  for (size_t i = body.first; i < nest.loops.size(); ++i) {
    if (write.moves_with(i)) accumulators *= vector_count(nest.loops[i], lanes);
  }
  if (shared) widest = std::max(widest, accumulators);
  widest += orders;
  double stores = write.scope == ir::Scope::kRegister ? 0 : access_slots(nest, write, body);
  if (reduces && write.scope != ir::Scope::kRegister) loads += stores;  // read, add, write back
  const OpCounts& ops = nest.ops;
  // A test that all lanes share chooses an address.
  const double choices = is_vector && !nest.tests.back() ? 0 : ops.select;
  const double arithmetic = ops.fma + ops.add + std::max(0.0, ops.mul) + ops.compare + choices;
  const double flops =
      body.vectors * arithmetic * (reduces ? unshared_additions(nest, body) : 1) + widening;
  BodyCycles& bounds = out.bounds;
  const bool joined = nest.loops.size() > 1 && is_outer_digit(nest, nest.loops.size() - 2);
  const bool halves = is_vector && !joined && nest.loops.back().extent * 2 <= lanes &&
                      target.fma_per_cycle == 1 && target.vector_bytes >= kLineBytes;
  const double fmas = halves ? kHalvesPerCycle : target.fma_per_cycle;
  bounds = {flops / fmas, loads / target.loads_per_cycle, stores,
            (flops + permutations + 0.5 * loads + stores) / kIssueWidth, 0};
  if (reduces)
    bounds.latency = target.fma_latency * body.vectors / accumulators * std::max(1.0, arithmetic);
  double cycles =
      std::max({bounds.arithmetic, bounds.loads, bounds.stores, bounds.issue, bounds.latency,
                permutations});  // one a cycle, beside the multiply-adds
  if (permutations > 0) cycles *= kPermutedBody;
  cycles += body.vectors * (kMathCycles * ops.math + kDivideCycles * ops.div);
  double tests = ops.select;
  for (size_t i = body.first; i < nest.loops.size(); ++i)
    tests *= nest.tests[i] ? vector_count(nest.loops[i], lanes) : 1;
  cycles += kTestCycles * tests;
  out.registers = write.scope == ir::Scope::kRegister ? accumulators + widest + 1 : widest + 2;
  cycles += kSpillCycles * std::max(0.0, out.registers - target.vector_registers);
  // The lanes of a register tile are summed up by halves: one after the other, tiles side by side.
  if (is_vector && nest.loops.back().reduce && write.scope == ir::Scope::kRegister)
    cycles += std::log2(lanes) * (kHalvingCycles + accumulators);
  if (body.turned) cycles += body.vectors * std::log2(lanes);  // a shuffle a cycle
  cycles += kLoopCycles;
  out.body = body.first;
  out.accumulators = accumulators;
  out.body_instructions = flops + loads + stores;
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
void measure_traffic(const Nest& nest, const Body& body, const target::Target& target, int threads,
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
  const size_t innermost = body.turned ? depth - 2 : depth;
  out.bytes.reserve(target.caches.size());
  out.caches.reserve(target.caches.size());
  for (size_t level = 0; level < target.caches.size(); ++level) {
    const target::Cache& cache = target.caches[level];
    const int sharers = std::max(1, std::min(cache.shared_by, threads));
    const double capacity = kCacheShare * static_cast<double>(cache.bytes) / sharers;
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
                       const target::Target& target, int threads) {
  return measure_cpu(build_nests(state, bounds), target, threads);
}

CpuMeasure measure_cpu(std::span<const Nest> nests, const target::Target& target, int threads) {
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
    for (size_t level = 0; level < target.caches.size(); ++level) {
      const bool last = level + 1 == target.caches.size();
      const double rate =
          last ? target.memory_bytes_per_cycle : target.caches[level + 1].bytes_per_cycle;
      root->level_cycles[level] += stage.bytes[level] / std::max(rate, 0.1);
    }
    root->stages.push_back(std::move(stage));
  }
  return measure;
}

double RootMeasure::busiest_share(int threads) const {
  return std::ceil(tiles / std::min<double>(threads, tiles)) / tiles;
}

double RootMeasure::seconds(const target::Target& target, int threads) const {
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

double CpuMeasure::seconds(const target::Target& target, int threads) const {
  double total = 0;
  for (const RootMeasure& root : roots) total += root.seconds(target, threads);
  return total;
}

}  // namespace hone::analysis
