// Products of integers by constant weights of 8 or 16 bits (narrow_weights) are computed in float32
// where that is exact, whatever type the kernel's instructions multiply in: every factor is one
// that bfloat16 and tf32 have, too, to which --accuracy fast may round it, and the magnitudes of
// all terms of a sum, which is kept in float32, add up to 2^24 at most.
#include <algorithm>
#include <cmath>
#include <map>

#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/cast_node.h"
#include "hone/graph/passes/pass.h"

namespace hone::graph {
namespace {

// float32 has all integers up to the first, bfloat16 (8 significant bits) and tf32 (11) all up to
// the second.
constexpr double kLargestSum = 1 << 24, kLargestFactor = 1 << 8;
constexpr int kMostMakers = 8;  // nodes between a byte and a product

// The least and the greatest number that an element may be.
struct Range {
  double least, most;
};

// The largest magnitude of a weight, and the largest sum of those that make one result.
struct Magnitudes {
  double weight = 0, column = 0;
};

Range of_type(DType bytes) { return bytes == DType::kU8 ? Range{0, 255} : Range{-128, 127}; }
bool is_byte(DType type) { return type == DType::kI8 || type == DType::kU8; }
// Holds the differences of bytes.
bool is_wide(DType type) {
  return type == DType::kI16 || type == DType::kI32 || type == DType::kI64 || type == DType::kF32;
}

class ExactProducts {
 public:
  explicit ExactProducts(Graph& graph) : graph_(graph), uses_(graph), names_(graph) {}

  void run() {
    const size_t count = graph_.nodes.size();
    for (size_t i = 0; i < count; ++i) {
      if (is_exact(graph_.nodes[i])) replace(i);
    }
    for (Node& node : graph_.nodes) {
      for (ValueId& in : node.inputs) {
        if (const auto at = same_.find(in); at != same_.end()) in = at->second;
      }
    }
  }

 private:
  bool is_exact(const Node& node) {
    if (node.type != "MatMul" || graph_.value(node.outputs[0]).dtype != DType::kI32) return false;
    const Value& weights = graph_.value(node.inputs[1]);
    if (!weights.constant || weights.dtype == DType::kI32 || weights.shape.size() < 2) return false;
    const std::optional<Range> data = range_of(node.inputs[0], kMostMakers);
    if (!data) return false;
    const double magnitude = std::max(std::abs(data->least), std::abs(data->most));
    const Magnitudes& of_weights = magnitudes_of(node.inputs[1]);
    return magnitude <= kLargestFactor && of_weights.weight <= kLargestFactor &&
           magnitude * of_weights.column <= kLargestSum;
  }

  // Returns what is known of an element by the types of bytes that it is made of.
  std::optional<Range> range_of(ValueId id, int makers) const {
    const Value& value = graph_.value(id);
    if (is_byte(value.dtype)) return of_type(value.dtype);
    if (value.constant && value.constant->size() == 1)
      return Range{value.constant->at(0), value.constant->at(0)};
    const int producer = uses_.producer[static_cast<size_t>(id)];
    if (producer < 0 || makers == 0 || !is_wide(value.dtype)) return std::nullopt;
    const Node& node = graph_.nodes[static_cast<size_t>(producer)];
    if (node.type == "Cast" || (node.op->kind == Kind::kView && node.inputs.size() == 1))
      return range_of(node.inputs[0], makers - 1);
    if (node.type != "Sub") return std::nullopt;
    const auto a = range_of(node.inputs[0], makers - 1), b = range_of(node.inputs[1], makers - 1);
    if (!a || !b) return std::nullopt;
    return Range{a->least - b->most, a->most - b->least};
  }

  const Magnitudes& magnitudes_of(ValueId id) {
    const auto [at, is_new] = magnitudes_.emplace(id, Magnitudes{});
    if (!is_new) return at->second;
    const Tensor& weights = *graph_.value(id).constant;
    const Shape& shape = weights.shape();
    const int64_t columns = shape.back(), rows = shape[shape.size() - 2];
    Magnitudes& largest = at->second;
    std::vector<double> sums;
    for (int64_t i = 0; i < weights.size(); ++i) {
      if (i % (rows * columns) == 0) sums.assign(static_cast<size_t>(columns), 0);
      double& sum = sums[static_cast<size_t>(i % columns)];
      const double magnitude = std::abs(weights.at(i));
      sum += magnitude;
      largest.weight = std::max(largest.weight, magnitude);
      largest.column = std::max(largest.column, sum);
    }
    return largest;
  }

  // The old result is a Cast of the new one, but for readers that would make float32 of it.
  void replace(size_t index) {
    const ValueId data = in_float(graph_.nodes[index].inputs[0]);
    Node& node = graph_.nodes[index];
    const ValueId result = node.outputs[0], sum = like(result, DType::kF32);
    node.type = "hone.ExactMatMul";
    node.op = find_op(node.type, graph_.opset);
    node.inputs[0] = data;
    node.outputs[0] = sum;
    node.plain_sums = true;
    for (const int reader : uses_.readers[static_cast<size_t>(result)]) {
      const Node& cast = graph_.nodes[static_cast<size_t>(reader)];
      if (cast.type == "Cast" && graph_.value(cast.outputs[0]).dtype == DType::kF32 &&
          !graph_.is_output(cast.outputs[0]))
        same_[cast.outputs[0]] = sum;
    }
    add_cast(sum, result);
    ++graph_.rules["exact product"];
  }

  ValueId in_float(ValueId integers) {
    const auto [at, is_new] = floats_.emplace(integers, kNoValue);
    if (!is_new) return at->second;
    at->second = like(integers, DType::kF32);
    add_cast(integers, at->second);
    return at->second;
  }

  ValueId like(ValueId id, DType dtype) {
    const std::string name = graph_.value(id).name + ".exact";
    const ValueId made = graph_.add_value(name, dtype, graph_.value(id).shape);
    graph_.value(made).extents = graph_.value(id).extents;
    graph_.value(made).forms = graph_.value(id).forms;
    return made;
  }

  void add_cast(ValueId from, ValueId to) {
    graph_.nodes.push_back(cast_node(graph_, names_, from, to));
  }

  Graph& graph_;
  const Uses uses_;
  NodeNames names_;
  std::map<ValueId, ValueId> floats_;         // data of integers in float32
  std::map<ValueId, ValueId> same_;           // casts of results to float32, and what they are
  std::map<ValueId, Magnitudes> magnitudes_;  // of weights
};

}  // namespace

Status exact_products(Graph& graph) {
  ExactProducts(graph).run();
  return ok_status();
}

}  // namespace hone::graph
