// compute/dag.h - a computation as a small graph of stages in the style of tensor expressions.
//
// A stage has named spatial axes, reduce axes and one scalar value per output, written as an
// ir::Expr over the axes' variables. It reads by kLoad nodes whose indices are affine in the axes
// (padding is a kSelect around the load whose condition is a conjunction of affine comparisons),
// and writes through an injective affine map of its spatial axes, so that
//   - borders are offsets:             Y[n, h + 1, w + 1, c]
//   - Winograd's output is tiles:      Y[n, 4*th + i, 4*tw + j, c]
//   - a concatenation or the phases of a transposed convolution are several stages that write one
//     buffer with disjoint images.
// A buffer that is no param is an intermediate. Stages are in topological order.
#pragma once

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::compute {

struct Axis {
  ir::VarPtr var;  // var->name is the role name of the axis, unique in its stage: "oc", "kh", ...
  int64_t extent;
};

// One result of a stage. A reduction may have several that are updated together: attention by an
// online softmax needs the running maximum, sum and accumulator.
struct Output {
  ir::BufferPtr buffer;
  std::vector<ir::Expr> write;  // coordinates, affine and injective in the spatial axes it uses
  // Without reduce axes this is the value of a point. With reduce axes it is the new value after
  // one reduce point; it reads the old values of this stage's outputs by load(buffer, write).
  ir::Expr value;
  ir::Expr identity;  // with reduce axes: the initial value
  // With reduce axes this combines two partial results: it reads one by load(buffer, write) and the
  // other by load(other, write). It is null if the reduction must not be divided.
  ir::Expr merge;
  ir::BufferPtr other;  // stands for the other partial result in `merge`; same shape as buffer
};
// If an output does not use all spatial axes in `write` (the running maximum does not depend on the
// head dimension), it is updated once per point of the axes that it does use.

struct Stage {
  std::string name;  // role name, unique in the Dag: "conv2d", "add", "add.1", ...
  std::string op;    // for the kernel class: "conv2d", "add", "relu"; "" counts as part of the next
  std::vector<Axis> axes;
  std::vector<Axis> reduce;
  ir::Expr
      // A condition, or null; points where it is false are not computed (causal mask, the remainder
      // of a Winograd tile).
      where;
  std::vector<Output> outputs;
  // For an extern stage (sort, scan, gather, ...), `body` runs once for each point of the axes, in
  // any order and on any thread. It reads `extern_reads` and writes any elements of the outputs,
  // but no point accesses what another one writes. The outputs of such a stage have only their
  // buffer set, and no other stage writes them. Reduce axes and `where` are empty.
  std::vector<ir::Stmt> body;
  std::vector<ir::BufferPtr> extern_reads;
  // For a reduction over one axis: terms from this index on change nothing (the keys that a causal
  // mask hides), so a schedule may leave them out. It is affine in the spatial axes, or null.
  ir::Expr until = nullptr;
  // The sums are computed as they are written: algorithms whose terms cancel (Winograd's and
  // Strassen's) are no schedules of this stage.
  bool plain_sums = false;
  [[nodiscard]] bool is_extern() const { return !body.empty(); }
};

struct Dag {
  std::vector<ir::Param> params;  // kInput, kConstant and kOutput, in the order of kernel arguments
  std::vector<Stage> stages;
  [[nodiscard]] const Stage* find_stage(std::string_view name) const;
  [[nodiscard]] const ir::Param* find_param(const ir::BufferPtr& buffer) const;
  // Both return indices of stages: those that write a buffer, and those that read it.
  [[nodiscard]] std::vector<int> writers(const ir::BufferPtr& buffer) const;
  [[nodiscard]] std::vector<int> readers(const ir::BufferPtr& buffer) const;
};

// A rectangular window of a buffer: reading element i of the view reads buffer[i + offset].
struct View {
  ir::BufferPtr buffer;
  std::vector<int64_t> offset;  // elements per dimension
  std::vector<int64_t> shape;
  explicit View(ir::BufferPtr whole);
  View(ir::BufferPtr buffer, std::vector<int64_t> offset, std::vector<int64_t> shape);
  [[nodiscard]] std::vector<ir::Expr> at(const std::vector<ir::Expr>& indices) const;
  [[nodiscard]] ir::Expr read(const std::vector<ir::Expr>& indices) const;
};

// Checks everything that this header promises. The message names the stage.
[[nodiscard]] Status verify(const Dag& dag);

// Returns the kernel class: the stages' op tags in order, joined by '+': "conv2d+bias+relu".
[[nodiscard]] std::string kernel_class(const Dag& dag);

// Returns a hash of the Dag with shapes, types, roles, writes and bodies, but without any name that
// came from a model: equal tasks have equal keys, whatever the order in which params or axes were
// made. A param that no stage touches is not part of it; code that shares a kernel among tasks of
// one key removes such params and compares the others (compute/kernel_params.h).
[[nodiscard]] uint64_t task_key(const Dag& dag);

// Returns indices of the params in the order in which the stages first touch them, which is the
// order of task_key. A param that no stage touches is absent.
[[nodiscard]] std::vector<size_t> params_by_use(const Dag& dag);

// Returns a text for people and for the database: "conv2d+bias+relu data[1,58,58,64] weight[...] ->
// [...]".
[[nodiscard]] std::string describe(const Dag& dag);

// Returns the number of operations on floats; a fused multiply-add counts 2.
[[nodiscard]] double flops(const Dag& dag);
[[nodiscard]] double flops(const Stage& stage);

// Returns the reference program: every stage is a phase of its own, loops are in the order of the
// axes, nothing is parallel.
[[nodiscard]] ir::Program naive_program(const Dag& dag);

// ---- building ----

// Builds a Dag and names stages and buffers by their roles. Repeated names get ".1", ".2", ...;
// stages and buffers are numbered separately.
class DagBuilder {
 public:
  ir::BufferPtr input(std::string role, std::vector<int64_t> shape, DType dtype = DType::kF32);
  ir::BufferPtr constant(std::string role, std::vector<int64_t> shape, DType dtype = DType::kF32);
  ir::BufferPtr output(std::string role, std::vector<int64_t> shape, DType dtype = DType::kF32);
  ir::BufferPtr intermediate(std::string role, std::vector<int64_t> shape,
                             DType dtype = DType::kF32);

  // Adds a pointwise stage, which writes the value at each point of `axes` to out.at(axes).
  void pointwise(std::string op, std::vector<Axis> axes, const View& out, ir::Expr value);
  // These add a reduction by sum or max, where `value` is the contribution of one reduce point.
  void sum(std::string op, std::vector<Axis> axes, std::vector<Axis> reduce, const View& out,
           ir::Expr value);
  void max(std::string op, std::vector<Axis> axes, std::vector<Axis> reduce, const View& out,
           ir::Expr value);
  // Adds any other stage.
  void add(Stage stage);

  [[nodiscard]] Result<Dag> build() &&;  // verifies the Dag

 private:
  Dag dag_;
  std::vector<std::string> buffer_names_, stage_names_;
};

[[nodiscard]] Axis make_axis(std::string role, int64_t extent);
[[nodiscard]] std::vector<ir::Expr> variables(const std::vector<Axis>& axes);

}  // namespace hone::compute
