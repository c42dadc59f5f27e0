// Reductions of windows that slide over an operand, where neighbouring windows overlap and nothing
// else is reused: depthwise convolutions and pools. A thread computes neighbouring results, so that
// it loads what they have in common once.
#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/space/rules/gpu/copies.h"
#include "hone/space/rules/gpu/rules.h"
#include "hone/space/rules/gpu/windows.h"
#include "hone/space/rules/roots.h"

namespace hone::space {
namespace {

using schedule::StageInfo;

constexpr int64_t kMostRegisters = 8;  // points of a thread along an axis
constexpr size_t kMostTiled = 2;       // axes of a thread's tile beside the contiguous one
constexpr int64_t kMostRowThreads = 16, kMostColumnThreads = 32;  // of a block with a box
// Few results of windows as long as this are rows, which several threads divide.
constexpr int64_t kLongWindow = 64, kResultsPerSm = 256;

// Returns whether each tap moves a window along a dimension along which some result moves it, too,
// and all results have windows of their own.
bool slides(const StageInfo& r, const compute::Access& read) {
  const int spatial = r.num_spatial(), all = static_cast<int>(r.axes.size());
  for (int a = 0; a < spatial; ++a) {
    if (r.axes[static_cast<size_t>(a)].extent > 1 && !moves(read, a)) return false;
  }
  bool any = false;
  for (int tap = spatial; tap < all; ++tap) {
    if (r.axes[static_cast<size_t>(tap)].extent == 1) continue;
    const auto moves_window = [&](const compute::AffineRow& row) {
      if (row.coef[static_cast<size_t>(tap)] == 0) return false;
      return std::any_of(row.coef.begin(), row.coef.begin() + spatial,
                         [](int64_t c) { return c != 0; });
    };
    if (std::none_of(read.index.begin(), read.index.end(), moves_window)) return false;
    any = true;
  }
  return any;
}

// Returns whether a tap moves along the same dimension as an axis.
bool is_window_axis(const StageInfo& r, const compute::Access& read, int axis) {
  return std::any_of(read.index.begin(), read.index.end(), [&](const compute::AffineRow& row) {
    return row.coef[static_cast<size_t>(axis)] != 0 &&
           std::any_of(row.coef.begin() + r.num_spatial(), row.coef.end(),
                       [](int64_t c) { return c != 0; });
  });
}

// E's axes in the order of its results in memory, with their names in R.
std::vector<WindowAxis> find_axes(const StageInfo& e, const StageInfo& r,
                                  const compute::Access& window,
                                  const std::vector<std::string>& names, int column) {
  std::vector<WindowAxis> axes;
  const auto add = [&](int a) {
    const std::string& in_sum = names[static_cast<size_t>(a)];
    const compute::Axis& axis = e.axes[static_cast<size_t>(a)];
    axes.push_back({axis.var->name,
                    in_sum,
                    axis.extent,
                    is_window_axis(r, window, axis_named(r, in_sum)),
                    {},
                    {}});
  };
  for (int a = 0; a < e.num_spatial(); ++a) {
    if (a != column) add(a);
  }
  add(column);
  return axes;
}

WindowRead describe(const StageInfo& r, const compute::Access& read,
                    const std::vector<WindowAxis>& axes) {
  WindowRead found;
  found.element_bytes = dtype_bytes(read.buffer->dtype);
  for (const compute::AffineRow& row : read.index) {
    WindowRead::Dim dim;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t step = std::abs(row.coef[static_cast<size_t>(axis_named(r, axes[i].in_sum))]);
      if (step != 0) dim.steps.emplace_back(i, step);
    }
    for (auto a = static_cast<size_t>(r.num_spatial()); a < row.coef.size(); ++a)
      dim.reach += std::abs(row.coef[a]) * (r.axes[a].extent - 1);
    found.dims.push_back(std::move(dim));
  }
  const auto column = static_cast<size_t>(axis_named(r, axes.back().in_sum));
  found.apart = std::abs(stride_of(read, column));
  found.is_row = is_contiguous(read, column) && found.dims.back().steps.size() == 1 &&
                 found.dims.back().reach == 0;
  return found;
}

// Powers of 2 and divisors of an extent, up to a limit.
std::vector<int64_t> lengths(int64_t extent, int64_t limit) {
  std::vector<int64_t> options;
  for (int64_t n = 1; n <= std::min(extent, limit); ++n) {
    if ((n & (n - 1)) == 0 || extent % n == 0) options.push_back(n);
  }
  return options;
}

void add_decisions(SketchBuilder& builder, Windows& group) {
  const auto decide = [&](const std::string& role, DecisionKind kind, std::vector<int64_t> options,
                          int64_t extent) {
    return options.size() > 1 ? builder.add_decision(group.epilogue, role, kind, std::move(options),
                                                     extent, extent > 0)
                              : DecisionId();
  };
  size_t tiled = 0;
  bool has_others = false;
  for (size_t i = group.axes.size(); i-- > 0;) {
    WindowAxis& axis = group.axes[i];
    const bool is_column = i + 1 == group.axes.size();
    // Where windows slide along the column, a block has several of the channels around them.
    const bool is_channel =
        !is_column && !axis.slides && axis.extent > 1 && !has_others && group.axes.back().slides;
    has_others |= is_channel;
    const bool is_row = !is_column && axis.slides && axis.extent > 1 && tiled < kMostTiled;
    if (!is_column && !is_row && !is_channel) continue;
    const std::string role = is_column    ? "column"
                             : is_channel ? "channel"
                             : tiled == 0 ? "row"
                                          : "outer_row";
    if (is_row) ++tiled;
    if (is_column) {
      std::vector<int64_t> options = lengths(axis.extent, kMostRegisters);
      const int64_t most = kVectorBytes / group.result_bytes;
      std::erase_if(options, [&](int64_t n) {
        return axis.extent % n != 0 || (!axis.slides && (n > most || (n & (n - 1)) != 0));
      });
      axis.d_registers = decide(role + ".vector", DecisionKind::kVector, options, 0);
    } else if (is_row) {
      axis.d_registers = decide(role + ".registers", DecisionKind::kUnroll,
                                lengths(axis.extent, kMostRegisters), axis.extent);
    }
    if (!group.shares) continue;
    axis.d_threads =
        decide(role + ".threads", DecisionKind::kTile,
               lengths(axis.extent, is_column ? kMostColumnThreads : kMostRowThreads), axis.extent);
  }
  if (!group.shares) {
    const int64_t most = std::min<int64_t>(256, group.gpu.threads_per_block);
    group.d_threads = decide("threads", DecisionKind::kParallel,
                             powers_of_2(std::min<int64_t>(32, most), most), 0);
  }
}

// Copies what R reads of a buffer, if it reads it at one place that needs no test. Returns false if
// a copy is illegal.
bool copy_read(SketchBuilder& builder, const std::string& reduction, const compute::Access& from,
               WindowRead& read) {
  const schedule::StageInfoPtr r = builder.info(reduction);
  const auto same = std::count_if(r->reads.begin(), r->reads.end(),
                                  [&](const auto& other) { return other.buffer == from.buffer; });
  if (same > 1 || from.guarded || !from.buffer->values.empty()) return true;
  if (!builder.add_step(schedule::CacheRead{from.buffer->name, reduction}).ok()) return false;
  const int place = builder.state.find_stage(reduction) - 1;
  const StageInfo& info = *builder.state.stages[static_cast<size_t>(place)].info;
  read.copy = info.stage.name;
  read.copy_axes = names_of(info.stage.axes);
  read.row = info.stage.axes.back().extent;
  return true;
}

// Describes what R reads, what windows slide over first. Returns false if blocks shall share that,
// but cannot.
bool find_reads(SketchBuilder& builder, const std::string& slid_over, Windows& group) {
  const schedule::StageInfoPtr r = builder.info(group.reduction);
  for (const bool first : {true, false}) {
    for (const compute::Access& read : r->reads) {
      if (read.buffer == r->stage.outputs[0].buffer || (read.buffer->name == slid_over) != first)
        continue;
      group.reads.push_back(describe(*r, read, group.axes));
      if (group.shares && !copy_read(builder, group.reduction, read, group.reads.back()))
        return false;
    }
  }
  return !group.shares || !group.reads[0].copy.empty();
}

}  // namespace

bool add_stage_windows(SketchBuilder& builder, const std::string& epilogue,
                       const std::string& reduction, bool shares) {
  const schedule::StageInfoPtr e = builder.info(epilogue), r = builder.info(reduction);
  if (e->constant || e->stage.where || r->stage.where || r->stage.until || r->stage.is_extern() ||
      e->stage.outputs.size() != 1 || r->stage.outputs.size() != 1)
    return false;
  const auto names = match_axes(*e, *r);
  const int column = column_of(*e);
  const auto window = std::find_if(r->reads.begin(), r->reads.end(), [&](const auto& read) {
    return read.buffer != r->stage.outputs[0].buffer && slides(*r, read);
  });
  if (!names || column < 0 || window == r->reads.end()) return false;
  auto group = std::make_shared<Windows>();
  group->epilogue = epilogue;
  group->reduction = reduction;
  group->gpu = builder.target.gpu();
  group->taps = r->stage.reduce;
  group->result_bytes = dtype_bytes(e->stage.outputs[0].buffer->dtype);
  group->axes = find_axes(*e, *r, *window, *names, column);
  const auto is_long = [](const WindowAxis& axis) { return axis.slides && axis.extent > 1; };
  if (std::none_of(group->axes.begin(), group->axes.end(), is_long) ||
      (group->num_taps() >= kLongWindow && group->results() < kResultsPerSm * group->gpu.sms))
    return false;
  SketchBuilder tried = builder;
  const std::string slid_over = window->buffer->name;
  const int lane = axis_named(*r, group->axes.back().in_sum);
  for (const compute::Access& read : r->reads) {
    if (read.buffer->name != slid_over && read.buffer != r->stage.outputs[0].buffer &&
        pack_constant(tried, reduction, read, lane).empty())
      return false;
  }
  group->shares = shares;
  if (!find_reads(tried, slid_over, *group)) return false;
  add_decisions(tried, *group);
  group->find_usual(tried.decisions);
  if (!legal_default(tried.decisions, *group)) return false;
  builder.state = std::move(tried.state);
  builder.structure = std::move(tried.structure);
  builder.decisions = std::move(tried.decisions);
  builder.groups.push_back(std::move(group));
  return true;
}

}  // namespace hone::space
