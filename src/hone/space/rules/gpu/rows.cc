// Rows that a block reduces and then computes from: softmax, norms, sums and maxima of rows or
// columns, products of few rows. Each thread reduces every T-th term of a row, the partial results
// meet in shared memory, and fewer and fewer threads join them.
#include "hone/space/rules/rows.h"

#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

using schedule::StageInfo;
using schedule::Steps;

constexpr int64_t kJoined = 16;        // partial results that one thread joins
constexpr int64_t kLeastTerms = 32;    // with fewer a thread reduces a row alone as well
constexpr int64_t kPointsPerSm = 256;  // so many points keep an SM busy without parts of sums
constexpr int64_t kReused = 32;        // tiles with reuse keep it busy with so many times fewer

// for tiles of rows, in parallel:
//   each reduction: for threads: partial results;  for fewer threads: joined;  for rows: the result
//   E: for rows, for threads: the elements of the row
class GpuRows : public Group {
 public:
  // A reduction, in the order of the task.
  struct Sum {
    std::string stage, axis;        // the axis whose terms threads share
    std::vector<std::string> rest;  // its other reduce axes
    int64_t extent = 1;
    bool is_contiguous = false;  // neighbouring terms are neighbours in memory
  };
  std::string epilogue;
  std::vector<std::string> outer;    // names of the axes of rows; the last one is tiled
  int64_t last = 1, rows = 1;        // extent of the last one, and of all
  std::vector<std::string> row;      // E's other axes, that of neighbouring elements last
  bool rows_are_neighbours = false;  // neighbouring results belong to neighbouring rows
  std::vector<Sum> sums;
  int64_t length = 1;  // of the longest row
  int64_t sms = 1, most_threads = 1024;
  DecisionId d_rows, d_threads;

  [[nodiscard]] bool legal(const Choice& choice) const override {
    return choice[d_rows] * choice[d_threads] <= most_threads;
  }

  // Threads for four terms each. Short rows, and rows whose elements are not neighbours, share
  // blocks.
  void set_default(MutableChoice& choice) const override {
    choice.set(d_threads, std::clamp<int64_t>(length / 4, 1, 256));
    const bool apart =
        std::none_of(sums.begin(), sums.end(), [](const Sum& sum) { return sum.is_contiguous; });
    int64_t together = apart ? 32 : std::max<int64_t>(1, 128 / choice[d_threads]);
    while (together > 1 && !apart && rows / together < sms) together /= 2;
    choice.set(d_rows, std::min(together, most_threads));
    while (!legal(choice)) {
      const DecisionId fewer = choice.index(d_threads) > 0 ? d_threads : d_rows;
      choice.set_index(fewer, choice.index(fewer) - 1);
    }
  }

  void append_steps(const Choice& choice, Steps& steps) const override {
    const int64_t threads = choice[d_threads];
    for (const Sum& sum : sums) {
      steps.emplace_back(
          schedule::RFactor{sum.stage, sum.axis, threads, schedule::Parts::kStrided});
      steps.emplace_back(schedule::CacheWrite{sum.stage + ".rf"});
      if (joins(sum, threads))
        steps.emplace_back(
            schedule::RFactor{sum.stage, sum.axis + "i", kJoined, schedule::Parts::kStrided});
    }
    const std::string block = append_epilogue(choice, steps);
    for (size_t i = sums.size(); i-- > 0;) append_sum(sums[i], threads, block, steps);
  }

 private:
  static bool joins(const Sum& sum, int64_t threads) {
    return std::min(threads, sum.extent) > 2 * kJoined;
  }

  std::string append_epilogue(const Choice& choice, Steps& steps) const {
    steps.emplace_back(schedule::Split{epilogue, outer.back(), {choice[d_rows]}});
    std::vector<std::string> grid = outer, threads = {outer.back() + ".1"}, loops;
    grid.back() += ".0";
    loops = grid;
    if (!row.empty()) {
      steps.emplace_back(schedule::Split{epilogue, row.back(), {choice[d_threads]}});
      threads.insert(rows_are_neighbours ? threads.begin() : threads.end(), row.back() + ".1");
    }
    loops.insert(loops.end(), threads.begin(), threads.end());
    if (!row.empty()) {
      loops.insert(loops.end(), row.begin(), row.end() - 1);
      loops.push_back(row.back() + ".0");
    }
    steps.emplace_back(schedule::Reorder{epilogue, std::move(loops)});
    std::string block = fuse_loops(epilogue, grid, steps);
    steps.emplace_back(schedule::Parallel{epilogue, block});
    for (const std::string& loop : threads) steps.emplace_back(schedule::Bind{epilogue, loop});
    return block;
  }

  void append_sum(const Sum& sum, int64_t threads, const std::string& block, Steps& steps) const {
    const std::string& tiled = outer.back();
    const std::string part = sum.axis + "i", joined = part + "i", parts = sum.stage + ".rf";
    // The stage is computed by the block, in shared memory, by threads along these loops.
    const auto place = [&](const std::string& stage, const std::vector<std::string>& bound,
                           const std::vector<std::string>& inside) {
      steps.emplace_back(schedule::ComputeAt{stage, epilogue, block});
      steps.emplace_back(schedule::SetScope{stage, ir::Scope::kShared});
      std::vector<std::string> loops(outer.begin(), outer.end() - 1);
      loops.insert(loops.end(), bound.begin(), bound.end());
      loops.insert(loops.end(), inside.begin(), inside.end());
      if (loops.size() > 1) steps.emplace_back(schedule::Reorder{stage, std::move(loops)});
      for (const std::string& loop : bound) steps.emplace_back(schedule::Bind{stage, loop});
    };
    const auto along = [&](const std::string& axis) {
      return sum.is_contiguous ? std::vector<std::string>{tiled, axis}
                               : std::vector<std::string>{axis, tiled};
    };
    const bool twice = joins(sum, threads);
    place(sum.stage, {tiled}, {twice ? joined : part});
    if (twice) place(parts + ".1", along(joined), {part});
    place(parts, along(part), {});
    steps.emplace_back(schedule::ComputeAt{parts + ".acc", parts, along(part).back()});
    steps.emplace_back(schedule::SetScope{parts + ".acc", ir::Scope::kRegister});
    if (sum.rest.empty()) return;
    std::vector<std::string> loops = sum.rest;
    loops.push_back(sum.axis);
    steps.emplace_back(schedule::Reorder{parts + ".acc", std::move(loops)});
  }
};

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

void find_axes(const StageInfo& root, const Infos& reductions, GpuRows& group) {
  const int unit = unit_stride_axis(root);
  for (int a = 0; a < root.num_spatial(); ++a) {
    const compute::Axis& axis = root.axes[static_cast<size_t>(a)];
    const std::string& name = axis.var->name;
    const bool shared =
        std::all_of(reductions.begin(), reductions.end(),
                    [&](const schedule::StageInfoPtr& info) { return has_axis(*info, name); });
    (shared ? group.outer : group.row).push_back(name);
    if (!shared) continue;
    group.rows *= axis.extent;
    group.last = axis.extent;
    group.rows_are_neighbours = a == unit;
  }
  if (unit < 0) return;
  const std::string& name = root.axes[static_cast<size_t>(unit)].var->name;
  const auto at = std::find(group.row.begin(), group.row.end(), name);
  if (at != group.row.end()) std::rotate(at, at + 1, group.row.end());
}

// Returns the reduce axis along which the elements of the largest operand are neighbours; -1 if
// none is.
int contiguous_axis(const StageInfo& info) {
  const auto largest =
      std::max_element(info.reads.begin(), info.reads.end(), [](const auto& x, const auto& y) {
        return x.buffer->num_elements() < y.buffer->num_elements();
      });
  for (int a = info.num_spatial(); a < static_cast<int>(info.axes.size()); ++a) {
    if (largest != info.reads.end() && is_contiguous(*largest, static_cast<size_t>(a))) return a;
  }
  return -1;
}

// Returns whether each element of the largest operand is read for several results.
bool reuses_largest(const StageInfo& info) {
  int64_t terms = 1, most = 0;
  for (const compute::Axis& axis : info.axes) terms *= axis.extent;
  for (const compute::Access& read : info.reads) most = std::max(most, read.buffer->num_elements());
  return most < terms;
}

GpuRows::Sum sum_of(const StageInfo& info) {
  GpuRows::Sum sum{info.stage.name, "", {}};
  int axis = contiguous_axis(info);
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

std::vector<int64_t> powers_of_2(int64_t most) {
  std::vector<int64_t> options;
  for (int64_t n = 1; n <= most; n *= 2) options.push_back(n);
  return options;
}

// How the reductions of a task suit rows of blocks; the group is null if they are none.
struct Rows {
  std::shared_ptr<GpuRows> group;
  bool has_products = false;
  // Other ways have too few results to keep the device busy, or threads that read elements far
  // apart.
  bool is_good = false;
};

Rows make_rows(const target::Gpu& gpu, const StageInfo& root, const Infos& reductions) {
  const bool fits = is_pointwise(root) && !reductions.empty() &&
                    std::all_of(reductions.begin(), reductions.end(),
                                [](const auto& info) { return is_divisible(*info); });
  if (!fits) return {};
  Rows rows{std::make_shared<GpuRows>()};
  GpuRows& group = *rows.group;
  group.epilogue = root.stage.name;
  group.sms = gpu.sms;
  group.most_threads = gpu.threads_per_block;
  find_axes(root, reductions, group);
  if (group.outer.empty()) return {};
  bool contiguous = false;
  for (const schedule::StageInfoPtr& info : reductions) {
    const bool is_row = std::all_of(
        info->stage.axes.begin(), info->stage.axes.end(), [&](const compute::Axis& axis) {
          return std::count(group.outer.begin(), group.outer.end(), axis.var->name) > 0;
        });
    if (!is_row) return {};  // a block would keep more than one result of each row
    group.sums.push_back(sum_of(*info));
    group.length = std::max(group.length, group.sums.back().extent);
    rows.has_products |= moving_operands(*info) > 1;
    contiguous |= group.sums.back().is_contiguous;
  }
  // Tiles read an element of an operand once for many results, which parts of sums do not.
  const bool reuses = rows.has_products && reuses_largest(*reductions[0]);
  const int64_t few = gpu.sms * kPointsPerSm / (reuses ? kReused : 1);
  rows.is_good =
      group.length >= kLeastTerms && (group.rows < few || (!rows.has_products && contiguous));
  return rows;
}

void add_group(SketchBuilder& builder, std::shared_ptr<GpuRows> group) {
  const std::string& stage = group->epilogue;
  group->d_rows = builder.add_decision(stage, "rows", DecisionKind::kTile,
                                       powers_of_2(std::min<int64_t>(32, group->last)));
  group->d_threads =
      builder.add_decision(stage, "threads", DecisionKind::kParallel,
                           powers_of_2(std::min<int64_t>(group->most_threads, 2 * group->length)));
  builder.groups.push_back(std::move(group));
}

}  // namespace

bool add_stage_rows(SketchBuilder& builder, const std::string& epilogue,
                    const std::string& reduction) {
  Rows rows = make_rows(builder.target.gpu(), *builder.info(epilogue), {builder.info(reduction)});
  if (!rows.is_good) return false;
  add_group(builder, std::move(rows.group));
  return true;
}

Fit add_block_rows(SketchBuilder& builder, const Task&) {
  if (!copy_out(builder).ok() ||
      !inline_stages(builder, [](const compute::Stage&) { return true; }).ok())
    return Fit::kNone;
  Infos reductions;
  for (const schedule::StageState& stage : builder.state.stages) {
    const bool last = &stage == &builder.state.stages.back();
    if (builder.state.is_param(stage.buffer()) != last) return Fit::kNone;
    if (!last) reductions.push_back(stage.info);
  }
  Rows rows = make_rows(builder.target.gpu(), *builder.state.stages.back().info, reductions);
  if (!rows.group || (rows.has_products && reductions.size() > 1)) return Fit::kNone;
  add_group(builder, std::move(rows.group));
  if (!rows.has_products && reductions.size() > 1) return Fit::kWhole;
  return rows.is_good ? Fit::kBest : Fit::kPossible;
}

}  // namespace hone::space
