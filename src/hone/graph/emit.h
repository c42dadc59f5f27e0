// graph/emit.h - turns a group of nodes into one compute::Dag: the first node (the anchor) fixes
// the iteration space, each node adds its stages, the last stage writes the group's result. A later
// contraction of a joined group (fuse.h) is an anchor, too, with a space of its own.
//
// Operators speak of logical coordinates (n, c, h, w); where a value lies in memory (order, border,
// window) enters only here, when a read or write is made of them.
#pragma once

#include <functional>

#include "hone/compute/dag.h"
#include "hone/graph/op.h"

namespace hone::graph {

// A param of a Dag: a value of the graph, or a constant made while emitting.
struct EmittedArgument {
  explicit EmittedArgument(ValueId of) : value(of) {}
  explicit EmittedArgument(Tensor made) : constant(std::move(made)) {}
  ValueId value = kNoValue;
  std::optional<Tensor> constant;
};
struct Emitted {
  compute::Dag dag;
  std::vector<EmittedArgument> arguments;  // one per param, in order; none that no stage touches
};

// A point of the iteration space: its axes' variables and the logical coordinates of the result.
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

enum class Combine : uint8_t { kSum, kProduct, kMax, kMin };

class EmitContext {
 public:
  using PointValue = std::function<ir::Expr(const Point&)>;
  using ReduceValue = std::function<ir::Expr(const Point&, const std::vector<ir::Expr>& reduce)>;

  // `nodes`: indices into graph.nodes. `non_negative`: by value, from non_negative_values().
  EmitContext(const Graph& graph, std::vector<int> nodes, const std::vector<bool>& non_negative);
  [[nodiscard]] Result<Emitted> run() &&;

  // ---- for operators ----
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Node& node() const { return *node_; }
  [[nodiscard]] int opset() const { return node_->opset != 0 ? node_->opset : graph_.opset; }
  [[nodiscard]] const Value& input(size_t i) const { return graph_.value(node_->inputs[i]); }
  [[nodiscard]] const Value& result() const { return graph_.value(node_->outputs[0]); }
  [[nodiscard]] const Value& result_at(size_t i) const { return graph_.value(node_->outputs[i]); }

  // The role names of the result's dimensions, in logical order. Only the anchor's call counts.
  void name_dims(std::vector<std::string> roles);
  // Dimension `dim` becomes two axes: outer_role, and its own role with extent `inner`.
  void split_dim(int dim, const std::string& outer_role, int64_t inner);
  // An axis that the result has not, for the stages that ask for it (a row of scores).
  void add_axis(const std::string& role, int64_t extent);

  // Whether operand i is computed by this task.
  [[nodiscard]] bool inside(size_t i) const;
  // Operand i at logical coordinates, which must lie inside it; one from inside the group only if
  // the anchor before made it.
  [[nodiscard]] ir::Expr read(size_t i, const char* role, const std::vector<ir::Expr>& index);
  // Operand 0 at coordinates that may lie outside by op->padding(): from the border where there is
  // one that holds the right value, else guarded.
  [[nodiscard]] ir::Expr read_padded(const char* role, const std::vector<ir::Expr>& index);
  // Operand i of an elementwise operator at a point: broadcast; from inside the group; or
  // immediate.
  [[nodiscard]] ir::Expr operand(size_t i, const char* role, const Point& point);
  // A constant that the operator computes itself.
  [[nodiscard]] ir::Expr constant(const char* role, const Tensor& tensor,
                                  const std::vector<ir::Expr>& index);
  // The axis of a role at a point.
  [[nodiscard]] ir::Expr axis(const Point& point, std::string_view role) const;
  // The point where that axis is elsewhere.
  [[nodiscard]] Point moved(const Point& point, std::string_view role, const ir::Expr& to) const;
  // What the stage before wrote at this point; or the stage `back` before that.
  [[nodiscard]] ir::Expr last(const Point& point, size_t back = 0);
  // The same at other logical coordinates: along a row, inside a reduction. Not after split_dim().
  [[nodiscard]] ir::Expr last_at(const std::vector<ir::Expr>& index, size_t back = 0);

  // ---- what is not affine (sorts, gathers, scans, scatters) ----
  // An extern stage: the body runs at each point of `axes`, independently of the others, and writes
  // all results of the node by store(). The node's op must be Kind::kOpaque; its only stage, or
  // after others, which it reads by last(): then `axes` have nothing to do with theirs.
  using Body = std::function<std::vector<ir::Stmt>(const std::vector<ir::Expr>& point)>;
  void body(const StageTag& tag, std::vector<compute::Axis> axes, const Body& make);
  // Writes an element of result `output` of the node; converts half types. Null if not wanted.
  [[nodiscard]] ir::Stmt store(size_t output, const std::vector<ir::Expr>& index,
                               const ir::Expr& value);
  // A result's element as written before (of the node's own type, or f32 for half types).
  [[nodiscard]] ir::Expr read_result(size_t output, const std::vector<ir::Expr>& index);

  // Which axes a stage has: those of the result's dimensions but these, and added ones.
  struct StageAxes {
    StageAxes(std::vector<int> no = {}, std::vector<std::string> also = {})  // NOLINT: implicit
        : without(std::move(no)), with(std::move(also)) {}
    std::vector<int> without;
    std::vector<std::string> with;
  };
  void pointwise(const StageTag& tag, const PointValue& value, const StageAxes& axes = {});
  // `until`: where the terms of a point end (compute::Stage::until).
  void reduce(Combine combine, const StageTag& tag, std::vector<compute::Axis> reduce,
              const ReduceValue& value, const StageAxes& axes = {},
              const PointValue& until = nullptr);
  // A reduction whose values are updated together (the largest element and its place). last() reads
  // the first one; the others are its own.
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
    int dim;  // logical[dim] += stride * axis; -1: an added axis
    int64_t stride;
  };
  struct Record {  // a stage whose output buffer is not decided yet
    StageTag tag;
    std::vector<size_t> space;  // its axes, as positions in the space
    std::vector<int> dims;      // and the result's dimensions that they are
    std::vector<compute::Axis> axes, reduce;
    std::vector<ir::Expr> index;  // logical coordinates of the point; null for a dropped dimension
    Combine combine = Combine::kSum;
    ir::Expr value, until;
    std::vector<ir::Stmt> body = {};          // an extern stage: instead of a value
    std::vector<compute::Output> joint = {};  // of a reduction of several values: all of them
    ir::BufferPtr buffer = {};                // made when it is first read
  };
  struct Param {
    EmittedArgument argument;
    ir::BufferPtr buffer;
  };

  void start_part(size_t node);
  void make_space();
  const ir::BufferPtr& buffer_of(Record& record);
  Record new_record(const StageTag& tag, const StageAxes& axes) const;
  [[nodiscard]] size_t place_of(std::string_view role) const;  // in the space
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
  int part_result_ = 0;  // the node whose result has the shape of the anchor's
  std::vector<std::string> roles_;
  std::vector<std::pair<int, std::pair<std::string, int64_t>>> splits_;
  std::vector<SpaceAxis> added_;
  std::vector<SpaceAxis> space_;
  std::vector<Record> records_;
  size_t first_record_ = 0;                         // of the node being emitted
  std::vector<std::pair<ValueId, size_t>> inside_;  // values of the group -> record
  std::vector<Param> params_;
  std::vector<ir::BufferPtr> results_;  // of an extern stage, by output
  compute::DagBuilder builder_;
};

// For each value whether it is known never to be negative.
[[nodiscard]] std::vector<bool> non_negative_values(const Graph& graph);

// How a value lies in memory: its Storage, or densely in ONNX order if none is assigned.
[[nodiscard]] Storage storage_or_dense(const Value& value);
// The memory order of a value: 0, 1, 2, ... if none is assigned.
[[nodiscard]] std::vector<int> order_of(const Value& value);

// A constant of any element type.
[[nodiscard]] ir::Expr literal(DType dtype, double value);
// An element of a tensor, of the type in which it is computed.
[[nodiscard]] ir::Expr literal(const Tensor& tensor, int64_t flat);

// What combining starts from: 0, 1, the least or the greatest value of the type.
[[nodiscard]] ir::Expr combine_identity(Combine combine, DType dtype);
// The least and the greatest value of a type; infinite for floats.
[[nodiscard]] ir::Expr lowest(DType dtype);
[[nodiscard]] ir::Expr highest(DType dtype);

// Serial loops around a body, for extern stages; the axes' variables count from 0.
[[nodiscard]] ir::Stmt loops_over(const std::vector<compute::Axis>& axes,
                                  std::vector<ir::Stmt> body);

// The type in which values of a type are computed: f32 for the half types, else the type itself.
[[nodiscard]] DType compute_type(DType dtype);

}  // namespace hone::graph
