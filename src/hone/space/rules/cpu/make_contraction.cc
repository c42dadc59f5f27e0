// Multi-level tiling around a register tile (the CPU rule of Ansor, section 4.1, with explicit
// registers): a reduction R is computed inside its pointwise epilogue E.
//
//   parallel outer loops of E, in a chosen order
//     R: for reduce loops: for the register tile (unrolled) x vector lanes
//     E: the register tile: bias, activation, residual, store
//
// A constant operand of R is packed at compile time in the order in which the loops read it,
// another one may be copied into panels. A long sum may be cut into blocks, so that what a block
// reads stays in a cache (GotoBLAS: Goto and van de Geijn, 2008):
//
//   parallel outer loops of E
//     R, in memory near by: for blocks of the sum:
//       panels of an operand, of this block
//       the other outer loops:
//         R.rf: for reduce loops of the block: for the register tile (unrolled) x vector lanes
//         R += R.rf
//     E: the other outer loops: the register tile
#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/space/rules/cpu/contraction.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

constexpr int kPermutedBytes = 32;  // of the least vectors whose lanes may change places at will

// Whether every tile of two to four whole vectors computes vectors that are not there.
bool leaves_rest(const Contraction& group) {
  const int64_t vectors = ceil_div(group.axes[group.roles.vector].extent, group.lanes);
  return group.reuses && !group.nested && !group.by_rows && vectors > 4 && vectors % 2 != 0 &&
         vectors % 3 != 0;
}

// How many groups, each with all of its channels, fill a vector; 1 if none do. Each of them reads
// data of its own, which takes a permutation (codegen/llvm/emit_permuted.cc).
int64_t groups_of_vector(const Contraction& group) {
  if (group.roles.groups < 0 || !group.joinable) return 1;
  const int64_t channels = group.axes[group.roles.vector].extent;
  const int64_t groups = channels < group.lanes ? group.lanes / channels : 1;
  const bool fills = groups * channels == group.lanes && groups <= 4;
  return fills && group.axes[group.roles.groups].extent % groups == 0 ? groups : 1;
}

void add_tile_decisions(SketchBuilder& builder, Contraction& group) {
  const std::string& stage = group.epilogue;
  const int64_t channels = group.axes[group.roles.vector].extent;
  std::vector<int64_t> lane_options = {group.lanes};
  if (group.lanes >= 8) lane_options.insert(lane_options.begin(), group.lanes / 2);
  group.d_lanes = builder.add_decision(stage, "lanes", DecisionKind::kVector, lane_options);
  const int64_t most = std::max<int64_t>(1, (channels + group.lanes / 2 - 1) / (group.lanes / 2));
  std::vector<int64_t> vectors;
  // 40 or 112 channels, five half vectors or seven whole ones: other tiles of several vectors of
  // that length leave a rest.
  const auto fits_odd = [&](int64_t n) {
    return group.reuses && std::any_of(lane_options.begin(), lane_options.end(), [&](int64_t v) {
             return channels % (n * v) == 0 && channels % (2 * v) != 0 && channels % (3 * v) != 0;
           });
  };
  for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 8}) {
    if (n <= most && ((n != 5 && n != 7) || fits_odd(n))) vectors.push_back(n);
  }
  // Few columns leave registers for more of them, a longer piece of memory in a row.
  if (group.row_lanes) {
    for (const int64_t n : {12, 16}) {
      if (n <= most) vectors.push_back(n);
    }
  }
  // Where nothing is reused, all channels of a point at once are one stream from memory.
  for (const int64_t all : {(channels + group.lanes - 1) / group.lanes, most}) {
    if (!group.reuses && all > vectors.back() && all + 2 <= group.registers) vectors.push_back(all);
  }
  group.d_vectors = builder.add_decision(stage, "vectors", DecisionKind::kTile, vectors);
  if (const int64_t groups = groups_of_vector(group); groups > 1)
    group.d_join = builder.add_decision(stage, "join", DecisionKind::kVector, {1, groups});
  if (leaves_rest(group))
    group.d_rest = builder.add_decision(stage, "rest", DecisionKind::kTail, {0, 1});
  if (group.roles.column >= 0) {
    group.d_column = builder.add_decision(
        stage, "column", DecisionKind::kTile,
        tile_options(group.axes[group.roles.column].extent, group.registers - 2),
        group.axes[group.roles.column].extent);
    group.d_tail = builder.add_decision(stage, "tail", DecisionKind::kTail, {0, 1});
  }
  if (group.roles.row >= 0) {
    const int64_t rows = group.axes[group.roles.row].extent;
    group.d_row =
        builder.add_decision(stage, "row", DecisionKind::kTile, tile_options(rows, 7), rows);
    std::vector<int64_t> blocks;
    for (const int64_t n : {1, 2, 3, 4, 7, 8, 14, 16, 28, 32, 56, 112}) {
      if (n <= rows) blocks.push_back(n);
    }
    if (group.nested) return;
    group.d_block = builder.add_decision(stage, "block", DecisionKind::kTile, blocks, rows, true);
  }
}

void add_loop_decisions(SketchBuilder& builder, Contraction& group) {
  const std::string& stage = group.epilogue;
  using Options = std::vector<int64_t>;
  group.d_order = builder.add_decision(stage, "order", DecisionKind::kOrder,
                                       group.by_rows ? Options{0} : Options{0, 1, 2});
  if (group.roles.groups >= 0)
    group.d_groups = builder.add_decision(stage, "groups", DecisionKind::kOrder, {0, 1, 2});
  if (!group.nested) {
    group.d_parallel = builder.add_decision(stage, "parallel", DecisionKind::kParallel,
                                            group.by_rows ? Options{1} : Options{1, 2, 3, 4});
  }
  const int64_t last = group.reduce.back().extent;
  std::vector<int64_t> unrolls;
  for (const int64_t n : {1, 2, 4, 8}) {
    if (n <= last) unrolls.push_back(n);
  }
  group.d_unroll = builder.add_decision(stage, "unroll", DecisionKind::kUnroll, unrolls);
  // One row: weights stream by, and the hardware's prefetchers, which stop at each page, are led to
  // the next one.
  if (!group.streamed.empty())
    group.d_ahead = builder.add_decision(stage, "ahead", DecisionKind::kPacking, {0, 8});
  if (group.taps() > 1) {
    // Unrolled taps share loads of a register tile's operands, which then outnumber the registers;
    // where every lane has its own data, or few channels, sharing is the point.
    if (!group.reuses || last < 16)
      group.d_taps = builder.add_decision(stage, "taps", DecisionKind::kUnroll, {0, 1});
    group.d_reduce_order =
        builder.add_decision(stage, "reduce_order", DecisionKind::kOrder, {0, 1});
  }
}

constexpr int64_t kLeastBlock = 256;  // terms, of a block of a sum

// Whether what a register tile reads of the operand along the lanes fills a core's own cache.
bool is_long(const Contraction& group) {
  const int64_t vectors = group.roles.row < 0 ? 4 : 2;  // of a usual tile
  const int64_t terms = group.taps() * group.reduce.back().extent;
  const auto width = vectors * group.lanes * static_cast<int64_t>(sizeof(float));
  return 4 * terms * width >= 3 * group.near_bytes;
}

// Whether neighbouring columns read the same of the operand along the lanes.
bool shares_operand(const Contraction& group, const schedule::StageInfo& sum) {
  const auto axis = [&](int role) {
    return axis_named(sum, group.reduction_names[static_cast<size_t>(role)]);
  };
  const int lanes = axis(group.roles.vector), column = axis(group.roles.column);
  return std::none_of(sum.reads.begin(), sum.reads.end(), [&](const compute::Access& read) {
    return lanes >= 0 && column >= 0 && moves(read, lanes) && moves(read, column);
  });
}

// All that a sum reads and writes.
int64_t bytes_of(const schedule::StageInfo& sum) {
  int64_t bytes = 0;
  for (const compute::Access& read : sum.reads) bytes += read.buffer->bytes();
  for (const compute::Output& output : sum.stage.outputs) bytes += output.buffer->bytes();
  return bytes;
}

void add_block_decisions(SketchBuilder& builder, Contraction& group,
                         const schedule::StageInfo& reduction) {
  const Extents all = group.whole();
  if (group.roles.column < 0 || bytes_of(reduction) < group.near_bytes ||
      !shares_operand(group, reduction))
    return;
  const auto add = [&](std::string_view role, DecisionKind kind, std::vector<int64_t> options) {
    return builder.add_decision(group.epilogue, role, kind, std::move(options));
  };
  if (group.roles.row < 0 && all.columns >= 32) {
    std::vector<int64_t> bands;
    for (const int64_t n : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
      if (all.columns >= 16 * n) bands.push_back(n);
    }
    if (bands.size() > 1)
      group.d_bands = add("column_blocks", DecisionKind::kParallel, std::move(bands));
  }
  const schedule::RFactor cut{group.reduction, group.reduce.back().var->name, kLeastBlock};
  const int64_t longest = group.reduce.back().extent;
  if (is_long(group) && schedule::check(cut, builder.state).ok()) {
    std::vector<int64_t> sums = {1};
    for (const int64_t n : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
      const int64_t terms = block_of_sum(longest, n);
      if (terms * group.taps() >= kLeastBlock && ceil_div(longest, terms) == n) sums.push_back(n);
    }
    if (sums.size() > 1) group.d_sums = add("sum_blocks", DecisionKind::kTile, std::move(sums));
  }
  if (!group.packed.empty()) return;
  const auto name = [&](int axis) { return group.reduction_names[static_cast<size_t>(axis)]; };
  group.panels = Panels::find(builder.state, group.reduction, name(group.roles.vector),
                              name(group.roles.column));
  group.dear_rests = group.panels && !builder.target.masked_memory;
  if (group.panels) group.d_panels = add("panels", DecisionKind::kPacking, {0, 1, 2});
}

// A copy of what is read in two ways (a matrix times itself, transposed) has the order of one.
bool is_read_otherwise(const schedule::StageInfo& r, const compute::Access& read) {
  return std::any_of(r.reads.begin(), r.reads.end(), [&](const compute::Access& other) {
    return other.buffer == read.buffer && other.index != read.index;
  });
}

}  // namespace

const compute::Access* packable(const schedule::State& state, const schedule::StageInfo& r,
                                int axis) {
  const compute::Access* best = nullptr;
  for (const compute::Access& read : r.reads) {
    const ir::Param* param = state.find_param(read.buffer);
    if (!param || param->role != ir::Role::kConstant || read.guarded ||
        !read.buffer->values.empty() || is_read_otherwise(r, read))
      continue;
    bool simple = true, moves = false;
    std::vector<int> seen;
    for (size_t d = 0; d < read.index.size(); ++d) {
      int terms = 0;
      for (size_t a = 0; a < read.index[d].coef.size(); ++a) {
        if (read.index[d].coef[a] == 0) continue;
        ++terms;
        simple = simple && read.index[d].coef[a] == 1 &&
                 std::count(seen.begin(), seen.end(), static_cast<int>(a)) == 0;
        seen.push_back(static_cast<int>(a));
        moves = moves || static_cast<int>(a) == axis;
      }
      simple = simple && terms <= 1 && read.index[d].constant == 0 &&
               (terms == 1 || read.buffer->shape[d] == 1);
      for (size_t a = 0; a < read.index[d].coef.size(); ++a) {
        if (read.index[d].coef[a] != 0)
          simple = simple && r.axes[a].extent == read.buffer->shape[d];
      }
    }
    if (simple && moves && (!best || read.buffer->num_elements() > best->buffer->num_elements()))
      best = &read;
  }
  return best;
}

std::optional<std::vector<std::string>> match_axes(const schedule::StageInfo& e,
                                                   const schedule::StageInfo& r) {
  const compute::Access* access = nullptr;
  for (const compute::Access& read : e.reads) {
    if (read.buffer != r.stage.outputs[0].buffer) continue;
    if (access) return std::nullopt;  // one read, maybe chosen by a select: it is inside anyway
    access = &read;
  }
  if (!access) return std::nullopt;
  std::vector<std::string> names(e.axes.size());
  for (size_t d = 0; d < access->index.size(); ++d) {
    int from = -1, to = -1;
    for (size_t a = 0; a < e.axes.size(); ++a) {
      if (access->index[d].coef[a] == 0) continue;
      if (access->index[d].coef[a] != 1 || from >= 0) return std::nullopt;
      from = static_cast<int>(a);
    }
    for (size_t a = 0; a < r.axes.size(); ++a) {
      if (r.writes[0][d].coef[a] == 0) continue;
      if (r.writes[0][d].coef[a] != 1 || to >= 0) return std::nullopt;
      to = static_cast<int>(a);
    }
    if (from < 0 && to < 0) continue;
    if (from < 0 || to < 0 || access->index[d].constant != r.writes[0][d].constant)
      return std::nullopt;
    if (e.axes[from].extent != r.axes[to].extent) return std::nullopt;
    names[from] = r.axes[to].var->name;
  }
  for (const std::string& name : names) {
    if (name.empty()) return std::nullopt;
  }
  return names.size() == static_cast<size_t>(r.num_spatial()) ? std::optional(names) : std::nullopt;
}

std::shared_ptr<Contraction> make_contraction(SketchBuilder& builder, const std::string& epilogue,
                                              const std::string& reduction,
                                              const ContractionOptions& options) {
  const schedule::StageInfoPtr e = builder.state.stages[builder.state.find_stage(epilogue)].info;
  const schedule::StageInfoPtr r = builder.state.stages[builder.state.find_stage(reduction)].info;
  if (e->constant || e->stage.where || (r->stage.where && !options.ends_early) ||
      e->stage.outputs.size() != 1)
    return nullptr;
  const auto names = match_axes(*e, *r);
  const int vector = options.vector < 0 ? unit_stride_axis(*e) : options.vector;
  if (!names || vector < 0) return nullptr;

  auto group = std::make_shared<Contraction>();
  group->epilogue = epilogue;
  group->reduction = reduction;
  group->nested = options.nested;
  group->by_rows = options.by_rows;
  group->row_lanes = options.vector >= 0;
  group->axes = e->stage.axes;
  group->reduction_names = *names;
  group->roles.vector = vector;
  std::vector<int> others;
  for (int a = 0; a < e->num_spatial(); ++a) {
    if (a != vector) others.push_back(a);
  }
  // The last two axes with points are tiled; the rest stays outside. So does one along which a tile
  // would share no operand (groups), where two others are left.
  const auto shares = [&](int a) {
    const int of_r = axis_named(*r, (*names)[a]);
    return std::any_of(r->reads.begin(), r->reads.end(),
                       [&](const compute::Access& read) { return !moves(read, of_r); });
  };
  const auto stays_outside = [&](int a) {
    return std::count(options.outer.begin(), options.outer.end(), e->axes[a].var->name) > 0;
  };
  const auto first = others.begin() + static_cast<long>(std::min(options.fixed, others.size()));
  const auto sharing = std::count_if(first, others.end(), [&](int a) {
    return e->axes[a].extent > 1 && shares(a) && !stays_outside(a);
  });
  for (size_t i = others.size(); i-- > options.fixed;) {
    const compute::Axis& axis = e->axes[others[i]];
    if (sharing >= 2 && r->reads.size() > 1 && !shares(others[i])) continue;
    if (stays_outside(others[i])) continue;
    if (axis.extent == 1 && (group->roles.column < 0 || group->roles.row < 0)) continue;
    if (group->roles.column < 0) {
      group->roles.column = others[i];
    } else if (group->roles.row < 0) {
      group->roles.row = others[i];
    }
  }
  for (const int a : others) {
    if (a == group->roles.column || a == group->roles.row) continue;
    group->roles.outer.push_back(a);
    const bool may_move = !options.nested && !options.by_rows && options.fixed == 0 &&
                          !options.fixed_groups && group->roles.row >= 0;
    if (may_move && e->axes[a].extent > 1 && !shares(a)) group->roles.groups = a;
  }
  // Longest reduce axis innermost (channels); a window's taps outside of it.
  group->reduce = r->stage.reduce;
  std::stable_sort(group->reduce.begin(), group->reduce.end(),
                   [](const auto& a, const auto& b) { return a.extent < b.extent; });
  if (group->reduce.size() > 1 && group->reduce.back().extent < 3 * group->reduce[0].extent &&
      r->stage.reduce[0].extent > 1) {
    // No long axis: keep the order in which the Dag names them, the last innermost.
    group->reduce = r->stage.reduce;
  }
  const int r_vector = axis_named(*r, group->reduction_names[vector]);
  for (const std::vector<compute::Access>* reads : {&e->reads, &r->reads}) {
    for (const compute::Access& read : *reads)
      group->tests_data = group->tests_data || read.guarded;
  }
  for (const compute::Access& read : r->reads) {
    group->reuses = group->reuses || !moves(read, r_vector);
    const ir::Param* param = builder.state.find_param(read.buffer);
    group->skips_zeros = group->skips_zeros || (param && !param->zeros.empty());
  }
  group->lanes = lanes_of(builder.target, *e);
  group->registers = builder.target.vector_registers;
  // Values that are updated together have as many lanes each, whatever is made of them.
  const auto values = static_cast<int>(r->stage.outputs.size());
  if (values > 1) {
    int64_t bytes = 1;
    for (const compute::Output& output : r->stage.outputs)
      bytes = std::max<int64_t>(bytes, dtype_bytes(output.buffer->dtype));
    group->lanes = builder.target.lanes(static_cast<int>(bytes));
    group->registers /= values;
  }
  group->cores = builder.target.cores;
  int moving = 0;
  for (const compute::Access& read : r->reads) moving += moves(read, r_vector) ? 1 : 0;
  const auto set_packed_axes = [&] {
    const schedule::StageState& cache =
        builder.state.stages[builder.state.find_stage(group->packed)];
    for (const compute::Axis& axis : cache.info->axes) {
      if (axis.extent > 1) group->packed_axes.push_back(axis.var->name);
    }
  };
  if (!options.packed.empty()) {
    group->pad_vector = moving == 1;
    group->packed = options.packed;
    set_packed_axes();
  } else if (const compute::Access* operand = packable(builder.state, *r, r_vector)) {
    const std::string buffer = operand->buffer->name;
    const std::vector<std::string> before = [&] {
      std::vector<std::string> all;
      for (const auto& stage : builder.state.stages) all.push_back(stage.name());
      return all;
    }();
    if (builder.add_step(schedule::CacheRead{buffer, reduction}).ok()) {
      group->pad_vector = moving == 1;
      for (const auto& stage : builder.state.stages) {
        if (std::count(before.begin(), before.end(), stage.name()) == 0)
          group->packed = stage.name();
      }
      set_packed_axes();
    }
  }
  if (group->row_lanes || (group->roles.column < 0 && group->roles.row < 0))
    group->streamed = group->packed;
  if (group->row_lanes && group->packed.empty()) {
    for (const compute::Access& read : r->reads) {
      if (!moves(read, r_vector)) continue;
      group->streamed = read.buffer->name;
      if (!builder.target.caches.empty())
        group->line = builder.target.caches[0].line_bytes / dtype_bytes(read.buffer->dtype);
    }
  }
  if (group->roles.groups >= 0) {
    const auto& row = e->writes[0].back();
    group->joinable = builder.target.vector_bytes >= kPermutedBytes && !group->row_lanes &&
                      row.coef[static_cast<size_t>(group->roles.groups)] ==
                          e->axes[static_cast<size_t>(vector)].extent;
  }
  if (!group->streamed.empty() && !builder.target.caches.empty()) {
    for (const compute::Access& read : r->reads) {
      if (moves(read, r_vector) && read.buffer->bytes() > builder.target.caches.back().bytes / 2)
        group->from_memory = true;
    }
  }
  add_tile_decisions(builder, *group);
  // Under a mask each of the values is chosen once more; a product's or a pool's is no dearer.
  if (values > 1 && !group->nested && !group->pad_vector)
    group->d_last = builder.add_decision(epilogue, "last", DecisionKind::kTail, {0, 1});
  add_loop_decisions(builder, *group);
  if (builder.target.caches.size() > 1) group->near_bytes = builder.target.caches[1].bytes;
  if (options.blocks && !options.nested && !options.by_rows && !group->row_lanes)
    add_block_decisions(builder, *group, *r);
  group->own_decisions = builder.decisions;
  return group;
}

bool add_contraction(SketchBuilder& builder, const std::string& epilogue,
                     const std::string& reduction) {
  std::shared_ptr<Contraction> group =
      make_contraction(builder, epilogue, reduction, {.blocks = true});
  if (!group) return false;
  builder.groups.push_back(std::move(group));
  return true;
}

}  // namespace hone::space
