#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>

#include "hone/graph/op.h"
#include "hone/tensor/small_types.h"

#include "model_bytes.h"

namespace hone::fuzz {
namespace {

using Names = std::vector<std::string>;

constexpr int kSmallTypes[] = {17, 18, 19, 20, 21, 22, 23, 25, 26};  // float8, int4, float4, int2
constexpr int64_t kWidth = 4;

void set_integer(onnx::NodeProto& node, const char* name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void set_type(onnx::ValueInfoProto& value, const Names& shape) {
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (const std::string& extent : shape) {
    auto& dim = *type.mutable_shape()->add_dim();
    if (extent.find_first_not_of("0123456789") == std::string::npos && !extent.empty())
      dim.set_dim_value(std::stoll(extent));
    else if (!extent.empty())
      dim.set_dim_param(extent);
  }
}

// The values in reach where a node is added: a graph, the body of a function or of a node.
struct Scope {
  google::protobuf::RepeatedPtrField<onnx::NodeProto>* nodes = nullptr;
  Names tensors, sequences, optionals;
};

class KindsMaker {
 public:
  explicit KindsMaker(Rng& rng) : rng_(rng) {
    model_.set_ir_version(10);
    opset_ = rng_.between(17, 25);
    model_.add_opset_import()->set_version(opset_);
    for (const char* domain : {"fuzz", "com.microsoft"}) {
      onnx::OperatorSetIdProto& own = *model_.add_opset_import();
      own.set_domain(domain);
      own.set_version(1);
    }
  }

  onnx::ModelProto run() {
    onnx::GraphProto& graph = *model_.mutable_graph();
    Scope scope{graph.mutable_node(), {}, {}, {}};
    for (int64_t n = rng_.between(1, 3); n > 0; --n) scope.tensors.push_back(add_input());
    for (int64_t n = rng_.between(0, 3); n > 0; --n) make_function();
    if (rng_.chance(0.5)) add_small_weight(scope);
    for (int64_t n = rng_.between(2, 7); n > 0; --n) add_step(scope, 2);
    for (int64_t n = rng_.between(1, 3); n > 0; --n) add_output(scope);
    return std::move(model_);
  }

 private:
  std::string fresh() { return fmt::format("v{}", next_++); }

  std::string any(const Names& names) { return names.empty() ? "nowhere" : rng_.choice(names); }
  std::string tensor(const Scope& scope) { return any(scope.tensors); }

  onnx::NodeProto& add(Scope& scope, const std::string& type, const Names& inputs,
                       const Names& outputs) {
    onnx::NodeProto& node = *scope.nodes->Add();
    node.set_op_type(type);
    for (const std::string& input : inputs) node.add_input(input);
    for (const std::string& output : outputs) node.add_output(output);
    return node;
  }
  std::string result(Scope& scope, const std::string& type, const Names& inputs) {
    const std::string name = fresh();
    add(scope, type, inputs, {name});
    return name;
  }
  std::string number(Scope& scope, int64_t value) {
    const std::string name = fresh();
    set_integer(add(scope, "Constant", {}, {name}), "value_int", value);
    return name;
  }

  // An input whose extents are symbols, sums of such, nameless or numbers.
  std::string add_input() {
    static const Names kBatches = {"batch", "N", "", "batch", "2"};
    static const Names kMiddle = {"seq", "past + seq", "", "seq", "3", "frames"};
    onnx::ValueInfoProto& input = *model_.mutable_graph()->add_input();
    input.set_name(fresh());
    Names shape = {rng_.choice(kBatches)};
    if (rng_.chance(0.7)) shape.push_back(rng_.choice(kMiddle));
    shape.push_back(std::to_string(kWidth));
    set_type(input, shape);
    return input.name();
  }

  void add_output(const Scope& scope) {
    const bool aggregate = !scope.sequences.empty() && rng_.chance(0.1);
    model_.mutable_graph()->add_output()->set_name(
        any(aggregate ? scope.sequences : scope.tensors));
  }

  // A weight of a type of 8 bits or fewer, and what is computed from it.
  void add_small_weight(Scope& scope) {
    onnx::TensorProto& weight = *model_.mutable_graph()->add_initializer();
    const int type = kSmallTypes[rng_.below(static_cast<int64_t>(std::size(kSmallTypes)))];
    Tensor values(*dtype_from_onnx(type), {rng_.chance(0.5) ? 3 : 1, kWidth});
    for (int64_t i = 0; i < values.size(); ++i) values.set(i, static_cast<double>(rng_.below(2)));
    weight.set_name(fresh());
    weight.set_data_type(type);
    for (const int64_t extent : values.shape()) weight.add_dims(extent);
    if (elements_per_byte(values.dtype()) > 1)
      weight.set_raw_data(packed(values));
    else
      weight.set_raw_data(values.data(), static_cast<size_t>(values.bytes()));
    const std::string wide = fresh();
    set_integer(add(scope, "Cast", {weight.name()}, {wide}), "to", onnx::TensorProto::FLOAT);
    scope.tensors.push_back(wide);
    if (rng_.chance(0.2)) scope.tensors.push_back(weight.name());
  }

  void add_step(Scope& scope, int depth) {
    switch (rng_.below(11)) {
      case 10: return add_quantized(scope);
      case 0:
      case 1: return add_sequence(scope);
      case 2: return use_sequence(scope, depth);
      case 3: return use_optional(scope);
      case 4:
      case 5: return call_function(scope);
      case 6: return add_small_cast(scope);
      case 7: return depth > 0 ? add_if(scope, depth) : add_tensor(scope);
      default: return add_tensor(scope);
    }
  }

  void add_tensor(Scope& scope) {
    const std::string a = tensor(scope), b = tensor(scope), made = fresh();
    switch (rng_.below(9)) {
      case 0: add(scope, "Relu", {a}, {made}); break;
      case 1: add(scope, "Add", {a, b}, {made}); break;
      case 2: set_integer(add(scope, "Concat", {a, b}, {made}), "axis", rng_.between(-1, 1)); break;
      case 3: add(scope, "Transpose", {a}, {made}); break;
      case 4: set_integer(add(scope, "Softmax", {a}, {made}), "axis", rng_.between(-2, 1)); break;
      case 5: {
        const std::string shape = result(scope, "Shape", {a});
        add(scope, "Expand", {b, shape}, {made});
        break;
      }
      case 6: add(scope, "ReduceMax", {a}, {made}); break;
      case 7: {
        const std::string shape = result(scope, "Shape", {a});
        add(scope, "Reshape", {b, shape}, {made});
        break;
      }
      default: set_integer(add(scope, "Flatten", {a}, {made}), "axis", rng_.between(0, 2));
    }
    scope.tensors.push_back(made);
  }

  void add_sequence(Scope& scope) {
    const std::string made = fresh();
    const std::string old = any(scope.sequences);
    switch (rng_.below(scope.sequences.empty() ? 3 : 5)) {
      case 0: {
        Names elements;
        for (int64_t n = rng_.between(1, 3); n > 0; --n) elements.push_back(tensor(scope));
        add(scope, "SequenceConstruct", elements, {made});
        break;
      }
      case 1: add(scope, "SequenceEmpty", {}, {made}); break;
      case 2: {
        Names operands = {tensor(scope)};
        if (rng_.chance(0.5)) operands.push_back(number(scope, rng_.between(0, 2)));
        onnx::NodeProto& split = add(scope, "SplitToSequence", operands, {made});
        set_integer(split, "axis", rng_.between(-1, 1));
        set_integer(split, "keepdims", rng_.below(2));
        break;
      }
      case 3: {
        Names operands = {old, tensor(scope)};
        if (rng_.chance(0.5)) operands.push_back(number(scope, rng_.between(-2, 2)));
        add(scope, "SequenceInsert", operands, {made});
        break;
      }
      default: {
        Names operands = {old};
        if (rng_.chance(0.5)) operands.push_back(number(scope, rng_.between(-2, 2)));
        add(scope, "SequenceErase", operands, {made});
      }
    }
    scope.sequences.push_back(made);
  }

  void use_sequence(Scope& scope, int depth) {
    if (scope.sequences.empty()) return add_sequence(scope);
    const std::string from = any(scope.sequences), made = fresh();
    switch (rng_.below(depth > 0 ? 4 : 3)) {
      case 0: {
        const std::string place = number(scope, rng_.between(-2, 2));
        add(scope, "SequenceAt", {from, place}, {made});
        break;
      }
      case 1: {
        const std::string length = result(scope, "SequenceLength", {from});
        set_integer(add(scope, "Cast", {length}, {made}), "to", onnx::TensorProto::FLOAT);
        break;
      }
      case 2: {
        onnx::NodeProto& joined = add(scope, "ConcatFromSequence", {from}, {made});
        set_integer(joined, "axis", rng_.between(-1, 1));
        set_integer(joined, "new_axis", rng_.below(2));
        break;
      }
      default: {
        onnx::GraphProto body;
        Scope inner{body.mutable_node(), {fresh()}, {}, {}};
        body.add_input()->set_name(inner.tensors[0]);
        add_step(inner, depth - 1);
        body.add_output()->set_name(inner.tensors.back());
        add_graph(add(scope, "SequenceMap", {from}, {made}), "body", body);
        scope.sequences.push_back(made);
        return;
      }
    }
    scope.tensors.push_back(made);
  }

  void use_optional(Scope& scope) {
    const std::string made = fresh();
    if (scope.optionals.empty() || rng_.chance(0.5)) {
      const bool sequence = !scope.sequences.empty() && rng_.chance(0.3);
      add(scope, "Optional", {any(sequence ? scope.sequences : scope.tensors)}, {made});
      scope.optionals.push_back(made);
    } else {
      add(scope, "OptionalGetElement", {any(scope.optionals)}, {made});
      (rng_.chance(0.8) ? scope.tensors : scope.sequences).push_back(made);
    }
  }

  // To a type of 8 bits or fewer and back.
  void add_small_cast(Scope& scope) {
    const int type = kSmallTypes[rng_.below(static_cast<int64_t>(std::size(kSmallTypes)))];
    const std::string narrow = fresh(), wide = fresh();
    set_integer(add(scope, "Cast", {tensor(scope)}, {narrow}), "to", type);
    set_integer(add(scope, "Cast", {narrow}, {wide}), "to", onnx::TensorProto::FLOAT);
    scope.tensors.push_back(wide);
  }

  // A tensor as bytes, what an operator of com.microsoft makes of them, and floats again.
  void add_quantized(Scope& scope) {
    if (rng_.chance(0.3)) return add_blocks(scope);
    const std::string x = fresh(), scale = fresh(), zero = fresh(), y = fresh(), made = fresh();
    add(scope, "DynamicQuantizeLinear", {tensor(scope)}, {x, scale, zero});
    const Names result = {scale, zero};
    Names given = {x, scale, rng_.chance(0.3) ? "" : zero};
    std::string type = rng_.choice(Names{"QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax",
                                         "QLinearGlobalAveragePool", "QLinearReduceMean"});
    if (rng_.chance(0.4)) {
      type = rng_.choice(Names{"QLinearAdd", "QLinearMul", "QGemm"});
      given.insert(given.end(), {x, scale, zero});
      if (type == "QGemm") given.push_back("");
    }
    if (rng_.chance(0.2)) {
      type = "QLinearConcat";
      given = {scale, zero, x, scale, zero};
    } else {
      given.insert(given.end(), result.begin(), result.end());
    }
    onnx::NodeProto& node = add(scope, type, given, {y});
    node.set_domain("com.microsoft");
    if (type == "QLinearSoftmax") set_integer(node, "opset", rng_.between(11, 14));
    if (type == "QLinearConcat" || (type == "QLinearSoftmax" && rng_.chance(0.5)))
      set_integer(node, "axis", rng_.between(-2, 2));
    if (type == "QLinearReduceMean") {
      onnx::AttributeProto& axes = *node.add_attribute();
      axes.set_name("axes");
      axes.set_type(onnx::AttributeProto::INTS);
      axes.add_ints(rng_.between(-2, 1));
    }
    add(scope, "DequantizeLinear", {y, scale, zero}, {made}).set_domain("com.microsoft");
    scope.tensors.push_back(made);
  }

  // A product by weights of few bits.
  void add_blocks(Scope& scope) {
    const int64_t columns = rng_.between(1, 3), bits = rng_.choice<int64_t>({2, 4, 8});
    const Names weights = {fresh(), fresh()};
    onnx::TensorProto& packed = *model_.mutable_graph()->add_initializer();
    packed.set_name(weights[0]);
    packed.set_data_type(onnx::TensorProto::UINT8);
    for (const int64_t extent : {columns, int64_t{1}, 2 * bits}) packed.add_dims(extent);
    std::string bytes;
    for (int64_t i = 0; i < columns * 2 * bits; ++i)
      bytes.push_back(static_cast<char>(rng_.below(256)));
    packed.set_raw_data(bytes);
    onnx::TensorProto& scales = *model_.mutable_graph()->add_initializer();
    scales.set_name(weights[1]);
    scales.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t extent : {columns, int64_t{1}}) scales.add_dims(extent);
    for (int64_t i = 0; i < columns; ++i) scales.add_float_data(0.25F);
    const std::string made = fresh();
    onnx::NodeProto& node =
        add(scope, "MatMulNBits", {tensor(scope), weights[0], weights[1]}, {made});
    node.set_domain("com.microsoft");
    const std::pair<const char*, int64_t> attributes[] = {
        {"K", rng_.chance(0.9) ? kWidth : rng_.between(-1, 17)},
        {"N", columns},
        {"bits", bits},
        {"block_size", 16}};
    for (const auto& [name, value] : attributes) set_integer(node, name, value);
    scope.tensors.push_back(made);
  }

  static void add_graph(onnx::NodeProto& node, const char* name, const onnx::GraphProto& graph) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    *attribute.mutable_g() = graph;
  }

  // Branches that read what is around them. The condition is known when importing or by data.
  void add_if(Scope& scope, int depth) {
    std::string condition = result(scope, "Shape", {tensor(scope)});
    condition = result(scope, rng_.chance(0.5) ? "ReduceMax" : "Size", {condition});
    if (rng_.chance(0.3)) condition = result(scope, "ReduceMin", {tensor(scope)});
    const std::string flag = fresh(), scalar = fresh(), made = fresh();
    set_integer(add(scope, "Cast", {condition}, {flag}), "to", onnx::TensorProto::BOOL);
    add(scope, "Squeeze", {flag}, {scalar});
    std::vector<onnx::GraphProto> branches(2);
    for (onnx::GraphProto& branch : branches) {
      Scope inner = scope;
      inner.nodes = branch.mutable_node();
      for (int64_t n = rng_.between(1, 2); n > 0; --n) add_step(inner, depth - 1);
      branch.add_output()->set_name(inner.tensors.back());
    }
    onnx::NodeProto& node = add(scope, "If", {scalar}, {made});
    add_graph(node, "then_branch", branches[0]);
    add_graph(node, "else_branch", branches[1]);
    scope.tensors.push_back(made);
  }

  // A function of a few nodes, which may call those before it: with an operand that callers may
  // leave out, and an attribute that is handed on.
  void make_function() {
    onnx::FunctionProto function;
    function.set_domain("fuzz");
    function.set_name(fmt::format("f{}", functions_.size()));
    *function.add_opset_import() = model_.opset_import(0);
    *function.add_opset_import() = model_.opset_import(1);
    *function.add_opset_import() = model_.opset_import(2);
    Scope scope{function.mutable_node(), {}, {}, {}};
    for (int64_t n = rng_.between(1, 2); n > 0; --n) {
      scope.tensors.push_back(fmt::format("a{}", n));
      *function.add_input() = scope.tensors.back();
    }
    for (int64_t n = rng_.between(1, 3); n > 0; --n) add_step(scope, 1);
    const std::string made = fresh();
    onnx::AttributeProto& axis = *add(scope, "Softmax", {tensor(scope)}, {made}).add_attribute();
    axis.set_name("axis");
    axis.set_type(onnx::AttributeProto::INT);
    axis.set_ref_attr_name("along");
    function.add_attribute("along");
    scope.tensors.push_back(made);
    *function.add_output() = made;
    if (rng_.chance(0.3)) *function.add_output() = any(scope.tensors);
    functions_.push_back(function);
    *model_.add_functions() = function;
  }

  void call_function(Scope& scope) {
    if (functions_.empty()) return add_tensor(scope);
    const onnx::FunctionProto& function = rng_.choice(functions_);
    Names operands, results;
    for (int i = 0; i < function.input_size(); ++i)
      operands.push_back(i > 0 && rng_.chance(0.2) ? "" : tensor(scope));
    for (int i = 0; i < function.output_size(); ++i) results.push_back(fresh());
    onnx::NodeProto& call = add(scope, function.name(), operands, results);
    call.set_domain(function.domain());
    if (rng_.chance(0.4)) set_integer(call, "along", rng_.between(-1, 1));
    scope.tensors.insert(scope.tensors.end(), results.begin(), results.end());
  }

  Rng& rng_;
  onnx::ModelProto model_;
  std::vector<onnx::FunctionProto> functions_;
  int64_t opset_ = 17;
  int next_ = 0;
};

}  // namespace

onnx::ModelProto kinds_model(Rng& rng) { return KindsMaker(rng).run(); }

}  // namespace hone::fuzz
