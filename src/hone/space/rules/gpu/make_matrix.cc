// Products and convolutions by matrix instructions of warps (mma.sync), in tiles of blocks and
// warps whose operands are in shared memory (NVIDIA, "CUTLASS: Fast Linear Algebra in CUDA C++").
#include <algorithm>
#include <numeric>

#include "hone/base/round_up.h"
#include "hone/ir/linear.h"
#include "hone/schedule/matrix_product.h"
#include "hone/schedule/pipeline.h"
#include "hone/space/rules/gpu/copies.h"
#include "hone/space/rules/gpu/matrix.h"
#include "hone/space/rules/gpu/rules.h"
#include "hone/space/rules/roots.h"

namespace hone::space {
namespace {

using schedule::StageInfo;

constexpr int64_t kMostWarps = 4;  // along rows, and along columns
constexpr int64_t kMostRows = 64, kMostColumns = 128, kMostTerms = 64;  // of a warp, of a chunk
constexpr int64_t kMostRaster = 16, kMostDepth = 5, kMostParts = 16;

// Powers of 2 from `least` on, until one covers the extent.
std::vector<int64_t> lengths(int64_t least, int64_t most, int64_t extent) {
  std::vector<int64_t> options;
  for (int64_t n = least; n <= most && (n == least || n / 2 < extent); n *= 2) options.push_back(n);
  return options;
}

// The axes of a sum that only its left factor has become rows, and those that only its right factor
// has columns: that is the one along which results are neighbours.
bool find_axes(const StageInfo& e, const StageInfo& r, const std::vector<std::string>& names,
               int column, GpuMatrix& group) {
  const auto factors = schedule::product_terms(r.stage);
  if (!factors) return false;
  const auto used = [&](const ir::Expr& factor, int axis) {
    const compute::Axis& of_r = r.axes[static_cast<size_t>(axis)];
    return of_r.extent > 1 && ir::uses(factor, of_r.var.get());
  };
  const int column_of_r = axis_named(r, names[static_cast<size_t>(column)]);
  const bool swapped = used(factors->first, column_of_r);
  const ir::Expr& left = swapped ? factors->second : factors->first;
  const ir::Expr& right = swapped ? factors->first : factors->second;
  if (used(left, column_of_r)) return false;
  for (int a = 0; a < e.num_spatial(); ++a) {
    const compute::Axis& axis = e.axes[static_cast<size_t>(a)];
    const std::string &name = axis.var->name, &in_sum = names[static_cast<size_t>(a)];
    const int of_r = axis_named(r, in_sum);
    const bool of_left = used(left, of_r), of_right = used(right, of_r);
    if (a == column) continue;
    if (of_right && !of_left) {
      (axis.extent > 1 ? group.columns_of_e : group.single).push_back(name);
      group.columns_of_r.push_back(in_sum);
      group.columns *= axis.extent;
    } else if (!of_right) {
      (axis.extent > 1 ? group.rows_of_e : group.single).push_back(name);
      group.rows_of_r.push_back(in_sum);
      group.rows *= axis.extent;
    } else {
      group.outer.emplace_back(name, in_sum);
      group.outer_points *= axis.extent;
    }
  }
  for (int a = 0; a < e.num_spatial(); ++a) {
    if (a != column) group.axes.push_back(e.axes[static_cast<size_t>(a)].var->name);
  }
  group.axes.push_back(e.axes[static_cast<size_t>(column)].var->name);
  if (group.rows_of_r.empty()) return false;
  if (group.rows_of_e.empty()) {  // one row
    group.rows_of_e = {group.single.back()};
    group.single.pop_back();
  }
  const compute::Axis& last = e.axes[static_cast<size_t>(column)];
  group.columns_of_e.push_back(last.var->name);
  group.columns_of_r.push_back(names[static_cast<size_t>(column)]);
  group.columns *= last.extent;
  for (const compute::Axis& axis : r.stage.reduce) group.terms *= axis.extent;
  return true;
}

void add_decisions(SketchBuilder& builder, GpuMatrix& group) {
  const auto decide = [&](std::string_view role, DecisionKind kind, std::vector<int64_t> options,
                          int64_t extent) {
    return options.size() > 1 || options[0] != 1
               ? builder.add_decision(group.epilogue, role, kind, std::move(options), extent,
                                      extent > 0)
               : DecisionId();
  };
  const target::MatrixInstruction& one = group.instruction;
  group.d_row_warps = decide("row.warps", DecisionKind::kTile,
                             lengths(1, kMostWarps, ceil_div(group.rows, one.m)), group.rows);
  group.d_column_warps =
      decide("column.warps", DecisionKind::kTile,
             lengths(1, kMostWarps, ceil_div(group.columns, one.n)), group.columns);
  group.d_rows =
      decide("row.tile", DecisionKind::kUnroll, lengths(one.m, kMostRows, group.rows), 0);
  group.d_columns =
      decide("column.tile", DecisionKind::kUnroll, lengths(one.n, kMostColumns, group.columns), 0);
  const int64_t most = kMostTerms * 2 / group.element_bytes;
  group.d_terms =
      decide("chunk", DecisionKind::kTile, lengths(one.k, most, group.terms), group.terms);
  std::vector<int64_t> depths;
  for (int64_t n = 1; n <= kMostDepth && n <= ceil_div(group.terms, one.k); ++n)
    depths.push_back(n);
  group.d_depth = decide("depth", DecisionKind::kTile, depths, 0);
  // Tiles of a block are at most so large where there are few of them.
  const int64_t blocks =
      group.outer_points * ceil_div(group.rows, kMostRows) * ceil_div(group.columns, kMostRows);
  if (blocks < 2 * group.gpu.sms) {
    group.d_parts = decide("parts", DecisionKind::kParallel,
                           lengths(1, kMostParts, ceil_div(group.terms, 2 * one.k)), 0);
  }
  group.d_raster = decide("raster", DecisionKind::kOrder,
                          lengths(1, kMostRaster, ceil_div(group.rows, kMostRows)), 0);
}

}  // namespace

MatrixOperand matrix_operand(const schedule::State& state, int index, const std::string& side,
                             const std::string& last, const StageInfo& r) {
  const StageInfo& info = *state.stages[static_cast<size_t>(index)].info;
  MatrixOperand operand;
  operand.stage = info.stage.name;
  operand.side = side;
  for (const compute::Axis& axis : info.axes) {
    const std::string& name = axis.var->name;
    if (name != side && name != "terms") operand.outer.push_back(name);
  }
  const compute::Access& read = info.reads[0];
  const int terms = axis_named(info, "terms"), other = axis_named(info, side);
  operand.terms_place = terms;
  const auto distance = [&](int axis) {
    const int64_t stride = std::abs(stride_of(read, static_cast<size_t>(axis)));
    return stride == 0 ? INT64_MAX : stride;
  };
  operand.terms_are_neighbours = distance(terms) <= distance(other);
  const int lane = operand.terms_are_neighbours ? terms : other;
  const int64_t most = kVectorBytes / dtype_bytes(info.stage.outputs[0].buffer->dtype);
  const auto pack = [&] {
    if (!info.constant || operand.vector == most) return operand;
    operand.packed = operand.terms_are_neighbours = true;
    operand.vector = most;
    return operand;
  };
  if (distance(lane) != 1 || info.reads.size() != 1) return pack();
  // Neighbours have one place in all other dimensions if the innermost digit is a number of whole
  // vectors, and so is a row of the source.
  int64_t digit = operand.terms_are_neighbours
                      ? r.stage.reduce.back().extent
                      : r.axes[static_cast<size_t>(axis_named(r, last))].extent;
  digit = std::gcd(digit, read.buffer->shape.back());
  digit = std::gcd(digit, read.index.back().constant);
  while (operand.vector < most && digit % (2 * operand.vector) == 0) operand.vector *= 2;
  return pack();
}

bool is_copied_async(const schedule::State& state, const MatrixOperand& operand,
                     const target::Gpu& gpu) {
  const schedule::StageInfo& copy =
      *state.stages[static_cast<size_t>(state.find_stage(operand.stage))].info;
  const bool copies = operand.packed || schedule::is_plain_copy(copy.stage);
  const int64_t bytes = operand.vector * dtype_bytes(copy.stage.outputs[0].buffer->dtype);
  return gpu.async_copy && copies && bytes >= kLeastAsync;
}

const target::MatrixInstruction* matrix_instruction(const target::Gpu& gpu, DType type) {
  for (const target::MatrixInstruction& m : gpu.matrix) {
    if (m.input == type && m.accumulator == DType::kF32 && !m.warp_group) return &m;
  }
  return nullptr;
}

bool has_matrix_instructions(const Task& task) { return !task.whole.target.gpu().matrix.empty(); }

bool add_matrix_product(SketchBuilder& builder, const std::string& epilogue,
                        const std::string& reduction, trial::Accuracy accuracy) {
  const schedule::StageInfoPtr e = builder.info(epilogue), r = builder.info(reduction);
  if (e->constant || e->stage.where || r->stage.where || e->stage.outputs.size() != 1 ||
      r->stage.outputs.size() != 1)
    return false;
  const auto names = match_axes(*e, *r);
  const int column = column_of(*e);
  auto group = std::make_shared<GpuMatrix>();
  group->epilogue = epilogue;
  group->reduction = reduction;
  group->gpu = builder.target.gpu();
  if (!names || column < 0 || !find_axes(*e, *r, *names, column, *group)) return false;
  const schedule::MatrixProduct step{reduction, group->rows_of_r, group->columns_of_r, 1};
  const Result<schedule::State> state = schedule::apply(step, builder.state);
  if (!state.ok()) return false;
  const int index = state->find_stage(reduction);
  const auto type_of = [&](int stage) {
    return state->stages[static_cast<size_t>(stage)].buffer()->dtype;
  };
  const DType type = type_of(index - 2);
  group->element_bytes = dtype_bytes(type);
  group->rounds = type == DType::kF32;
  const target::MatrixInstruction* instruction = matrix_instruction(group->gpu, type);
  if (type != type_of(index - 1) || instruction == nullptr ||
      (group->rounds && accuracy != trial::Accuracy::kFast))
    return false;
  group->instruction = *instruction;
  group->left = matrix_operand(*state, index - 2, "rows", group->rows_of_r.back(), *r);
  group->right = matrix_operand(*state, index - 1, "columns", group->columns_of_r.back(), *r);
  for (MatrixOperand* operand : {&group->left, &group->right})
    operand->is_async = is_copied_async(*state, *operand, group->gpu);
  add_decisions(builder, *group);
  group->find_usual(builder.decisions);
  builder.groups.push_back(std::move(group));
  return true;
}

}  // namespace hone::space
