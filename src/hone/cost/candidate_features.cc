#include "hone/cost/candidate_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "hone/analysis/features.h"
#include "hone/cost/bound_scores.h"
#include "hone/cost/gpu_features.h"
#include "hone/cost/inputs/row_writer.h"
#include "hone/cost/schedule_features.h"

namespace hone::cost {
namespace {

using analysis::CpuMeasure;
using analysis::Nest;
using analysis::RootMeasure;
using analysis::StageMeasure;

constexpr size_t kCacheLevels = 3;
constexpr size_t kLoops = 10;  // loops of the main statement, innermost first

struct Parts {
  std::span<const Nest> nests;
  const CpuMeasure& measure;
  const Nest* main = nullptr;  // the nest with the most cycles
  const StageMeasure* main_stage = nullptr;
  const RootMeasure* main_root = nullptr;
  double main_operations = 0, all_operations = 0;
  double seconds = 0;  // by the measure
};

Parts find_parts(std::span<const Nest> nests, const CpuMeasure& measure, const Query& query) {
  Parts parts{nests, measure};
  for (const RootMeasure& root : measure.roots) {
    for (const StageMeasure& stage : root.stages) {
      if (parts.main_stage && stage.compute_cycles <= parts.main_stage->compute_cycles) continue;
      parts.main_stage = &stage;
      parts.main_root = &root;
    }
  }
  parts.main = nests.empty() ? nullptr : nests.data();
  for (const Nest& nest : nests) {
    if (parts.main_stage && nest.stage == parts.main_stage->stage) parts.main = &nest;
    parts.all_operations += nest.operations();
  }
  if (parts.main) parts.main_operations = parts.main->operations();
  parts.seconds = std::max(measure.seconds(query.cpu(), query.threads), 1e-12);
  return parts;
}

// The features of the main statement (analysis/features.h).
void write_statement(const Nest* main, const Query& query, RowWriter& out) {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const std::string& name : analysis::feature_names()) names.push_back("main." + name);
    return names;
  }();
  out.copy(kNames, main ? analysis::features_of(*main, query.cpu(), query.threads)
                        : analysis::FeatureRow());
}

void write_sums(std::span<const Nest> nests, double operations, RowWriter& out) {
  double unique = 0, written = 0;
  for (const Nest& nest : nests) {
    for (const analysis::NestAccess& access : nest.accesses)
      unique += access.footprint(nest.loops, 0) * access.element_bytes;
    const analysis::NestAccess& write = nest.accesses.back();
    if (write.scope == ir::Scope::kGlobal)
      written += write.footprint(nest.loops, 0) * write.element_bytes;
  }
  out.count("all.operations", operations);
  out.count("all.bytes", unique);
  out.count("all.written_bytes", written);
}

// 0: stands still, 1: moves, 2: moves by one element.
double movement(const Nest& nest, size_t access, size_t loop) {
  if (access + 1 >= nest.accesses.size()) return -1;
  const analysis::NestAccess& a = nest.accesses[access];
  if (!a.moves_with(loop)) return 0;
  return std::abs(a.stride(loop)) == 1 ? 2 : 1;
}

void write_loops(const Nest* nest, RowWriter& out) {
  static constexpr std::string_view kNames[] = {"extent",    "reduce", "annotation", "own",
                                                "footprint", "first",  "second",     "write"};
  std::vector<size_t> inner;  // loops that repeat, innermost first
  for (size_t i = nest ? nest->loops.size() : 0; i-- > 0 && inner.size() < kLoops;) {
    if (nest->loops[i].extent > 1) inner.push_back(i);
  }
  for (size_t k = 0; k < kLoops; ++k) {
    std::array<double, std::size(kNames)> values;
    values.fill(-1);
    if (k < inner.size()) {
      const size_t i = inner[k];
      const analysis::NestLoop& loop = nest->loops[i];
      double footprint = 0;
      for (const analysis::NestAccess& access : nest->accesses)
        footprint += access.footprint(nest->loops, i) * access.element_bytes;
      values = {std::log2(static_cast<double>(loop.extent)),
                loop.reduce ? 1.0 : 0.0,
                static_cast<double>(loop.annotation),
                i >= nest->outer ? 1.0 : 0.0,
                std::log2(footprint),
                movement(*nest, 0, i),
                movement(*nest, 1, i),
                nest->accesses.back().moves_with(i) ? 1.0 : 0.0};
    }
    for (size_t j = 0; j < values.size(); ++j) {
      if (out.names_only())
        out.plain(fmt::format("loop{}.{}", k, kNames[j]), values[j]);
      else
        out.plain("", values[j]);
    }
  }
}

// Writes how the main statement keeps its values in registers.
void write_tile(const Nest* nest, const target::Cpu& target, RowWriter& out) {
  const analysis::RegisterTile tile =
      nest ? analysis::register_tile(*nest, target) : analysis::RegisterTile();
  out.count("main.registers.tile", tile.vectors);
  out.plain("main.registers.pressure", tile.vectors / target.vector_registers);
  out.plain("main.registers.lanes_used", tile.lanes_used);
  out.plain("main.registers.in_registers", tile.in_registers ? 1 : 0);
  analysis::AnnotatedLoops vector, unroll;
  if (nest) {
    vector = analysis::annotated_loops(*nest, schedule::Annotation::kVectorize);
    unroll = analysis::annotated_loops(*nest, schedule::Annotation::kUnroll);
  }
  out.count("main.vector.product", vector.product);
  out.count("main.vector.innermost", vector.innermost);
  out.count("main.unroll.number", unroll.number);
  out.count("main.unroll.product", unroll.product);
  out.count("main.unroll.innermost", unroll.innermost);
  out.plain("main.useful", nest ? nest->useful : 1);
}

void write_stage(const StageMeasure& stage, double operations, RowWriter& out) {
  out.count("measure.main.body_cycles", stage.body_cycles);
  out.count("measure.main.body_instructions", stage.body_instructions);
  out.plain("measure.main.registers", stage.registers);
  static constexpr const char* kNames[kCacheLevels] = {
      "measure.main.l1_bytes", "measure.main.l2_bytes", "measure.main.l3_bytes"};
  for (size_t i = 0; i < kCacheLevels; ++i)
    out.ratio(kNames[i], i < stage.bytes.size() ? stage.bytes[i] : 0, operations);
  out.ratio("measure.main.cycles", stage.compute_cycles, operations);
  out.ratio("measure.main.cycles_per_instruction", stage.body_cycles, stage.body_instructions);
  const double bodies = stage.compute_cycles / std::max(stage.body_cycles, 1.0);
  out.ratio("measure.main.instructions", stage.body_instructions * bodies, operations);
}

// The measure's parts, per operation or as shares of each other: trees that look at sizes learn
// tasks by heart instead of what makes a schedule slow.
void write_measure(const Parts& parts, const Query& query, RowWriter& out) {
  const double total = parts.seconds;
  const double main_operations = parts.main_operations, all_operations = parts.all_operations;
  static const StageMeasure kNoStage;
  static const RootMeasure kNoRoot;
  write_stage(parts.main_stage ? *parts.main_stage : kNoStage, main_operations, out);
  const RootMeasure& root = parts.main_root ? *parts.main_root : kNoRoot;
  double compute = 0, rest = 0;
  std::array<double, kCacheLevels> levels{};
  for (const RootMeasure& r : parts.measure.roots) {
    compute += r.compute_cycles;
    if (&r != parts.main_root) rest += r.seconds(query.cpu(), query.threads);
    for (size_t i = 0; i < std::min(kCacheLevels, r.level_cycles.size()); ++i)
      levels[i] += r.level_cycles[i];
  }
  out.count("measure.root.tiles", root.tiles);
  out.plain("measure.root.busiest_share", root.busiest_share(query.threads) * query.threads);
  out.ratio("measure.root.operations_per_tile", main_operations, root.tiles);
  out.plain("measure.root.stages", static_cast<double>(root.stages.size()));
  static constexpr const char* kRoot[kCacheLevels] = {
      "measure.root.l1_share", "measure.root.l2_share", "measure.root.l3_share"};
  for (size_t i = 0; i < kCacheLevels; ++i)
    out.ratio(kRoot[i], i < root.level_cycles.size() ? root.level_cycles[i] : 0,
              root.compute_cycles);
  out.plain("measure.roots", static_cast<double>(parts.measure.roots.size()));
  out.plain("measure.rest", rest / total);
  out.ratio("measure.cycles", compute, all_operations);
  static constexpr const char* kAll[kCacheLevels] = {"measure.l1_share", "measure.l2_share",
                                                     "measure.l3_share"};
  for (size_t i = 0; i < kCacheLevels; ++i) out.ratio(kAll[i], levels[i], compute);
  out.ratio("measure.nanoseconds", 1e9 * total, all_operations);
}

void write_share(const Parts& parts, RowWriter& out) {
  out.plain("all.statements", static_cast<double>(parts.nests.size()));
  out.plain("all.main_share", parts.main_operations / std::max(parts.all_operations, 1.0));
}

// All of kMeasure.
void write_measured(const Parts& parts, const Query& query, RowWriter& out) {
  write_share(parts, out);
  write_tile(parts.main, query.cpu(), out);
  write_measure(parts, query, out);
}

// Writes what kCombined has beyond kMeasure.
void write_decisions(const Parts& parts, const Query& query, RowWriter& out) {
  write_schedule_features({parts.main, parts.main_stage, parts.main_root}, parts.nests,
                          parts.measure, query, out);
}

// Returns the first guess.
double write(const Parts& parts, const Query& query, FeatureSet set, RowWriter& out) {
  if (set != FeatureSet::kStatements) {
    write_measured(parts, query, out);
    if (set == FeatureSet::kCombined) write_decisions(parts, query, out);
    return parts.seconds;
  }
  write_share(parts, out);
  write_statement(parts.main, query, out);
  write_sums(parts.nests, parts.all_operations, out);
  write_loops(parts.main, out);
  const target::Cpu& target = query.cpu();
  const double peak = target.lanes(4) * target.fma_per_cycle * target.ghz * 1e9 * query.threads;
  return (1 + parts.all_operations) / peak;
}

std::vector<std::string> collect_names(const auto& write) {
  std::vector<std::string> names;
  RowWriter writer(names);
  const target::Target target;
  const Query query = {nullptr, &target, 1, 0};
  const CpuMeasure measure;
  write(find_parts({}, measure, query), query, writer);
  return names;
}

}  // namespace

CandidateFeatures candidate_features(const Query& query, FeatureSet set) {
  if (set == FeatureSet::kGpu) return gpu_features(query);
  CandidateFeatures features;
  features.row.resize(candidate_feature_names(set).size());
  const space::Candidate& candidate = *query.candidate;
  const std::vector<Nest> nests = analysis::build_nests(candidate.state, candidate.bounds);
  const CpuMeasure measure = analysis::measure_cpu(nests, query.cpu(), query.threads);
  features.bounds = bounds_of(measure, query.threads);
  RowWriter writer(features.row);
  features.base_seconds = write(find_parts(nests, measure, query), query, set, writer);
  return features;
}

void write_net_features(std::span<const Nest> nests, const CpuMeasure& measure, const Query& query,
                        std::span<float> parts_row, std::span<float> decisions_row) {
  const Parts parts = find_parts(nests, measure, query);
  if (!parts_row.empty()) {
    RowWriter writer(parts_row);
    write_measured(parts, query, writer);
  }
  if (!decisions_row.empty()) {
    RowWriter writer(decisions_row);
    write_decisions(parts, query, writer);
  }
}

const std::vector<std::string>& candidate_feature_names(FeatureSet set) {
  if (set == FeatureSet::kGpu) return gpu_feature_names();
  const auto collect = [](FeatureSet s) {
    return collect_names([&](const Parts& parts, const Query& query, RowWriter& out) {
      (void)write(parts, query, s, out);
    });
  };
  static const std::vector<std::string> kNames[] = {collect(FeatureSet::kStatements),
                                                    collect(FeatureSet::kMeasure),
                                                    collect(FeatureSet::kCombined)};
  return kNames[static_cast<size_t>(set)];
}

const std::vector<std::string>& decision_names() {
  static const std::vector<std::string> kNames = collect_names(write_decisions);
  return kNames;
}

}  // namespace hone::cost
