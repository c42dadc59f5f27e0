#include <onnx/onnx_pb.h>

#include "hone/graph/import_onnx.h"
#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/tensor/small_types.h"

#include "model_bytes.h"

namespace hone::fuzz {
namespace {

constexpr const char* kWords[] = {"NOTSET",
                                  "SAME_UPPER",
                                  "SAME_LOWER",
                                  "VALID",
                                  "constant",
                                  "edge",
                                  "reflect",
                                  "wrap",
                                  "linear",
                                  "nearest",
                                  "cubic",
                                  "bilinear",
                                  "bicubic",
                                  "zeros",
                                  "border",
                                  "reflection",
                                  "floor",
                                  "ceil",
                                  "round_prefer_floor",
                                  "round_prefer_ceil",
                                  "half_pixel",
                                  "half_pixel_symmetric",
                                  "asymmetric",
                                  "align_corners",
                                  "pytorch_half_pixel",
                                  "tf_crop_and_resize",
                                  "output_half_pixel",
                                  "stretch",
                                  "not_larger",
                                  "not_smaller",
                                  "add",
                                  "mul",
                                  "max",
                                  "min",
                                  "none",
                                  "mean",
                                  "sum",
                                  "forward",
                                  "reverse",
                                  "bidirectional",
                                  "DCR",
                                  "CRD",
                                  "LEFT",
                                  "RIGHT",
                                  "tanh",
                                  "avg",
                                  "gelu",
                                  "silu",
                                  "Relu",
                                  "Tanh",
                                  "Sigmoid",
                                  "Affine",
                                  "LeakyRelu",
                                  "HardSigmoid",
                                  "Elu",
                                  "delta",
                                  "gated",
                                  "gated_delta",
                                  "ij,jk->ik",
                                  "bij,bjk->bik",
                                  "ii->i",
                                  "...ij,...jk->...ik",
                                  "ij->ji",
                                  "i,i",
                                  "ab,c->",
                                  "->",
                                  ",",
                                  "nothing",
                                  ""};

constexpr int kTypes[] = {1, 1, 1,  1,  1,  1,  7,  7,  6,  9,  10, 11, 16, 2, 3,
                          4, 5, 12, 13, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26};

int random_type(Rng& rng) { return kTypes[rng.below(static_cast<int64_t>(std::size(kTypes)))]; }

// A few extents over and over, so that shapes often fit.
Shape random_shape(Rng& rng) {
  Shape shape;
  for (int64_t n = rng.chance(0.5) ? 4 : rng.below(6); n > 0; --n)
    shape.push_back(rng.chance(0.03) ? 0 : rng.chance(0.5) ? 4 : rng.between(1, 6));
  return shape;
}

void fill_random(onnx::TensorProto& to, Rng& rng) {
  const bool is_list = rng.chance(0.4);  // of sizes, axes, pads ...
  const DType dtype = is_list ? DType::kI64 : *dtype_from_onnx(random_type(rng));
  Tensor tensor(dtype,
                is_list ? Shape(rng.chance(0.8) ? 1 : 0, rng.between(0, 8)) : random_shape(rng));
  const bool tame = rng.chance(0.9);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tame ? static_cast<double>(rng.between(-2, 5)) : interesting_float(rng);
    if (dtype == DType::kI64)
      tensor.as<int64_t>()[static_cast<size_t>(i)] =
          tame ? rng.between(-2, 5) : interesting_integer(rng);
    else
      tensor.set(i, value);
  }
  to.set_data_type(static_cast<int>(dtype));
  for (const int64_t extent : tensor.shape()) to.add_dims(extent);
  if (elements_per_byte(dtype) > 1)
    to.set_raw_data(packed(tensor));
  else
    to.set_raw_data(tensor.data(), static_cast<size_t>(tensor.bytes()));
}

bool imports(const onnx::ModelProto& model) {
  const std::string bytes = model.SerializeAsString();
  return graph::import_onnx_bytes(bytes.data(), bytes.size(), "fuzz.onnx", "").ok();
}

class ModelMaker {
 public:
  explicit ModelMaker(Rng& rng) : rng_(rng) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(rng.chance(0.5) ? 28 : rng.between(7, 28));
    for (int64_t n = rng.between(1, 4); n > 0; --n) add_input();
    for (int64_t n = rng.between(2, 5); n > 0; --n) add_constant();
  }

  onnx::ModelProto run() {
    const int64_t wanted = rng_.between(1, 6);
    for (int64_t tries = wanted * 15; tries > 0 && graph().node_size() < wanted; --tries) {
      const onnx::ModelProto before = model_;
      const std::vector<std::string> names = names_;
      add_node();
      if (imports(model_)) continue;
      model_ = before;
      names_ = names;
    }
    for (int i = 0; i < graph().node_size(); ++i) {
      while (rng_.chance(0.15) && wrap(*graph().mutable_node(i))) {
        HONE_ASSERT(imports(model_), "a node of a function is imported as it is alone");
      }
    }
    if (rng_.chance(0.5)) add_node();
    return std::move(model_);
  }

 private:
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  std::string fresh() {
    names_.push_back(fmt::format("v{}", next_++));
    return names_.back();
  }

  void add_input() {
    onnx::ValueInfoProto* input = graph().add_input();
    input->set_name(fresh());
    auto* type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(random_type(rng_));
    type->mutable_shape();
    for (const int64_t extent : random_shape(rng_))
      type->mutable_shape()->add_dim()->set_dim_value(extent);
  }

  std::string add_constant() {
    onnx::TensorProto* tensor = graph().add_initializer();
    fill_random(*tensor, rng_);
    tensor->set_name(fresh());
    return tensor->name();
  }

  // Moves a node into a function of its own and calls that. A graph inside may read what is around
  // it, which a function cannot.
  bool wrap(onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) return false;
    }
    onnx::FunctionProto& function = *model_.add_functions();
    function.set_domain("fuzz");
    function.set_name(fmt::format("f{}", model_.functions_size()));
    *function.add_opset_import() = model_.opset_import(0);
    onnx::NodeProto call, inner = node;
    call.set_domain(function.domain());
    call.set_op_type(function.name());
    for (int i = 0; i < node.input_size(); ++i) {
      call.add_input(node.input(i));
      *function.add_input() = fmt::format("v{}", i);  // a name of the caller, too
      inner.set_input(i, function.input(i));
    }
    for (int i = 0; i < node.output_size(); ++i) {
      call.add_output(node.output(i));
      *function.add_output() = fmt::format("r{}", i);
      inner.set_output(i, function.output(i));
    }
    for (onnx::AttributeProto& attribute : *inner.mutable_attribute()) {
      if (rng_.chance(0.5)) continue;
      *call.add_attribute() = attribute;
      call.mutable_attribute(call.attribute_size() - 1)->set_name(attribute.name() + "_");
      onnx::AttributeProto handed;
      handed.set_name(attribute.name());
      handed.set_ref_attr_name(attribute.name() + "_");
      handed.set_type(attribute.type());
      function.add_attribute(handed.ref_attr_name());
      attribute = handed;
    }
    *function.add_node() = inner;
    node = call;
    return true;
  }

  void add_node() {
    onnx::NodeProto node;
    const std::string name = random_operator(rng_);
    set_operator(node, name);
    const auto opset = static_cast<int>(model_.opset_import(0).version());
    const graph::Op* op = graph::find_op(name, opset);
    if (op == nullptr) return;
    const int most = std::min(op->max_inputs, op->min_inputs + 3);
    for (int64_t n = rng_.between(op->min_inputs, most); n > 0; --n) {
      const bool missing = node.input_size() >= op->min_inputs && rng_.chance(0.3);
      const bool made = rng_.chance(0.3);
      node.add_input(missing ? "" : made ? add_constant() : rng_.choice(names_));
    }
    for (int64_t n = rng_.between(1, std::min(op->max_outputs, 3)); n > 0; --n) {
      node.add_output(fresh());
      graph().add_output()->set_name(node.output(node.output_size() - 1));
    }
    for (const std::string& entry : attributes_of(name)) {
      if (rng_.chance(0.6)) continue;
      onnx::AttributeProto* attribute = node.add_attribute();
      attribute->set_name(entry.substr(0, entry.find(':')));
      set_random_attribute(*attribute, entry.substr(entry.find(':') + 1), rng_);
    }
    *graph().add_node() = node;
  }

  Rng& rng_;
  onnx::ModelProto model_;
  std::vector<std::string> names_;
  int next_ = 0;
};

}  // namespace

std::vector<std::string> attributes_of(const std::string& op_type) {
  const graph::Op* op = graph::find_op(op_type, graph::kMaxOpset);
  std::vector<std::string> entries;
  std::string_view rest = op != nullptr ? op->attributes : "";
  while (!rest.empty()) {
    entries.emplace_back(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(std::min(rest.size(), entries.back().size() + 1));
  }
  return entries;
}

std::string random_operator(Rng& rng) {
  while (true) {
    const std::string_view name = rng.choice(graph::all_ops())->name;
    if (!name.starts_with("hone.") || rng.chance(0.01)) return std::string(name);
  }
}

std::string operator_name(const onnx::NodeProto& node) {
  return node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type();
}

void set_operator(onnx::NodeProto& node, const std::string& name) {
  const size_t dot = name.starts_with("hone.") ? std::string::npos : name.rfind('.');
  node.set_domain(dot == std::string::npos ? "" : name.substr(0, dot));
  node.set_op_type(dot == std::string::npos ? name : name.substr(dot + 1));
}

void set_random_attribute(onnx::AttributeProto& a, const std::string& type, Rng& rng) {
  using A = onnx::AttributeProto;
  const bool tame = rng.chance(0.9);
  const auto integer = [&] { return tame ? rng.between(-1, 4) : interesting_integer(rng); };
  const auto word = [&] { return kWords[rng.below(static_cast<int64_t>(std::size(kWords)))]; };
  if (type == "i") a.set_type(A::INT), a.set_i(integer());
  if (type == "f") a.set_type(A::FLOAT), a.set_f(tame ? 0.5F : interesting_float(rng));
  if (type == "s") a.set_type(A::STRING), a.set_s(word());
  if (type == "is") {
    a.set_type(A::INTS);
    for (int64_t n = rng.between(0, 4) * rng.between(1, 2); n > 0; --n) a.add_ints(integer());
  }
  if (type == "fs") {
    a.set_type(A::FLOATS);
    for (int64_t n = rng.between(0, 4); n > 0; --n) a.add_floats(interesting_float(rng));
  }
  if (type == "ss") {
    a.set_type(A::STRINGS);
    for (int64_t n = rng.between(0, 4); n > 0; --n) a.add_strings(word());
  }
  if (type == "t") a.set_type(A::TENSOR), fill_random(*a.mutable_t(), rng);
  if (type == "g") a.set_type(A::GRAPH), a.mutable_g();
}

onnx::ModelProto random_model(Rng& rng) { return ModelMaker(rng).run(); }

}  // namespace hone::fuzz
