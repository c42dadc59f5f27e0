// group_model.h - a group of nodes as an ONNX model that Hone reads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hone/options.h"

#include "groups.h"

namespace hone::ort {

struct GroupModel {
  std::string bytes;  // of the ONNX file
  // Large initializers, which are inputs of the file that Hone makes constants of
  // (ModelOptions::bind). They are copied once, from ONNX Runtime's memory.
  std::map<std::string, Tensor> bound;
};

// Initializers of ONNX Runtime as Hone's tensors. Groups that are compiled anew share them.
class Weights {
 public:
  explicit Weights(const OrtApi& api) : api_(api) {}
  [[nodiscard]] Result<Tensor> find(const Graph& graph, const std::string& name);

 private:
  const OrtApi& api_;
  std::map<std::string, Tensor> tensors_;
};

// Returns the names of the group's nodes in the file. A node without a name, or with that of
// another one, gets a new one, by which Hone's messages tell it apart.
[[nodiscard]] std::vector<std::string> node_names(const Graph& graph, const Group& group);
[[nodiscard]] Result<GroupModel> make_group_model(const OrtApi& api, const Graph& graph,
                                                  const Group& group, Weights& weights);
// Returns the shapes and ranges that concern the inputs of the group: a symbol or an input that it
// does not have is left out.
[[nodiscard]] ModelOptions options_of_group(const Graph& graph, const Group& group,
                                            const ModelOptions& given);

}  // namespace hone::ort
