#include <algorithm>

#include "hone/base/hash.h"
#include "hone/compute/affine.h"

namespace hone::compute {
namespace {

using ir::Expr;

// Hashes a Dag by structure: buffers and axes count by their first use, never by name.
class KeyBuilder {
 public:
  explicit KeyBuilder(const Dag& dag) : dag_(dag) {}

  uint64_t key() {
    for (const Stage& stage : dag_.stages) add_stage(stage);
    return hash_;
  }

  // In the order in which they are met; after key().
  [[nodiscard]] const std::vector<ir::BufferPtr>& buffers() const { return buffers_; }

 private:
  void add(uint64_t x) { hash_ = hash_combine(hash_, x); }
  void add_text(std::string_view text) { add(hash_string(text)); }

  void add_buffer(const ir::BufferPtr& buffer) {
    const auto it = std::find(buffers_.begin(), buffers_.end(), buffer);
    add(static_cast<uint64_t>(it - buffers_.begin()));
    if (it != buffers_.end()) return;
    buffers_.push_back(buffer);
    const ir::Param* param = dag_.find_param(buffer);
    add(param ? 1 + static_cast<uint64_t>(param->role) : 0);
    add(static_cast<uint64_t>(buffer->dtype));
    add(buffer->shape.size());
    for (const int64_t extent : buffer->shape) add(static_cast<uint64_t>(extent));
    add(hash_bytes(buffer->values.data(), buffer->values.size() * sizeof(float)));
  }

  void add_expr(const Expr& e) {
    if (!e) return add(0x5eed);
    add(static_cast<uint64_t>(e->op) << 8 | static_cast<uint64_t>(e->type));
    add(static_cast<uint64_t>(e->int_value));
    add(hash_bytes(&e->float_value, sizeof(double)));
    if (e->var)
      add(static_cast<uint64_t>(std::find(vars_.begin(), vars_.end(), e->var) - vars_.begin()));
    if (e->buffer) add_buffer(e->buffer);
    add(e->args.size());
    // The order of a maximum's operands, which decides about NaN alone, is no part of the key.
    const bool swapped = e->args.size() == 2 && is_own(e->args[1]) &&
                         (e->op == ir::Op::kMax || e->op == ir::Op::kMin);
    for (size_t i = 0; i < e->args.size(); ++i) add_expr(e->args[swapped ? 1 - i : i]);
  }

  // The old value of the output whose new one is hashed.
  [[nodiscard]] bool is_own(const Expr& e) const {
    return e->op == ir::Op::kLoad && e->buffer == own_;
  }

  void add_stmt(const ir::Stmt& s) {
    add(static_cast<uint64_t>(s->kind) << 8 | static_cast<uint64_t>(s->for_kind));
    if (s->var) vars_.push_back(s->var);
    if (s->buffer) add_buffer(s->buffer);
    for (const Expr& e : {s->min, s->extent, s->condition, s->value}) add_expr(e);
    for (const Expr& index : s->indices) add_expr(index);
    add(s->body.size());
    for (const ir::Stmt& child : s->body) add_stmt(child);
  }

  void add_stage(const Stage& stage) {
    add_text(stage.op);
    vars_ = stage_vars(stage);
    add(stage.axes.size());
    for (const Axis& axis : stage_axes(stage)) add(static_cast<uint64_t>(axis.extent));
    for (const ir::BufferPtr& buffer : stage.extern_reads) add_buffer(buffer);
    add_expr(stage.where);
    if (stage.until) add_expr(stage.until);
    if (stage.plain_sums) add_text("plain_sums");
    for (const Output& output : stage.outputs) {
      add_buffer(output.buffer);
      for (const Expr& index : output.write) add_expr(index);
      own_ = output.buffer;
      add_expr(output.value);
      add_expr(output.identity);
      own_ = nullptr;
    }
    for (const ir::Stmt& s : stage.body) add_stmt(s);
  }

  const Dag& dag_;
  uint64_t hash_ = 0x686f6e65;
  std::vector<ir::BufferPtr> buffers_;
  std::vector<ir::VarPtr> vars_;
  ir::BufferPtr own_;
};

}  // namespace

uint64_t task_key(const Dag& dag) { return KeyBuilder(dag).key(); }

std::vector<size_t> params_by_use(const Dag& dag) {
  KeyBuilder builder(dag);
  builder.key();
  std::vector<ir::BufferPtr> buffers = builder.buffers();
  for (const Stage& stage : dag.stages) {  // how partial results are joined is no part of the key
    for (const Output& output : stage.outputs) {
      if (!output.merge) continue;
      ir::visit(output.merge, [&](const Expr& e) {
        if (e->buffer) buffers.push_back(e->buffer);
      });
    }
  }
  std::vector<size_t> order;
  for (const ir::BufferPtr& buffer : buffers) {
    const ir::Param* param = dag.find_param(buffer);
    if (!param) continue;
    const auto index = static_cast<size_t>(param - dag.params.data());
    if (std::find(order.begin(), order.end(), index) == order.end()) order.push_back(index);
  }
  return order;
}

}  // namespace hone::compute
