// Rows that a block reduces and then computes from: softmax, norms, sums and maxima of rows or
// columns, products of few rows.
#include "hone/space/rules/rows.h"

#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/space/rules/gpu/block_rows.h"
#include "hone/space/rules/gpu/copies.h"
#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

using schedule::StageInfo;

constexpr int64_t kLeastTerms = 32;       // with fewer a thread reduces a row alone as well
constexpr int64_t kPointsPerSm = 256;     // so many points keep an SM busy without parts of sums
constexpr int64_t kReused = 32;           // tiles with reuse keep it busy with so many times fewer
constexpr int64_t kMostInner = 8;         // results for which a thread uses a term at once
constexpr int64_t kApart = 32;            // rows of a block whose elements are not neighbours
constexpr int64_t kLeastSplit = 1 << 18;  // terms of a reduction that is worth two launches
constexpr int64_t kLeastPart = 1 << 13;   // terms of a block of it
constexpr int64_t kBlocksPerSm = 4;       // of it

bool has_axis(const StageInfo& info, const std::string& name) {
  return std::any_of(info.stage.axes.begin(), info.stage.axes.end(),
                     [&](const compute::Axis& axis) { return axis.var->name == name; });
}

bool is_divisible(const StageInfo& info) {
  const compute::Stage& what = info.stage;
  return !what.is_extern() && !what.where && !what.until && !info.constant &&
         what.outputs.size() == 1 && !what.reduce.empty() && what.outputs[0].merge;
}

bool is_pointwise(const StageInfo& info) {
  return !info.stage.is_extern() && !info.stage.where && !info.constant &&
         info.stage.outputs.size() == 1 && info.stage.reduce.empty();
}

using Infos = std::vector<schedule::StageInfoPtr>;

// Returns the read of the largest operand; null if there is none.
const compute::Access* largest_read(const StageInfo& info) {
  const auto largest =
      std::max_element(info.reads.begin(), info.reads.end(), [](const auto& x, const auto& y) {
        return x.buffer->num_elements() < y.buffer->num_elements();
      });
  return largest == info.reads.end() ? nullptr : &*largest;
}

// Returns the reduce axis along which the elements of the largest operand are neighbours; -1 if
// none is.
int contiguous_axis(const StageInfo& info) {
  const compute::Access* largest = largest_read(info);
  for (int a = info.num_spatial(); largest && a < static_cast<int>(info.axes.size()); ++a) {
    if (is_contiguous(*largest, static_cast<size_t>(a))) return a;
  }
  return -1;
}

// Returns whether elements of the largest operand are read again for other results than those
// along the `inner` axes.
bool reuses_largest(const StageInfo& info, const std::vector<std::string>& inner) {
  int64_t terms = 1;
  for (const compute::Axis& axis : info.axes) {
    if (std::count(inner.begin(), inner.end(), axis.var->name) == 0) terms *= axis.extent;
  }
  const compute::Access* largest = largest_read(info);
  return largest == nullptr || largest->buffer->num_elements() < terms;
}

// `packed`: the reduce axis along which both operands of a product are contiguous; "" if not known.
GpuRows::Sum sum_of(const StageInfo& info, const std::string& packed) {
  GpuRows::Sum sum{info.stage.name, "", {}};
  int axis = packed.empty() ? contiguous_axis(info) : axis_named(info, packed);
  sum.is_contiguous = axis >= 0;
  for (int a = info.num_spatial(); a < static_cast<int>(info.axes.size()) && !sum.is_contiguous;
       ++a) {
    const auto extent = [&](int i) { return info.axes[static_cast<size_t>(i)].extent; };
    if (axis < 0 || extent(a) > extent(axis)) axis = a;
  }
  for (const compute::Axis& one : info.stage.reduce) {
    if (one.var == info.axes[static_cast<size_t>(axis)].var) {
      sum.axis = one.var->name;
      sum.extent = one.extent;
    } else {
      sum.rest.push_back(one.var->name);
    }
  }
  return sum;
}

// The axes of E that all reductions have are those of rows. A block has several rows along the last
// one with which the operand of a product moves, and all of those with which it does not, if they
// are few: its elements are then read once for all of them.
void find_axes(const StageInfo& root, const Infos& reductions, bool is_product, GpuRows& group) {
  const int unit = unit_stride_axis(root);
  const compute::Access* largest = is_product ? largest_read(*reductions[0]) : nullptr;
  std::vector<const compute::Axis*> outer, inner;
  int64_t reused = 1;
  for (int a = 0; a < root.num_spatial(); ++a) {
    const compute::Axis& axis = root.axes[static_cast<size_t>(a)];
    const std::string& name = axis.var->name;
    const bool shared =
        std::all_of(reductions.begin(), reductions.end(),
                    [&](const schedule::StageInfoPtr& info) { return has_axis(*info, name); });
    if (!shared) {
      group.row.push_back(name);
      continue;
    }
    const bool is_reused = largest && !moves(*largest, axis_named(*reductions[0], name));
    (is_reused ? inner : outer).push_back(&axis);
    if (is_reused) reused *= axis.extent;
  }
  if (reused > kMostInner || outer.empty()) {
    outer.insert(outer.begin(), inner.begin(), inner.end());
    inner.clear();
  }
  for (const compute::Axis* axis : inner) group.inner.push_back(axis->var->name);
  for (const compute::Axis* axis : outer) {
    group.outer.push_back(axis->var->name);
    group.rows *= axis->extent;
    if (!group.tiled.empty() && axis->extent == 1) continue;
    group.tiled = axis->var->name;
    group.last = axis->extent;
  }
  if (unit < 0) return;
  const std::string& name = root.axes[static_cast<size_t>(unit)].var->name;
  group.rows_are_neighbours = name == group.tiled;
  const auto at = std::find(group.row.begin(), group.row.end(), name);
  if (at != group.row.end()) std::rotate(at, at + 1, group.row.end());
}

// How the reductions of a task suit rows of blocks; the group is null if they are none.
struct Rows {
  std::shared_ptr<GpuRows> group;
  bool has_products = false;
  bool reuses = false;  // tiles of a product read an element of an operand for many results
  // Other ways have too few results to keep the device busy, or threads that read elements far
  // apart.
  bool is_good = false;
};

Rows make_rows(const SketchBuilder& builder, const StageInfo& root, const Infos& reductions,
               const std::string& packed) {
  const target::Gpu& gpu = builder.target.gpu();
  const bool fits = is_pointwise(root) && !reductions.empty() &&
                    std::all_of(reductions.begin(), reductions.end(),
                                [](const auto& info) { return is_divisible(*info); });
  if (!fits) return {};
  Rows rows{std::make_shared<GpuRows>()};
  GpuRows& group = *rows.group;
  group.epilogue = root.stage.name;
  group.sms = gpu.sms;
  group.most_threads = gpu.threads_per_block;
  for (const schedule::StageInfoPtr& info : reductions)
    rows.has_products |= moving_operands(*info) > 1;
  find_axes(root, reductions, rows.has_products && reductions.size() == 1, group);
  if (group.outer.empty()) return {};
  int64_t terms = 1;
  for (const schedule::StageInfoPtr& info : reductions) {
    const auto& axes = info->stage.axes;
    const bool is_row = std::all_of(axes.begin(), axes.end(), [&](const compute::Axis& axis) {
      const auto is_it = [&](const std::string& name) { return name == axis.var->name; };
      return std::any_of(group.outer.begin(), group.outer.end(), is_it) ||
             std::any_of(group.inner.begin(), group.inner.end(), is_it);
    });
    if (!is_row) return {};  // a block would keep more than one result of each row
    group.sums.push_back(sum_of(*info, packed));
    GpuRows::Sum& sum = group.sums.back();
    group.length = std::max(group.length, sum.extent);
    for (const compute::Axis& axis : info->stage.reduce) terms *= axis.extent;
    sum.divided = builder.state.find_stage(sum.stage + ".rf") >= 0 ? 1 : 0;
    const schedule::StageList readers = builder.state.readers(info->stage.outputs[0].buffer);
    sum.is_private = readers.size() == 1 &&
                     builder.state.stages[static_cast<size_t>(readers[0])].name() == group.epilogue;
  }
  rows.reuses = rows.has_products && reuses_largest(*reductions[0], group.inner);
  const int64_t few = gpu.sms * kPointsPerSm / (rows.reuses ? kReused : 1);
  rows.is_good = (rows.has_products ? group.length : terms) >= kLeastTerms &&
                 (group.rows < few || (!rows.reuses && group.is_contiguous()));
  return rows;
}

// Lengths of vectors that all rows of neighbouring elements are divided into.
int64_t longest_vector(const StageInfo& root, const Infos& reductions, const GpuRows& group) {
  int64_t vector = kVectorBytes;
  if (!group.is_contiguous()) return 1;
  for (size_t i = 0; i < reductions.size(); ++i) {
    for (const compute::Access& read : reductions[i]->reads)
      vector = std::min<int64_t>(vector, kVectorBytes / dtype_bytes(read.buffer->dtype));
    while (group.sums[i].is_contiguous && group.sums[i].extent % vector != 0) vector /= 2;
  }
  const int row = group.row.empty() ? -1 : axis_named(root, group.row.back());
  while (row >= 0 && root.axes[static_cast<size_t>(row)].extent % vector != 0) vector /= 2;
  return vector;
}

// Returns whether the lanes of a warp can exchange their parts of a reduction: it is a sum, maximum
// or minimum of floats whose results lie along the axes of rows as they are.
bool is_of_lanes(const StageInfo& info, const GpuRows& group) {
  const compute::Output& output = info.stage.outputs[0];
  const ir::Op op = output.merge->op;
  if (output.buffer->dtype != DType::kF32 || output.merge->type != DType::kF32 ||
      (op != ir::Op::kAdd && op != ir::Op::kMax && op != ir::Op::kMin) ||
      output.merge->args[0]->op != ir::Op::kLoad || output.merge->args[1]->op != ir::Op::kLoad)
    return false;
  return std::all_of(group.outer.begin(), group.outer.end(), [&](const std::string& name) {
    const ir::VarPtr& var = info.axes[static_cast<size_t>(axis_named(info, name))].var;
    return std::any_of(output.write.begin(), output.write.end(), [&](const ir::Expr& index) {
      return index->op == ir::Op::kVar && index->var == var;
    });
  });
}

// Returns whether the lanes of a warp can exchange their parts of all reductions: there is code for
// that in CUDA C, and elsewhere parts meet in shared memory.
bool can_exchange(const target::Gpu& gpu, const Infos& reductions, const GpuRows& group) {
  if (gpu.api != target::GpuApi::kCuda || !gpu.subgroups || gpu.warp != ir::kWarpThreads ||
      !group.inner.empty() || (group.rows_are_neighbours && !group.row.empty()))
    return false;
  for (size_t i = 0; i < reductions.size(); ++i) {
    if (!group.sums[i].is_contiguous || !is_of_lanes(*reductions[i], group)) return false;
  }
  return true;
}

// Powers of 2, and numbers that divide the vectors of a row.
std::vector<int64_t> thread_options(int64_t most, int64_t vectors) {
  std::vector<int64_t> options;
  for (int64_t n = 1; n <= most; ++n) {
    if ((n & (n - 1)) == 0 || (n >= kLeastTerms / 2 && n <= vectors && vectors % n == 0))
      options.push_back(n);
  }
  return options;
}

void add_group(SketchBuilder& builder, const Infos& reductions, std::shared_ptr<GpuRows> group) {
  const std::string& stage = group->epilogue;
  const StageInfo& root = *builder.info(stage);
  if (!group->row.empty())
    group->row_extent = root.axes[static_cast<size_t>(axis_named(root, group->row.back()))].extent;
  const int64_t vector = longest_vector(root, reductions, *group);
  group->d_rows = builder.add_decision(stage, "rows", DecisionKind::kTile,
                                       powers_of_2(1, std::min<int64_t>(kApart, group->last)));
  const int64_t most = std::min<int64_t>(group->most_threads, 2 * group->length);
  group->d_threads = builder.add_decision(stage, "threads", DecisionKind::kParallel,
                                          thread_options(most, group->length / vector));
  if (vector > 1)
    group->d_vector =
        builder.add_decision(stage, "vector", DecisionKind::kVector, powers_of_2(1, vector));
  if (most >= ir::kWarpThreads && can_exchange(builder.target.gpu(), reductions, *group))
    group->d_lanes = builder.add_decision(stage, "exchange", DecisionKind::kOrder, {0, 1});
  builder.groups.push_back(std::move(group));
}

// In how many parts of `factor` terms a reduction is divided among blocks, as it has too few rows
// for the device.
struct Division {
  std::string axis;
  int64_t factor = 0;
};
std::optional<Division> division_of(const target::Gpu& gpu, const StageInfo& info) {
  if (!is_divisible(info) || moving_operands(info) > 1) return std::nullopt;
  const GpuRows::Sum sum = sum_of(info, "");
  int64_t rows = 1, terms = 1;
  for (int a = 0; a < static_cast<int>(info.axes.size()); ++a)
    (a < info.num_spatial() ? rows : terms) *= info.axes[static_cast<size_t>(a)].extent;
  const int64_t blocks = sum.is_contiguous ? rows : ceil_div(rows, kApart);
  if (2 * blocks > gpu.sms || rows * terms < kLeastSplit) return std::nullopt;
  // One thread joins the parts of a single row.
  const int64_t wanted = rows == 1 ? gpu.sms : ceil_div(kBlocksPerSm * gpu.sms, blocks);
  const int64_t parts = std::min({wanted, rows * terms / kLeastPart, sum.extent});
  // Parts are equal, so that none needs tests.
  const int64_t least = ceil_div(sum.extent, parts);
  for (int64_t factor = least; factor < std::min(4 * least, sum.extent); ++factor) {
    if (sum.extent % factor == 0) return Division{sum.axis, factor};
  }
  return std::nullopt;
}

bool is_divided(const target::Gpu& gpu, const Infos& reductions) {
  return std::any_of(reductions.begin(), reductions.end(),
                     [&](const auto& info) { return division_of(gpu, *info).has_value(); });
}

// Lays a product's constant operand out anew, at compile time, so that the terms that are
// neighbours in the other operand are neighbours in it, too. Returns their axis; "" if it does not.
std::string pack_rows(SketchBuilder& builder, const std::string& reduction) {
  const schedule::StageInfoPtr r = builder.info(reduction);
  const compute::Access* constant = nullptr;
  const compute::Access* other = nullptr;
  for (const compute::Access& read : r->reads) {
    const ir::Param* param = builder.state.find_param(read.buffer);
    const bool is_constant =
        param != nullptr && param->role == ir::Role::kConstant && read.buffer->values.empty();
    (is_constant ? constant : other) = &read;
  }
  if (constant == nullptr || other == nullptr) return "";
  const auto num_axes = static_cast<int>(r->axes.size());
  int axis = -1;
  for (int a = r->num_spatial(); a < num_axes; ++a) {
    if (is_contiguous(*other, static_cast<size_t>(a))) axis = a;
  }
  if (axis < 0 || !moves(*constant, axis)) return "";
  if (is_contiguous(*constant, static_cast<size_t>(axis))) return "";
  const std::string last = r->axes[static_cast<size_t>(axis)].var->name;
  const ir::BufferPtr buffer = constant->buffer;
  SketchBuilder packed = builder;
  if (!packed.add_step(schedule::CacheRead{buffer->name, reduction}).ok()) return "";
  const int place = packed.state.find_stage(reduction) - 1;
  const StageInfo& copy = *packed.state.stages[static_cast<size_t>(place)].info;
  std::vector<std::string> dims;
  for (const compute::Axis& one : copy.stage.axes) {
    if (one.var->name != last) dims.push_back(one.var->name);
  }
  if (dims.size() == copy.stage.axes.size()) return "";
  dims.push_back(last);
  if (!packed.add_step(schedule::Layout{copy.stage.name, std::move(dims)}).ok()) return "";
  builder.state = std::move(packed.state);
  builder.structure = std::move(packed.structure);
  return last;
}

}  // namespace

bool add_stage_rows(SketchBuilder& builder, const std::string& epilogue,
                    const std::string& reduction) {
  const Infos reductions = {builder.info(reduction)};
  Rows rows = make_rows(builder, *builder.info(epilogue), reductions, "");
  if (!rows.is_good) return false;
  add_group(builder, reductions, std::move(rows.group));
  return true;
}

bool add_divided_rows(SketchBuilder& builder, const std::string& epilogue,
                      const std::string& reduction) {
  const auto division = division_of(builder.target.gpu(), *builder.info(reduction));
  if (!division) return false;
  const schedule::RFactor step{reduction, division->axis, division->factor};
  if (!builder.add_step(step).ok()) return false;
  const std::string part = reduction + ".rf";
  if (!builder.add_step(schedule::CacheWrite{part}).ok()) {
    add_stage_points(builder, part, "");
  } else if (!add_stage_rows(builder, part, part + ".acc")) {
    add_stage_points(builder, part, part + ".acc");
  }
  if (!add_stage_rows(builder, epilogue, reduction)) add_stage_points(builder, epilogue, reduction);
  return true;
}

Fit add_block_rows(SketchBuilder& builder, const Task&) {
  if (!copy_out(builder).ok() ||
      !inline_stages(builder, [](const compute::Stage&) { return true; }).ok())
    return Fit::kNone;
  Infos reductions;
  const auto find_reductions = [&] {
    reductions.clear();
    for (const schedule::StageState& stage : builder.state.stages) {
      if (is_reduction(*stage.info)) reductions.push_back(stage.info);
    }
  };
  find_reductions();
  for (const schedule::StageState& stage : builder.state.stages) {
    const bool last = &stage == &builder.state.stages.back();
    if (builder.state.is_param(stage.buffer()) != last || (!last && !is_reduction(*stage.info)))
      return Fit::kNone;
  }
  const std::string epilogue = builder.state.stages.back().name();
  Rows rows = make_rows(builder, *builder.info(epilogue), reductions, "");
  if (!rows.group || (rows.has_products && reductions.size() > 1)) return Fit::kNone;
  const std::string packed = rows.has_products ? pack_rows(builder, reductions[0]->stage.name) : "";
  if (!packed.empty()) {
    find_reductions();
    rows = make_rows(builder, *builder.info(epilogue), reductions, packed);
    if (!rows.group) return Fit::kNone;
  }
  // Nothing else reads the terms of a few rows, or of a reduction, at the speed of memory.
  const bool is_only = rows.is_good && !rows.reuses;
  const bool has_tiles = rows.has_products && rows.group->length >= kLeastTerms;
  add_group(builder, reductions, std::move(rows.group));
  // Blocks that are too few do not reach the speed of memory: stages are divided by themselves.
  if (is_divided(builder.target.gpu(), reductions))
    return reductions.size() > 1 ? Fit::kPossible : Fit::kNone;
  if (is_only || (!rows.has_products && reductions.size() > 1)) return Fit::kWhole;
  if (rows.is_good) return Fit::kBest;
  // Threads alone do as well with few terms, and with many rows of neighbours.
  return has_tiles ? Fit::kPossible : Fit::kNone;
}

}  // namespace hone::space
