#include "hone/schedule/storage_order.h"

#include <algorithm>
#include <charconv>

namespace hone::schedule {
namespace {

int dimension_of_axis(const StageInfo& info, std::string_view axis) {
  if (info.writes.empty()) return -1;  // an extern stage
  for (size_t d = 0; d < info.writes[0].size(); ++d) {
    const compute::AffineRow& row = info.writes[0][d];
    int found = -1, terms = 0;
    for (size_t i = 0; i < row.coef.size(); ++i) {
      if (row.coef[i] != 0) found = static_cast<int>(i), ++terms;
    }
    if (terms == 1 && row.coef[found] == 1 && info.axes[found].var->name == axis)
      return static_cast<int>(d);
  }
  return -1;
}

bool parse_int(std::string_view text, int64_t& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() && value >= 1;
}

constexpr int64_t kMostPad = 1024;  // elements; the banks of shared memory need far fewer

// Reads a dimension as a schedule's text has it: axis, axis/divisor, axis%modulus or both, and
// elements of padding after a '+'.
Result<LayoutDim> parse_dim(const StageInfo& info, const std::string& text) {
  std::string_view rest = text;
  LayoutDim dim;
  if (const size_t plus = rest.find('+'); plus != std::string_view::npos) {
    if (!parse_int(rest.substr(plus + 1), dim.pad) || dim.pad > kMostPad)
      return invalid("expected a number of elements after '+', at most {}, found '{}'", kMostPad,
                     text);
    rest = rest.substr(0, plus);
  }
  const size_t slash = rest.find('/'), percent = rest.find('%');
  const size_t end = std::min(std::min(slash, percent), rest.size());
  dim.axis = dimension_of_axis(info, rest.substr(0, end));
  if (dim.axis < 0) return invalid("{} stores no axis {}", info.stage.name, rest.substr(0, end));
  if (slash != std::string_view::npos) {
    const size_t stop = percent == std::string_view::npos ? rest.size() : percent;
    if (percent < slash || !parse_int(rest.substr(slash + 1, stop - slash - 1), dim.divide)) {
      return invalid("expected axis/divisor%modulus, found '{}'", text);
    }
  }
  if (percent != std::string_view::npos && !parse_int(rest.substr(percent + 1), dim.modulo)) {
    return invalid("expected axis/divisor%modulus, found '{}'", text);
  }
  return dim;
}

// The digits of each dimension of the buffer make it whole.
Status check_whole(const std::vector<LayoutDim>& layout, const ir::Buffer& buffer) {
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    SmallVector<LayoutDim, 8> sorted;
    for (const LayoutDim& dim : layout) {
      if (dim.axis == static_cast<int>(d)) sorted.push_back(dim);
    }
    if (sorted.empty()) {
      if (buffer.shape[d] == 1) continue;
      return invalid("dimension {} of {} is missing", d, buffer.name);
    }
    std::sort(sorted.begin(), sorted.end(), [](const LayoutDim& a, const LayoutDim& b) {
      return a.divide > b.divide || (a.divide == b.divide && a.modulo == 0);
    });
    bool complete = sorted[0].modulo == 0 && sorted.back().divide == 1;
    for (size_t i = 1; i < sorted.size(); ++i) {
      complete = complete && sorted[i - 1].divide == sorted[i].divide * sorted[i].modulo;
    }
    if (!complete)
      return invalid("the digits of dimension {} of {} do not make a whole", d, buffer.name);
  }
  return ok_status();
}

}  // namespace

Status apply_fold(const Fold& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  StageState& stage = state.stages[index];
  if (stage.info->stage.outputs.size() != 1) return invalid("{} has several outputs", step.stage);
  const int dim = dimension_of_axis(*stage.info, step.axis);
  if (dim < 0) return invalid("{} stores no axis {}", step.stage, step.axis);
  if (step.factor < 1) return invalid("factor {} is not positive", step.factor);
  if (stage.compute.kind != AttachKind::kAt || stage.compute.loop == stage.store.loop) {
    return invalid("{} is stored where it is computed: nothing to fold", step.stage);
  }
  const StageState& at = state.stages[stage.compute.stage];
  if (at.find_leaf(stage.store.loop) + 1 != at.find_leaf(stage.compute.loop)) {
    return invalid("{} must be stored one loop outside of where it is computed", step.stage);
  }
  stage.fold_dim = dim;
  stage.fold_factor = step.factor;
  return ok_status();
}

Status apply_layout(const Layout& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  StageState& stage = state.stages[index];
  const ir::BufferPtr& buffer = stage.buffer();
  if (state.is_param(buffer))
    return invalid("{} writes an output, whose layout is given", step.stage);
  if (state.writers(buffer).size() != 1 || stage.info->stage.outputs.size() != 1) {
    return invalid("{} is not the only writer of its buffer", step.stage);
  }
  std::vector<LayoutDim> layout;
  layout.reserve(step.dims.size());
  for (const std::string& text : step.dims) {
    HONE_ASSIGN_OR_RETURN(const LayoutDim dim, parse_dim(*stage.info, text));
    layout.push_back(dim);
  }
  HONE_RETURN_IF_ERROR(check_whole(layout, *buffer));
  stage.layout = std::move(layout);
  return ok_status();
}

}  // namespace hone::schedule
