#include "hone/space/sketch.h"

#include <algorithm>

#include "hone/tensor/half_tensor.h"

namespace hone::space {

using schedule::Steps;

Status SketchBuilder::add_step(schedule::Step step) {
  HONE_RETURN_IF_ERROR(schedule::apply_in_place(step, state));
  structure.push_back(std::move(step));
  return ok_status();
}

DecisionId SketchBuilder::add_decision(const std::string& stage, std::string_view role,
                                       DecisionKind kind, std::vector<int64_t> options,
                                       int64_t extent, bool scales) {
  HONE_ASSERT(!options.empty(), "a decision has options");
  decisions.push_back({fmt::format("{}.{}", stage, role), kind, std::move(options),
                       stage.size() + 1, extent, scales});
  return DecisionId(decisions.size() - 1);
}

const schedule::StageInfoPtr& SketchBuilder::info(const std::string& stage) const {
  const int index = state.find_stage(stage);
  HONE_ASSERT(index >= 0, "a stage of the sketch");
  return state.stages[static_cast<size_t>(index)].info;
}

int nearest_option(const Decision& decision, int64_t value) {
  int best = 0;
  for (size_t i = 1; i < decision.options.size(); ++i) {
    if (std::abs(decision.options[i] - value) < std::abs(decision.options[best] - value))
      best = static_cast<int>(i);
  }
  return best;
}

void MutableChoice::set_at_least(DecisionId decision, int64_t value) {
  const std::span<const int64_t> all = options(decision);
  const auto found = std::lower_bound(all.begin(), all.end() - 1, value);
  set_index(decision, static_cast<int>(found - all.begin()));
}

void MutableChoice::shorten(DecisionId decision, int64_t whole) {
  const int before = index(decision);
  set_at_least(decision, whole);
  set_index(decision, std::min(before, index(decision)));
}

std::vector<int64_t> tile_options(int64_t extent, int64_t limit) {
  std::vector<int64_t> options;
  for (int64_t t = 1; t <= std::min(extent, limit); ++t) {
    if (t <= 8 || extent % t == 0 || t % 2 == 0) options.push_back(t);
  }
  return options;
}

std::vector<int64_t> powers_of_2(int64_t from, int64_t most) {
  std::vector<int64_t> options;
  for (int64_t n = from; n <= most; n *= 2) options.push_back(n);
  return options;
}

namespace {

// A value that several operands of its reader share is written out for each of them, so that a
// chain in which every stage reads the one before twice doubles with each: 16 would be 65,536
// copies of the first. A body may have so many operators when it is written out. Those of five
// networks in models/ were counted: 111 at most.
constexpr int64_t kMaxBody = 1024;

// Operators of an expression that is written out as a tree; `most` if there are more.
int64_t written_out(const ir::Expr& e, int64_t most) {
  int64_t count = 1;
  for (const ir::Expr& argument : e->args) {
    if (count >= most) return most;
    count += written_out(argument, most - count);
  }
  return count;
}

int64_t reads_of(const ir::Expr& e, const ir::BufferPtr& buffer) {
  int64_t count = e->op == ir::Op::kLoad && e->buffer == buffer ? 1 : 0;
  for (const ir::Expr& argument : e->args) count += reads_of(argument, buffer);
  return count;
}

int64_t body_of(const compute::Stage& stage) {
  int64_t count = 0;
  for (const compute::Output& output : stage.outputs)
    count += written_out(output.value, kMaxBody + 1);
  return count;
}

// Whether the readers of a stage stay small if its value is written into them.
bool stays_small(const schedule::State& state, const compute::Stage& stage) {
  if (stage.outputs.size() != 1) return false;
  const ir::BufferPtr& buffer = stage.outputs[0].buffer;
  const int64_t own = body_of(stage);
  for (const int index : state.readers(buffer)) {
    const compute::Stage& reader = state.stages[static_cast<size_t>(index)].info->stage;
    int64_t reads = 0;
    for (const compute::Output& output : reader.outputs) reads += reads_of(output.value, buffer);
    if (body_of(reader) + reads * own > kMaxBody) return false;
  }
  return true;
}

}  // namespace

Status inline_stages(SketchBuilder& builder,
                     const std::function<bool(const compute::Stage&)>& wanted) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const schedule::StageState& stage : builder.state.stages) {
      const compute::Stage& what = stage.info->stage;
      if (what.is_extern() || !wanted(what) || !stays_small(builder.state, what)) continue;
      const schedule::Step step = schedule::Inline{stage.name()};
      if (!schedule::check(step, builder.state).ok()) continue;
      HONE_RETURN_IF_ERROR(builder.add_step(step));
      changed = true;
      break;
    }
  }
  return ok_status();
}

Status inline_chains(SketchBuilder& builder) {
  return inline_stages(builder, [&](const compute::Stage& stage) {
    if (!stage.reduce.empty() || stage.outputs.size() != 1) return false;
    const schedule::StageList readers = builder.state.readers(stage.outputs[0].buffer);
    return readers.size() == 1 &&
           builder.state.stages[static_cast<size_t>(readers[0])].info->stage.reduce.empty();
  });
}

std::string fuse_loops(const std::string& stage, const std::vector<std::string>& loops,
                       Steps& steps) {
  if (loops.size() > 1) steps.emplace_back(schedule::Fuse{stage, loops});
  std::string fused = loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    fused += "@";
    fused += loops[i];
  }
  return fused;
}

std::vector<std::string> names_of(std::span<const compute::Axis> axes) {
  std::vector<std::string> names;
  for (const compute::Axis& axis : axes) names.push_back(axis.var->name);
  return names;
}

std::string quotient(const std::string& axis, int64_t divisor) {
  return axis + "/" + std::to_string(divisor);
}

std::string remainder(const std::string& axis, int64_t modulus) {
  return axis + "%" + std::to_string(modulus);
}

int axis_named(const schedule::StageInfo& info, std::string_view name) {
  const auto found = std::find_if(info.axes.begin(), info.axes.end(),
                                  [&](const auto& axis) { return axis.var->name == name; });
  return found == info.axes.end() ? -1 : static_cast<int>(found - info.axes.begin());
}

int64_t stride_of(const compute::Access& read, size_t axis) {
  int64_t stride = 0, elements = 1;
  for (size_t d = read.index.size(); d-- > 0;) {
    stride += read.index[d].coef[axis] * elements;
    elements *= read.buffer->shape[d];
  }
  return stride;
}

bool is_contiguous(const compute::Access& read, size_t axis) { return stride_of(read, axis) == 1; }

int lanes_of(const target::Cpu& target, const schedule::StageInfo& info) {
  const DType dtype = info.stage.outputs[0].buffer->dtype;
  return target.lanes(is_half(dtype) ? 4 : static_cast<int>(dtype_bytes(dtype)));
}

int unit_stride_axis(const schedule::StageInfo& info) {
  if (info.writes[0].empty()) return -1;  // a single element
  const compute::AffineRow& last = info.writes[0].back();
  for (int a = 0; a < info.num_spatial(); ++a) {
    if (last.coef[a] == 1 && info.axes[a].extent > 1) return a;
  }
  return -1;
}

}  // namespace hone::space
