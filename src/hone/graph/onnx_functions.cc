#include "hone/graph/onnx_functions.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "hone/graph/node_names.h"
#include "hone/graph/onnx_node.h"
#include "hone/graph/op.h"

namespace hone::graph {
namespace {

using google::protobuf::Message;
using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using GivenAttributes = std::map<std::string, onnx::AttributeProto>;

constexpr int kMaxNodes = 100'000;  // of all calls together
constexpr size_t kMaxDepth = 200;   // of calls within calls

// Numbers of fields that Debian 12's schema does not know (ONNX IR versions 9 and 10).
constexpr int kNodeOverload = 8, kFunctionOverload = 13, kFunctionDefaults = 11;

// The bytes of a field of texts or messages, whether the schema knows it or not.
std::vector<std::string> field_bytes(const Message& message, int number) {
  std::vector<std::string> found;
  const auto* reflection = message.GetReflection();
  const auto& unknown = reflection->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() == number &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      found.push_back(field.length_delimited());
  }
  const auto* field = message.GetDescriptor()->FindFieldByNumber(number);
  if (field == nullptr) return found;
  if (!field->is_repeated()) {
    found.push_back(reflection->GetString(message, field));
    return found;
  }
  for (int i = 0; i < reflection->FieldSize(message, field); ++i)
    found.push_back(reflection->GetRepeatedMessage(message, field, i).SerializeAsString());
  return found;
}

std::string overload_of(const Message& message, int number) {
  const std::vector<std::string> found = field_bytes(message, number);
  return found.empty() ? "" : found.back();
}

using FunctionId = std::tuple<std::string, std::string, std::string>;  // domain, name, overload

FunctionId identity(const std::string& domain, const std::string& name,
                    const std::string& overload) {
  return {is_default_domain(domain) ? "" : domain, name, overload};
}

std::string text_of(const FunctionId& id) {
  const auto& [domain, name, overload] = id;
  return printable((domain.empty() ? "" : domain + ".") + name +
                   (overload.empty() ? "" : ":" + overload));
}

struct Function {
  const onnx::FunctionProto* proto = nullptr;
  int64_t opset = 0;  // 0 if it declares none
  GivenAttributes defaults;
};

// Names of a function's body, or of a graph inside, with the names that stand for them in the
// model.
struct Scope {
  std::map<std::string, std::string> names;
  const Scope* around = nullptr;
  [[nodiscard]] const std::string* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->around) {
      if (const auto it = scope->names.find(name); it != scope->names.end()) return &it->second;
    }
    return nullptr;
  }
};

// One call: what its body needs for being copied.
struct Call {
  const Function* function = nullptr;
  std::string name;   // of the node that calls
  std::string where;  // for messages
  GivenAttributes attributes;
};

class Inliner {
 public:
  Inliner(onnx::ModelProto& model, const std::string& file) : model_(model), file_(file) {}

  Status run() {
    if (model_.functions_size() == 0) return ok_status();
    for (const auto& entry : model_.opset_import()) {
      if (is_default_domain(entry.domain())) opset_ = entry.version();
    }
    for (const onnx::FunctionProto& proto : model_.functions())
      HONE_RETURN_IF_ERROR(add_function(proto));
    collect_names(model_.graph());
    HONE_RETURN_IF_ERROR(expand_calls(*model_.mutable_graph()));
    model_.clear_functions();
    return ok_status();
  }

 private:
  Status add_function(const onnx::FunctionProto& proto) {
    const FunctionId id =
        identity(proto.domain(), proto.name(), overload_of(proto, kFunctionOverload));
    Function function = {.proto = &proto};
    for (const auto& entry : proto.opset_import()) {
      if (is_default_domain(entry.domain())) function.opset = entry.version();
    }
    for (const std::string& bytes : field_bytes(proto, kFunctionDefaults)) {
      onnx::AttributeProto attribute;
      if (!attribute.ParseFromString(bytes))
        return invalid("{}: function '{}': a default that is no attribute", file_, text_of(id));
      function.defaults[attribute.name()] = attribute;
    }
    if (!functions_.emplace(id, std::move(function)).second)
      return invalid("{}: two functions are '{}'", file_, text_of(id));
    return ok_status();
  }

  void collect_names(const onnx::GraphProto& graph) {
    for (const auto& input : graph.input()) reserve(input.name());
    for (const auto& tensor : graph.initializer()) reserve(tensor.name());
    for (const onnx::NodeProto& node : graph.node()) {
      for (const std::string& output : node.output()) reserve(output);
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g()) collect_names(attribute.g());
      }
    }
  }

  // A name that is taken already stays so.
  void reserve(const std::string& name) { static_cast<void>(names_.take(name)); }

  Status expand_calls(onnx::GraphProto& graph) {
    Nodes made;
    for (onnx::NodeProto& node : *graph.mutable_node()) HONE_RETURN_IF_ERROR(append(node, made));
    graph.mutable_node()->Swap(&made);
    return ok_status();
  }

  // Moves the node, or what it calls, to the end of `made`.
  Status append(onnx::NodeProto& node, Nodes& made) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) HONE_RETURN_IF_ERROR(expand_calls(*attribute.mutable_g()));
    }
    const auto it =
        functions_.find(identity(node.domain(), node.op_type(), overload_of(node, kNodeOverload)));
    if (it != functions_.end()) return append_body(it->first, it->second, node, made);
    made.Add()->Swap(&node);
    return ok_status();
  }

  Status append_body(const FunctionId& id, const Function& function, const onnx::NodeProto& node,
                     Nodes& made) {
    Call call = {.function = &function, .name = node_name(node)};
    call.where = fmt::format("{}: node '{}' ({}): ", file_, call.name, text_of(id));
    HONE_RETURN_IF_ERROR(enter(id, function, call));
    call.attributes = function.defaults;
    std::set<std::string> given;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (!given.insert(attribute.name()).second)
        return invalid("{}the attribute '{}' is given twice", call.where, attribute.name());
      call.attributes[attribute.name()] = attribute;
    }
    Scope scope;
    HONE_RETURN_IF_ERROR(bind_operands(call, node, scope));
    for (const onnx::NodeProto& from : function.proto->node()) {
      onnx::NodeProto copy = from;
      HONE_RETURN_IF_ERROR(rename(copy, scope, call));
      copied_bytes_ += static_cast<int64_t>(copy.ByteSizeLong());
      if (++copied_nodes_ > kMaxNodes || copied_bytes_ > kMaxMadeBytes)
        return error(Code::kUnsupported,
                     "{}more than {} nodes, or {} MiB, when all functions are put in", call.where,
                     kMaxNodes, kMaxMadeBytes >> 20);
      HONE_RETURN_IF_ERROR(append(copy, made));
    }
    active_.pop_back();
    return pass_results(call, node, scope, made);
  }

  Status enter(const FunctionId& id, const Function& function, const Call& call) {
    if (std::find(active_.begin(), active_.end(), id) != active_.end()) {
      std::string path;
      for (const FunctionId& active : active_) path += text_of(active) + " -> ";
      return invalid("{}a function that calls itself ({}{}); ONNX allows no recursion", call.where,
                     path, text_of(id));
    }
    if (active_.size() >= kMaxDepth)
      return error(Code::kUnsupported, "{}functions that call each other more than {} deep",
                   call.where, kMaxDepth);
    if (function.opset != 0 && (function.opset < kMinOpset || function.opset > kMaxOpset))
      return error(Code::kUnsupported, "{}opset {}, expected {} to {}", call.where, function.opset,
                   kMinOpset, kMaxOpset);
    active_.push_back(id);
    return ok_status();
  }

  // Gives the function's inputs, results and inner values their names in the model.
  Status bind_operands(const Call& call, const onnx::NodeProto& node, Scope& scope) {
    const onnx::FunctionProto& proto = *call.function->proto;
    if (node.input_size() > proto.input_size() || node.output_size() > proto.output_size()) {
      return invalid("{}{} operands and {} results, the function has {} and {}", call.where,
                     node.input_size(), node.output_size(), proto.input_size(),
                     proto.output_size());
    }
    for (int i = 0; i < proto.input_size(); ++i) {
      const std::string actual = i < node.input_size() ? node.input(i) : "";
      if (!scope.names.emplace(proto.input(i), actual).second)
        return invalid("{}two inputs of the function are named '{}'", call.where, proto.input(i));
    }
    for (int i = 0; i < node.output_size(); ++i) {
      if (!node.output(i).empty()) scope.names.emplace(proto.output(i), node.output(i));
    }
    std::set<std::string> defined(proto.input().begin(), proto.input().end());
    HONE_RETURN_IF_ERROR(define_results(proto.node(), call, scope, defined));
    for (int i = 0; i < node.output_size(); ++i) {
      if (!node.output(i).empty() && defined.count(proto.output(i)) == 0)
        return invalid("{}the function's output '{}' is computed by no node", call.where,
                       proto.output(i));
    }
    return ok_status();
  }

  // Names the results of the nodes, in whatever order they are.
  Status define_results(const Nodes& nodes, const Call& call, Scope& scope,
                        std::set<std::string>& defined) {
    for (const onnx::NodeProto& node : nodes) {
      for (const std::string& output : node.output()) {
        if (output.empty()) continue;
        if (!defined.insert(output).second)
          return invalid("{}two values of the function are named '{}'", call.where, output);
        if (scope.names.count(output) == 0) scope.names.emplace(output, fresh(call, output));
      }
    }
    return ok_status();
  }

  std::string fresh(const Call& call, const std::string& name) {
    return names_.take(call.name + "/" + name);
  }

  Status rename(onnx::NodeProto& node, const Scope& scope, const Call& call) {
    const auto renamed = [&](std::string& name) {
      if (name.empty()) return ok_status();
      const std::string* found = scope.find(name);
      if (found == nullptr)
        return invalid("{}its node '{}' ({}) reads '{}', which nothing in the function defines",
                       call.where, node_name(node), node.op_type(), name);
      name = *found;
      return ok_status();
    };
    const std::string name = call.name + "/" + node_name(node);
    for (std::string& input : *node.mutable_input()) HONE_RETURN_IF_ERROR(renamed(input));
    HONE_RETURN_IF_ERROR(rename_attributes(node, scope, call));
    for (std::string& output : *node.mutable_output()) HONE_RETURN_IF_ERROR(renamed(output));
    node.set_name(name);
    if (is_default_domain(node.domain())) {
      const int64_t own = call.function->opset == 0 ? opset_ : call.function->opset;
      set_node_opset(node, own == opset_ ? 0 : static_cast<int>(own));
    }
    return ok_status();
  }

  // Puts in the attributes that the call hands on. One that it does not give is left out, so the
  // operator's own default holds.
  Status rename_attributes(onnx::NodeProto& node, const Scope& scope, const Call& call) {
    auto* attributes = node.mutable_attribute();
    for (int i = 0; i < attributes->size();) {
      onnx::AttributeProto& attribute = *attributes->Mutable(i);
      if (attribute.ref_attr_name().empty()) {
        if (attribute.has_g()) HONE_RETURN_IF_ERROR(rename(*attribute.mutable_g(), scope, call));
        ++i;
        continue;
      }
      const auto it = call.attributes.find(attribute.ref_attr_name());
      if (it == call.attributes.end()) {
        attributes->DeleteSubrange(i, 1);
        continue;
      }
      if (attribute.type() != onnx::AttributeProto::UNDEFINED &&
          attribute.type() != it->second.type()) {
        return invalid("{}the attribute '{}' has type {}, its node '{}' expects {}", call.where,
                       it->first, onnx::AttributeProto::AttributeType_Name(it->second.type()),
                       node_name(node), onnx::AttributeProto::AttributeType_Name(attribute.type()));
      }
      const std::string name = attribute.name();
      attribute = it->second;
      attribute.set_name(name);
      ++i;
    }
    return ok_status();
  }

  // A graph inside of the function: its own values get new names, too.
  Status rename(onnx::GraphProto& graph, const Scope& around, const Call& call) {
    Scope scope = {.around = &around};
    std::set<std::string> defined;
    const auto define = [&](std::string& name) {
      defined.insert(name);
      name = scope.names.emplace(name, fresh(call, name)).first->second;
    };
    for (auto& tensor : *graph.mutable_initializer()) define(*tensor.mutable_name());
    for (auto& input : *graph.mutable_input()) {
      if (!input.name().empty()) define(*input.mutable_name());
    }
    HONE_RETURN_IF_ERROR(define_results(graph.node(), call, scope, defined));
    for (onnx::NodeProto& node : *graph.mutable_node())
      HONE_RETURN_IF_ERROR(rename(node, scope, call));
    for (auto& output : *graph.mutable_output()) {
      const std::string* found = scope.find(output.name());
      if (found == nullptr)
        return invalid("{}the output '{}' of a graph inside is computed by no node", call.where,
                       output.name());
      output.set_name(*found);
    }
    return ok_status();
  }

  // Hands out results that are the function's inputs, or another of its results.
  Status pass_results(const Call& call, const onnx::NodeProto& node, const Scope& scope,
                      Nodes& made) {
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string& formal = call.function->proto->output(i);
      const std::string& named = scope.names.find(formal)->second;
      if (node.output(i).empty() || named == node.output(i)) continue;
      if (named.empty())
        return invalid("{}the result '{}' is an input that is not given", call.where, formal);
      onnx::NodeProto same;
      same.set_op_type("Identity");
      same.set_name(call.name + "/" + formal);
      same.add_input(named);
      same.add_output(node.output(i));
      made.Add()->Swap(&same);
    }
    return ok_status();
  }

  onnx::ModelProto& model_;
  const std::string& file_;
  int64_t opset_ = 0;
  std::map<FunctionId, Function> functions_;
  std::vector<FunctionId> active_;  // the calls that are being put in
  NodeNames names_;                 // of all values
  int copied_nodes_ = 0;
  int64_t copied_bytes_ = 0;
};

}  // namespace

Status inline_functions(onnx::ModelProto& model, const std::string& file) {
  return Inliner(model, file).run();
}

}  // namespace hone::graph
