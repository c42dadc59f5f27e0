#include "hone/cost/schedule_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

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

// A name with an index; numbers of a row need none.
template <typename... Args>
std::string name_of(const RowWriter& out, fmt::format_string<Args...> text, Args&&... args) {
  return out.names_only() ? fmt::format(text, std::forward<Args>(args)...) : std::string();
}

const NestAccess* read_of(const Nest* nest, size_t i) {
  return nest && i + 1 < nest->accesses.size() ? &nest->accesses[i] : nullptr;
}

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
    out.ratio(name_of(out, "cache{}.held", i), use.held, 1);
    out.ratio(name_of(out, "cache{}.beyond", i), use.beyond, 1);
    out.count(name_of(out, "cache{}.iterations", i), nest ? nest->iterations(use.first) : 0);
    out.plain(name_of(out, "cache{}.constant", i), use.constant_bytes / std::max(bytes, 1.0));
    out.plain(name_of(out, "cache{}.written", i), use.written_bytes / std::max(bytes, 1.0));
  }
}

// By what moves with a loop. In a product of matrices: the sum, rows of the left, columns of the
// right; in a convolution the sum over channels, that over the window, points of the image, and
// channels of the result.
enum Role : uint8_t { kSum, kWindow, kBoth, kColumn, kRow, kSecond, kNeither };
constexpr std::array<std::string_view, 7> kRoles = {"sum", "window", "both",   "column",
                                                    "row", "second", "neither"};

// The last dimension of an access that moves with a loop; -1 if none does.
int moved_dimension(const NestAccess* access, size_t loop) {
  for (size_t d = access ? access->move.size() : 0; d-- > 0;) {
    if (access->move[d][loop] != 0) return static_cast<int>(d);
  }
  return -1;
}

std::vector<Role> find_roles(const Nest& nest) {
  const NestAccess* first = read_of(&nest, 0);
  const NestAccess* second = read_of(&nest, 1);
  std::vector<Role> roles;
  std::vector<int> dimensions;
  int column = -1;  // dimension of the first operand
  for (size_t i = 0; i < nest.loops.size(); ++i) {
    const int dimension = moved_dimension(first, i);
    const bool a = dimension >= 0;
    const bool b = second ? second->moves_with(i) : a;
    Role role = kNeither;
    if (nest.loops[i].reduce)
      role = kSum;
    else if (a && b)
      role = kBoth;
    else if (a)
      role = kRow;
    else if (b)
      role = kSecond;
    if (role == kRow) column = std::max(column, dimension);
    roles.push_back(role);
    dimensions.push_back(dimension);
  }
  for (size_t i = 0; i < roles.size(); ++i) {
    const auto shares = [&](size_t j) {
      return roles[j] == kRow && dimensions[j] == dimensions[i];
    };
    bool window = false;
    for (size_t j = 0; roles[i] == kSum && j < roles.size(); ++j) window = window || shares(j);
    if (window) roles[i] = kWindow;
  }
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == kRow && dimensions[i] == column) roles[i] = kColumn;
  }
  return roles;
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
      out.plain(name_of(out, "tile.{}.{}", kRoles[r], kPlaces[p]), std::log2(products[r][p]));
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
    out.plain(name_of(out, "{}{}.extent", name, k),
              loop ? std::log2(static_cast<double>(loop->extent)) : -1);
    out.plain(name_of(out, "{}{}.role", name, k),
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
  out.plain(name_of(out, "{}.vector", name), kind);
  out.plain(name_of(out, "{}.alias", name), alias);
  out.plain(name_of(out, "{}.sets", name), sets);
  out.plain(name_of(out, "{}.lines", name), run);
  out.plain(name_of(out, "{}.scope", name), scope);
  out.count(name_of(out, "{}.body_bytes", name), body_bytes);
}

struct Tail {
  double waste = 0, tests = 0, low = 0, regions = 0, peeled = 0, padded = 0;
};

// Tests and points that nobody asked for along some axes of a stage.
Tail find_tail(const Query& query, size_t s, size_t first, size_t last) {
  const schedule::StageState& stage = query.candidate->state.stages[s];
  const auto& axes = query.candidate->bounds.stages[s].axes;
  Tail tail;
  for (size_t a = first; a < last; ++a) {
    const double over = std::log2(static_cast<double>(std::max<int64_t>(axes[a].reach, 1)) /
                                  static_cast<double>(std::max<int64_t>(axes[a].extent, 1)));
    tail.waste += over;
    tail.tests += axes[a].guard_high ? 1 : 0;
    tail.low += axes[a].guard_low ? 1 : 0;
    tail.regions += axes[a].guard_region ? 1 : 0;
    if (over <= 0) continue;
    for (const int child : stage.loops[a].children) {
      tail.peeled += stage.loops[static_cast<size_t>(child)].peel ? 1 : 0;
      tail.padded += stage.loops[static_cast<size_t>(child)].pad ? 1 : 0;
    }
  }
  return tail;
}

void write_tail(std::string_view name, const Tail& tail, RowWriter& out) {
  out.plain(name_of(out, "{}.waste", name), tail.waste);
  out.plain(name_of(out, "{}.tests", name), tail.tests);
  out.plain(name_of(out, "{}.low", name), tail.low);
  out.plain(name_of(out, "{}.regions", name), tail.regions);
  out.plain(name_of(out, "{}.peeled", name), tail.peeled);
  out.plain(name_of(out, "{}.padded", name), tail.padded);
}

// Writes the tails of the main statement and of the one in which it is computed: along the last
// axis, whose neighbours are adjacent in memory, and along the others.
void write_tails(const Nest* nest, const Query& query, RowWriter& out) {
  Tail own, sum, root_vector, root_rest;
  if (nest) {
    const std::vector<schedule::StageState>& stages = query.candidate->state.stages;
    const auto s = static_cast<size_t>(nest->stage), r = static_cast<size_t>(nest->root);
    const auto spatial = static_cast<size_t>(stages[s].info->num_spatial());
    own = find_tail(query, s, 0, spatial);
    sum = find_tail(query, s, spatial, stages[s].info->axes.size());
    const auto root_spatial = static_cast<size_t>(stages[r].info->num_spatial());
    if (root_spatial > 0) {
      root_vector = find_tail(query, r, root_spatial - 1, root_spatial);
      root_rest = find_tail(query, r, 0, root_spatial - 1);
    }
  }
  write_tail("tail", own, out);
  write_tail("tail.sum", sum, out);
  write_tail("tail.root_last", root_vector, out);
  write_tail("tail.root_rest", root_rest, out);
}

struct StepCounts {
  double copies = 0, im2col = 0, winograd = 0, parts = 0, narrow = 0, prefetches = 0, distance = 0,
         folds = 0, inner = 0, layouts = 0, unrolls = 0;
  void add(const schedule::CacheRead&) { copies += 1; }
  void add(const schedule::Im2col&) { im2col += 1; }
  void add(const schedule::Winograd& step) { winograd = static_cast<double>(step.outputs); }
  void add(const schedule::Strassen&) { winograd = 1; }
  void add(const schedule::RFactor& step) { parts = static_cast<double>(step.factor); }
  void add(const schedule::OnlineSoftmax& step) { parts = static_cast<double>(step.factor); }
  void add(const schedule::Narrow&) { narrow += 1; }
  void add(const schedule::Prefetch& step) {
    prefetches += 1;
    distance = std::max(distance, static_cast<double>(step.distance));
  }
  void add(const schedule::Fold&) { folds += 1; }
  void add(const schedule::ComputeAt&) { inner += 1; }
  void add(const schedule::Layout&) { layouts += 1; }
  void add(const schedule::Unroll&) { unrolls += 1; }
  template <typename Other>
  void add(const Other&) {}
};

void write_steps(const Query& query, RowWriter& out) {
  StepCounts counts;
  if (query.candidate) {
    for (const schedule::Step& step : query.candidate->steps)
      std::visit([&](const auto& one) { counts.add(one); }, step);
  }
  out.plain("steps.copies", counts.copies);
  out.plain("steps.im2col", counts.im2col);
  out.plain("steps.winograd", counts.winograd);
  out.plain("steps.parts", counts.parts);
  out.plain("steps.narrow", counts.narrow);
  out.plain("steps.prefetches", counts.prefetches);
  out.count("steps.prefetch_distance", counts.distance);
  out.plain("steps.folds", counts.folds);
  out.plain("steps.compute_at", counts.inner);
  out.plain("steps.layouts", counts.layouts);
  out.plain("steps.unrolls", counts.unrolls);
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
