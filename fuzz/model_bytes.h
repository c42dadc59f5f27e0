// fuzz/model_bytes.h - ONNX models for the fuzz target of the importer, from one seed: real ones,
// random ones of known operators, and what mutations make of them.
#pragma once

#include <string>
#include <vector>

#include "hone/base/rng.h"

namespace onnx {
class AttributeProto;
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace hone::fuzz {

// One of the shared models or of ONNX's own cases; of the latter, some inputs have become
// constants.
[[nodiscard]] onnx::ModelProto real_model(Rng& rng);
// A few nodes of any operators, with random operands and attributes; mostly legal but for the last.
[[nodiscard]] onnx::ModelProto random_model(Rng& rng);
// A few nodes of the kinds that the two above rarely have: open dimensions, sequences, optional
// values, functions of several nodes, branches, small types.
[[nodiscard]] onnx::ModelProto kinds_model(Rng& rng);

// Changes one thing: a dimension, a type, an attribute, a name, an edge, a node ...
void mutate_model(onnx::ModelProto& model, Rng& rng);
// Changes bytes: flips, cuts, copies.
void mutate_bytes(std::string& bytes, Rng& rng);

// Values near the edges of something.
[[nodiscard]] int64_t interesting_integer(Rng& rng);
[[nodiscard]] float interesting_float(Rng& rng);
// A value of a type as in op tables: i f s t is fs ss g.
void set_random_attribute(onnx::AttributeProto& attribute, const std::string& type, Rng& rng);
// "name:type" of the attributes of an operator, which may be unknown.
[[nodiscard]] std::vector<std::string> attributes_of(const std::string& op_type);
// The name of any operator, which begins with its domain.
[[nodiscard]] std::string random_operator(Rng& rng);
// The name of a node's operator, and the node's type and domain by such a name.
[[nodiscard]] std::string operator_name(const onnx::NodeProto& node);
void set_operator(onnx::NodeProto& node, const std::string& name);

}  // namespace hone::fuzz
