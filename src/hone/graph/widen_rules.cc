// Rules of operators that have to be the same at all sizes of a run (widen_nodes.h).
#include "hone/graph/widener.h"

namespace hone::graph {
namespace {

// The net is told how many of its steps a run has (graph/ops/recurrent.h). Where data is quantised
// by its largest element, what lies behind them is zero.
bool widen_recurrent(Widener& w, Node& node) {
  const int64_t steps = node.attributes.integer("layout", 0) != 0 ? 1 : 0;
  const ValueId x = node.inputs[0];
  const auto dim = static_cast<size_t>(steps);
  if (!w.varies(x, dim)) return false;
  const bool quantizes = node.type == kQuantizedLstm;
  node.type = quantizes ? "hone.DynamicQuantizeLSTM" : "hone." + node.type;
  node.op = find_op(node.type, kMaxOpset);
  node.inputs.resize(kStepsOfRun + 1, kNoValue);
  node.inputs[kStepsOfRun] = w.before(node, "hone.Extent", {x}, {{"axis", steps}});
  w.narrow(node, 0, dim, x, dim);
  return w.widen(node, 0, {dim}, quantizes ? std::optional(0.0) : std::nullopt);
}

// Gives the node the extents of a run along dimensions of an operand, an operand for each one from
// `first` on, and makes it the operator that takes them and looks at no element behind them.
// Returns false if there are none, or if the device does not run such operators.
bool count(Widener& w, Node& node, ValueId of, const std::vector<size_t>& dims, size_t first,
           const char* type) {
  if (dims.empty() || !w.counts_in_bodies()) return false;
  node.inputs.resize(first + dims.back() + 1, kNoValue);
  for (const size_t d : dims)
    node.inputs[first + d] =
        w.before(node, "hone.Extent", {of}, {{"axis", static_cast<int64_t>(d)}});
  node.type = type;
  node.op = find_op(type, kMaxOpset);
  return true;
}

// Boxes that a run does not have are not looked at; or their scores are below any threshold, so
// that nobody reads where these boxes are.
bool widen_boxes(Widener& w, Node& node) {
  const std::vector<size_t> open = w.open_dims(node.inputs[1]);
  if (count(w, node, node.inputs[1], open, 5, "hone.CountedNonMaxSuppression")) {
    w.widen(node, 0, w.open_dims(node.inputs[0]), std::nullopt);
    return w.widen(node, 1, open, std::nullopt);
  }
  const DType type = w.dtype_of(node.inputs[1]);
  const bool scores = w.widen(node, 1, open, -std::numeric_limits<double>::infinity());
  const bool boxes =
      w.widen(node, 0, w.open_dims(node.inputs[0]), scores ? std::nullopt : std::optional(0.0));
  if (scores && !node.has_input(4)) {
    node.inputs.resize(5, kNoValue);
    Tensor least(type, {1});
    least.set(0, std::numeric_limits<float>::lowest());
    node.inputs[4] = w.constant(node, std::move(least));
  }
  return boxes || scores;
}

// Elements that a run does not have are not looked at, or zeros.
bool widen_non_zero(Widener& w, Node& node) {
  const std::vector<size_t> dims = w.open_dims(node.inputs[0]);
  const bool counts = count(w, node, node.inputs[0], dims, 1, "hone.CountedNonZero");
  return w.widen(node, 0, dims, counts ? std::nullopt : std::optional(0.0));
}

// The condition takes nothing that a run does not have. Data without an axis has a rule
// (size_rules_of_extents.cc).
bool widen_compress(Widener& w, Node& node) {
  if (!node.attributes.has("axis")) return false;
  const size_t rank = w.rank_of(node.inputs[0]);
  const auto axis = normalize_axis(node.attributes.integer("axis", 0), static_cast<int64_t>(rank));
  const std::vector<size_t> open = w.open_dims(node.inputs[1]);
  if (!axis || open.empty()) return false;
  const ValueId condition = node.inputs[1];
  const bool counts = count(w, node, condition, open, 2, "hone.CountedCompress");
  const std::optional<double> fill = counts ? std::nullopt : std::optional(0.0);
  w.widen(node, 1, open, fill);
  const auto dim = static_cast<size_t>(*axis);
  if (w.varies(node.inputs[0], dim)) w.widen(node, 0, {dim}, fill);
  return true;
}

// At short sides some phases have no results or read other inputs (graph/ops/conv_transpose.cc). In
// zeros behind the data they are the same at all sizes, unless the size of the result is given:
// that decides where the data begins.
bool widen_conv_transpose(Widener& w, Node& node) {
  const ValueId x = node.inputs[0];
  std::vector<size_t> sides = w.open_dims(x);
  std::erase_if(sides, [](size_t d) { return d < 2; });
  if (sides.empty() || w.is_made_alike(node) || node.attributes.has("output_shape")) return false;
  const Shape strides = node.attributes.integers("strides", Shape(w.rank_of(x) - 2, 1));
  const ValueId result = node.outputs[0];
  w.widen(node, 0, sides, 0);
  for (const size_t d : sides) {
    const int64_t stride = strides[d - 2];
    const int64_t offset = w.extent_of(result, d) - stride * w.extent_of(x, d);
    w.narrow(node, 0, d, x, d, std::pair(stride, offset));
  }
  return true;
}

// Elements that a run does not have are zeros, in which a tap reads nothing, as outside of the
// data. The results of a run are where its offsets lie.
bool widen_deform_conv(Widener& w, Node& node) {
  const std::vector<ValueId> operands = node.inputs;
  const auto sides_of = [&](ValueId id) {
    std::vector<size_t> sides = w.open_dims(id);
    std::erase_if(sides, [](size_t d) { return d < 2; });
    return sides;
  };
  const std::vector<size_t> results = sides_of(operands[2]);
  bool widened = false;
  for (const size_t i : {0, 2, 4}) {
    if (node.has_input(i)) widened = w.widen(node, i, sides_of(operands[i]), 0) || widened;
  }
  for (const size_t d : results) w.narrow(node, 0, d, operands[2], d);
  return widened;
}

// A row that is shorter than what is counted in it is one that ends with numbers which no n-gram
// has.
bool widen_tf_idf(Widener& w, Node& node) {
  const ValueId x = node.inputs[0];
  const size_t last = w.rank_of(x) - 1;
  if (w.is_made_alike(node) || !w.varies(x, last)) return false;
  const Shape pool = node.attributes.integers("pool_int64s");
  int64_t other = 0;
  while (std::find(pool.begin(), pool.end(), other) != pool.end()) ++other;
  return w.widen(node, 0, {last}, static_cast<double>(other));
}

// Without a scale, scores are divided by the root of the size of a head. Where a dimension has
// several heads, their size does not vary.
bool keep_scale(Widener& w, Node& node) {
  const ValueId query = node.inputs[0];
  const size_t last = w.rank_of(query) - 1;
  if (node.attributes.has("scale") || !w.varies(query, last)) return false;
  if (last == 2 && node.attributes.integer("q_num_heads", 1) != 1) return false;
  node.inputs[0] =
      divided_by_root(w.maker(node), query, w.dtype_of(query), static_cast<int64_t>(last));
  node.attributes.set("scale", 1.0F);
  return true;
}

// A transform over all elements of an axis that varies, or over a number of elements, of which
// those that a run does not have are zeros.
bool keep_spectrum(Widener& w, Node& node) {
  const ValueId x = node.inputs[0];
  const auto axis = w.axis_of(node, 2, w.opset_of(node) < 20 ? 1 : -2);
  if (!axis || *axis + 1 == w.rank_of(x) || !w.varies(x, *axis)) return false;
  if (node.has_input(1)) return w.widen(node, 0, {*axis}, 0);
  const size_t last = w.rank_of(x) - 1;
  if (w.varies(x, last)) return false;
  w.replace(node, {spectrum_of(w.maker(node),
                               {.x = x,
                                .rank = static_cast<int64_t>(w.rank_of(x)),
                                .axis = static_cast<int64_t>(*axis),
                                .dtype = w.dtype_of(x),
                                .is_complex = w.extent_of(x, last) == 2,
                                .inverse = node.attributes.integer("inverse", 0) != 0,
                                .onesided = node.attributes.integer("onesided", 0) != 0})});
  return true;
}

// Parts of one length, of which the last are shorter at some sizes.
bool keep_split(Widener& w, Node& node) {
  const ValueId x = node.inputs[0];
  const auto count = static_cast<int64_t>(node.outputs.size());
  const auto axis = w.axis_of(node, 2, 0);
  if (count < 3 || node.has_input(1) || node.attributes.has("split") || !axis) return false;
  if (!w.any_extent(x, *axis, [&](int64_t extent) { return extent % count != 0; })) return false;
  if (!w.varies(x, *axis)) return false;
  std::vector<ValueId> parts =
      parts_of_extent(w.maker(node), x, static_cast<int64_t>(*axis), count);
  w.replace(node, parts);
  return true;
}

// It stays what the import makes of it where each element is repeated as often at all sizes.
bool keep_resize(Widener& w, Node& node) {
  bool varies = false;
  for (const ValueId id : {node.inputs[0], node.outputs[0]}) {
    for (const size_t d : w.open_dims(id)) varies = varies || d >= 2;
  }
  if (!varies || w.is_made_by(node, "hone.Repeat")) return false;
  node.type = "hone.ResizeSides";
  node.op = find_op(node.type, kMaxOpset);
  return true;
}

// Pads may differ from run to run.
bool keep_pad(Widener& w, Node& node) {
  if (!node.has_input(1) || !w.differs(node.inputs[1])) return false;
  node.type = "hone.PadSides";
  node.op = find_op(node.type, kMaxOpset);
  return true;
}

bool keep_center_crop_pad(Widener& w, Node& node) {
  if (w.open_dims(node.inputs[0]).empty() && !w.differs(node.inputs[1])) return false;
  node.type = "hone.CenterCropPadSides";
  node.op = find_op(node.type, kMaxOpset);
  return true;
}

// How often a dimension is repeated may be once at some sizes, and so may its extent.
bool keep_tile(Widener& w, Node& node) {
  if (w.is_made_alike(node) && !w.repeats_one_element(node)) return false;
  node.type = "hone.Tile";
  node.op = find_op(node.type, kMaxOpset);
  return true;
}

// Returns whether the bodies of a node have a Loop, at any depth.
bool has_loop(const Node& node) {
  const auto& attributes = node.attributes.all();
  return std::any_of(attributes.begin(), attributes.end(), [](const auto& attribute) {
    const auto* graph = std::get_if<Subgraph>(&attribute.second);
    return graph != nullptr &&
           std::any_of(graph->body->nodes.begin(), graph->body->nodes.end(),
                       [](const Node& inner) { return inner.type == "Loop" || has_loop(inner); });
  });
}

// Nodes of branches are widened where they are nodes of the file. A run takes one of two branches
// where they are loops (graph/ops/taken_branch.h), unless one becomes other operators even so. If
// both are computed, no loop may be among them, as one that is not taken may never end.
bool keep_if(Widener& w, Node& node) {
  if (w.is_made_alike(node) || w.depends_on_sizes(node.inputs[0])) return false;
  if (!w.known_condition(node.inputs[0]) && (!w.kept_loops() || has_loop(node))) return false;
  w.inline_branches(node);
  return true;
}

// How trees are divided depends on the number of rows (graph/ops/ml_tree_walk.h): it is the same at
// all sizes.
bool keep_trees(Widener& w, Node& node) {
  constexpr std::string_view kDomain = "ai.onnx.ml.";
  if (w.rank_of(node.inputs[0]) != 2 || !w.varies(node.inputs[0], 0)) return false;
  node.type = "hone." + node.type.substr(kDomain.size());
  node.op = find_op(node.type, kMaxOpset);
  node.attributes.set("rows", w.extent_of(node.inputs[0], 0));
  return true;
}

constexpr WidenRule kRules[] = {
    {"LSTM", widen_recurrent, "hone.Recurrence"},
    {"GRU", widen_recurrent, "hone.Recurrence"},
    {"RNN", widen_recurrent, "hone.Recurrence"},
    {kQuantizedLstm, widen_recurrent, "hone.Recurrence"},
    {"NonMaxSuppression", widen_boxes},
    {"NonZero", widen_non_zero},
    {"Compress", widen_compress},
    {"ConvTranspose", widen_conv_transpose},
    {"Resize", keep_resize},
    {"Upsample", keep_resize},
    {"ai.onnx.ml.TreeEnsemble", keep_trees},
    {"ai.onnx.ml.TreeEnsembleClassifier", keep_trees},
    {"Attention", keep_scale},
    {"ai.onnx.preview.FlexAttention", keep_scale},
    {"DeformConv", widen_deform_conv},
    {"DFT", keep_spectrum, "hone.Spectrum"},
    {"TfIdfVectorizer", widen_tf_idf},
    {"Split", keep_split},
    {"Tile", keep_tile},
    {"Pad", keep_pad},
    {"If", keep_if},
    {"CenterCropPad", keep_center_crop_pad},
    {"ai.onnx.ml.TreeEnsembleRegressor", keep_trees},
};

}  // namespace

const WidenRule* widen_rule_of(const Node& node) {
  const auto* const rule =
      std::find_if(std::begin(kRules), std::end(kRules),
                   [&](const WidenRule& known) { return known.type == node.type; });
  return rule == std::end(kRules) ? nullptr : rule;
}

}  // namespace hone::graph
