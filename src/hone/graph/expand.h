// graph/expand.h - operators that are functions of other operators: Op::expand builds the nodes
// that compute its results, while shapes are inferred, so every shape is known to it.
//
// The first error stops the expansion: add() then returns a placeholder of rank 8 whose extents are
// 1, and the error is reported when the expansion is done; so builders need no checks of their own.
#pragma once

#include <initializer_list>

#include "hone/graph/op.h"
#include "hone/graph/subgraph.h"

namespace hone::graph {

using NamedAttributes = std::initializer_list<std::pair<const char*, Attribute>>;

class ExpandContext : public InferContext {
 public:
  // `nodes` receives what is built, in topological order.
  ExpandContext(Graph& graph, const Node& node, std::vector<Node>& nodes)
      : InferContext(graph, node), nodes_(nodes) {}

  // Operand i of the node; kNoValue if it is missing.
  [[nodiscard]] ValueId input(size_t i) const;
  // Facts about any value built so far.
  [[nodiscard]] const Shape& shape_of(ValueId id) const { return graph().value(id).shape; }
  [[nodiscard]] int64_t rank_of(ValueId id) const {
    return static_cast<int64_t>(shape_of(id).size());
  }
  [[nodiscard]] DType dtype_of(ValueId id) const { return graph().value(id).dtype; }
  [[nodiscard]] const Tensor* constant_of(ValueId id) const {
    const Value& value = graph().value(id);
    return value.constant ? &*value.constant : nullptr;
  }
  // The value with the shape that a value has at run time; kNoValue if its shape is known.
  [[nodiscard]] ValueId extents_of(ValueId id) const { return graph().value(id).extents; }
  void set_extents(ValueId id, ValueId extents);
  // What a value of integers is at most, element by element; null if that is not known.
  [[nodiscard]] const Tensor* upper_of(ValueId id) const {
    const Value& value = graph().value(id);
    return value.constant ? &*value.constant : value.upper ? &*value.upper : nullptr;
  }
  using InferContext::dtype;
  using InferContext::integers;
  using InferContext::shape;

  // A node of the newest opset's operator `type`; its first result, or all `results` of them.
  ValueId add(const char* type, std::vector<ValueId> inputs, NamedAttributes attributes = {});
  std::vector<ValueId> add_all(const char* type, std::vector<ValueId> inputs, size_t results,
                               NamedAttributes attributes = {});
  // A node that does with other operands what `node`, of one result, does; it has its name, too.
  ValueId add_like(const Node& node, std::vector<ValueId> inputs);
  ValueId constant(Tensor tensor);
  ValueId scalar(DType dtype, double value);           // of rank 0
  ValueId integers(const std::vector<int64_t>& list);  // i64 of rank 1

  // Shorthands for what every expansion needs.
  ValueId reshape(ValueId x, const Shape& shape);
  ValueId transpose(ValueId x, const std::vector<int64_t>& perm);
  ValueId cast(ValueId x, DType dtype);  // x itself if it has the type
  // Elements begin .. end of one dimension.
  ValueId slice(ValueId x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
  ValueId reduce(const char* type, ValueId x, const std::vector<int64_t>& axes, bool keep = true);
  ValueId binary(const char* type, ValueId a, ValueId b) { return add(type, {a, b}); }
  ValueId binary(const char* type, ValueId a, double b);  // b of a's type

  // The nodes of a body over these arguments, one per formal input; its outputs. Captured values
  // are operands of the node.
  std::vector<ValueId> inline_body(const SubgraphBody& body, const std::vector<ValueId>& arguments);

  // What the outputs of a body would be, for their types and shapes alone: no node is built.
  [[nodiscard]] Result<std::vector<ValueId>> outputs_of(const SubgraphBody& body,
                                                        const std::vector<ValueId>& arguments);
  // A value that nothing computes, to ask outputs_of() with.
  [[nodiscard]] ValueId stand_in(DType dtype, const Shape& shape) {
    return graph().add_value("stand_in", dtype, shape);
  }

  // Declares result i; does nothing if the node does not want it.
  void result(size_t i, ValueId value);
  [[nodiscard]] bool wants(size_t i) const;
  // For operators that are functions of others in some cases only: in this one the operator's own
  // infer and emit hold, and nothing was built.
  void decline() { declined_ = true; }
  [[nodiscard]] bool declined() const { return declined_; }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  std::vector<ValueId> append(Node made, std::vector<ValueId> inputs, size_t results);
  ValueId placeholder();
  void fail_expansion(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  std::vector<Node>& nodes_;
  Status status_;
  bool declined_ = false;
};

// Infers one node and appends it, or what it expands to, to `nodes`; nothing if it was folded.
[[nodiscard]] Status add_inferred(Graph& graph, Node node, std::vector<Node>& nodes);

}  // namespace hone::graph
