// compute/dag.h - WHAT is computed: a small graph of stages in the style of tensor expressions.
//
// A stage has named spatial axes, reduce axes and one scalar value per output, written as an
// ir::Expr over the axes' variables. It reads by kLoad nodes whose indices are affine in the axes
// (padding is a kSelect around the load whose condition is a conjunction of affine comparisons),
// and writes through an injective affine map of its spatial axes, so that
//   - borders are offsets:             Y[n, h + 1, w + 1, c]
//   - Winograd's output is tiles:      Y[n, 4*th + i, 4*tw + j, c]
//   - a concatenation or the phases of a transposed convolution are several stages that write one
//     buffer with disjoint images.
// A buffer that is no param is an intermediate; stages stand in topological order.
#pragma once

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::compute {

struct Axis {
  ir::VarPtr var;  // var->name is the axis' role name: "oc", "kh", ... unique in its stage
  int64_t extent;
};

// One result of a stage; a reduction may have several that are updated together (the running
// maximum, sum and accumulator of an online softmax: ATFormer-style attention needs all three).
struct Output {
  ir::BufferPtr buffer;
  std::vector<ir::Expr> write;  // coordinates, affine and injective in the spatial axes it uses
  // Without reduce axes: the value. With: the new value at one reduce point; it reads the old
  // values of this stage's outputs by load(buffer, write).
  ir::Expr value;
  ir::Expr identity;  // with reduce axes: the value before the first point
  // With reduce axes: the value of two partial results joined; reads load(buffer, write) and the
  // other part by load(other, write). Null if the reduction must stay in one piece.
  ir::Expr merge;
  ir::BufferPtr other;  // stands for the other part in `merge`; same shape as buffer
};
// An output that does not use all spatial axes in `write` (the running maximum does not depend on
// the head dimension) is updated once per point of the axes that it does use.

struct Stage {
  std::string name;  // role name, unique in the Dag: "conv2d", "add", "add.1", ...
  std::string op;    // for the kernel class: "conv2d", "add", "relu"; "" counts as part of the next
  std::vector<Axis> axes;
  std::vector<Axis> reduce;
  ir::Expr
      where;  // points outside are not computed (causal mask, rest of a Winograd tile); or null
  std::vector<Output> outputs;
  // Extern stage (sort, scan, gather, ...): `body` runs once for each point of the axes, in any
  // order and on any thread; it reads `extern_reads` and writes the outputs wherever it likes, but
  // no point touches what another one writes. Its outputs have a buffer and nothing else, and no
  // other stage writes them. Reduce axes and `where` are empty.
  std::vector<ir::Stmt> body;
  std::vector<ir::BufferPtr> extern_reads;
  // Of a reduction over one axis: its terms from here on change nothing (the keys that a causal
  // mask hides), so a schedule may leave them out; affine in the spatial axes; or null.
  ir::Expr until = nullptr;
  [[nodiscard]] bool is_extern() const { return !body.empty(); }
};

struct Dag {
  std::vector<ir::Param> params;  // kInput, kConstant and kOutput, in the order of kernel arguments
  std::vector<Stage> stages;
  [[nodiscard]] const Stage* find_stage(std::string_view name) const;
  [[nodiscard]] const ir::Param* find_param(const ir::BufferPtr& buffer) const;
  // Index of the stages that write or read a buffer.
  [[nodiscard]] std::vector<int> writers(const ir::BufferPtr& buffer) const;
  [[nodiscard]] std::vector<int> readers(const ir::BufferPtr& buffer) const;
};

// A rectangular window of a buffer: reading element i of the view reads buffer[i + offset].
struct View {
  ir::BufferPtr buffer;
  std::vector<int64_t> offset;  // per dimension, elements
  std::vector<int64_t> shape;
  explicit View(ir::BufferPtr whole);
  View(ir::BufferPtr buffer, std::vector<int64_t> offset, std::vector<int64_t> shape);
  [[nodiscard]] std::vector<ir::Expr> at(const std::vector<ir::Expr>& indices) const;
  [[nodiscard]] ir::Expr read(const std::vector<ir::Expr>& indices) const;
};

// Checks everything that this header promises; names the stage in the message.
[[nodiscard]] Status verify(const Dag& dag);

// The kernel class: the stages' op tags in order, joined by '+': "conv2d+bias+relu".
[[nodiscard]] std::string kernel_class(const Dag& dag);

// Hash of the Dag with shapes, types, roles, writes and bodies, but without any name that came
// from a model: equal tasks have equal keys, whatever the order of the params' or axes' creation.
// It knows nothing of a param that no stage touches; who shares a kernel among tasks of one key
// takes such params away and compares the others (compute/kernel_params.h).
[[nodiscard]] uint64_t task_key(const Dag& dag);

// Indices of the params, in the order in which the stages first touch them, as the key counts them.
// A param that no stage touches is absent.
[[nodiscard]] std::vector<size_t> params_by_use(const Dag& dag);

// Text for people and for the database: "conv2d+bias+relu data[1,58,58,64] weight[...] -> [...]".
[[nodiscard]] std::string describe(const Dag& dag);

// Multiplications, additions and other arithmetic on floats; a fused multiply-add counts 2.
[[nodiscard]] double flops(const Dag& dag);
[[nodiscard]] double flops(const Stage& stage);

// Every stage a phase of its own, loops in the order of the axes, nothing parallel: the reference.
[[nodiscard]] ir::Program naive_program(const Dag& dag);

// ---- building ----

// Names stages and buffers by role, each kind for itself, appending ".1", ".2" to repeated names.
class DagBuilder {
 public:
  ir::BufferPtr input(std::string role, std::vector<int64_t> shape, DType dtype = DType::kF32);
  ir::BufferPtr constant(std::string role, std::vector<int64_t> shape, DType dtype = DType::kF32);
  ir::BufferPtr output(std::string role, std::vector<int64_t> shape, DType dtype = DType::kF32);
  ir::BufferPtr intermediate(std::string role, std::vector<int64_t> shape,
                             DType dtype = DType::kF32);

  // A pointwise stage: value at each point of `axes`, written to out.at(axes).
  void pointwise(std::string op, std::vector<Axis> axes, const View& out, ir::Expr value);
  // A reduction by sum, max or min: `value` is what one reduce point contributes.
  void sum(std::string op, std::vector<Axis> axes, std::vector<Axis> reduce, const View& out,
           ir::Expr value);
  void max(std::string op, std::vector<Axis> axes, std::vector<Axis> reduce, const View& out,
           ir::Expr value);
  // Anything else.
  void add(Stage stage);

  [[nodiscard]] Result<Dag> build() &&;  // verifies

 private:
  Dag dag_;
  std::vector<std::string> buffer_names_, stage_names_;
};

[[nodiscard]] Axis make_axis(std::string role, int64_t extent);
[[nodiscard]] std::vector<ir::Expr> variables(const std::vector<Axis>& axes);

}  // namespace hone::compute
