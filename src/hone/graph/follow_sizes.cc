#include "hone/graph/follow_sizes.h"

#include <algorithm>
#include <cstring>

#include "hone/base/allocation.h"
#include "hone/graph/infer.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/rewrite.h"
#include "hone/graph/size_follower.h"
#include "hone/graph/size_sums.h"
#include "hone/graph/size_values.h"
#include "hone/graph/widen_nodes.h"

namespace hone::graph {
namespace {

// Returns whether a node of constants makes the constant that its result is.
bool makes_constant(const Graph& graph, const Node& node) {
  const std::optional<Tensor>& known = graph.value(node.outputs[0]).constant;
  if (!known || node.op->fold == nullptr) return false;
  const Result<std::vector<Tensor>> made = node.op->fold(graph, node);
  return made.ok() && made->size() == 1 && made->front().dtype() == known->dtype() &&
         same_bytes(made->front(), *known);
}

}  // namespace

SizeFollower::SizeFollower(Graph& graph, const Graph& raw, const std::vector<SizeProbe>& probes,
                           const std::vector<SizeSymbol>& symbols)
    : graph_(graph), raw_(raw), probes_(probes) {
  for (const Node& node : raw_.nodes) {
    if (node.outputs.size() == 1) file_nodes_[node.outputs[0]] = &node;
  }
  graph_.varying.symbols = symbols;
  for (const SizeSymbol& symbol : symbols) most_.push_back(symbol.max);
}

ShapeParts SizeFollower::parts_of(ValueId id) const {
  const Value& value = graph_.value(id);
  if (!value.forms.empty()) return value.forms;
  ShapeParts parts;
  for (const int64_t extent : value.shape) parts.push_back({{kNoForm, extent}});
  return parts;
}

bool SizeFollower::varies(ValueId id, size_t dim) const {
  const ShapeParts& forms = graph_.value(id).forms;
  return !forms.empty() && std::any_of(forms[dim].begin(), forms[dim].end(),
                                       [](const SizePart& part) { return part.form != kNoForm; });
}

// Windows that move by several elements may make one extent of all sizes. No form decreases where a
// symbol grows.
bool SizeFollower::is_always_largest(const SizePart& part) const {
  if (part.form == kNoForm) return false;
  const Varying& varying = graph_.varying;
  const SizeForm& form = varying.forms[static_cast<size_t>(part.form)];
  return value_of(varying, form, smallest_symbols(varying)) >= part.most;
}

void SizeFollower::set_parts(ValueId id, ShapeParts parts) {
  bool varies = false;
  for (DimParts& dim : parts) {
    for (SizePart& part : dim) {
      if (is_always_largest(part)) part.form = kNoForm;
      varies = varies || part.form != kNoForm;
    }
  }
  graph_.value(id).forms = varies ? std::move(parts) : ShapeParts();
}

// Returns whether a tensor has the type of another one, and no extent that is larger.
static bool is_within(const Tensor& whole, const Tensor& part) {
  const Shape &all = whole.shape(), &some = part.shape();
  return whole.dtype() == part.dtype() &&
         std::equal(some.begin(), some.end(), all.begin(), all.end(), std::less_equal<>());
}

bool SizeFollower::is_box(const Tensor& whole, const Tensor& part) const {
  const Shape &all = whole.shape(), &some = part.shape();
  if (!is_within(whole, part)) return false;
  if (part.size() == 0) return true;
  if (some.empty()) return same_bytes(whole, part);
  const auto width = static_cast<size_t>(dtype_bytes(whole.dtype()));
  const size_t row = static_cast<size_t>(some.back()) * width;
  const auto* a = static_cast<const char*>(whole.data());
  const auto* b = static_cast<const char*>(part.data());
  Shape index(some.size() - 1, 0);
  for (int64_t r = 0; r < part.size() / some.back(); ++r, b += row) {
    size_t flat = 0;
    for (size_t d = 0; d < index.size(); ++d)
      flat = flat * static_cast<size_t>(all[d]) + static_cast<size_t>(index[d]);
    if (std::memcmp(a + flat * static_cast<size_t>(all.back()) * width, b, row) != 0) return false;
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < some[d]) break;
      index[d] = 0;
    }
  }
  return true;
}

ConstantKind SizeFollower::kind_of_constant(ValueId id) {
  if (const auto at = constants_.find(id); at != constants_.end()) return at->second;
  const Value& value = graph_.value(id);
  const Tensor& whole = *value.constant;
  ConstantKind kind = is_made_here(id) || is_seen(id) ? ConstantKind::kFixed : ConstantKind::kOther;
  bool same_shape = true, box = true;
  // Random numbers of a run are those of the largest sizes at its places.
  const auto made_by = file_nodes_.find(origin(id));
  const bool random = made_by != file_nodes_.end() && made_by->second->type.starts_with("Random");
  for (const SizeProbe& probe : probes_) {
    const Value* twin = probe.twin(origin(id));
    if (twin == nullptr) continue;
    if (!twin->constant) {
      // Too large to be folded at one of the sizes.
      kind = ConstantKind::kOther;
      break;
    }
    const Tensor& part = *twin->constant;
    if (part.data() == whole.data() && part.shape() == whole.shape()) continue;
    same_shape = same_shape && part.shape() == whole.shape() && part.dtype() == whole.dtype();
    box = box && (random ? is_within(whole, part) : is_box(whole, part));
  }
  if (kind == ConstantKind::kFixed && !(same_shape && box))
    kind = box ? ConstantKind::kBox : same_shape ? ConstantKind::kNumbers : ConstantKind::kOther;
  if (kind == ConstantKind::kBox) {
    ShapeParts parts;
    for (size_t d = 0; d < value.shape.size(); ++d) {
      const auto part = seen_part(id, d);
      if (!part) kind = ConstantKind::kOther;
      parts.push_back({part.value_or(SizePart())});
    }
    if (kind == ConstantKind::kBox) set_parts(id, std::move(parts));
  }
  constants_[id] = kind;
  return kind;
}

const Node* SizeFollower::producer(ValueId id) {
  for (; listed_ < nodes_.size(); ++listed_) {
    for (const ValueId out : nodes_[listed_].outputs) producers_[out] = listed_;
  }
  const auto at = producers_.find(id);
  return at == producers_.end() ? nullptr : &nodes_[at->second];
}

bool SizeFollower::is_made_alike(const Node& node, ValueId out, const SizeProbe& probe) const {
  const auto at = file_nodes_.find(origin(out));
  const Node* in_file = at == file_nodes_.end() ? nullptr : at->second;
  const bool same_type = in_file != nullptr && in_file->type == node.type;
  const Value* twin = probe.twin(origin(out));
  if (twin == nullptr) return false;
  // A result without elements cannot be wrong.
  if (num_elements(twin->shape) == 0) return true;
  if (!probe.alike[static_cast<size_t>(origin(out))]) {
    // Operands without elements are left out of a Concat, and padding alone is no Pad.
    return same_type && (node.type == "Concat" || node.type == "Pad") &&
           std::any_of(in_file->inputs.begin(), in_file->inputs.end(), [&](ValueId in) {
             return in != kNoValue && num_elements(probe.graph.value(in).shape) == 0;
           });
  }
  // What the import computes at some sizes only is a node of the file, by the same operator, or a
  // part of what one consists of.
  if (same_type || probe.producer_of_twin(origin(out)) != nullptr) return true;
  Node there = node;
  for (ValueId& in : there.inputs) {
    const Value* operand = in == kNoValue ? nullptr : probe.twin(origin(in));
    if (operand == nullptr || !operand->constant) return false;
    in = probe.twins[static_cast<size_t>(origin(in))];
  }
  there.outputs = {probe.twins[static_cast<size_t>(origin(out))]};
  return node.outputs.size() == 1 && makes_constant(probe.graph, there);
}

// What makes a result at other sizes has to be the same node. Results for which the import made
// room at the end, for the model's outputs, have no twins.
Status SizeFollower::check_alike(const Node& node, bool varying) const {
  const InferContext context(graph_, node);
  for (const ValueId out : node.outputs) {
    if (out == kNoValue) continue;
    for (const SizeProbe& probe : probes_) {
      const bool is_at_end = static_cast<size_t>(origin(out)) >= probe.twins.size();
      if (is_at_end && (!varying || node.type == "hone.Compact")) continue;
      if (!is_made_alike(node, out, probe)) {
        return context.unsupported(
            "it becomes other operators at {}: give a range without these sizes, or one size "
            "(--shape)",
            text_of(probe.symbols));
      }
      const Node* twin = probe.producer_of_twin(origin(out));
      if (twin == nullptr) continue;
      // Memory without contents has the shape of a result.
      const bool same_kind =
          node.type == "hone.Blank" || same_attributes(twin->attributes, node.attributes);
      bool same = twin->type == node.type && twin->inputs.size() == node.inputs.size() && same_kind;
      for (size_t i = 0; same && i < node.inputs.size(); ++i) {
        const auto in = static_cast<size_t>(node.inputs[i]);
        const bool known =
            node.inputs[i] != kNoValue && in < probe.twins.size() && probe.twins[in] != kNoValue;
        same = node.has_input(i) == twin->has_input(i) &&
               (!known || probe.twins[in] == twin->inputs[i]);
      }
      if (!same) {
        return context.unsupported(
            "it is computed in another way at {}: give sizes instead of a "
            "range (--shape)",
            text_of(probe.symbols));
      }
    }
  }
  return ok_status();
}

// The safety net of all rules.
Status SizeFollower::check_parts(const Node& node) const {
  const InferContext context(graph_, node);
  for (const ValueId out : node.outputs) {
    if (out == kNoValue) continue;
    const ShapeParts parts = parts_of(out);
    for (const SizeProbe& probe : probes_) {
      const Value* twin = probe.twin(origin(out));
      if (twin == nullptr) continue;
      Shape shape;
      for (const DimParts& dim : parts) shape.push_back(extent_at(dim, probe.symbols));
      if (shape == twin->shape) continue;
      return context.unsupported(
          "its result '{}' has the shape {} at {}, which does not follow from its operands (found "
          "{}): give sizes instead of a range (--shape)",
          graph_.value(out).name, to_string(twin->shape), text_of(probe.symbols), to_string(shape));
    }
  }
  return ok_status();
}

bool SizeFollower::is_seen(ValueId id) const {
  for (size_t s = 0; s < most_.size(); ++s) {
    const bool seen = std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
      return probe.symbols[s] != most_[s] && probe.twin(origin(id)) != nullptr;
    });
    if (!seen) return false;
  }
  return true;
}

Status SizeFollower::follow(Node node) {
  full_ = false;
  if (node.loop != nullptr) return follow_loop(std::move(node));
  const Node given = node;  // the new nodes are named after it
  ExpandContext c(graph_, given, nodes_);
  bool varying = node.type == "hone.Blank";
  for (const ValueId in : node.inputs) {
    if (in == kNoValue) continue;
    const bool fixed = !graph_.value(in).constant || kind_of_constant(in) == ConstantKind::kFixed;
    varying = varying || !fixed || !graph_.value(in).forms.empty();
  }
  HONE_RETURN_IF_ERROR(check_alike(node, varying));
  bool replaced = false;
  if (varying) {
    const SizeRuleOf* rule = size_rule_of(node);
    if (rule == nullptr) {
      return c.unsupported(
          "it takes no operands whose shape varies from run to run: give sizes instead of a range "
          "(--shape)");
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.has_input(i) || (rule->parameters >> i & 1) != 0) continue;
      HONE_ASSIGN_OR_RETURN(node.inputs[i], data_at_run_time(c, node.inputs[i]));
    }
    SizeRule work{*this, c, node};
    HONE_RETURN_IF_ERROR(rule->apply(work));
    HONE_RETURN_IF_ERROR(c.status());
    replaced = work.replaced;
  }
  HONE_RETURN_IF_ERROR(check_parts(node));
  if (replaced) return ok_status();
  nodes_.push_back(std::move(node));
  return ok_status();
}

Result<ValueId> SizeFollower::data_at_run_time(ExpandContext& c, ValueId constant) {
  if (!graph_.value(constant).constant) return constant;
  const ConstantKind kind = kind_of_constant(constant);
  if (kind == ConstantKind::kFixed || kind == ConstantKind::kBox) return constant;
  if (const auto at = again_.find(constant); at != again_.end()) return at->second;
  if (kind == ConstantKind::kNumbers) {
    if (const auto numbers = numbers_at_run_time(c, constant)) {
      HONE_RETURN_IF_ERROR(c.status());
      return again_[constant] = *numbers;
    }
  }
  const auto at = file_nodes_.find(constant);
  // What is made of other operators at import is not made again.
  const bool may = at != file_nodes_.end() &&
                   (at->second->op->emit != nullptr || at->second->op->kind == Kind::kView ||
                    at->second->type == "Range" || at->second->type == "ConstantOfShape");
  if (may) return computed_again(*at->second, constant);
  HONE_ASSIGN_OR_RETURN(const auto captured, captured_at_run_time(constant));
  if (captured) return again_[constant] = *captured;
  return c.unsupported(
      "its operand '{}' has other elements at other sizes, in a way that is not followed: give "
      "sizes instead of a range (--shape)",
      graph_.value(constant).name);
}

Result<ValueId> SizeFollower::computed_again(const Node& node, ValueId constant) {
  const Value& value = graph_.value(constant);
  const ValueId again = graph_.add_value(value.name + ".at_run_time", value.dtype, value.shape);
  again_[constant] = again;
  origins_[again] = constant;
  Node made = node;
  made.outputs = {again};
  HONE_RETURN_IF_ERROR(follow(std::move(made)));
  return again;
}

Status SizeFollower::follow_outputs() {
  Node source;
  source.name = "hone.sizes";
  source.type = "Identity";
  ExpandContext c(graph_, source, nodes_);
  for (ValueId& id : graph_.outputs) {
    HONE_ASSIGN_OR_RETURN(id, data_at_run_time(c, id));
    graph_.varying.outputs.push_back(graph_.value(id).forms);
  }
  return ok_status();
}

Status SizeFollower::run(const std::map<std::string, std::vector<SizeForm>>& inputs) {
  known_ = graph_.values.size();
  Varying& varying = graph_.varying;
  for (const ValueId id : graph_.inputs) {
    const auto at = inputs.find(graph_.value(id).name);
    ShapeParts parts;
    for (size_t d = 0; at != inputs.end() && d < at->second.size(); ++d) {
      const SizeForm& form = at->second[d];
      int index = kNoForm;
      if (!form.terms.empty()) {
        const auto same = [&](const SizeForm& other) { return same_form(form, other); };
        const auto found = std::find_if(varying.forms.begin(), varying.forms.end(), same);
        index = static_cast<int>(found - varying.forms.begin());
        if (found == varying.forms.end()) varying.forms.push_back(form);
      }
      parts.push_back({{index, graph_.value(id).shape[d]}});
    }
    set_parts(id, parts);
    varying.inputs.push_back(graph_.value(id).forms);
  }
  if (varying.forms.size() > static_cast<size_t>(kMaxForms))
    return error(Code::kUnsupported, "{}: {} extents that vary, at most {} are supported",
                 graph_.file, varying.forms.size(), kMaxForms);
  varying.sizes = graph_.add_value("hone.sizes", DType::kI64, {kMaxForms});
  graph_.inputs.push_back(varying.sizes);
  HONE_RETURN_IF_ERROR(follow_nodes(std::move(graph_.nodes)));
  HONE_RETURN_IF_ERROR(follow_outputs());
  finish_nodes();
  return ok_status();
}

namespace {

// A refusal says what to do about it.
Status with_way_out(const Status& status) {
  const std::string& message = status.message();
  const bool says = message.find("(--shape") != std::string::npos;
  if (status.ok() || status.code() != Code::kUnsupported || says) return status;
  return Status(status.code(), message + ": give sizes instead of a range (--shape)");
}

}  // namespace

Status SizeFollower::follow_nodes(std::vector<Node> nodes) {
  for (Node& node : nodes) {
    const std::string name = name_and_type(node);
    const AllocatesFor purpose(name);
    const Status status = follow(std::move(node));
    if (!status.ok() && full_) {
      return error(Code::kUnsupported,
                   "{}: {}: more than {} extents that vary in different ways: give fewer ranges "
                   "(--shape)",
                   graph_.file, name, kMaxForms);
    }
    HONE_RETURN_IF_ERROR(with_way_out(status));
  }
  return ok_status();
}

void SizeFollower::finish_nodes() {
  NodeNames names;
  for (Node& node : nodes_) {
    node.name = names.take(node.name, NodeNames::Suffix::kSigns);
    const auto known = node.outputs.empty() ? run_places_.end() : run_places_.find(node.outputs[0]);
    if (known != run_places_.end()) node.run_places = known->second;
    // Boxes are read of scores above a threshold, which those beyond the parts have not.
    const auto defined =
        node.type == "hone.SelectBoxes" ? defined_.find(node.inputs[0]) : defined_.end();
    if (defined != defined_.end()) node.run_parts = defined->second;
  }
  graph_.nodes = std::move(nodes_);
}

std::optional<Graph> widened_by_shapes(const Graph& raw, const InputSizes& sizes) {
  const std::optional<Graph> shapes = with_shapes_only(raw);
  if (!shapes) return std::nullopt;
  Graph largest = *shapes, file = raw;
  std::vector<size_t> ends;
  if (!infer_shapes(largest, ends).ok()) return std::nullopt;
  const Result<std::vector<SizeProbe>> probes = make_probes(*shapes, ends, sizes, ProbeSizes::kFew);
  if (!probes.ok() || !widen_by_shapes(file, largest, *probes)) return std::nullopt;
  return file;
}

Status follow_sizes(Graph& graph, const Graph& raw, const std::vector<size_t>& ends,
                    const InputSizes& sizes) {
  Graph file = raw;
  std::vector<size_t> file_ends = ends;
  std::vector<SizeProbe> probes;
  // A few sizes mostly tell which nodes have to be widened; all sizes tell whether that is so. No
  // node is widened twice, so this ends.
  bool few = has_sides(sizes.inputs), done = false;
  while (!done) {
    const ProbeSizes which = few ? ProbeSizes::kFew : ProbeSizes::kAll;
    HONE_ASSIGN_OR_RETURN(probes, make_probes(file, file_ends, sizes, which));
    const bool changed = widen_nodes(file, graph, probes);
    if (changed) {
      graph = file;
      file_ends.clear();
      HONE_RETURN_IF_ERROR(infer_shapes(graph, file_ends));
    }
    done = !changed && !few;
    few = false;
  }
  // Only nodes that are needed have to be followed, but what they are needed for may be constants
  // that were computed from others.
  std::vector<std::optional<Tensor>> constants;
  for (const Value& value : graph.values) constants.push_back(value.constant);
  remove_dead_nodes(graph);
  for (size_t id = 0; id < constants.size(); ++id) graph.values[id].constant = constants[id];
  HONE_RETURN_IF_ERROR(SizeFollower(graph, file, probes, sizes.symbols).run(sizes.inputs));
  for (const Node& node : graph.nodes) {
    if (!is_widening(node)) continue;
    return error(Code::kUnsupported,
                 "{}: node '{}' has no rule for results whose shapes vary in one part of the model "
                 "only: expected one size for each input (--shape)",
                 graph.file, node.name);
  }
  return ok_status();
}

}  // namespace hone::graph
