#include "hone/cost/decision_features.h"

#include <algorithm>
#include <cmath>

namespace hone::cost {
namespace {

using analysis::Nest;
using analysis::NestAccess;

// The last dimension of an access that moves with a loop; -1 if none does.
int moved_dimension(const NestAccess* access, size_t loop) {
  for (size_t d = access ? access->move.size() : 0; d-- > 0;) {
    if (access->move[d][loop] != 0) return static_cast<int>(d);
  }
  return -1;
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
  out.plain(out.name("{}.waste", name), tail.waste);
  out.plain(out.name("{}.tests", name), tail.tests);
  out.plain(out.name("{}.low", name), tail.low);
  out.plain(out.name("{}.regions", name), tail.regions);
  out.plain(out.name("{}.peeled", name), tail.peeled);
  out.plain(out.name("{}.padded", name), tail.padded);
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

}  // namespace

const NestAccess* read_of(const Nest* nest, size_t i) {
  return nest && i + 1 < nest->accesses.size() ? &nest->accesses[i] : nullptr;
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

}  // namespace hone::cost
