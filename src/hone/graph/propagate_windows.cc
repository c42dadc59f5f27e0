// Convolutions and pooling along dimensions whose extents data decide: what is not there is as the
// padding beyond it.
#include <algorithm>

#include "hone/graph/neutral.h"
#include "hone/graph/ops/window.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

constexpr size_t kSpatial = 2;  // the first dimension in which windows move

// Returns how many windows fit where the data has `extent` (i64 [1]) elements.
ValueId windows_of(ExpandContext& c, ValueId extent, const Window& window, size_t d) {
  const int64_t reach = (window.kernel[d] - 1) * window.dilation[d] + 1;
  const int64_t more = window.pad_low[d] + window.pad_high[d] - reach + window.stride[d];
  const ValueId from = c.binary("Add", extent, static_cast<double>(more));
  return c.binary("Div", c.binary("Max", from, 0.0), static_cast<double>(window.stride[d]));
}

// Returns the windows of an operator of which data decide the sides.
Result<Window> decided_window(ExpandContext& c, Shape kernel) {
  for (size_t i = 1; i < c.num_inputs(); ++i)
    if (varies(c, i)) return c.unsupported("operand {} whose shape depends on data", i);
  const Shape most = c.shape(0);
  if (most.size() <= kSpatial) return c.fail("data of rank {}", most.size());
  const Attributes& a = c.attributes();
  const std::string pads = a.text("auto_pad", "NOTSET");
  if (c.node().made_for != nullptr)  // windows may follow from the largest shape
    return c.unsupported("data whose shape depends on other data");
  if (is_decided(c, 0, 1)) return c.unsupported("channels whose number depends on data");
  if ((pads != "NOTSET" && pads != "VALID") || a.integer("ceil_mode", 0) != 0)
    return c.unsupported("data whose sides depend on other data, with auto_pad {} or ceil_mode {}",
                         pads, a.integer("ceil_mode", 0));
  return make_window(a, most, std::move(kernel));
}

// Gives the node these elements, of which there are as many as windows fit.
void give_windows(ExpandContext& c, ValueId y, const Window& window) {
  std::vector<ExtentPart> shape = parts(c, c.input(0), 0, 1);
  shape.push_back({kNoValue, c.shape_of(y)[1]});
  for (size_t d = kSpatial; d < c.shape(0).size(); ++d) {
    const ValueId extent = dimension(c, c.extents_of(c.input(0)), static_cast<int64_t>(d));
    shape.push_back(is_decided(c, 0, d) ? ExtentPart{windows_of(c, extent, window, d - kSpatial), 0}
                                        : ExtentPart{kNoValue, c.shape_of(y)[d]});
  }
  c.result(0, with_extents(c, y, join_extents(c, shape)));
}

// Follows an operator with windows where elements of this number change no result.
Status propagate_window(ExpandContext& c, Shape kernel, double neutral) {
  HONE_ASSIGN_OR_RETURN(const Window window, decided_window(c, std::move(kernel)));
  std::vector<ValueId> operands = c.node().inputs;
  operands[0] = filled(c, c.input(0), neutral);
  give_windows(c, c.add_like(c.node(), operands), window);
  return ok_status();
}

Status propagate_global(ExpandContext& c, const char* reduction) {
  std::vector<int64_t> axes;
  for (int64_t d = kSpatial; d < c.rank(0); ++d) axes.push_back(d);
  c.result(0, c.reduce(reduction, c.input(0), axes));
  return ok_status();
}

}  // namespace

Status propagate_convolution(ExpandContext& c) {
  const Shape& weights = c.shape(1);
  if (weights.size() < kSpatial) return c.fail("weights of rank {}", weights.size());
  return propagate_window(c, Shape(weights.begin() + kSpatial, weights.end()), 0);
}

Status propagate_max_pool(ExpandContext& c) {
  if (c.wants(1)) return c.unsupported("places of maxima in data whose sides depend on other data");
  return propagate_window(c, {}, neutral_of(c.dtype(0), -1));
}

// The mean is the sum over the number of elements that are there, if padding does not count.
Status propagate_average_pool(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const Window window, decided_window(c, {}));
  std::vector<int64_t> pads = window.pad_low;
  pads.insert(pads.end(), window.pad_high.begin(), window.pad_high.end());
  const auto mean_of = [&](ValueId x) {
    return c.add("AveragePool", {x},
                 {{"kernel_shape", window.kernel},
                  {"strides", window.stride},
                  {"dilations", window.dilation},
                  {"pads", pads},
                  {"count_include_pad", int64_t{1}}});
  };
  ValueId y = mean_of(filled(c, c.input(0), 0));
  if (c.attributes().integer("count_include_pad", 0) == 0) {
    Shape one_channel = c.shape(0);
    one_channel[1] = 1;
    const ValueId ones = uniform(c, c.dtype(0), one_channel, 1);
    std::vector<ExtentPart> shape = parts(c, c.input(0), 0, one_channel.size());
    shape[1] = {kNoValue, 1};
    const ValueId there = with_extents(c, ones, join_extents(c, shape));
    y = c.binary("Div", y, mean_of(filled(c, there, 0)));
  }
  give_windows(c, y, window);
  return ok_status();
}

Status propagate_global_average(ExpandContext& c) { return propagate_global(c, "ReduceMean"); }
Status propagate_global_max(ExpandContext& c) { return propagate_global(c, "ReduceMax"); }

}  // namespace hone::graph
