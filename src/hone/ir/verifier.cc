#include "hone/ir/verifier.h"

#include <algorithm>

#include "hone/ir/gpu/block_rules.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/printer.h"

namespace hone::ir {
namespace {

class Verifier {
 public:
  Status program(const Program& p) {
    for (const Param& param : p.params) {
      if (!param.buffer) return invalid("a parameter of {} is null", p.name);
      const Buffer& b = *param.buffer;
      if (find(param.buffer)) return invalid("parameter {} stands twice in the list", b.name);
      if (b.scope != Scope::kGlobal)
        return invalid("parameter {} is {}, expected global", b.name, scope_name(b.scope));
      HONE_RETURN_IF_ERROR(size(b));
      if (!b.values.empty() && static_cast<int64_t>(b.values.size()) != b.num_elements()) {
        return invalid("{} has {} values, expected {}", b.name, b.values.size(), b.num_elements());
      }
      buffers_.push_back({param.buffer, true, param.role});
    }
    for (size_t i = 0; i < p.phases.size(); ++i) {
      if (!p.phases[i].body) return invalid("phase {} has no body", i);
      prepare_ = p.phases[i].prepare;
      Status status = statement(*p.phases[i].body, true);
      if (status.ok() && is_gpu_code(*p.phases[i].body))
        status = prepare_ ? invalid("statements of GPUs prepare constants")
                          : check_block_rules(*p.phases[i].body);
      if (!status.ok()) return invalid("phase {}: {}", i, status.message());
    }
    return ok_status();
  }

 private:
  struct Declared {
    BufferPtr buffer;
    bool is_param;
    Role role;
  };

  const Declared* find(const BufferPtr& b) const {
    for (const Declared& d : buffers_) {
      if (d.buffer == b) return &d;
    }
    return nullptr;
  }

  static Status size(const Buffer& b) {
    int64_t n = dtype_bytes(b.dtype);
    for (const int64_t d : b.shape) {
      if (d < 0) return invalid("{} has a negative dimension", b.name);
      if (__builtin_mul_overflow(n, std::max<int64_t>(d, 1), &n))
        return invalid("{} is too large", b.name);
    }
    return ok_status();
  }

  Status expression(const Expr& e, const char* what, DType type) {
    if (!e) return invalid("{} is missing", what);
    HONE_RETURN_IF_ERROR(node(*e));
    if (e->type != type)
      return invalid("{} is {}, expected {}: {}", what, dtype_name(e->type), dtype_name(type),
                     print(e));
    return ok_status();
  }

  Status node(const ExprNode& e) {
    for (const Expr& a : e.args) {
      if (!a) return invalid("an operand of '{}' is missing", op_info(e.op).name);
      HONE_RETURN_IF_ERROR(node(*a));
    }
    switch (e.op) {
      case Op::kInt:
        return is_float(e.type) ? invalid("an integer constant of type {}", dtype_name(e.type))
                                : leaf(e);
      case Op::kFloat:
        return is_float(e.type) ? leaf(e)
                                : invalid("a float constant of type {}", dtype_name(e.type));
      case Op::kVar:
        if (!e.var || e.type != DType::kI64) return invalid("a variable that is null or not i64");
        if (std::find(vars_.begin(), vars_.end(), e.var) == vars_.end())
          return invalid("variable {} is used outside of its loop", e.var->name);
        return leaf(e);
      case Op::kLoad:
        HONE_RETURN_IF_ERROR(access(e.buffer, e.args, "load"));
        if (e.type != e.buffer->dtype)
          return invalid("a load of {} is {}, expected {}", e.buffer->name, dtype_name(e.type),
                         dtype_name(e.buffer->dtype));
        return readable(e.buffer);
      case Op::kBits:
        if (e.args.size() == 1 && dtype_bytes(e.args[0]->type) != dtype_bytes(e.type))
          return invalid("the bits of {} as {}", dtype_name(e.args[0]->type), dtype_name(e.type));
        [[fallthrough]];
      case Op::kCast:
        return e.args.size() == 1
                   ? ok_status()
                   : invalid("'{}' has {} operands, expected 1", op_info(e.op).name, e.args.size());
      default: break;
    }
    HONE_RETURN_IF_ERROR(check_operands(e.op, e.args));
    const bool is_bool = e.op >= Op::kLt && e.op <= Op::kNot;
    const DType type = is_bool               ? DType::kBool
                       : e.op == Op::kSelect ? e.args[1]->type
                                             : e.args[0]->type;
    if (e.type != type)
      return invalid("'{}' is {}, expected {}", op_info(e.op).name, dtype_name(e.type),
                     dtype_name(type));
    return ok_status();
  }
  static Status leaf(const ExprNode& e) {
    return e.args.empty() ? ok_status() : invalid("'{}' has operands", op_info(e.op).name);
  }

  Status access(const BufferPtr& buffer, const std::vector<Expr>& indices, std::string_view what) {
    if (!buffer) return invalid("a {} without buffer", what);
    if (!find(buffer)) return invalid("{} of {} outside of its scope", what, buffer->name);
    if (indices.size() != buffer->shape.size()) {
      return invalid("{} of {} has {} indices, expected {}", what, buffer->name, indices.size(),
                     buffer->shape.size());
    }
    for (const Expr& i : indices) {
      if (!i || i->type != DType::kI64) return invalid("an index of {} is not i64", buffer->name);
    }
    return ok_status();
  }
  Status readable(const BufferPtr& buffer) const {
    const Declared& d = *find(buffer);
    if (!prepare_ || !d.is_param || d.role == Role::kConstant || d.role == Role::kPacked)
      return ok_status();
    return invalid("a prepare phase reads {}, which is {}", buffer->name, role_name(d.role));
  }
  Status writable(const BufferPtr& buffer) const {
    const Declared& d = *find(buffer);
    if (!d.is_param) return ok_status();
    const bool allowed =
        prepare_ ? d.role == Role::kPacked : d.role == Role::kWorkspace || d.role == Role::kOutput;
    if (allowed) return ok_status();
    return invalid("a {} writes {}, which is {}", prepare_ ? "prepare phase" : "phase",
                   buffer->name, role_name(d.role));
  }

  Status statements(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      if (!s) return invalid("a statement is missing");
      HONE_RETURN_IF_ERROR(statement(*s, false));
    }
    return ok_status();
  }

  Status indices(const std::vector<Expr>& list) {
    for (const Expr& i : list) HONE_RETURN_IF_ERROR(expression(i, "an index", DType::kI64));
    return ok_status();
  }

  Status statement(const StmtNode& s, bool outermost) {
    switch (s.kind) {
      case StmtKind::kBlock: return statements(s.body);
      case StmtKind::kFor: return loop(s, outermost);
      case StmtKind::kIf:
        HONE_RETURN_IF_ERROR(expression(s.condition, "the condition of an if", DType::kBool));
        return statements(s.body);
      case StmtKind::kStore:
        HONE_RETURN_IF_ERROR(access(s.buffer, s.indices, "store"));
        HONE_RETURN_IF_ERROR(indices(s.indices));
        HONE_RETURN_IF_ERROR(expression(s.value, "a value stored", s.buffer->dtype));
        return writable(s.buffer);
      case StmtKind::kPrefetch:
        HONE_RETURN_IF_ERROR(access(s.buffer, s.indices, "prefetch"));
        return indices(s.indices);
      case StmtKind::kAlloc: return alloc(s);
      case StmtKind::kExtern:
        if (s.name.empty() || s.buffers.empty())
          return invalid("an extern call without name or buffers");
        for (const BufferPtr& b : s.buffers) {
          if (!b || !find(b))
            return invalid("extern {} uses a buffer outside of its scope", s.name);
        }
        return writable(s.buffers.back());
      default: return gpu_statement(s);
    }
  }

  Status gpu_statement(const StmtNode& s) {
    for (const Box& box : s.boxes) {
      HONE_RETURN_IF_ERROR(access(box.buffer, box.indices, "box"));
      HONE_RETURN_IF_ERROR(indices(box.indices));
    }
    if (!s.boxes.empty()) {
      HONE_RETURN_IF_ERROR(writable(s.boxes[0].buffer));
      for (const Box& box : s.boxes) HONE_RETURN_IF_ERROR(readable(box.buffer));
    }
    if (s.buffer) {
      HONE_RETURN_IF_ERROR(access(s.buffer, s.indices, "signal"));
      HONE_RETURN_IF_ERROR(indices(s.indices));
    }
    if (s.value) HONE_RETURN_IF_ERROR(expression(s.value, "a parity", DType::kI64));
    return statements(s.body);
  }

  Status loop(const StmtNode& s, bool outermost) {
    if (!s.var) return invalid("a loop without variable");
    HONE_RETURN_IF_ERROR(expression(s.min, "the start of a loop", DType::kI64));
    HONE_RETURN_IF_ERROR(expression(s.extent, "the extent of a loop", DType::kI64));
    if (std::find(vars_.begin(), vars_.end(), s.var) != vars_.end())
      return invalid("variable {} is bound again inside its own loop", s.var->name);
    if (s.for_kind == ForKind::kParallel && !outermost)
      return invalid("parallel loop {} is not outermost", s.var->name);
    if (s.for_kind == ForKind::kParallel && !is_const_int(s.min, 0))
      return invalid("parallel loop {} does not start at 0", s.var->name);
    const bool may_vary = s.for_kind == ForKind::kSerial || s.for_kind == ForKind::kVectorized;
    if (!may_vary && !is_const_int(s.extent)) {
      return invalid("the extent of {} loop {} is not constant", for_kind_name(s.for_kind),
                     s.var->name);
    }
    vars_.push_back(s.var);
    HONE_RETURN_IF_ERROR(statements(s.body));
    vars_.pop_back();
    return ok_status();
  }

  Status alloc(const StmtNode& s) {
    if (!s.buffer) return invalid("an allocation without buffer");
    if (find(s.buffer)) return invalid("{} is allocated inside its own scope", s.buffer->name);
    if (!s.buffer->values.empty()) return invalid("allocation {} has values", s.buffer->name);
    HONE_RETURN_IF_ERROR(size(*s.buffer));
    buffers_.push_back({s.buffer, false, Role::kWorkspace});
    HONE_RETURN_IF_ERROR(statements(s.body));
    buffers_.pop_back();
    return ok_status();
  }

  std::vector<Declared> buffers_;  // in scope
  std::vector<VarPtr> vars_;
  bool prepare_ = false;
};

}  // namespace

Status verify(const Program& program) { return Verifier().program(program); }

}  // namespace hone::ir
