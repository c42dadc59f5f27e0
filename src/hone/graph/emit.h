// graph/emit.h - turns a group of nodes into one compute::Dag. The first node (the anchor)
// determines the iteration space, each node adds its stages, and the last stage writes the group's
// result. A later contraction of a joined group (fuse.h) is an anchor, too, with an iteration space
// of its own.
//
// Operators use logical coordinates (n, c, h, w). The place of a value in memory (order, border,
// window) is applied only here, when a read or write is made from them.
#pragma once

#include <functional>

#include "hone/compute/dag.h"
#include "hone/graph/op.h"

namespace hone::graph {

// A param of a Dag: a value of the graph, or a constant that was made while emitting.
struct EmittedArgument {
  explicit EmittedArgument(ValueId of) : value(of) {}
  explicit EmittedArgument(Tensor made) : constant(std::move(made)) {}
  ValueId value = kNoValue;
  std::optional<Tensor> constant;
};
struct Emitted {
  compute::Dag dag;
  // One per param, in order; params that no stage touches have none.
  std::vector<EmittedArgument> arguments;
};

// A point of the iteration space: the variables of its axes, and the logical coordinates of the
// result.
struct Point {
  std::vector<ir::Expr> axes;
  std::vector<ir::Expr> index;
};

// The name of a stage and its tag in the kernel class; "" counts as part of the next stage.
struct StageTag {
  std::string name, op;
  StageTag(const char* both) : name(both), op(both) {}  // NOLINT: implicit by design
  StageTag(std::string stage, std::string tag) : name(std::move(stage)), op(std::move(tag)) {}
};

// A maximum or minimum passes over NaN, or the result is NaN if an element is.
enum class Combine : uint8_t { kSum, kProduct, kMax, kMin, kMaxOrNan, kMinOrNan };

class EmitContext {
 public:
  using PointValue = std::function<ir::Expr(const Point&)>;
  using ReduceValue = std::function<ir::Expr(const Point&, const std::vector<ir::Expr>& reduce)>;

  // The parameter `nodes` has indices into graph.nodes; `non_negative` comes from
  // non_negative_values() and has one element per value.
  EmitContext(const Graph& graph, std::vector<int> nodes, const std::vector<bool>& non_negative);
  [[nodiscard]] Result<Emitted> run() &&;

  // ---- for operators ----
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Node& node() const { return *node_; }
  [[nodiscard]] int opset() const { return node_->opset != 0 ? node_->opset : graph_.opset; }
  [[nodiscard]] const Value& input(size_t i) const { return graph_.value(node_->inputs[i]); }
  [[nodiscard]] const Value& result() const { return graph_.value(node_->outputs[0]); }
  [[nodiscard]] const Value& result_at(size_t i) const { return graph_.value(node_->outputs[i]); }

  // Sets the role names of the result's dimensions, in logical order. Only the anchor's call has an
  // effect.
  void name_dims(std::vector<std::string> roles);
  // Splits dimension `dim` into two axes: outer_role, and its own role with extent `inner`.
  void split_dim(int dim, const std::string& outer_role, int64_t inner);
  // Adds an axis that the result does not have, for stages that ask for it (a row of scores).
  void add_axis(const std::string& role, int64_t extent);

  // Returns whether operand i is computed by this task.
  [[nodiscard]] bool inside(size_t i) const;
  // Reads operand i at logical coordinates, which must lie inside it. An operand from inside the
  // group must be the result of the anchor before.
  [[nodiscard]] ir::Expr read(size_t i, const char* role, const std::vector<ir::Expr>& index);
  // Reads operand 0 at coordinates that may be outside by op->padding(): from the border if that
  // exists and has the right value, else under a guard.
  [[nodiscard]] ir::Expr read_padded(const char* role, const std::vector<ir::Expr>& index);
  // Reads operand i of an elementwise operator at a point. It may be broadcast, come from inside
  // the group, or be an immediate.
  [[nodiscard]] ir::Expr operand(size_t i, const char* role, const Point& point);
  // Reads a constant that the operator computes itself.
  [[nodiscard]] ir::Expr constant(const char* role, const Tensor& tensor,
                                  const std::vector<ir::Expr>& index);
  // Returns the axis of a role at a point.
  [[nodiscard]] ir::Expr axis(const Point& point, std::string_view role) const;
  // Returns the point with `to` as the value of that axis.
  [[nodiscard]] Point moved(const Point& point, std::string_view role, const ir::Expr& to) const;
  // Reads what the last stage wrote at this point, or the stage `back` before that.
  [[nodiscard]] ir::Expr last(const Point& point, size_t back = 0);
  // Reads what that stage wrote at other logical coordinates: along a row, inside a reduction. It
  // must not be called after split_dim().
  [[nodiscard]] ir::Expr last_at(const std::vector<ir::Expr>& index, size_t back = 0);

  // ---- what is not affine (sorts, gathers, scans, scatters) ----
  // Adds an extern stage. Its body runs at each point of `axes`, independently of the others, and
  // writes all results of the node by store(). The node's op must be Kind::kOpaque. It is the
  // node's only stage, or follows others, which it reads by last(); `axes` are then unrelated to
  // theirs.
  using Body = std::function<std::vector<ir::Stmt>(const std::vector<ir::Expr>& point)>;
  void body(const StageTag& tag, std::vector<compute::Axis> axes, const Body& make);
  // Writes an element of result `output` of the node and converts half types. Returns null if the
  // result is not wanted.
  [[nodiscard]] ir::Stmt store(size_t output, const std::vector<ir::Expr>& index,
                               const ir::Expr& value);
  // Reads an element of a result that was written before, in the node's own type, or in f32 for
  // half types.
  [[nodiscard]] ir::Expr read_result(size_t output, const std::vector<ir::Expr>& index);

  // The axes of a stage: those of the result's dimensions except these, and added ones.
  struct StageAxes {
    StageAxes(std::vector<int> no = {}, std::vector<std::string> also = {})  // NOLINT: implicit
        : without(std::move(no)), with(std::move(also)) {}
    std::vector<int> without;
    std::vector<std::string> with;
  };
  void pointwise(const StageTag& tag, const PointValue& value, const StageAxes& axes = {});
  // Adds a reduction. `until` is where the terms of a point end (compute::Stage::until).
  void reduce(Combine combine, const StageTag& tag, std::vector<compute::Axis> reduce,
              const ReduceValue& value, const StageAxes& axes = {},
              const PointValue& until = nullptr);
  // A reduction of several values that are updated together (the largest element and its position).
  // last() reads the first one; the others are internal.
  struct Joint {
    using Values = std::vector<ir::Expr>;
    Values identity;
    std::function<Values(const Point&, const std::vector<ir::Expr>& reduce, const Values& old)>
        update;
    std::function<Values(const Values& one, const Values& other)> merge;
  };
  void reduce_together(const StageTag& tag, std::vector<compute::Axis> reduce, const Joint& joint,
                       const StageAxes& axes = {});

 private:
  struct SpaceAxis {
    std::string role;
    int64_t extent;
    int dim;  // logical[dim] += stride * axis; -1 for an added axis
    int64_t stride;
  };
  struct Record {  // a stage whose output buffer is not decided yet
    StageTag tag;
    std::vector<size_t> space;  // its axes, as indices into the space
    std::vector<int> dims;      // dimensions of the result that these are
    std::vector<compute::Axis> axes, reduce;
    std::vector<ir::Expr> index;  // logical coordinates of the point; null for a dropped dimension
    Combine combine = Combine::kSum;
    ir::Expr value, until;
    std::vector<ir::Stmt> body = {};          // body of an extern stage, which has no value
    std::vector<compute::Output> joint = {};  // all values of a reduction of several
    ir::BufferPtr buffer = {};                // made when it is first read
    bool plain_sums = false;                  // as in compute::Stage
  };
  struct Param {
    EmittedArgument argument;
    ir::BufferPtr buffer;
  };

  void start_part(size_t node);
  void make_space();
  const ir::BufferPtr& buffer_of(Record& record);
  Record new_record(const StageTag& tag, const StageAxes& axes) const;
  [[nodiscard]] size_t place_of(std::string_view role) const;  // returns an index into the space
  [[nodiscard]] Point point_of(const Record& record) const;
  ir::Expr load_record(size_t record, const Point& point);
  const ir::BufferPtr& param(ValueId id, const char* role);
  const ir::BufferPtr& result_buffer(size_t output);
  void widen_result();
  void add_body(Record& record);
  void add_stage(const Record& record, const ir::BufferPtr& buffer,
                 const std::vector<ir::Expr>& write);

  const Graph& graph_;
  std::vector<int> nodes_;
  const std::vector<bool>& non_negative_;
  const Node* node_ = nullptr;
  int part_result_ = 0;  // node whose result has the shape of the anchor's
  std::vector<std::string> roles_;
  std::vector<std::pair<int, std::pair<std::string, int64_t>>> splits_;
  std::vector<SpaceAxis> added_;
  std::vector<SpaceAxis> space_;
  std::vector<Record> records_;
  size_t first_record_ = 0;  // first record of the node that is being emitted
  std::vector<std::pair<ValueId, size_t>> inside_;  // records of the values of the group
  std::vector<Param> params_;
  std::vector<ir::BufferPtr> results_;  // results of an extern stage, by output
  compute::DagBuilder builder_;
};

// Returns, per value, whether it is known never to be negative.
[[nodiscard]] std::vector<bool> non_negative_values(const Graph& graph);

// Returns the Storage of a value; if none is assigned, a dense one in ONNX order.
[[nodiscard]] Storage storage_or_dense(const Value& value);
// Returns the memory order of a value; 0, 1, 2, ... if none is assigned.
[[nodiscard]] std::vector<int> order_of(const Value& value);

// Returns a constant of any element type.
[[nodiscard]] ir::Expr literal(DType dtype, double value);
// Returns an element of a tensor, in the type in which it is computed.
[[nodiscard]] ir::Expr literal(const Tensor& tensor, int64_t flat);

// Returns the neutral element: 0, 1, the least or the greatest value of the type.
[[nodiscard]] ir::Expr combine_identity(Combine combine, DType dtype);
// Both return a bound of a type: the least or the greatest value, which is infinite for floats.
[[nodiscard]] ir::Expr lowest(DType dtype);
[[nodiscard]] ir::Expr highest(DType dtype);

// Makes serial loops around a body, for extern stages. The axes' variables count from 0.
[[nodiscard]] ir::Stmt loops_over(const std::vector<compute::Axis>& axes,
                                  std::vector<ir::Stmt> body);

// Returns the type in which values of a type are computed: f32 for the half types, else the type
// itself.
[[nodiscard]] DType compute_type(DType dtype);

}  // namespace hone::graph
