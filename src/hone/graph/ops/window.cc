#include "hone/graph/ops/window.h"

#include <algorithm>

#include "hone/graph/expand.h"
#include "hone/ir/scalar.h"

namespace hone::graph {
namespace {

Result<Shape> spatial_attribute(const Attributes& attributes, const char* name, size_t rank,
                                int64_t otherwise, int64_t least) {
  Shape values = attributes.integers(name);
  if (values.empty()) values.assign(rank, otherwise);
  const bool small = std::any_of(values.begin(), values.end(),
                                 [&](int64_t v) { return v < least || v > 1 << 24; });
  if (values.size() != rank || small) {
    return invalid("{} is {}, expected {} values of at least {}", name, to_string(values), rank,
                   least);
  }
  return values;
}

}  // namespace

Result<Window> make_window(const Attributes& attributes, const Shape& input, Shape kernel) {
  if (input.size() < 3)
    return invalid("data of shape {}, expected N, C and spatial dimensions", to_string(input));
  const size_t rank = input.size() - 2;
  Window w;
  w.input.assign(input.begin() + 2, input.end());
  const Shape declared = attributes.integers("kernel_shape");
  if (kernel.empty()) kernel = declared;
  if (kernel.size() != rank || (!declared.empty() && declared != kernel)) {
    return invalid("kernel_shape {} for data of shape {}{}", to_string(declared), to_string(input),
                   declared.empty() || kernel == declared ? "" : " and weights of another");
  }
  for (const int64_t k : kernel) {
    if (k < 1 || k > 1 << 24) return invalid("kernel_shape is {}", to_string(kernel));
  }
  if (!is_valid(kernel)) return invalid("kernel_shape is {}, too large", to_string(kernel));
  w.kernel = std::move(kernel);
  HONE_ASSIGN_OR_RETURN(w.stride, spatial_attribute(attributes, "strides", rank, 1, 1));
  HONE_ASSIGN_OR_RETURN(w.dilation, spatial_attribute(attributes, "dilations", rank, 1, 1));
  HONE_ASSIGN_OR_RETURN(Shape pads, spatial_attribute(attributes, "pads", 2 * rank, 0, 0));
  const std::string mode = attributes.text("auto_pad", "NOTSET");
  const bool ceil_mode = attributes.integer("ceil_mode", 0) != 0;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = (w.kernel[d] - 1) * w.dilation[d] + 1;
    int64_t low = pads[d], high = pads[rank + d];
    int64_t out = 0;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      out = (w.input[d] + w.stride[d] - 1) / w.stride[d];
      const int64_t total = std::max<int64_t>(0, (out - 1) * w.stride[d] + reach - w.input[d]);
      low = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      high = total - low;
    } else if (mode == "NOTSET" || mode == "VALID" || mode.empty()) {
      if (mode == "VALID") low = high = 0;
      // Rounded down, and up with ceil_mode. A window that is larger than the padded data leaves
      // negative room, which may still be rounded up to one place.
      const int64_t room = w.input[d] + low + high - reach;
      out = ir::floor_div(room, w.stride[d]) + 1;
      if (ceil_mode && room % w.stride[d] != 0 && out * w.stride[d] < w.input[d] + low) {
        ++out;  // the last window must start inside the data or its low padding
      }
    } else {
      return invalid("auto_pad is '{}'", mode);
    }
    if (out < 1) {
      return invalid("a window of {} does not fit into {} elements with padding {} and {}", reach,
                     w.input[d], low, high);
    }
    w.pad_low.push_back(low);
    w.pad_high.push_back(high);
    w.output.push_back(out);
  }
  return w;
}

Window window_of(const Graph& graph, const Node& node) {
  const Shape& data = graph.value(node.inputs[0]).shape;
  Shape kernel;
  if (node.attributes.integers("kernel_shape").empty()) {
    const Shape& weight = graph.value(node.inputs[1]).shape;
    kernel.assign(weight.begin() + 2, weight.end());
  }
  Result<Window> window = make_window(node.attributes, data, std::move(kernel));
  HONE_ASSERT(window.ok(), "the shape rule has checked the window");
  return std::move(window).value();
}

Padding window_padding(const Window& window, size_t rank) {
  Padding padding;
  padding.low.assign(rank, 0);
  padding.high.assign(rank, 0);
  for (size_t d = 0; d < window.rank(); ++d) {
    padding.low[d + 2] = window.pad_low[d];
    // At least the padding asked for, even where a stride does not reach its end: values with equal
    // borders make equal tasks and share memory.
    padding.high[d + 2] = std::max({int64_t{0}, window.pad_high[d], window.reach_high(d)});
  }
  return padding;
}

std::vector<std::string> spatial_names(size_t spatial, const char* prefix) {
  static constexpr const char* kNames[] = {"d", "h", "w"};
  std::vector<std::string> names;
  for (size_t d = 0; d < spatial; ++d) {
    const std::string letter = spatial <= 3 ? kNames[3 - spatial + d] : std::to_string(d);
    names.push_back(prefix + letter);
  }
  return names;
}

std::vector<std::string> window_roles(size_t spatial, const char* channel) {
  std::vector<std::string> roles = {"n", channel};
  for (std::string& name : spatial_names(spatial, "o")) roles.push_back(std::move(name));
  return roles;
}

ValueId add_convolution(ExpandContext& c, const char* type, ValueId data, ValueId weights,
                        ValueId bias) {
  const Attributes& a = c.attributes();
  return c.add(type, {data, weights, bias},
               {{"auto_pad", a.text("auto_pad", "NOTSET")},
                {"dilations", a.integers("dilations")},
                {"group", a.integer("group", 1)},
                {"kernel_shape", a.integers("kernel_shape")},
                {"pads", a.integers("pads")},
                {"strides", a.integers("strides")}});
}

}  // namespace hone::graph
