#include "hone/graph/widen_nodes.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "hone/graph/extent_nodes.h"
#include "hone/graph/inline_branch.h"
#include "hone/graph/loop_body.h"
#include "hone/graph/ops/recurrent.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/rewrite.h"

namespace hone::graph {
namespace {

constexpr std::string_view kQuantizedLstm = "com.microsoft.DynamicQuantizeLSTM";

class Widener {
 public:
  Widener(Graph& raw, const Graph& graph, const std::vector<SizeProbe>& probes)
      : raw_(raw), graph_(graph), uses_(graph), probes_(probes), kept_loops_(raw.keeps_loops) {}

  bool run();
  bool run_by_shapes();
  bool keep_loops();  // returns whether this changes anything
  [[nodiscard]] bool has_other_bodies(const Node& node) const;

  [[nodiscard]] bool varies(ValueId id, size_t dim) const {
    const Shape& most = graph_.value(id).shape;
    return std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
      const Shape& shape = probe.graph.value(id).shape;
      return shape.size() == most.size() && shape[dim] != most[dim];
    });
  }
  // The dimensions of a value that vary.
  [[nodiscard]] std::vector<size_t> open_dims(ValueId id) const {
    std::vector<size_t> dims;
    for (size_t d = 0; d < graph_.value(id).shape.size(); ++d) {
      if (varies(id, d)) dims.push_back(d);
    }
    return dims;
  }

  // Returns whether a constant of the file has other elements at other sizes.
  [[nodiscard]] bool differs(ValueId id) const {
    const auto& most = graph_.value(id).constant;
    return most && std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
             const auto& here = probe.graph.value(id).constant;
             return here && here->shape() == most->shape() && !same_bytes(*here, *most);
           });
  }
  // Returns whether a Tile repeats a dimension that has one element at some sizes only.
  [[nodiscard]] bool repeats_one_element(const Node& node) const {
    const auto& repeats = graph_.value(node.inputs[1]).constant;
    const std::vector<size_t> dims = open_dims(node.inputs[0]);
    return repeats && std::any_of(dims.begin(), dims.end(), [&](size_t d) {
             return repeats->at(static_cast<int64_t>(d)) != 1 &&
                    std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
                      const Shape& shape = probe.graph.value(node.inputs[0]).shape;
                      return d < shape.size() && shape[d] == 1;
                    });
           });
  }
  // Returns whether a node of the file becomes as many nodes at all sizes.
  [[nodiscard]] bool is_made_alike(const Node& node) const {
    return std::all_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
      return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId out) {
        return out == kNoValue || probe.alike[static_cast<size_t>(out)];
      });
    });
  }
  // Returns whether the result of a node of the file is made by one node of this type, which has
  // the same attributes at all sizes.
  [[nodiscard]] bool is_made_by(const Node& node, std::string_view type) const {
    const Node* most = only_node(graph_, uses_.producer, node);
    if (most == nullptr || most->type != type) return false;
    return std::all_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
      if (num_elements(probe.graph.value(node.outputs[0]).shape) == 0) return true;
      const Node* made = only_node(probe.graph, probe.producers, node);
      return made != nullptr && made->type == type &&
             same_attributes(made->attributes, most->attributes);
    });
  }
  // Gives the node an operand with its largest extents along `dims`. What a run does not have is
  // `fill`, or anything if that is missing. Returns whether there are any such dimensions.
  bool widen(Node& node, size_t operand, const std::vector<size_t>& dims,
             std::optional<double> fill) {
    if (dims.empty()) return false;
    Shape shape(graph_.value(node.inputs[operand]).shape.size(), -1);
    for (const size_t d : dims) shape[d] = graph_.value(node.inputs[operand]).shape[d];
    node.inputs[operand] = before(node, "hone.Widen", {node.inputs[operand]}, {{"shape", shape}});
    if (fill) before_.back().attributes.set("value", static_cast<float>(*fill));
    return true;
  }
  // Cuts dimension `dim` of a result to the extent of a dimension of `like`, or to `factor` times
  // that plus `offset`.
  void narrow(Node& node, size_t result, size_t dim, ValueId like, size_t of,
              std::optional<std::pair<int64_t, int64_t>> factor_and_offset = std::nullopt) {
    if (result >= node.outputs.size() || node.outputs[result] == kNoValue) return;
    const ValueId whole = add_value(node);
    Node cut = made(node, "hone.Narrow", {whole, like}, node.outputs[result],
                    {{"axis", static_cast<int64_t>(dim)}, {"of", static_cast<int64_t>(of)}});
    if (factor_and_offset) {
      cut.attributes.set("factor", factor_and_offset->first);
      cut.attributes.set("offset", factor_and_offset->second);
    }
    after_.insert(after_.begin(), std::move(cut));
    node.outputs[result] = whole;
  }
  // Adds a node before this one. Returns its result.
  ValueId before(const Node& node, const char* type, std::vector<ValueId> inputs,
                 NamedAttributes attributes = {}) {
    const ValueId result = add_value(node);
    before_.push_back(made(node, type, std::move(inputs), result, attributes));
    return result;
  }
  // Adds nodes and constants before this one.
  NodeMaker maker(const Node& node) {
    return {
        [this, &node](const char* type, std::vector<ValueId> inputs, NamedAttributes attributes) {
          return before(node, type, std::move(inputs), attributes);
        },
        [this, &node](Tensor tensor) { return constant(node, std::move(tensor)); }};
  }
  // Makes a node hand on the last of the results that others compute in its place.
  void replace(Node& node, const std::vector<ValueId>& results) {
    const Node holder = std::move(node);
    for (size_t i = 0; i < results.size(); ++i)
      before_.push_back(made(holder, "Identity", {results[i]}, holder.outputs[i], {}));
    node = std::move(before_.back());
    before_.pop_back();
  }
  // Returns whether this holds for an extent at some size.
  [[nodiscard]] bool any_extent(ValueId id, size_t dim,
                                const std::function<bool(int64_t)>& holds) const {
    return holds(extent_of(id, dim)) ||
           std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
             return holds(probe.graph.value(id).shape[dim]);
           });
  }
  // Returns the axis that an operand, if there is such a one, or else an attribute names.
  [[nodiscard]] std::optional<size_t> axis_of(const Node& node, size_t operand,
                                              int64_t otherwise) const {
    int64_t given = node.attributes.integer("axis", otherwise);
    if (node.has_input(operand)) {
      const auto& known = graph_.value(node.inputs[operand]).constant;
      if (!known || known->size() != 1) return std::nullopt;
      given = static_cast<int64_t>(known->at(0));
    }
    const auto axis = normalize_axis(given, static_cast<int64_t>(rank_of(node.inputs[0])));
    return axis ? std::optional(static_cast<size_t>(*axis)) : std::nullopt;
  }
  [[nodiscard]] int opset_of(const Node& node) const {
    return node.opset != 0 ? node.opset : raw_.opset;
  }
  // Takes the node of an If apart into the nodes of its branches.
  void inline_branches(Node& node);
  // Returns the value of a condition that is known, and the same at all sizes.
  [[nodiscard]] std::optional<bool> known_condition(ValueId id) const {
    const auto& most = graph_.value(id).constant;
    const bool known = most && most->size() == 1 &&
                       std::all_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
                         const auto& here = probe.graph.value(id).constant;
                         return here && here->size() == 1 && here->at(0) == most->at(0);
                       });
    return known ? std::optional(most->at(0) != 0) : std::nullopt;
  }
  // Returns whether a condition follows from the sizes, in another way than that it is the same.
  [[nodiscard]] bool depends_on_sizes(ValueId id) const {
    return !known_condition(id) &&
           (graph_.value(id).constant ||
            std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
              return probe.graph.value(id).constant.has_value();
            }));
  }
  // Returns whether loops have been kept since the graph was read.
  [[nodiscard]] bool kept_loops() const { return kept_loops_; }
  ValueId constant(const Node& node, Tensor tensor) {
    return raw_.add_constant(node.name + ".constant", std::move(tensor));
  }
  [[nodiscard]] DType dtype_of(ValueId id) const { return graph_.value(id).dtype; }
  [[nodiscard]] size_t rank_of(ValueId id) const { return graph_.value(id).shape.size(); }
  [[nodiscard]] int64_t extent_of(ValueId id, size_t dim) const {
    return graph_.value(id).shape[dim];
  }

 private:
  // Returns the node that makes the result of one of the file from its operand; null if several do.
  static const Node* only_node(const Graph& graph, const std::vector<int>& producers,
                               const Node& node) {
    ValueId result = node.outputs[0];
    while (producers[static_cast<size_t>(result)] >= 0) {
      const Node& made = graph.nodes[static_cast<size_t>(producers[static_cast<size_t>(result)])];
      if (made.type != "Identity") return made.inputs[0] == node.inputs[0] ? &made : nullptr;
      result = made.inputs[0];
    }
    return nullptr;
  }
  ValueId add_value(const Node& node) {
    return raw_.add_value(fmt::format("{}.{}", node.name, raw_.values.size()), DType::kF32, {});
  }
  static Node made(const Node& node, const char* type, std::vector<ValueId> inputs, ValueId result,
                   NamedAttributes attributes) {
    Node node_made;
    node_made.name = node.name;
    node_made.type = type;
    node_made.op = find_op(type, kMaxOpset);
    node_made.opset = kMaxOpset;
    for (const auto& [name, value] : attributes) node_made.attributes.set(name, value);
    node_made.inputs = std::move(inputs);
    node_made.outputs = {result};
    return node_made;
  }

  // Applies the rules of the nodes that may be widened. Returns whether this changed anything.
  bool apply_rules(const std::function<bool(const Node&)>& may);

  Graph& raw_;
  const Graph& graph_;
  const Uses uses_;
  const std::vector<SizeProbe>& probes_;
  const bool kept_loops_;
  std::vector<Node> before_, after_;  // of the node at hand
};

// The branch that is taken in all runs, or both, of whose results the condition chooses.
void Widener::inline_branches(Node& node) {
  const Node holder = std::move(node);
  const std::optional<bool> taken = known_condition(holder.inputs[0]);
  std::vector<std::vector<ValueId>> results;  // by the branch
  for (const char* name : {"then_branch", "else_branch"}) {
    if (taken && *taken != (name == std::string_view("then_branch"))) continue;
    const auto& branch = *holder.attributes.find<Subgraph>(name)->body;
    const size_t first = before_.size();
    results.push_back(inline_branch(raw_, holder, branch, before_));
    std::vector<std::pair<ValueId, bool>> used_if = holder.used_if;
    if (!taken) used_if.emplace_back(holder.inputs[0], name == std::string_view("then_branch"));
    for (size_t i = first; i < before_.size(); ++i) before_[i].used_if = used_if;
  }
  if (!taken) {
    raw_.warnings.push_back(fmt::format(
        "{}: node '{}' (If): both branches are computed, as one of them becomes other operators at "
        "other sizes; a condition that is known (--bind) leaves one out",
        raw_.file, holder.name));
  }
  std::vector<Node> chosen;
  for (size_t i = 0; i < holder.outputs.size(); ++i) {
    if (holder.outputs[i] == kNoValue) continue;
    chosen.push_back(taken ? made(holder, "Identity", {results[0][i]}, holder.outputs[i], {})
                           : made(holder, "hone.Choose",
                                  {holder.inputs[0], results[0][i], results[1][i]},
                                  holder.outputs[i], {}));
  }
  node = std::move(chosen.back());
  chosen.pop_back();
  std::move(chosen.begin(), chosen.end(), std::back_inserter(before_));
}

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

// The scores of boxes that a run does not have are below any threshold, so that nobody reads where
// these boxes are.
bool widen_boxes(Widener& w, Node& node) {
  const DType type = w.dtype_of(node.inputs[1]);
  const bool scores =
      w.widen(node, 1, w.open_dims(node.inputs[1]), -std::numeric_limits<double>::infinity());
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

bool widen_non_zero(Widener& w, Node& node) {
  return w.widen(node, 0, w.open_dims(node.inputs[0]), 0);
}

// What a run does not have is not taken. Data without an axis has a rule
// (size_rules_of_extents.cc).
bool widen_compress(Widener& w, Node& node) {
  if (!node.attributes.has("axis")) return false;
  const size_t rank = w.rank_of(node.inputs[0]);
  const auto axis = normalize_axis(node.attributes.integer("axis", 0), static_cast<int64_t>(rank));
  if (!axis || !w.widen(node, 1, w.open_dims(node.inputs[1]), 0)) return false;
  const auto dim = static_cast<size_t>(*axis);
  if (w.varies(node.inputs[0], dim)) w.widen(node, 0, {dim}, 0);
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

// What a run does not have are zeros, in which a tap reads nothing, as outside of the data. Where
// the offsets of a run lie are its results.
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

// Where each element is repeated as often at all sizes, it stays what the import makes of it.
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

struct Rule {
  std::string_view type;
  bool (*apply)(Widener&, Node&);
  // An operator that has no more than the types and shapes of the results, if the rule needs no
  // more, and these cost far less than the results.
  const char* with_shapes_only = nullptr;
};
constexpr Rule kRules[] = {
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

const Rule* rule_of(const Node& node) {
  const auto* const rule = std::find_if(std::begin(kRules), std::end(kRules),
                                        [&](const Rule& known) { return known.type == node.type; });
  return rule == std::end(kRules) ? nullptr : rule;
}

// Returns the name of the operator that has a node's shapes only; null if there is none.
const char* shapes_only_type(const Node& node) {
  const Rule* const rule = rule_of(node);
  return rule == nullptr ? nullptr : rule->with_shapes_only;
}

// Returns whether a loop that a run repeats has other nodes in its body at other sizes.
bool Widener::has_other_bodies(const Node& node) const {
  const auto out = std::find_if(node.outputs.begin(), node.outputs.end(),
                                [](ValueId id) { return id != kNoValue; });
  if (node.loop == nullptr || out == node.outputs.end()) return false;
  return std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
    const Node* twin = probe.producer_of_twin(*out);
    return twin != nullptr && twin->loop != nullptr && !same_kind_inside(*node.loop, *twin->loop);
  });
}

// Loops that have other turns at other sizes are the same loop where they are not unrolled.
bool Widener::keep_loops() {
  if (raw_.keeps_loops) return false;
  raw_.keeps_loops = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                 [&](const Node& node) { return has_other_bodies(node); });
  if (raw_.keeps_loops) return true;
  raw_.keeps_loops = std::any_of(raw_.nodes.begin(), raw_.nodes.end(), [&](const Node& node) {
    const bool is_chosen = node.type == "If" && !known_condition(node.inputs[0]);
    if (node.type != "Loop" && node.type != "Scan" && !is_chosen) return false;
    return !is_made_alike(node);
  });
  return raw_.keeps_loops;
}

bool Widener::apply_rules(const std::function<bool(const Node&)>& may) {
  bool changed = false;
  std::vector<Node> nodes;
  for (Node& node : raw_.nodes) {
    const Rule* const rule = rule_of(node);
    const bool by_data = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
      return in != kNoValue && graph_.value(in).extents != kNoValue;
    });
    if (rule != nullptr && !by_data && may(node)) changed = rule->apply(*this, node) || changed;
    std::move(before_.begin(), before_.end(), std::back_inserter(nodes));
    nodes.push_back(std::move(node));
    std::move(after_.begin(), after_.end(), std::back_inserter(nodes));
    before_.clear();
    after_.clear();
  }
  raw_.nodes = std::move(nodes);
  return changed;
}

bool Widener::run() {
  const bool kept = keep_loops();
  return apply_rules([](const Node&) { return true; }) || kept;
}

bool Widener::run_by_shapes() {
  return apply_rules([](const Node& node) { return shapes_only_type(node) != nullptr; });
}

}  // namespace

bool widen_nodes(Graph& raw, const Graph& graph, const std::vector<SizeProbe>& probes) {
  return Widener(raw, graph, probes).run();
}

bool widen_by_shapes(Graph& raw, const Graph& graph, const std::vector<SizeProbe>& probes) {
  return Widener(raw, graph, probes).run_by_shapes();
}

std::optional<Graph> with_shapes_only(const Graph& raw) {
  if (std::none_of(raw.nodes.begin(), raw.nodes.end(), shapes_only_type)) return std::nullopt;
  Graph shapes = raw;
  for (Node& node : shapes.nodes) {
    if (const char* type = shapes_only_type(node)) node.op = find_op(type, kMaxOpset);
  }
  return shapes;
}

bool is_widening(const Node& node) {
  return node.type == "hone.Widen" || node.type == "hone.Narrow" || node.type == "hone.Extent";
}

}  // namespace hone::graph
