#include <onnx/onnx_pb.h>

#include <cmath>

#include "hone/graph/ops/registry.h"

#include "model_bytes.h"

namespace hone::fuzz {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

int index_in(int size, Rng& rng) { return static_cast<int>(rng.below(size)); }

// Any element of a repeated field, or null.
template <typename Field>
auto any_of(Field* field, Rng& rng) -> decltype(field->Mutable(0)) {
  return field->empty() ? nullptr : field->Mutable(index_in(field->size(), rng));
}

template <typename Field>
void remove_any(Field* field, Rng& rng) {
  if (!field->empty()) field->DeleteSubrange(index_in(field->size(), rng), 1);
}

template <typename Field>
void duplicate_any(Field* field, Rng& rng) {
  if (field->empty()) return;
  auto copy = field->Get(index_in(field->size(), rng));
  if constexpr (requires { copy.mutable_output(0); }) {
    for (std::string& output : *copy.mutable_output()) output += rng.chance(0.9) ? "'" : "";
  }
  *field->Add() = copy;
}

template <typename Field>
void swap_any(Field* field, Rng& rng) {
  if (!field->empty())
    field->SwapElements(index_in(field->size(), rng), index_in(field->size(), rng));
}

// A name of any value in the graph; sometimes none, or one that there is not.
std::string any_name(const onnx::GraphProto& graph, Rng& rng) {
  switch (rng.below(8)) {
    case 0: return "";
    case 1: return "nowhere";
    case 2:
    case 3:
      if (graph.initializer_size() > 0)
        return graph.initializer(index_in(graph.initializer_size(), rng)).name();
      [[fallthrough]];
    case 4:
      if (graph.input_size() > 0) return graph.input(index_in(graph.input_size(), rng)).name();
      [[fallthrough]];
    default: {
      if (graph.node_size() == 0) return "";
      const onnx::NodeProto& node = graph.node(index_in(graph.node_size(), rng));
      return node.output_size() > 0 ? node.output(0) : "";
    }
  }
}

void mutate_dims(google::protobuf::RepeatedField<int64_t>* dims, Rng& rng) {
  if (dims->empty() || rng.chance(0.2)) return dims->Add(interesting_integer(rng));
  if (rng.chance(0.2)) return dims->RemoveLast();
  dims->Set(index_in(dims->size(), rng), interesting_integer(rng));
}

void mutate_tensor(onnx::TensorProto& tensor, Rng& rng) {
  std::string* raw = tensor.mutable_raw_data();
  switch (rng.below(12)) {
    case 0: return mutate_dims(tensor.mutable_dims(), rng);
    case 1: return tensor.set_data_type(static_cast<int>(rng.between(-1, 24)));
    case 2: return raw->resize(static_cast<size_t>(rng.between(0, 64)));
    case 3:
      if (rng.chance(0.3)) tensor.set_data_location(onnx::TensorProto::EXTERNAL);
      return tensor.clear_raw_data();
    case 4:
    case 5:
    case 6: {
      const int64_t value = interesting_integer(rng);
      if (raw->size() < sizeof(value)) return tensor.add_int64_data(value);
      const auto words = static_cast<int64_t>(raw->size() / sizeof(value));
      const auto at = static_cast<size_t>(rng.below(words)) * sizeof(value);
      return static_cast<void>(
          raw->replace(at, sizeof(value), reinterpret_cast<const char*>(&value), sizeof(value)));
    }
    default: {
      const float value = interesting_float(rng);
      if (raw->size() < sizeof(value)) return tensor.add_float_data(value);
      const auto words = static_cast<int64_t>(raw->size() / sizeof(value));
      const auto at = static_cast<size_t>(rng.below(words)) * sizeof(value);
      raw->replace(at, sizeof(value), reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
}

void mutate_attribute(onnx::AttributeProto& a, Rng& rng) {
  using A = onnx::AttributeProto;
  if (rng.chance(0.05)) return a.set_type(static_cast<A::AttributeType>(rng.between(0, 14)));
  switch (a.type()) {
    case A::INT: return a.set_i(interesting_integer(rng));
    case A::FLOAT: return a.set_f(interesting_float(rng));
    case A::INTS: return mutate_dims(a.mutable_ints(), rng);
    case A::FLOATS:
      if (a.floats_size() == 0 || rng.chance(0.3)) return a.add_floats(interesting_float(rng));
      return a.set_floats(index_in(a.floats_size(), rng), interesting_float(rng));
    case A::TENSOR: return mutate_tensor(*a.mutable_t(), rng);
    case A::STRING: return set_random_attribute(a, "s", rng);
    default: return set_random_attribute(a, "is", rng);
  }
}

void mutate_attributes(onnx::NodeProto& node, Rng& rng) {
  onnx::AttributeProto* attribute = any_of(node.mutable_attribute(), rng);
  if (attribute != nullptr && rng.chance(0.6)) return mutate_attribute(*attribute, rng);
  if (rng.chance(0.2)) return remove_any(node.mutable_attribute(), rng);
  if (rng.chance(0.1)) return duplicate_any(node.mutable_attribute(), rng);
  const std::vector<std::string> known = attributes_of(operator_name(node));
  if (known.empty()) return;
  const std::string& entry = rng.choice(known);
  const std::string name = entry.substr(0, entry.find(':'));
  for (int i = node.attribute_size(); i-- > 0;) {
    if (node.attribute(i).name() == name) node.mutable_attribute()->DeleteSubrange(i, 1);
  }
  onnx::AttributeProto* added = node.add_attribute();
  added->set_name(name);
  set_random_attribute(*added, entry.substr(entry.find(':') + 1), rng);
}

void mutate_node(onnx::GraphProto& graph, onnx::NodeProto& node, Rng& rng) {
  switch (rng.below(9)) {
    case 0: return set_operator(node, random_operator(rng));
    case 1: return swap_any(node.mutable_input(), rng);
    case 2: return node.add_input(any_name(graph, rng));
    case 3: return remove_any(node.mutable_input(), rng);
    case 4: {
      std::string* input = any_of(node.mutable_input(), rng);
      if (input != nullptr) *input = any_name(graph, rng);
      return;
    }
    case 5: {
      if (rng.chance(0.6)) return node.add_output(fmt::format("added{}", rng.below(100)));
      std::string* output = any_of(node.mutable_output(), rng);
      if (output != nullptr && rng.chance(0.4)) *output = any_name(graph, rng);
      return;
    }
    default: return mutate_attributes(node, rng);
  }
}

void mutate_value(onnx::ValueInfoProto* value, Rng& rng) {
  if (value == nullptr) return;
  auto* type = value->mutable_type()->mutable_tensor_type();
  if (rng.chance(0.2)) return type->set_elem_type(static_cast<int>(rng.between(-1, 24)));
  if (rng.chance(0.05)) return type->clear_shape();
  auto* dims = type->mutable_shape()->mutable_dim();
  if (rng.chance(0.15)) return remove_any(dims, rng);
  auto* dim = dims->empty() || rng.chance(0.15) ? dims->Add() : any_of(dims, rng);
  dim->set_dim_value(interesting_integer(rng));
}

void mutate_nodes(onnx::GraphProto& graph, Rng& rng) {
  Nodes* nodes = graph.mutable_node();
  switch (rng.below(10)) {
    case 0: return rng.chance(0.3) ? remove_any(nodes, rng) : duplicate_any(nodes, rng);
    case 1: return duplicate_any(nodes, rng);
    case 2: return swap_any(nodes, rng);
    default:
      if (onnx::NodeProto* node = any_of(nodes, rng)) mutate_node(graph, *node, rng);
  }
}

std::string* any_text(google::protobuf::RepeatedPtrField<std::string>* texts, Rng& rng) {
  return any_of(texts, rng);
}

// A name inside of a function, an operand, a result, the opset, or whom a node calls.
void mutate_function(onnx::FunctionProto& function, Rng& rng) {
  onnx::NodeProto* node = any_of(function.mutable_node(), rng);
  const std::string* name = rng.chance(0.5) ? any_text(function.mutable_input(), rng)
                                            : any_text(function.mutable_output(), rng);
  switch (rng.below(9)) {
    case 0: return remove_any(function.mutable_input(), rng);
    case 1: return remove_any(function.mutable_output(), rng);
    case 2: return static_cast<void>(function.add_input(fmt::format("v{}", rng.below(4))));
    case 3: return static_cast<void>(function.add_output(name != nullptr ? *name : "nothing"));
    case 4: return remove_any(function.mutable_node(), rng);
    case 5:
      if (function.opset_import_size() == 0 || rng.chance(0.2))
        return function.clear_opset_import();
      return function.mutable_opset_import(0)->set_version(rng.between(6, 29));
    case 6:
      if (node == nullptr || rng.chance(0.3)) return function.set_name("f1");
      node->set_domain("fuzz");
      return node->set_op_type(fmt::format("f{}", rng.between(1, 3)));
    case 7:
      if (node != nullptr && name != nullptr) node->add_input(*name);
      return;
    default:
      if (node != nullptr) mutate_attributes(*node, rng);
  }
}

}  // namespace

int64_t interesting_integer(Rng& rng) {
  static constexpr int64_t kEdges[] = {255,       256,        1 << 16,   1 << 24,   INT32_MAX,
                                       INT32_MIN, 1LL << 32,  1LL << 40, 1LL << 62, INT64_MAX,
                                       INT64_MIN, -(1 << 16), 1'000'000, 9'999'991, -1'000'000'000};
  if (rng.chance(0.7)) return rng.between(-3, 9);
  return kEdges[rng.below(static_cast<int64_t>(std::size(kEdges)))];
}

float interesting_float(Rng& rng) {
  static constexpr float kEdges[] = {0.0F, -0.0F, 1.0F,   -1.0F, 0.5F,      2.0F,      1e-45F,
                                     1e9F, 1e30F, -1e30F, NAN,   HUGE_VALF, -HUGE_VALF};
  return kEdges[rng.below(static_cast<int64_t>(std::size(kEdges)))];
}

void mutate_model(onnx::ModelProto& model, Rng& rng) {
  onnx::GraphProto& graph = *model.mutable_graph();
  switch (rng.below(20)) {
    case 0: return mutate_value(any_of(graph.mutable_input(), rng), rng);
    case 1: return mutate_value(any_of(graph.mutable_input(), rng), rng);
    case 2:
    case 3:
    case 4: {
      onnx::TensorProto* tensor = any_of(graph.mutable_initializer(), rng);
      if (tensor != nullptr) return mutate_tensor(*tensor, rng);
      return mutate_nodes(graph, rng);
    }
    case 5:
      if (rng.chance(0.3)) return duplicate_any(graph.mutable_input(), rng);
      if (rng.chance(0.3)) return duplicate_any(graph.mutable_initializer(), rng);
      if (rng.chance(0.3)) return remove_any(graph.mutable_initializer(), rng);
      return remove_any(graph.mutable_input(), rng);
    case 6:
      if (rng.chance(0.3)) return remove_any(graph.mutable_output(), rng);
      return graph.add_output()->set_name(any_name(graph, rng));
    case 7: {
      if (model.opset_import_size() == 0) return;
      return model.mutable_opset_import(0)->set_version(rng.between(6, 29));
    }
    case 8:
    case 9:
    case 10:
      if (onnx::FunctionProto* function = any_of(model.mutable_functions(), rng))
        return mutate_function(*function, rng);
      return mutate_nodes(graph, rng);
    default: return mutate_nodes(graph, rng);
  }
}

void mutate_bytes(std::string& bytes, Rng& rng) {
  if (bytes.empty()) return;
  const auto size = static_cast<int64_t>(bytes.size());
  const auto at = static_cast<size_t>(rng.below(size)), from = static_cast<size_t>(rng.below(size));
  const auto count = static_cast<size_t>(rng.between(1, 32));
  switch (rng.below(6)) {
    case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.below(8))); break;
    case 1: bytes[at] = static_cast<char>(rng.below(256)); break;
    case 2: bytes.resize(at); break;
    case 3: bytes.erase(at, count); break;
    case 4: bytes.insert(at, bytes.substr(from, count)); break;
    default: bytes.replace(at, count, bytes.substr(from, count));
  }
}

}  // namespace hone::fuzz

#ifdef HONE_LIBFUZZER
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  hone::Rng rng(seed);
  onnx::ModelProto model;
  if (rng.chance(0.1) || !model.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, max_size);
  hone::fuzz::mutate_model(model, rng);
  const std::string bytes = model.SerializeAsString();
  if (bytes.size() > max_size) return size;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
#endif
