// ort_graph.h - a graph of ONNX Runtime as plain values: nodes in an order in which they can run,
// and what is known of the values between them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ort_call.h"

namespace hone::ort {

struct GraphDim {
  int64_t extent = -1;  // -1: open
  std::string symbol;   // of an open one; may be empty
};

struct GraphValue {
  const OrtValueInfo* handle = nullptr;
  bool is_tensor = false;
  bool has_shape = false;  // the rank is known
  int dtype = 0;           // the code of ONNX's TensorProto.DataType, as in hone/dtype.h
  std::vector<GraphDim> dims;
  bool constant = false;  // an initializer that no run replaces
};

// A name is empty where an optional input or output is missing.
struct GraphNode {
  const OrtNode* handle = nullptr;
  std::string name, type, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> implicit;  // what its subgraphs read from outside
  bool has_subgraphs = false;
  bool taken = false;  // it belongs to a provider already
};

struct Graph {
  std::vector<GraphNode> nodes;
  std::map<std::string, GraphValue> values;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, int64_t> opsets;  // the version of each domain; "" is ONNX's own
  std::string model_path;                 // empty for a model that was no file
  bool nested = false;                    // it belongs to a node, such as a branch of an If
};

[[nodiscard]] Result<Graph> read_graph(const OrtApi& api, const OrtGraph* graph);
// Reads the names of a node and its values only.
[[nodiscard]] Result<GraphNode> read_node(const OrtApi& api, const OrtNode* node);

// An attribute of a node. One of the lists has the value, of `type`.
struct NodeAttribute {
  std::string name;
  OrtAttrType type = OrtAttrType::kUndefined;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  int tensor_dtype = 0;
  std::vector<int64_t> tensor_dims;
  std::string tensor_bytes;
};
// Code::kUnsupported: an attribute of another type.
[[nodiscard]] Result<std::vector<NodeAttribute>> read_attributes(const OrtApi& api,
                                                                 const OrtNode* node);

// The element type, shape and array of a tensor.
struct TensorView {
  int dtype = 0;
  std::vector<int64_t> dims;
  const void* data = nullptr;
  size_t bytes = 0;
};
[[nodiscard]] Result<TensorView> view_tensor(const OrtApi& api, const OrtValue* value);
// Reads the dimensions of a tensor into `dims`, and its element type.
[[nodiscard]] Result<int> read_shape(const OrtApi& api, const OrtValue* value,
                                     std::vector<int64_t>& dims);

}  // namespace hone::ort
