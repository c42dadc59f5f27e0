// Multi-level tiling of reductions for GPUs: blocks, threads, registers (the GPU rule of Ansor,
// section 4.1). A convolution is a product whose left matrix is gathered while it is copied to
// shared memory (implicit GEMM; Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning").
#include <algorithm>

#include "hone/schedule/pipeline.h"
#include "hone/space/rules/gpu/contraction.h"
#include "hone/space/rules/gpu/copies.h"
#include "hone/space/rules/gpu/rules.h"
#include "hone/space/rules/roots.h"

namespace hone::space {
namespace {

using schedule::StageInfo;

constexpr int64_t kMostRowThreads = 32, kMostColumnThreads = 128, kMostChunk = 32;
constexpr int64_t kColumnStep = 8;    // threads along columns, unless they are a power of 2
constexpr int64_t kMostParts = 16;    // of a sum, for blocks
constexpr int64_t kMostSlices = 8;    // of a sum, for groups of a block's threads
constexpr int64_t kLeastParted = 32;  // terms along the longest axis of a sum that has parts

bool moves_in_sum(const StageInfo& r, const compute::Access& read) {
  for (int a = r.num_spatial(); a < static_cast<int>(r.axes.size()); ++a) {
    if (moves(read, a)) return true;
  }
  return false;
}

// The operands of the sum: what moves with it, each buffer once.
std::vector<compute::Access> operands_of(const StageInfo& r) {
  std::vector<compute::Access> found;
  for (const compute::Access& read : r.reads) {
    const bool is_new = std::none_of(
        found.begin(), found.end(), [&](const auto& other) { return other.buffer == read.buffer; });
    if (is_new && read.buffer != r.stage.outputs[0].buffer && moves_in_sum(r, read))
      found.push_back(read);
  }
  return found;
}

// Whether each dimension is one axis as it is, or has one place.
bool is_plain(const StageInfo& r, const compute::Access& read) {
  std::vector<size_t> seen;
  for (const compute::AffineRow& row : read.index) {
    size_t terms = 0;
    for (size_t a = 0; a < row.coef.size(); ++a) {
      if (row.coef[a] == 0) continue;
      if (row.coef[a] != 1 || std::count(seen.begin(), seen.end(), a) > 0) return false;
      seen.push_back(a);
      ++terms;
    }
    if (terms > 1) return false;
  }
  const auto others = std::count_if(r.reads.begin(), r.reads.end(), [&](const auto& other) {
    return other.buffer == read.buffer && other.index != read.index;
  });
  return !read.guarded && others == 0;
}

// Returns an operand's copy, with the axes that are neighbours in its source last; "" as its stage
// if it cannot be copied.
OperandCopy copy_operand(SketchBuilder& builder, const std::string& reduction,
                         const std::string& buffer, const GpuContraction& group) {
  const schedule::StageInfoPtr r = builder.info(reduction);
  OperandCopy copy;
  const auto read = std::find_if(r->reads.begin(), r->reads.end(),
                                 [&](const auto& one) { return one.buffer->name == buffer; });
  if (read == r->reads.end()) return copy;
  const bool plain = is_plain(*r, *read);
  schedule::Step step = schedule::Im2col{reduction, buffer};
  if (plain) step = schedule::CacheRead{buffer, reduction};
  if (!builder.add_step(std::move(step)).ok()) return copy;
  const int place = builder.state.find_stage(reduction) - 1;
  const StageInfo& info = *builder.state.stages[static_cast<size_t>(place)].info;
  copy.stage = info.stage.name;
  copy.element_bytes = dtype_bytes(info.stage.outputs[0].buffer->dtype);
  std::vector<std::pair<int64_t, std::string>> strides;
  for (size_t a = 0; a < info.stage.axes.size(); ++a) {
    int64_t stride = 0;
    for (const compute::Access& source : info.reads)
      stride = std::max(stride, std::abs(stride_of(source, a)));
    strides.emplace_back(stride, info.stage.axes[a].var->name);
  }
  const ir::BufferPtr from = info.reads[0].buffer;
  const int writer = builder.state.writers(from).empty() ? -1 : builder.state.writers(from)[0];
  if (writer >= 0 && !builder.state.stages[static_cast<size_t>(writer)].layout.empty()) {
    // Its last dimension is contiguous, wherever that stands in the logical buffer.
    const schedule::StageState& packed = builder.state.stages[static_cast<size_t>(writer)];
    strides[static_cast<size_t>(packed.layout.back().axis)].first = 0;
  }
  std::stable_sort(strides.begin(), strides.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  for (const auto& [stride, name] : strides) copy.axes.push_back(name);
  const auto place_of = [&](const std::string& name) {
    if (name == group.column.in_sum) return 4;
    for (size_t i = 0; i < group.rows.size(); ++i) {
      if (group.rows[i].in_sum == name) return static_cast<int>(2 + i);
    }
    return name == group.sum.var->name ? 1 : 0;
  };
  copy.layout = copy.axes;
  std::stable_sort(copy.layout.begin(), copy.layout.end(),
                   [&](const auto& x, const auto& y) { return place_of(x) < place_of(y); });
  copy.source_row = info.axes[static_cast<size_t>(axis_named(info, copy.axes.back()))].extent;
  if (plain && copy.layout.back() == copy.axes.back())
    copy.vector = kVectorBytes / copy.element_bytes;
  copy.is_async = builder.target.gpu().async_copy && copy.element_bytes >= kLeastAsync &&
                  schedule::is_plain_copy(info.stage);
  return copy;
}

// Powers of 2 and divisors of the extent, up to a limit.
std::vector<int64_t> lengths(int64_t extent, int64_t limit) {
  std::vector<int64_t> options;
  for (int64_t n = 1; n <= std::min(extent, limit); ++n) {
    if ((n & (n - 1)) == 0 || extent % n == 0) options.push_back(n);
  }
  return options;
}

// Rows are the last two other axes along which some operand stays, as far as there are such.
void find_axes(const StageInfo& e, const StageInfo& r, const std::vector<std::string>& names,
               int column, GpuContraction& group) {
  const std::vector<compute::Access> operands = operands_of(r);
  for (int a = e.num_spatial(); a-- > 0;) {
    if (a == column) continue;
    const int of_r = axis_named(r, names[static_cast<size_t>(a)]);
    const bool shares = std::any_of(operands.begin(), operands.end(),
                                    [&](const auto& read) { return !moves(read, of_r); });
    const compute::Axis& axis = e.axes[static_cast<size_t>(a)];
    const std::string& in_sum = names[static_cast<size_t>(a)];
    if (shares && axis.extent > 1 && group.rows.size() < 2) {
      group.rows.insert(group.rows.begin(), BlockAxis{axis.var->name, in_sum, axis.extent});
    } else {
      group.outer.insert(group.outer.begin(), {axis.var->name, in_sum});
      group.outer_points *= axis.extent;
    }
  }
  const compute::Axis& axis = e.axes[static_cast<size_t>(column)];
  group.column = {axis.var->name, names[static_cast<size_t>(column)], axis.extent};
  for (int a = 0; a < e.num_spatial(); ++a) {
    if (a != column) group.axes.push_back(e.axes[static_cast<size_t>(a)].var->name);
  }
  group.axes.push_back(axis.var->name);
  group.taps = r.stage.reduce;
  const auto longest =
      std::max_element(group.taps.begin(), group.taps.end(),
                       [](const auto& x, const auto& y) { return x.extent < y.extent; });
  group.sum = *longest;
  group.taps.erase(longest);
}

void add_decisions(SketchBuilder& builder, const StageInfo& e, GpuContraction& group) {
  const std::string& stage = group.epilogue;
  const auto tile = [&](const std::string& role, DecisionKind kind, std::vector<int64_t> options,
                        int64_t extent) {
    return options.size() > 1
               ? builder.add_decision(stage, role, kind, std::move(options), extent, true)
               : DecisionId();
  };
  for (size_t i = 0; i < group.rows.size(); ++i) {
    BlockAxis& axis = group.rows[i];
    const std::string role = i + 1 == group.rows.size() ? "row" : "outer_row";
    axis.d_threads = tile(role + ".threads", DecisionKind::kTile,
                          lengths(axis.extent, kMostRowThreads), axis.extent);
    axis.d_registers =
        tile(role + ".registers", DecisionKind::kUnroll, lengths(axis.extent, 8), axis.extent);
  }
  BlockAxis& column = group.column;
  // Threads of a row of odd length read what lies across the borders of memory's sectors.
  std::vector<int64_t> threads = lengths(column.extent, kMostColumnThreads);
  std::erase_if(threads, [&](int64_t n) {
    return (n & (n - 1)) != 0 && n % kColumnStep != 0 && n != column.extent;
  });
  column.d_threads = tile("column.threads", DecisionKind::kTile, threads, column.extent);
  std::vector<int64_t> vectors = {1};
  const int64_t most = kVectorBytes / dtype_bytes(e.stage.outputs[0].buffer->dtype);
  for (int64_t v = 2; v <= most && column.extent % v == 0; v *= 2) vectors.push_back(v);
  group.join_vector = vectors.back();
  group.d_vector = tile("column.vector", DecisionKind::kVector, vectors, column.extent);
  std::vector<int64_t> blocks = {1}, parts = {1};
  for (int64_t n = 2; n <= 8 && n <= column.extent; n *= 2) blocks.push_back(n);
  group.d_blocks = tile("column.blocks", DecisionKind::kUnroll, blocks, column.extent);
  for (int64_t n = 2; n <= kMostParts && group.sum.extent % n == 0; n *= 2) parts.push_back(n);
  if (parts.size() > 1 && group.sum.extent >= kLeastParted)
    group.d_parts = builder.add_decision(stage, "parts", DecisionKind::kParallel, parts);
  std::vector<int64_t> slices = {1};
  for (int64_t n = 2; n <= kMostSlices && group.sum.extent % n == 0; n *= 2) slices.push_back(n);
  if (slices.size() > 1 && group.sum.extent >= kLeastParted)
    group.d_slices = builder.add_decision(stage, "slices", DecisionKind::kParallel, slices);
  group.d_chunk =
      tile("chunk", DecisionKind::kTile, lengths(group.sum.extent, kMostChunk), group.sum.extent);
  if (!group.taps.empty()) {
    std::vector<int64_t> inside = {0};
    for (size_t i = 0; i < group.taps.size(); ++i) inside.push_back(static_cast<int64_t>(i) + 1);
    group.d_taps = builder.add_decision(stage, "taps", DecisionKind::kOrder, inside);
  }
  for (OperandCopy& copy : group.copies)
    copy.d_shared =
        builder.add_decision(stage, copy.stage + ".shared", DecisionKind::kPacking, {1, 0});
  const bool all_async = std::all_of(group.copies.begin(), group.copies.end(),
                                     [](const OperandCopy& copy) { return copy.is_async; });
  std::vector<int64_t> depths = {1, 2};
  if (all_async) depths.insert(depths.end(), {3, 4});
  if (!group.copies.empty() && !group.gpu.is_cpu)
    group.d_depth = builder.add_decision(stage, "depth", DecisionKind::kUnroll, depths);
}

// Whether a block of rows and columns would read an element several times.
bool reuses(const GpuContraction& group, const StageInfo& r) {
  const std::vector<compute::Access> operands = operands_of(r);
  return operands.size() > 1 &&
         (!group.rows.empty() ||
          std::any_of(operands.begin(), operands.end(), [&](const auto& read) {
            return !moves(read, axis_named(r, group.column.in_sum));
          }));
}

}  // namespace

std::string pack_constant(SketchBuilder& builder, const std::string& reduction,
                          const compute::Access& read, int column) {
  const ir::Param* param = builder.state.find_param(read.buffer);
  const schedule::StageInfoPtr r = builder.info(reduction);
  const bool packs = param != nullptr && param->role == ir::Role::kConstant &&
                     read.buffer->values.empty() && is_plain(*r, read) && moves(read, column) &&
                     stride_of(read, static_cast<size_t>(column)) != 1;
  if (!packs || !builder.add_step(schedule::CacheRead{read.buffer->name, reduction}).ok())
    return read.buffer->name;
  const std::string copy =
      builder.state.stages[static_cast<size_t>(builder.state.find_stage(reduction)) - 1].name();
  std::vector<std::string> dims;
  const std::string& last = r->axes[static_cast<size_t>(column)].var->name;
  for (const compute::Axis& axis : builder.info(copy)->stage.axes) {
    if (axis.var->name != last) dims.push_back(axis.var->name);
  }
  dims.push_back(last);
  if (dims.size() > 1 && !builder.add_step(schedule::Layout{copy, std::move(dims)}).ok()) return "";
  return builder.info(copy)->stage.outputs[0].buffer->name;
}

int column_of(const StageInfo& e) {
  int column = unit_stride_axis(e);
  for (int a = 0; a < e.num_spatial() && unit_stride_axis(e) < 0; ++a) {
    if (e.axes[static_cast<size_t>(a)].extent > 1) column = a;
  }
  return column;
}

bool add_contraction_tiles(SketchBuilder& builder, const std::string& epilogue,
                           const std::string& reduction) {
  const schedule::StageInfoPtr e = builder.info(epilogue), r = builder.info(reduction);
  if (e->constant || e->stage.where || r->stage.where || e->stage.outputs.size() != 1 ||
      r->stage.outputs.size() != 1)
    return false;
  const auto names = match_axes(*e, *r);
  const int column = column_of(*e);
  if (!names || column < 0) return false;
  auto group = std::make_shared<GpuContraction>();
  group->epilogue = epilogue;
  group->reduction = reduction;
  group->gpu = builder.target.gpu();
  group->result_bytes = dtype_bytes(r->stage.outputs[0].buffer->dtype);
  find_axes(*e, *r, *names, column, *group);
  if (!reuses(*group, *r)) return false;
  const int lane = axis_named(*r, group->column.in_sum);
  std::vector<std::string> copied;
  for (const compute::Access& read : operands_of(*r)) {
    const std::string buffer = pack_constant(builder, reduction, read, lane);
    if (buffer.empty()) return false;
    OperandCopy copy = copy_operand(builder, reduction, buffer, *group);
    if (!copy.stage.empty()) group->copies.push_back(std::move(copy));
  }
  // What has no copy is read as far as it exists.
  const schedule::StageInfoPtr now = builder.info(reduction);
  const auto mark = [&](BlockAxis& axis) {
    const int of_r = axis_named(*now, axis.in_sum);
    for (const compute::Access& read : now->reads) {
      const auto is_copy =
          std::any_of(group->copies.begin(), group->copies.end(), [&](const OperandCopy& copy) {
            return builder.info(copy.stage)->stage.outputs[0].buffer == read.buffer;
          });
      axis.is_read |= !is_copy && read.buffer != now->stage.outputs[0].buffer && moves(read, of_r);
    }
  };
  for (BlockAxis& axis : group->rows) mark(axis);
  mark(group->column);
  add_decisions(builder, *e, *group);
  group->find_usual(builder.decisions);
  builder.groups.push_back(std::move(group));
  return true;
}

}  // namespace hone::space
