#include "hone/cost/schedule_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "hone/cost/decision_features.h"

namespace hone::cost {
namespace {

using analysis::CacheUse;
using analysis::CpuMeasure;
using analysis::Nest;
using analysis::NestAccess;
using analysis::RootMeasure;
using analysis::StageMeasure;
using schedule::Annotation;

constexpr size_t kCacheLevels = 3;
constexpr int64_t kPage = 4096;  // bytes: accesses so far apart share the sets of a first level

// Writes what limits a body, as shares of its cycles, and how much it keeps in registers.
void write_body(const StageMeasure& stage, const target::Cpu& target, RowWriter& out) {
  const double cycles = std::max(stage.body_cycles, 1.0);
  out.plain("body.arithmetic", stage.bounds.arithmetic / cycles);
  out.plain("body.loads", stage.bounds.loads / cycles);
  out.plain("body.stores", stage.bounds.stores / cycles);
  out.plain("body.issue", stage.bounds.issue / cycles);
  out.plain("body.latency", stage.bounds.latency / cycles);
  out.plain("body.spills", stage.registers - target.vector_registers);
  out.plain("body.accumulators", stage.accumulators);
  const double distinct = stage.distinct_loads / target.loads_per_cycle;
  out.plain("body.distinct", distinct / cycles);
  out.ratio("body.distinct_per_arithmetic", distinct, stage.bounds.arithmetic);
  out.ratio("body.again", stage.bounds.loads, distinct);
}

// Writes how well each cache holds the data of the inner loops: 0 means that it just fits.
void write_caches(const Nest* nest, const StageMeasure& stage, RowWriter& out) {
  for (size_t i = 0; i < kCacheLevels; ++i) {
    const CacheUse use = i < stage.caches.size() ? stage.caches[i] : CacheUse();
    const double bytes = i < stage.bytes.size() ? stage.bytes[i] : 0;
    out.ratio(out.name("cache{}.held", i), use.held, 1);
    out.ratio(out.name("cache{}.beyond", i), use.beyond, 1);
    out.count(out.name("cache{}.iterations", i), nest ? nest->iterations(use.first) : 0);
    out.plain(out.name("cache{}.constant", i), use.constant_bytes / std::max(bytes, 1.0));
    out.plain(out.name("cache{}.written", i), use.written_bytes / std::max(bytes, 1.0));
  }
}

enum Where : uint8_t { kVector, kUnrolled, kFirstLevel, kSecondLevel, kFar, kTiles };
constexpr std::array<std::string_view, 6> kPlaces = {"vector", "unrolled", "l1",
                                                     "l2",     "far",      "tiles"};

Where place_of(const Nest& nest, const StageMeasure& stage, size_t loop) {
  const Annotation annotation = nest.loops[loop].annotation;
  if (annotation == Annotation::kParallel) return kTiles;
  if (loop >= stage.body) return annotation == Annotation::kVectorize ? kVector : kUnrolled;
  if (!stage.caches.empty() && loop >= stage.caches[0].first) return kFirstLevel;
  if (stage.caches.size() > 1 && loop >= stage.caches[1].first) return kSecondLevel;
  return kFar;
}

// The product of the extents of all loops of a role in a place.
void write_tiles(const Nest* nest, std::span<const Role> roles, const StageMeasure& stage,
                 RowWriter& out) {
  std::array<std::array<double, kPlaces.size()>, kRoles.size()> products;
  for (auto& row : products) row.fill(1);
  for (size_t i = 0; nest && i < nest->loops.size(); ++i) {
    if (nest->loops[i].extent == 1) continue;
    products[roles[i]][place_of(*nest, stage, i)] *= static_cast<double>(nest->loops[i].extent);
  }
  for (size_t r = 0; r < kRoles.size(); ++r) {
    for (size_t p = 0; p < kPlaces.size(); ++p)
      out.plain(out.name("tile.{}.{}", kRoles[r], kPlaces[p]), std::log2(products[r][p]));
  }
}

// The loops around the body, from the innermost out and from the outermost in.
void write_order(const Nest* nest, std::span<const Role> roles, const StageMeasure& stage,
                 RowWriter& out) {
  constexpr size_t kInner = 5, kOuter = 3;
  std::vector<size_t> loops;  // innermost first
  for (size_t i = nest ? stage.body : 0; i-- > 0;) {
    if (nest->loops[i].extent > 1) loops.push_back(i);
  }
  const auto write = [&](std::string_view name, size_t k, size_t place) {
    const bool there = place < loops.size();
    const analysis::NestLoop* loop = there ? &nest->loops[loops[place]] : nullptr;
    const bool parallel = loop && loop->annotation == Annotation::kParallel;
    out.plain(out.name("{}{}.extent", name, k),
              loop ? std::log2(static_cast<double>(loop->extent)) : -1);
    out.plain(out.name("{}{}.role", name, k),
              loop ? static_cast<double>(roles[loops[place]]) + (parallel ? 10 : 0) : -1);
  };
  for (size_t k = 0; k < kInner; ++k) write("inner", k, k);
  for (size_t k = 0; k < kOuter; ++k)
    write("outer", k, k < loops.size() ? loops.size() - 1 - k : loops.size());
  // Passes through the body before each of the operands and the result is another one.
  const auto run = [&](const NestAccess* access) {
    double product = 1;
    for (size_t i = nest ? stage.body : 0; i-- > 0;) {
      if (nest->loops[i].extent == 1) continue;
      if (!access || access->moves_with(i)) break;
      product *= static_cast<double>(nest->loops[i].extent);
    }
    return product;
  };
  out.plain("run.first", std::log2(run(read_of(nest, 0))));
  out.plain("run.second", std::log2(run(read_of(nest, 1))));
  out.plain("run.result", std::log2(run(nest ? &nest->accesses.back() : nullptr)));
}

// Writes how far apart in memory the accesses of a body are, and how they spread over the sets of a
// cache.
void write_access(std::string_view name, const Nest* nest, const NestAccess* access,
                  const StageMeasure& stage, RowWriter& out) {
  double kind = -1, alias = 0, sets = 0, scope = -1, body_bytes = 0, run = 0;
  if (access) {
    const std::vector<analysis::NestLoop>& loops = nest->loops;
    const size_t last = loops.size() - 1;
    const bool vector = !loops.empty() && loops[last].annotation == Annotation::kVectorize;
    const int64_t stride = vector ? std::abs(access->stride(last)) : -1;
    kind = static_cast<double>(std::min<int64_t>(stride, 2));
    for (size_t i = stage.body; i < loops.size(); ++i) {
      const int64_t bytes = std::abs(access->stride(i)) * access->element_bytes;
      if (loops[i].annotation != Annotation::kVectorize && loops[i].extent > 1 && bytes > 0)
        alias = std::max(alias, std::log2(static_cast<double>(std::gcd(bytes, kPage))));
    }
    const size_t first = stage.caches.empty() ? 0 : stage.caches[0].first;
    const double bytes = access->footprint(loops, first) * access->element_bytes;
    sets = std::log2(access->occupied_bytes(loops, first, 64, 64) / std::max(bytes, 1.0));
    body_bytes = access->footprint(loops, stage.body) * access->element_bytes;
    run = access->transfer_bytes(loops, first, 64) / std::max(bytes, 1.0);
    scope = static_cast<double>(access->scope);
  }
  out.plain(out.name("{}.vector", name), kind);
  out.plain(out.name("{}.alias", name), alias);
  out.plain(out.name("{}.sets", name), sets);
  out.plain(out.name("{}.lines", name), run);
  out.plain(out.name("{}.scope", name), scope);
  out.count(out.name("{}.body_bytes", name), body_bytes);
}

// The heaviest of the other statements, and how much more than asked for is computed.
void write_others(const MainStatement& main, std::span<const Nest> nests, const CpuMeasure& measure,
                  const Query& query, RowWriter& out) {
  const StageMeasure* second = nullptr;
  double total = 0, inside = 0;
  for (const RootMeasure& root : measure.roots) {
    for (const StageMeasure& stage : root.stages) {
      total += stage.compute_cycles;
      if (&stage == main.stage) continue;
      if (&root == main.root) inside += stage.compute_cycles;
      if (!second || stage.compute_cycles > second->compute_cycles) second = &stage;
    }
  }
  double operations = 0, needed = 0, second_operations = 0;
  for (const Nest& nest : nests) {
    double points = 1;
    const auto s = static_cast<size_t>(nest.stage);
    for (const compute::Axis& axis : query.candidate->state.stages[s].info->axes)
      points *= static_cast<double>(axis.extent);
    const double all = nest.operations();
    operations += all;
    needed += all / std::max(nest.iterations(), 1.0) * points;
    if (second && nest.stage == second->stage) second_operations = all;
  }
  static const StageMeasure kNone;
  const StageMeasure& other = second ? *second : kNone;
  const double all = std::max(total, 1.0);
  out.plain("others.inside", inside / all);
  out.plain("others.second", other.compute_cycles / all);
  out.ratio("others.second_cycles", other.compute_cycles, second_operations);
  out.plain("others.second_registers", other.registers);
  out.count("others.second_body", other.body_instructions);
  out.ratio("others.second_l1", other.bytes.empty() ? 0 : other.bytes[0], second_operations);
  out.ratio("others.again", operations, needed);
}

void write_parallel(const MainStatement& main, const CpuMeasure& measure, const Query& query,
                    RowWriter& out) {
  static const RootMeasure kNone;
  const RootMeasure& root = main.root ? *main.root : kNone;
  const double seconds = measure.seconds(query.cpu(), query.threads);
  double forks = 0;
  for (const RootMeasure& one : measure.roots) forks += one.tiles > 1 && query.threads > 1 ? 1 : 0;
  out.plain("parallel.threads", query.threads);
  out.ratio("parallel.tiles_per_thread", root.tiles, query.threads);
  out.count("parallel.tile_cycles", root.compute_cycles / std::max(root.tiles, 1.0));
  out.plain("parallel.forks", forks * analysis::kForkJoinSeconds / std::max(seconds, 1e-9));
  out.count("parallel.nanoseconds", 1e9 * seconds);
}

}  // namespace

void write_schedule_features(const MainStatement& main, std::span<const Nest> nests,
                             const CpuMeasure& measure, const Query& query, RowWriter& out) {
  static const StageMeasure kNone;
  const StageMeasure& stage = main.stage ? *main.stage : kNone;
  const Nest* nest = main.stage ? main.nest : nullptr;
  write_body(stage, query.cpu(), out);
  write_caches(nest, stage, out);
  const std::vector<Role> roles = nest ? find_roles(*nest) : std::vector<Role>();
  write_tiles(nest, roles, stage, out);
  write_order(nest, roles, stage, out);
  write_access("first", nest, read_of(nest, 0), stage, out);
  write_access("second", nest, read_of(nest, 1), stage, out);
  write_access("result", nest, nest ? &nest->accesses.back() : nullptr, stage, out);
  write_tails(nest, query, out);
  write_steps(query, out);
  write_others(main, nests, measure, query, out);
  write_parallel(main, measure, query, out);
}

}  // namespace hone::cost
