// graph/expand.h - operators that are functions of other operators. Op::expand builds the nodes
// that compute its results while shapes are inferred, so it knows every shape.
//
// The first error stops the expansion: add() then returns a placeholder of rank 8 whose extents are
// 1, and the error is reported when the expansion is done, so builders need no checks of their own.
#pragma once

#include <functional>
#include <initializer_list>

#include "hone/graph/op.h"
#include "hone/graph/subgraph.h"

namespace hone::graph {

using NamedAttributes = std::initializer_list<std::pair<const char*, Attribute>>;

class ExpandContext : public InferContext {
 public:
  // The parameter `nodes` receives the new nodes in topological order.
  ExpandContext(Graph& graph, const Node& node, std::vector<Node>& nodes)
      : InferContext(graph, node), nodes_(nodes) {}

  // Returns operand i of the node; kNoValue if it is missing.
  [[nodiscard]] ValueId input(size_t i) const;
  // These return facts about any value that has been built so far.
  [[nodiscard]] const Shape& shape_of(ValueId id) const { return graph().value(id).shape; }
  [[nodiscard]] int64_t rank_of(ValueId id) const {
    return static_cast<int64_t>(shape_of(id).size());
  }
  [[nodiscard]] DType dtype_of(ValueId id) const { return graph().value(id).dtype; }
  [[nodiscard]] const Tensor* constant_of(ValueId id) const {
    const Value& value = graph().value(id);
    return value.constant ? &*value.constant : nullptr;
  }
  // Returns the value that has the shape of a value at run time; kNoValue if the shape is static.
  [[nodiscard]] ValueId extents_of(ValueId id) const { return graph().value(id).extents; }
  void set_extents(ValueId id, ValueId extents);
  // Returns an upper bound of each element of a value of integers; null if none is known.
  [[nodiscard]] const Tensor* upper_of(ValueId id) const {
    const Value& value = graph().value(id);
    return value.constant ? &*value.constant : value.upper ? &*value.upper : nullptr;
  }
  // Returns the nodes that were built so far, in topological order.
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  using InferContext::dtype;
  using InferContext::graph;
  using InferContext::integers;
  using InferContext::shape;

  // Adds a node of the newest opset's operator `type`. Returns its first result, or all `results`
  // of them.
  ValueId add(const char* type, std::vector<ValueId> inputs, NamedAttributes attributes = {});
  std::vector<ValueId> add_all(const char* type, std::vector<ValueId> inputs, size_t results,
                               NamedAttributes attributes = {});
  // Adds a node that does with other operands what `node`, which has one result, does. It gets its
  // name, too.
  ValueId add_like(const Node& node, std::vector<ValueId> inputs);
  ValueId constant(Tensor tensor);
  ValueId scalar(DType dtype, double value);           // constant of rank 0
  ValueId integers(const std::vector<int64_t>& list);  // i64 constant of rank 1

  // These are shorthands for what every expansion needs.
  // The new shape of a value whose shape depends on data may only have more dimensions of one
  // element.
  ValueId reshape(ValueId x, const Shape& shape);
  ValueId transpose(ValueId x, const std::vector<int64_t>& perm);
  ValueId cast(ValueId x, DType dtype);  // x itself if it has the type
  // Returns the elements begin .. end of one dimension.
  ValueId slice(ValueId x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
  ValueId reduce(const char* type, ValueId x, const std::vector<int64_t>& axes, bool keep = true);
  ValueId binary(const char* type, ValueId a, ValueId b) { return add(type, {a, b}); }
  ValueId binary(const char* type, ValueId a, double b);  // b gets the type of a

  // Adds the nodes of a body for these arguments, one per formal input, and returns its outputs.
  // Captured values are operands of the node.
  std::vector<ValueId> inline_body(const SubgraphBody& body, const std::vector<ValueId>& arguments);

  // Returns values with the types and shapes that the outputs of a body would have; no nodes are
  // built. An argument may be a value that nothing computes.
  [[nodiscard]] Result<std::vector<ValueId>> outputs_of(const SubgraphBody& body,
                                                        const std::vector<ValueId>& arguments);
  // Declares result i. It has no effect if the node does not want it.
  void result(size_t i, ValueId value);
  [[nodiscard]] bool wants(size_t i) const;
  // Tells that the operator's own infer and emit apply in this case, and that nothing was built. It
  // is for operators that are functions of others only in some cases.
  void decline() { declined_ = true; }
  [[nodiscard]] bool declined() const { return declined_; }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  friend class LoopBuilder;  // adds nodes with bodies, and nodes that were built apart
  friend ValueId constant_by(ExpandContext& c, DType dtype, const Shape& shape,
                             const std::function<double(int64_t)>& element);
  friend ValueId uniform(ExpandContext& c, DType dtype, const Shape& shape, double element);
  // Adds one of new_constant(), which a function fills.
  ValueId filled_constant(DType dtype, const Shape& shape,
                          const std::function<void(Tensor&)>& fill);
  friend Result<bool> propagate_rows(ExpandContext& c);
  // Adds a node as add_like() does, for one of any number of results.
  std::vector<ValueId> add_all_like(const Node& node, std::vector<ValueId> inputs);
  std::vector<ValueId> append(Node made, std::vector<ValueId> inputs, size_t results);
  ValueId placeholder();
  void set_origin(Node& made);
  void fail_expansion(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  std::vector<Node>& nodes_;
  std::shared_ptr<const std::string> made_for_;  // Node::made_for of what is made
  Status status_;
  bool declined_ = false;
};

// Returns a constant of numbers of the model's own, such as an attribute, whose extents are not
// those of the largest shape (Value::is_of_largest).
ValueId given_constant(ExpandContext& c, Tensor tensor);
// Returns a constant of which each element follows from its number; an error if it takes more bytes
// than all constants may (kMaxMadeBytes). It is for shapes that extents of the model decide.
ValueId constant_by(ExpandContext& c, DType dtype, const Shape& shape,
                    const std::function<double(int64_t)>& element);
// Likewise, of one number for all elements.
ValueId uniform(ExpandContext& c, DType dtype, const Shape& shape, double element);
// Likewise, of 0, 1, ... in the order of the elements; by default an i64 vector.
ValueId numbers_from_0(ExpandContext& c, DType dtype, const Shape& shape);
ValueId numbers_from_0(ExpandContext& c, int64_t count);

// The results of nodes that are added meanwhile are used only if conditions have these values, too
// (Graph::used_if).
class UsedIf {
 public:
  using Conditions = std::vector<std::pair<ValueId, bool>>;
  UsedIf(Graph& graph, const Conditions& more)
      : conditions_(graph.used_if), before_(graph.used_if.size()) {
    conditions_.insert(conditions_.end(), more.begin(), more.end());
  }
  ~UsedIf() { conditions_.resize(before_); }
  UsedIf(const UsedIf&) = delete;
  UsedIf& operator=(const UsedIf&) = delete;

 private:
  Conditions& conditions_;
  size_t before_;
};

// Nodes that are added meanwhile are no longer in the list of those before them.
class NodesBefore {
 public:
  NodesBefore(Graph& graph, const std::vector<Node>& nodes) : lists_(graph.before) {
    lists_.push_back(&nodes);
  }
  ~NodesBefore() { lists_.pop_back(); }
  NodesBefore(const NodesBefore&) = delete;
  NodesBefore& operator=(const NodesBefore&) = delete;

 private:
  std::vector<const std::vector<Node>*>& lists_;
};

// Infers one node and appends it, or its expansion, to `nodes`; nothing is appended if it was
// folded.
[[nodiscard]] Status add_inferred(Graph& graph, Node node, std::vector<Node>& nodes);

}  // namespace hone::graph
