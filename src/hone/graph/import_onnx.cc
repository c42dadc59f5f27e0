#include "hone/graph/import_onnx.h"

#include <algorithm>
#include <set>

#include "hone/graph/follow_sizes.h"
#include "hone/graph/import_ranges.h"
#include "hone/graph/infer.h"
#include "hone/graph/node_names.h"
#include "hone/graph/onnx_file.h"
#include "hone/graph/onnx_input.h"
#include "hone/graph/onnx_model.h"
#include "hone/graph/onnx_node.h"
#include "hone/graph/onnx_subgraph.h"
#include "hone/graph/op.h"
#include "hone/graph/open_dims.h"
#include "hone/graph/open_shapes.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/size_ties.h"
#include "hone/graph/some_names.h"
#include "hone/graph/unread_labels.h"
#include "hone/graph/unsupported_list.h"
#include "hone/graph/widen_nodes.h"
#include "hone/open_model.h"

namespace hone::graph {
namespace {

// An input of more real numbers is data, not a parameter.
constexpr int64_t kMostBoundNumbers = 16;

class Importer {
 public:
  Importer(OnnxModel& model, const ImportOptions& options) : model_(model), options_(options) {
    graph_.file = model.file();
    graph_.opset = model.opset();
    graph_.max_turns = options_.max_turns;
    graph_.repeats_steps = options_.repeats_steps;
  }

  Result<Graph> run(ImportPart part) {
    Result<Graph> graph = read(part);
    if (graph.ok()) return graph;
    // Unsupported operators are reported first, also if something else is wrong.
    const Status unsupported = unsupported_.all(graph_.file);
    const Status& status = unsupported.ok() ? graph.status() : unsupported;
    return Status(status.code(), printable(status.message()));
  }
  [[nodiscard]] RangeFailure failure() const {
    return {at_sizes_,       is_valid_at_largest_, open_.batches,
            open_.sequences, open_.side_divisor,   open_.may_batch_states,
            open_.symbols,   open_.inputs,         ties_,
            advice_};
  }

 private:
  Result<Graph> read(ImportPart part) {
    const onnx::GraphProto& proto = model_.graph();
    graph_.name = proto.name();
    HONE_RETURN_IF_ERROR(unsupported_.add(check_operators(proto, graph_.opset, graph_.file)));
    constants_ = constant_initializers(proto, options_);
    HONE_RETURN_IF_ERROR(decide_shapes(proto));
    HONE_RETURN_IF_ERROR(read_initializers(proto));
    HONE_RETURN_IF_ERROR(read_inputs(proto));
    HONE_RETURN_IF_ERROR(read_nodes(proto));
    HONE_RETURN_IF_ERROR(unsupported_.all(graph_.file));
    HONE_RETURN_IF_ERROR(connect_nodes(proto));
    HONE_RETURN_IF_ERROR(read_outputs(proto));
    HONE_RETURN_IF_ERROR(sort_nodes(graph_));
    leave_out_unread_labels(graph_);
    HONE_RETURN_IF_ERROR(infer_sizes(part));
    if (part == ImportPart::kLargest) return std::move(graph_);
    remove_dead_nodes(graph_);
    HONE_RETURN_IF_ERROR(verify(graph_));
    return std::move(graph_);
  }

  // Infers all shapes, and what of them varies.
  Status infer_sizes(ImportPart part) {
    at_sizes_ = !open_.symbols.empty();
    const InputSizes sizes = {open_.symbols, open_.inputs, batch_};
    if (part == ImportPart::kLargest) {
      if (std::optional<Graph> shapes = with_shapes_only(graph_)) graph_ = *std::move(shapes);
      return infer_shapes(graph_);
    }
    if (at_sizes_ && part == ImportPart::kAllIfSmallest)
      HONE_RETURN_IF_ERROR(infer_smallest(graph_, sizes));
    Graph raw = at_sizes_ ? graph_ : Graph();
    std::vector<size_t> ends;
    if (!at_sizes_ || !infer_widened(sizes, raw, ends)) {
      const Sources sources = sources_of_values(graph_);
      const Status status = infer_shapes(graph_, ends);
      if (!status.ok()) return at_largest(explained(status, sources));
    }
    is_valid_at_largest_ = true;
    if (at_sizes_) {
      const Status status = follow_sizes(graph_, raw, ends, sizes);
      // Nobody reads the errors of other parts, nor how to mend them.
      if (!status.ok() && part == ImportPart::kAll) return with_ties(status, raw, sizes);
      HONE_RETURN_IF_ERROR(status);
    }
    at_sizes_ = false;
    return ok_status();
  }

  // Finds which symbols have to be equal, and says so, where the model is not valid at some sizes.
  Status with_ties(const Status& status, const Graph& raw, const InputSizes& sizes) {
    const std::string& message = status.message();
    if (!message.ends_with(kValidRanges)) return status;
    ties_ = symbols_to_tie(raw, sizes, open_.unnamed);
    advice_ = fmt::format("{} ({})", kValidRanges, tie_options(ties_));
    return {status.code(), message.substr(0, message.size() - kValidRanges.size()) + advice_};
  }

  // Returns whether the shapes of the graph were inferred with widened nodes, which `raw` has then.
  bool infer_widened(const InputSizes& sizes, Graph& raw, std::vector<size_t>& ends) {
    std::optional<Graph> widened = widened_by_shapes(raw, sizes);
    if (!widened) return false;
    Graph graph = *widened;
    if (!infer_shapes(graph, ends).ok()) {
      ends.clear();
      return false;
    }
    graph_ = std::move(graph);
    raw = *std::move(widened);
    return true;
  }

  // Makes definite which inputs vary; options_ then has the largest shapes.
  Status decide_shapes(const onnx::GraphProto& proto) {
    if (options_.taken != nullptr) options_.taken->clear();
    if (options_.ranges.empty() && !options_.open_ranges) return ok_status();
    HONE_ASSIGN_OR_RETURN(open_, open_shapes(proto, options_, graph_.file));
    options_.shapes = open_.shapes;
    if (options_.taken != nullptr) *options_.taken = open_.taken;
    return ok_status();
  }

  [[nodiscard]] TensorSource source() { return model_.source(options_.linked_data); }

  template <typename... Args>
  [[nodiscard]] Status fail(fmt::format_string<Args...> format, Args&&... args) const {
    return invalid("{}: {}", graph_.file, fmt::format(format, std::forward<Args>(args)...));
  }
  // Returns whether an input has one element, so that a number may be bound to it.
  [[nodiscard]] bool is_number(const std::string& input) const {
    return std::any_of(graph_.inputs.begin(), graph_.inputs.end(), [&](ValueId id) {
      return graph_.value(id).name == input && num_elements(graph_.value(id).shape) == 1;
    });
  }

  // Adds the sizes that shapes were inferred at, if there are ranges.
  [[nodiscard]] Status at_largest(const Status& status) {
    if (open_.symbols.empty()) return status;
    std::string sizes, smaller;
    for (const SizeSymbol& symbol : open_.symbols) {
      sizes += fmt::format("{}{}={}", sizes.empty() ? "" : ", ", symbol.name, symbol.max);
      SizeSymbol half = symbol;
      half.max = std::max(symbol.min, symbol.max / 2);
      if (smaller.empty() && symbol.max > symbol.min)
        smaller = range_option(half, open_.symbols, open_.inputs);
    }
    advice_ = "give smaller ranges if the model is not valid there, as " + smaller;
    return {status.code(), fmt::format("{}; this is at the largest sizes, {}: {}", status.message(),
                                       sizes, advice_)};
  }

  // Adds which inputs would have to be bound, where that is what was wrong.
  [[nodiscard]] Status explained(const Status& status, const Sources& sources) const {
    const std::vector<std::string> names = inputs_to_bind(graph_, sources);
    if (names.empty()) return status;
    if (options_.unbound != nullptr) *options_.unbound = names;
    // Images and the like differ from run to run: nobody makes them constants.
    const bool may_bind = std::all_of(graph_.inputs.begin(), graph_.inputs.end(), [&](ValueId id) {
      const Value& value = graph_.value(id);
      return std::find(names.begin(), names.end(), value.name) == names.end() ||
             !is_float(value.dtype) || num_elements(value.shape) <= kMostBoundNumbers;
    });
    if (!may_bind) {
      return {
          status.code(),
          fmt::format("{}; it depends on the data of the {} {}, which differ from run to run",
                      status.message(), names.size() == 1 ? "input" : "inputs", some_names(names))};
    }
    std::string text = names.size() == 1 ? "the input" : "the inputs", options;
    for (size_t i = 0; i < names.size(); ++i) {
      text += fmt::format("{} '{}'", i > 0 ? "," : "", names[i]);
      options +=
          fmt::format(" --bind {}={}", names[i], is_number(names[i]) ? "NUMBER" : "FILE.npy");
    }
    return {status.code(),
            fmt::format("{}; it comes from {}: bind {} (ModelOptions::bind,{})", status.message(),
                        text, names.size() == 1 ? "it" : "them", options)};
  }

  Status define(const std::string& name, ValueId id, const char* what) {
    if (name.empty()) return fail("{} without a name", what);
    if (name != printable(name)) return fail("{} '{}': a name with control characters", what, name);
    if (!ids_.emplace(name, id).second)
      return fail("{} '{}': another value has this name", what, name);
    return ok_status();
  }

  Status read_initializers(const onnx::GraphProto& proto) {
    for (int i = 0; i < proto.initializer_size(); ++i) {
      const std::string& name = proto.initializer(i).name();
      if (!constants_.contains(name)) continue;
      Result<Tensor> data = model_.initializer(i, options_.linked_data);
      HONE_RETURN_IF_ERROR(unsupported_.add(data.status()));
      if (!data.ok()) continue;
      graph_.weight_bytes += data->bytes();
      HONE_RETURN_IF_ERROR(
          define(name, graph_.add_constant(name, std::move(data).value()), "initializer"));
    }
    return ok_status();
  }

  Status read_inputs(const onnx::GraphProto& proto) {
    HONE_RETURN_IF_ERROR(check_given_names(proto, constants_, options_, graph_.file));
    std::vector<OpenInput> open;
    for (const auto& input : proto.input()) {
      const auto it = ids_.find(input.name());
      // An optional input of which nothing is said is its default. Before IR version 4 every
      // initializer is declared as an input.
      if (it != ids_.end() && graph_.value(it->second).constant) continue;
      const Result<DeclaredInput> read = declared_input(input, options_, graph_.file);
      HONE_RETURN_IF_ERROR(unsupported_.add(read.status()));
      if (!read.ok()) continue;
      const DeclaredInput& declared = *read;
      if (declared.open) {
        const std::string example = undecided_input(read_file_input(input), {}).shape;
        open.push_back({input.name(), *declared.open, example});
        continue;
      }
      // With a range, the batch may be the model's here and another one at other sizes.
      const auto forms = open_.inputs.find(input.name());
      const bool varies =
          forms != open_.inputs.end() && !forms->second.empty() && !forms->second[0].terms.empty();
      if (declared.batch >= 0 && (declared.shape[0] != declared.batch || varies)) {
        graph_.rebatch = {declared.batch, declared.shape[0]};
        batch_ = varies ? std::optional(forms->second[0]) : std::nullopt;
      }
      const ValueId id = graph_.add_value(input.name(), declared.dtype, declared.shape);
      HONE_RETURN_IF_ERROR(define(input.name(), id, "input"));
      Value& value = graph_.value(id);
      if (declared.bound) value.constant = *declared.bound;
      if (num_elements(value.shape) == 0) value.constant = Tensor(value.dtype, value.shape);
      if (!declared.bound) graph_.inputs.push_back(id);
    }
    return open_inputs(open, graph_.file);
  }

  Status read_nodes(const onnx::GraphProto& proto) {
    NodeNames names;
    for (const onnx::NodeProto& from : proto.node()) {
      Node node;
      const NamedOperator named = find_operator(from, graph_.opset);
      node.type = named.type;
      node.op = named.op;
      node.opset = named.opset;
      node.name = names.take(node_name(from));
      for (const std::string& output : from.output()) {
        node.outputs.push_back(kNoValue);
        if (output.empty()) continue;
        node.outputs.back() = graph_.add_value(output, DType::kF32, {});
        HONE_RETURN_IF_ERROR(define(output, node.outputs.back(), "result"));
      }
      while (!node.outputs.empty() && node.outputs.back() == kNoValue) node.outputs.pop_back();
      if (node.outputs.empty()) return fail("node '{}' ({}) has no result", node.name, node.type);
      HONE_RETURN_IF_ERROR(unsupported_.add(read_attributes(from, source(), node)));
      graph_.nodes.push_back(std::move(node));
    }
    return ok_status();
  }

  Status connect_nodes(const onnx::GraphProto& proto) {
    for (int i = 0; i < proto.node_size(); ++i) {
      Node& node = graph_.nodes[static_cast<size_t>(i)];
      for (const std::string& input : proto.node(i).input()) {
        const auto it = ids_.find(input);
        if (!input.empty() && it == ids_.end()) {
          return fail("node '{}' ({}) reads '{}', which nothing defines", node.name, node.type,
                      input);
        }
        node.inputs.push_back(input.empty() ? kNoValue : it->second);
      }
      while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
      const OuterValue outer = [this](const std::string& name) -> std::optional<ValueId> {
        const auto it = ids_.find(name);
        return it == ids_.end() ? std::nullopt : std::optional(it->second);
      };
      HONE_RETURN_IF_ERROR(read_subgraphs(proto.node(i), source(), graph_.opset, outer, node));
    }
    return ok_status();
  }

  Status read_outputs(const onnx::GraphProto& proto) {
    std::set<std::string> names;
    for (const auto& output : proto.output()) {
      const auto it = ids_.find(output.name());
      if (it == ids_.end()) return fail("the output '{}' is computed by no node", output.name());
      if (!names.insert(output.name()).second)
        return fail("the output '{}' is declared twice", output.name());
      graph_.outputs.push_back(it->second);
      graph_.output_names.push_back(output.name());
    }
    if (graph_.outputs.empty()) return fail("the graph has no outputs");
    return ok_status();
  }

  OnnxModel& model_;
  ImportOptions options_;
  std::set<std::string> constants_;  // constant_initializers()
  OpenShapes open_;
  bool at_sizes_ = false;  // what comes next may be valid at other sizes only
  bool is_valid_at_largest_ = false;
  std::optional<SizeForm> batch_;  // of Graph::rebatch, if it varies
  std::vector<TiedSymbols> ties_;
  std::string advice_;  // RangeFailure
  Graph graph_;
  std::map<std::string, ValueId> ids_;
  UnsupportedList unsupported_;
};

// Imports a model at the first ranges at which it is valid.
Result<Graph> import_model(OnnxModel& model, const ImportOptions& options) {
  const ReadModel read = [&](const ImportOptions& tried, ImportPart part,
                             RangeFailure& failure) -> Result<Graph> {
    Importer importer(model, tried);
    Result<Graph> graph = importer.run(part);
    failure = importer.failure();
    return graph;
  };
  Result<Graph> graph = import_ranges(options, model.file(), read);
  if (graph.ok() && options.files != nullptr)
    options.files->insert(model.files().begin(), model.files().end());
  return graph;
}

Result<std::unique_ptr<OnnxModel>> open_file(const std::string& path,
                                             const ImportOptions& options) {
  Result<std::unique_ptr<OnnxModel>> model = OnnxModel::open(path);
  if (model.ok() && options.files != nullptr) options.files->insert(path);
  return model;
}

}  // namespace

Result<Graph> import_onnx_bytes(const void* data, size_t size, const std::string& file,
                                const std::string& folder, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto model, OnnxModel::open_bytes(data, size, file, folder));
  return import_model(*model, options);
}

Result<InputNames> input_names(const std::string& path) {
  onnx::ModelProto model;
  HONE_RETURN_IF_ERROR(parse_onnx_file(path, model));
  std::set<std::string> initializers;
  for (const auto& tensor : model.graph().initializer()) initializers.insert(tensor.name());
  InputNames names;
  for (const auto& input : model.graph().input()) {
    const bool has_default = initializers.contains(input.name());
    (has_default ? names.with_default : names.required).push_back(input.name());
  }
  return names;
}

Result<Graph> import_onnx(const std::string& path, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto model, open_file(path, options));
  return import_model(*model, options);
}

Result<Graph> import_onnx_binding(const std::string& path, ImportOptions options,
                                  const std::map<std::string, Tensor>& available) {
  HONE_ASSIGN_OR_RETURN(const auto model, open_file(path, options));
  std::vector<std::string> unbound;
  options.unbound = &unbound;
  while (true) {
    unbound.clear();
    Result<Graph> graph = import_model(*model, options);
    if (graph.ok() || unbound.empty()) return graph;
    for (const std::string& name : unbound) {
      const auto it = available.find(name);
      if (it == available.end() || !options.bind.insert(*it).second) return graph;
      options.shapes.erase(name);
    }
  }
}

}  // namespace hone::graph
