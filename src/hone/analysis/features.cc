#include "hone/analysis/features.h"

#include <algorithm>
#include <cmath>

namespace hone::analysis {
namespace {

using schedule::Annotation;

float log_scale(double x) { return static_cast<float>(std::log2(1 + std::max(0.0, x))); }

// Fills a row from left to right; in a dry run it collects the names instead.
class Writer {
 public:
  Writer(float* row, std::vector<std::string>* names) : row_(row), names_(names) {}
  void group(std::string prefix) { prefix_ = std::move(prefix); }
  void count(const char* name, double value) { put(name, log_scale(value)); }
  void plain(const char* name, double value) { put(name, static_cast<float>(value)); }
  [[nodiscard]] int written() const { return next_; }

 private:
  void put(const char* name, float value) {
    HONE_ASSERT(next_ < kNumFeatures, "a row is full");
    if (row_) row_[next_] = value;
    if (names_) names_->push_back(prefix_ + "." + name);
    ++next_;
  }
  float* row_;
  std::vector<std::string>* names_;
  std::string prefix_;
  int next_ = 0;
};

void write_ops(const Nest& nest, Writer& out) {
  const double points = nest.iterations() * nest.useful;
  out.group("ops");
  out.count("fma", nest.ops.fma * points);
  out.count("add", nest.ops.add * points);
  out.count("mul", std::max(0.0, nest.ops.mul) * points);
  out.count("div", nest.ops.div * points);
  out.count("compare", nest.ops.compare * points);
  out.count("select", nest.ops.select * points);
  out.count("math", nest.ops.math * points);
  out.count("integer", nest.ops.integer * points);
}

// Where the innermost loop of a kind stands: 8 flags (none, innermost spatial, middle spatial,
// outermost spatial, innermost reduce, middle reduce, outermost reduce, several kinds).
int position_of(const Nest& nest, Annotation annotation) {
  std::vector<size_t> spatial, reduce;
  for (size_t i = 0; i < nest.loops.size(); ++i)
    (nest.loops[i].reduce ? reduce : spatial).push_back(i);
  bool in_spatial = false, in_reduce = false;
  size_t last = nest.loops.size();
  for (size_t i = 0; i < nest.loops.size(); ++i) {
    if (nest.loops[i].annotation != annotation || nest.loops[i].extent == 1) continue;
    last = i;
    (nest.loops[i].reduce ? in_reduce : in_spatial) = true;
  }
  if (last == nest.loops.size()) return 0;
  if (in_spatial && in_reduce) return 7;
  const std::vector<size_t>& same = in_reduce ? reduce : spatial;
  const int base = in_reduce ? 4 : 1;
  if (last == same.back()) return base;
  return last == same.front() ? base + 2 : base + 1;
}

void write_annotation(const Nest& nest, Annotation annotation, const char* name, Writer& out) {
  out.group(name);
  const AnnotatedLoops loops = annotated_loops(nest, annotation);
  out.count("number", loops.number);
  out.count("product", loops.product);
  out.count("innermost", loops.innermost);
  static constexpr const char* kPositions[] = {"none",          "inner_spatial", "middle_spatial",
                                               "outer_spatial", "inner_reduce",  "middle_reduce",
                                               "outer_reduce",  "mixed"};
  const int position = position_of(nest, annotation);
  for (int i = 0; i < 8; ++i) out.plain(kPositions[i], i == position ? 1 : 0);
}

// The innermost loop that an access does not move with carries its reuse.
struct Reuse {
  int kind = 2;  // 0: the same data again; 1: read after the stage's own write; 2: none
  double distance_iterations = 0, distance_bytes = 0, times = 1;
};

Reuse find_reuse(const Nest& nest, const NestAccess& access, bool also_written) {
  Reuse reuse;
  for (size_t i = nest.loops.size(); i-- > 0;) {
    if (nest.loops[i].extent == 1 || access.moves_with(i)) continue;
    reuse.kind = also_written ? 1 : 0;
    reuse.times = static_cast<double>(nest.loops[i].extent);
    reuse.distance_iterations = nest.iterations(i + 1);
    for (const NestAccess& other : nest.accesses) {
      reuse.distance_bytes += other.footprint(nest.loops, i + 1) * other.element_bytes;
    }
    return reuse;
  }
  return reuse;
}

void write_access(const Nest& nest, const NestAccess* access, int slot, Writer& out) {
  static constexpr const char* kSlots[] = {"access0", "access1", "access2", "access3", "access4"};
  out.group(kSlots[slot]);
  if (!access) {
    for (const char* name : {"read", "write", "update"}) out.plain(name, 0);
    for (const char* name : {"bytes", "unique_bytes", "lines", "unique_lines"}) out.count(name, 0);
    for (const char* name : {"reuse_loop", "reuse_serial", "reuse_none"}) out.plain(name, 0);
    for (const char* name :
         {"reuse_iterations", "reuse_bytes", "reuse_times", "bytes_per_reuse",
          "unique_bytes_per_reuse", "lines_per_reuse", "unique_lines_per_reuse", "stride"}) {
      out.count(name, 0);
    }
    return;
  }
  const bool update =
      access->write && std::any_of(nest.loops.begin(), nest.loops.end(),
                                   [](const NestLoop& loop) { return loop.reduce; });
  out.plain("read", access->write ? 0 : 1);
  out.plain("write", access->write && !update ? 1 : 0);
  out.plain("update", update ? 1 : 0);
  const double bytes = nest.iterations() * access->element_bytes;
  const double unique = access->footprint(nest.loops, 0) * access->element_bytes;
  const int64_t stride = nest.loops.empty() ? 0 : access->stride(nest.loops.size() - 1);
  const double per_line = std::clamp(
      64.0 / (static_cast<double>(std::max<int64_t>(1, std::abs(stride))) * access->element_bytes),
      1.0, 64.0 / access->element_bytes);
  const double lines = nest.iterations() / per_line,
               unique_lines = unique / access->element_bytes / per_line;
  const Reuse reuse = find_reuse(nest, *access, update);
  out.count("bytes", bytes);
  out.count("unique_bytes", unique);
  out.count("lines", lines);
  out.count("unique_lines", unique_lines);
  out.plain("reuse_loop", reuse.kind == 0 ? 1 : 0);
  out.plain("reuse_serial", reuse.kind == 1 ? 1 : 0);
  out.plain("reuse_none", reuse.kind == 2 ? 1 : 0);
  out.count("reuse_iterations", reuse.distance_iterations);
  out.count("reuse_bytes", reuse.distance_bytes);
  out.count("reuse_times", reuse.kind == 2 ? 0 : reuse.times);
  const double divisor = reuse.kind == 2 ? 0.5 : reuse.times;
  out.count("bytes_per_reuse", bytes / divisor);
  out.count("unique_bytes_per_reuse", unique / divisor);
  out.count("lines_per_reuse", lines / divisor);
  out.count("unique_lines_per_reuse", unique_lines / divisor);
  out.count("stride", static_cast<double>(std::abs(stride)));
}

// Operations per byte brought in, for blocks of growing size: at 10 equal steps of log(operations).
void write_intensity(const Nest& nest, Writer& out) {
  static constexpr const char* kNames[] = {"p0", "p1", "p2", "p3", "p4",
                                           "p5", "p6", "p7", "p8", "p9"};
  out.group("intensity");
  std::vector<std::pair<double, double>> curve;  // (log operations, operations per byte), growing
  const double each = nest.ops.fma * 2 + nest.ops.add + std::max(0.0, nest.ops.mul) +
                      nest.ops.compare + nest.ops.math + 1e-3;
  for (size_t k = nest.loops.size() + 1; k-- > 0;) {
    double bytes = 0;
    for (const NestAccess& access : nest.accesses)
      bytes += access.footprint(nest.loops, k) * access.element_bytes;
    const double operations = nest.iterations(k) * each;
    curve.push_back({std::log2(1 + operations), operations / std::max(1.0, bytes)});
  }
  for (int i = 0; i < 10; ++i) {
    const double at = curve.back().first * (i + 1) / 10;
    size_t k = 0;
    while (k + 1 < curve.size() && curve[k].first < at) ++k;
    out.count(kNames[i], curve[k].second);
  }
}

void write_storage(const Nest& nest, Writer& out) {
  const NestAccess& write = nest.accesses.back();
  double elements = 1;
  for (const int64_t extent : write.shape) elements *= static_cast<double>(extent);
  double outer = 1;
  for (size_t i = 0; i < nest.outer; ++i) outer *= static_cast<double>(nest.loops[i].extent);
  out.group("storage");
  out.count("bytes", elements * write.element_bytes);
  out.count("times_bytes", elements * write.element_bytes * outer);
  out.count("outer", outer);
  out.count("inner", nest.iterations(nest.outer));
}

void write_outer(const Nest& nest, Writer& out) {
  double reduce = 1;
  for (const NestLoop& loop : nest.loops) {
    if (loop.reduce) reduce *= static_cast<double>(loop.extent);
  }
  out.group("outer");
  out.count("iterations", nest.iterations());
  out.count("loops", static_cast<double>(nest.loops.size()));
  out.count("reduce", reduce);
  out.plain("useful", nest.useful);
}

void write_registers(const Nest& nest, const target::Cpu& target, Writer& out) {
  const RegisterTile tile = register_tile(nest, target);
  out.group("registers");
  out.count("tile", tile.vectors);
  out.plain("pressure", tile.vectors / target.vector_registers);
  out.plain("lanes_used", tile.lanes_used);
  out.plain("in_registers", tile.in_registers ? 1 : 0);
}

void write_machine(const target::Cpu& target, int threads, Writer& out) {
  out.group("machine");
  out.count("threads", threads);
  out.count("vector_bytes", target.vector_bytes);
  out.count("vector_registers", target.vector_registers);
  out.count("fma_per_cycle", target.fma_per_cycle);
  out.count("fma_latency", target.fma_latency);
  out.count("loads_per_cycle", target.loads_per_cycle);
  out.plain("masked_memory", target.masked_memory ? 1 : 0);
  out.plain("ghz", target.ghz);
  static constexpr const char* kSizes[] = {"l1_bytes", "l2_bytes", "l3_bytes"};
  static constexpr const char* kRates[] = {"l2_rate", "l3_rate"};
  for (size_t i = 0; i < 3; ++i)
    out.count(kSizes[i],
              i < target.caches.size() ? static_cast<double>(target.caches[i].bytes) : 0);
  for (size_t i = 1; i < 3; ++i)
    out.count(kRates[i - 1], i < target.caches.size() ? target.caches[i].bytes_per_cycle : 0);
  out.count("memory_rate", target.memory_bytes_per_cycle);
}

// All but the machine.
void write_nest(const Nest& nest, const target::Cpu& target, Writer& out) {
  write_ops(nest, out);
  write_annotation(nest, Annotation::kVectorize, "vector", out);
  write_annotation(nest, Annotation::kUnroll, "unroll", out);
  write_annotation(nest, Annotation::kParallel, "parallel", out);
  std::vector<const NestAccess*> largest;
  for (const NestAccess& access : nest.accesses) largest.push_back(&access);
  std::stable_sort(largest.begin(), largest.end(), [&](const NestAccess* a, const NestAccess* b) {
    return a->footprint(nest.loops, 0) > b->footprint(nest.loops, 0);
  });
  largest.resize(kNumAccessSlots, nullptr);
  for (int i = 0; i < kNumAccessSlots; ++i) write_access(nest, largest[i], i, out);
  write_intensity(nest, out);
  write_storage(nest, out);
  write_outer(nest, out);
  write_registers(nest, target, out);
  HONE_ASSERT(out.written() == kNumFeatures - kMachineFeatures,
              "every feature of a row is written");
}

}  // namespace

AnnotatedLoops annotated_loops(const Nest& nest, Annotation annotation) {
  AnnotatedLoops loops;
  for (const NestLoop& loop : nest.loops) {
    if (loop.annotation != annotation) continue;
    const auto extent = static_cast<double>(loop.extent);
    loops.product = loops.number > 0 ? loops.product * extent : extent;
    loops.number += 1;
    loops.innermost = extent;
  }
  return loops;
}

RegisterTile register_tile(const Nest& nest, const target::Cpu& target) {
  const int lanes = std::max(1, target.lanes(nest.accesses.back().element_bytes));
  RegisterTile tile;
  tile.in_registers = nest.accesses.back().scope == ir::Scope::kRegister;
  double points = 1;
  for (size_t i = nest.outer; i < nest.loops.size(); ++i) {
    const NestLoop& loop = nest.loops[i];
    if (loop.annotation == Annotation::kVectorize) {
      const double vectors = std::ceil(static_cast<double>(loop.extent) / lanes);
      tile.vectors *= vectors;
      points *= static_cast<double>(loop.extent);
      tile.lanes_used = points / (vectors * lanes);
    } else if (loop.annotation == Annotation::kUnroll && nest.accesses.back().moves_with(i)) {
      tile.vectors *= static_cast<double>(loop.extent);
    }
  }
  return tile;
}

FeatureRow features_of(const Nest& nest, const target::Cpu& target, int threads) {
  return features_of(nest, target, machine_features(target, threads));
}

MachineRow machine_features(const target::Cpu& target, int threads) {
  MachineRow row;
  Writer writer(row.data(), nullptr);
  write_machine(target, threads, writer);
  return row;
}

FeatureRow features_of(const Nest& nest, const target::Cpu& target, const MachineRow& machine) {
  FeatureRow row;
  Writer writer(row.data(), nullptr);
  write_nest(nest, target, writer);
  std::copy(machine.begin(), machine.end(), row.end() - kMachineFeatures);
  return row;
}

const std::vector<std::string>& feature_names() {
  static const std::vector<std::string> names = [] {
    Nest nest;
    nest.accesses.emplace_back();
    std::vector<std::string> collected;
    Writer writer(nullptr, &collected);
    write_nest(nest, target::Cpu(), writer);
    write_machine(target::Cpu(), 1, writer);
    return collected;
  }();
  return names;
}

}  // namespace hone::analysis
