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

#include "hone/space/rules/cpu/contraction.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

using schedule::StageInfo;

// The last two axes with points are tiled; the rest stays outside. So does one along which a tile
// would share no operand (groups), where two others are left.
Roles roles_of(const StageInfo& e, const StageInfo& r, const std::vector<std::string>& names,
               int vector, const ContractionOptions& options) {
  Roles roles{.vector = vector};
  std::vector<int> others;
  for (int a = 0; a < e.num_spatial(); ++a) {
    if (a != vector) others.push_back(a);
  }
  const auto shares = [&](int a) {
    const int of_r = axis_named(r, names[a]);
    return std::any_of(r.reads.begin(), r.reads.end(),
                       [&](const compute::Access& read) { return !moves(read, of_r); });
  };
  const auto stays_outside = [&](int a) {
    return std::count(options.outer.begin(), options.outer.end(), e.axes[a].var->name) > 0;
  };
  const auto first = others.begin() + static_cast<long>(std::min(options.fixed, others.size()));
  const auto sharing = std::count_if(first, others.end(), [&](int a) {
    return e.axes[a].extent > 1 && shares(a) && !stays_outside(a);
  });
  for (size_t i = others.size(); i-- > options.fixed;) {
    const int a = others[i];
    if (sharing >= 2 && r.reads.size() > 1 && !shares(a)) continue;
    if (stays_outside(a)) continue;
    if (e.axes[a].extent == 1 && (roles.column < 0 || roles.row < 0)) continue;
    if (roles.column < 0) {
      roles.column = a;
    } else if (roles.row < 0) {
      roles.row = a;
    }
  }
  const bool may_move = !options.nested && !options.by_rows && options.fixed == 0 &&
                        !options.fixed_groups && roles.row >= 0;
  for (const int a : others) {
    if (a == roles.column || a == roles.row) continue;
    roles.outer.push_back(a);
    if (may_move && e.axes[a].extent > 1 && !shares(a)) roles.groups = a;
  }
  return roles;
}

// The longest reduce axis is innermost (channels), a window's taps outside of it. Without a long
// axis they keep the order in which the Dag names them, the last innermost.
std::vector<compute::Axis> loops_of_sum(const compute::Stage& sum) {
  std::vector<compute::Axis> loops = sum.reduce;
  std::stable_sort(loops.begin(), loops.end(),
                   [](const auto& a, const auto& b) { return a.extent < b.extent; });
  const bool none_long = loops.size() > 1 && loops.back().extent < 3 * loops[0].extent;
  return none_long && sum.reduce[0].extent > 1 ? sum.reduce : loops;
}

// What the nest is made for: registers, lanes, cores and their cache.
void describe_target(const target::Cpu& target, const StageInfo& e, const StageInfo& r,
                     Contraction& group) {
  group.lanes = lanes_of(target, e);
  group.registers = target.vector_registers;
  group.cores = target.cores;
  if (target.caches.size() > 1) group.near_bytes = target.caches[1].bytes;
  // Values that are updated together have as many lanes each, whatever is made of them.
  const auto values = static_cast<int>(r.stage.outputs.size());
  if (values == 1) return;
  int64_t bytes = 1;
  for (const compute::Output& output : r.stage.outputs)
    bytes = std::max<int64_t>(bytes, dtype_bytes(output.buffer->dtype));
  group.lanes = target.lanes(static_cast<int>(bytes));
  group.registers /= values;
}

void describe_operands(const schedule::State& state, const StageInfo& e, const StageInfo& r,
                       int lane, Contraction& group) {
  for (const std::vector<compute::Access>* reads : {&e.reads, &r.reads}) {
    for (const compute::Access& read : *reads) group.tests_data |= read.guarded;
  }
  for (const compute::Access& read : r.reads) {
    group.reuses |= !moves(read, lane);
    const ir::Param* param = state.find_param(read.buffer);
    group.skips_zeros |= param != nullptr && !param->zeros.empty();
  }
}

// The constant operand that moves with the lanes, if there is one, is copied at compile time.
void pack(SketchBuilder& builder, const StageInfo& r, int lane, const std::string& packed,
          Contraction& group) {
  group.packed = packed;
  if (packed.empty()) {
    const compute::Access* operand = packable(builder.state, r, lane);
    if (operand != nullptr) group.packed = add_copy(builder, operand->buffer->name, r.stage.name);
  }
  if (group.packed.empty()) return;
  group.packed_axes = long_axes(builder, group.packed);
  group.pad_vector = 1 == std::count_if(r.reads.begin(), r.reads.end(),
                                        [&](const auto& read) { return moves(read, lane); });
}

// Without rows and columns, or with lanes along rows, the lanes' operand streams by.
void describe_stream(const target::Cpu& target, const StageInfo& r, int lane, Contraction& group) {
  const bool is_row = group.roles.column < 0 && group.roles.row < 0;
  if (group.row_lanes || is_row) group.streamed = group.packed;
  for (const compute::Access& read : r.reads) {
    if (!moves(read, lane)) continue;
    if (group.row_lanes && group.packed.empty()) {
      group.streamed = read.buffer->name;
      if (!target.caches.empty())
        group.line = target.caches[0].line_bytes / dtype_bytes(read.buffer->dtype);
    }
    group.from_memory |= !group.streamed.empty() && !target.caches.empty() &&
                         read.buffer->bytes() > target.caches.back().bytes / 2;
  }
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

std::string add_copy(SketchBuilder& builder, std::string buffer, const std::string& reader) {
  if (!builder.add_step(schedule::CacheRead{std::move(buffer), reader}).ok()) return "";
  return builder.state.stages[builder.state.find_stage(reader) - 1].name();
}

std::vector<std::string> long_axes(const SketchBuilder& builder, const std::string& stage) {
  std::vector<std::string> names;
  for (const compute::Axis& axis : builder.info(stage)->axes) {
    if (axis.extent > 1) names.push_back(axis.var->name);
  }
  return names;
}

std::shared_ptr<Contraction> make_contraction(SketchBuilder& builder, const std::string& epilogue,
                                              const std::string& reduction,
                                              const ContractionOptions& options) {
  const schedule::StageInfoPtr e = builder.info(epilogue), r = builder.info(reduction);
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
  group->roles = roles_of(*e, *r, *names, vector, options);
  group->reduce = loops_of_sum(r->stage);
  const int lane = axis_named(*r, (*names)[vector]);  // of R
  describe_target(builder.cpu(), *e, *r, *group);
  describe_operands(builder.state, *e, *r, lane, *group);
  pack(builder, *r, lane, options.packed, *group);
  describe_stream(builder.cpu(), *r, lane, *group);
  add_decisions(builder, *e, *r, options.blocks, *group);
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
