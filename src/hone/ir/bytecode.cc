#include "hone/ir/bytecode.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>

#include "hone/ir/bytecode_writer.h"
#include "hone/ir/gpu/matrix_box.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/loop_invariants.h"

namespace hone::ir {
namespace {

class Compiler : private BytecodeWriter {
 public:
  explicit Compiler(const BytecodeOptions& options) : BytecodeWriter(options) {}

  Result<Bytecode> compile(const Program& program) && {
    for (const Param& param : program.params) declare(param.buffer);
    for (const Phase& phase : program.phases) {
      if ((phase.prepare && options_.skip_prepare) || !phase.body) continue;
      if (options_.races) emit({.code = Opcode::kPhase});
      of_gpu_ = options_.races && is_gpu_code(*phase.body);
      before_loops_ = loop_invariants(*phase.body);
      actor();
      statement(*phase.body);
    }
    emit({.code = Opcode::kHalt});
    out_.arrivals.resize(out_.buffers.size());
    if (!status_.ok()) return status_;
    number_registers();
    return std::move(out_);
  }

 private:
  void statements(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) statement(*s);
  }

  void statement(const StmtNode& s) {
    temporaries_ = 0;
    statement_ = -1;
    source_ = &s;
    switch (s.kind) {
      case StmtKind::kBlock: return statements(s.body);
      case StmtKind::kFor: return loop(s);
      case StmtKind::kIf: {
        const int32_t test = emit({.code = Opcode::kJumpIfFalse, .a = value(s.condition)});
        statements(s.body);
        out_.code[test].target = here();
        return;
      }
      case StmtKind::kStore: return store(s);
      case StmtKind::kAlloc: {
        const bool outer = buffers_.contains(s.buffer.get());
        emit({.code = Opcode::kAlloc, .a = storage(s.buffer)});
        if (s.buffer->scope == Scope::kSignal) {
          out_.arrivals.resize(out_.buffers.size());
          out_.arrivals[buffers_[s.buffer.get()]] = s.count;
        }
        statements(s.body);
        if (!outer) buffers_.erase(s.buffer.get());
        return;
      }
      case StmtKind::kExtern: call(s); return;
      case StmtKind::kPrefetch: return;
      default: return gpu_statement(s);
    }
  }
  void store(const StmtNode& s) {
    statement_ = num_stores_++;
    const DType type = s.buffer->dtype;
    const bool exact = type == DType::kF64 || options_.float64 || !is_float(type);
    if (is_float(type) && (exact || type == DType::kF32) && adds_to_itself(s)) {
      const int32_t added = value(s.value->args[1]);
      const int32_t from = access(s.buffer, s.indices, false);
      Access to = out_.accesses[from];
      to.is_store = true;
      out_.accesses.push_back(std::move(to));
      emit({.code = exact ? Opcode::kAddTo : Opcode::kAddToF32,
            .a = from,
            .b = added,
            .target = from + 1});
      return;
    }
    int32_t r = value(s.value);
    if (!exact && type != DType::kF32) {
      const int32_t rounded = new_temporary();
      round(r, type, rounded);
      r = rounded;
    }
    emit({.code = !exact && type == DType::kF32 ? Opcode::kStoreF32 : Opcode::kStore,
          .a = access(s.buffer, s.indices, true),
          .b = r});
  }
  static bool adds_to_itself(const StmtNode& s) {
    if (s.value->op != Op::kAdd || s.value->args[0]->op != Op::kLoad) return false;
    const ExprNode& old = *s.value->args[0];
    return old.buffer == s.buffer &&
           std::equal(old.args.begin(), old.args.end(), s.indices.begin(), s.indices.end(),
                      [](const Expr& a, const Expr& b) { return equal(a, b); });
  }
  void gpu_statement(const StmtNode& s) {
    switch (s.kind) {
      case StmtKind::kMatrix: return matrix(s);
      case StmtKind::kBoxCopy: return copy(s);
      case StmtKind::kArrive:
        emit({.code = Opcode::kArrive, .a = access(s.buffer, s.indices, true)});
        return;
      case StmtKind::kAwait: {
        const int32_t parity = value(s.value);
        emit({.code = Opcode::kAwait, .a = access(s.buffer, s.indices, false), .b = parity});
        return;
      }
      case StmtKind::kRoles: return roles(s);
      default: break;
    }
    if (!options_.races) return;
    if (s.kind == StmtKind::kBarrier)
      emit({.code = Opcode::kBarrier,
            .aux = static_cast<uint16_t>(s.warp ? 1 : 0),
            .a = s.warp ? thread_number() : constant({.i = 0})});
    if (s.kind == StmtKind::kCommit) emit({.code = Opcode::kCommit});
    if (s.kind == StmtKind::kWait)
      emit({.code = Opcode::kWait, .target = static_cast<int32_t>(s.count)});
  }
  // The storage of an allocation; the same buffer may be allocated again after its scope.
  int32_t storage(const BufferPtr& buffer) {
    const auto [it, added] =
        storage_.try_emplace(buffer.get(), static_cast<int32_t>(out_.buffers.size()));
    if (added) out_.buffers.push_back(buffer);
    buffers_[buffer.get()] = it->second;
    return it->second;
  }

  void call(const StmtNode& s) {
    ExternCall call{s.name, {}};
    for (const BufferPtr& buffer : s.buffers) call.buffers.push_back(find(buffer));
    out_.externs.push_back(std::move(call));
    emit({.code = Opcode::kExtern, .a = static_cast<int32_t>(out_.externs.size()) - 1});
  }

  // Computes what the loop does not change; returns it, equal expressions once each.
  std::vector<const ExprNode*> compute_before(const StmtNode& loop) {
    std::vector<const ExprNode*> computed;
    const auto it = before_loops_.find(&loop);
    if (it == before_loops_.end()) return computed;
    std::unordered_map<const Expr*, int32_t, HashTree, EqualTree> registers;
    for (const Expr* e : it->second) {
      const auto [place, added] = registers.try_emplace(e, 0);
      if (added) {
        temporaries_ = 0;
        place->second = new_loop_register();
        value_into(*e, place->second);
      }
      if (invariants_.try_emplace(e->get(), place->second).second) computed.push_back(e->get());
    }
    temporaries_ = 0;
    return computed;
  }

  void loop(const StmtNode& s) {
    const std::vector<const ExprNode*> computed = compute_before(s);
    const int32_t min = value(s.min);
    const int32_t extent = value(s.extent);
    const auto [it, added] = vars_.try_emplace(s.var.get(), 0);
    if (!added) fail(invalid("variable {} is bound again inside its own loop", s.var->name));
    const int32_t var = it->second = new_loop_register();
    const int32_t end = new_loop_register();
    const int32_t init =
        emit({.code = Opcode::kLoopInit, .dst = var, .a = min, .b = extent, .end = end});
    const int32_t start = here();
    if (options_.races && s.for_kind == ForKind::kParallel) emit({.code = Opcode::kTile});
    const bool is_threads = is_thread_loop(s.for_kind);
    if (is_threads) threads_.push_back(&s);
    if (is_threads) actor();
    statements(s.body);
    if (is_threads) threads_.pop_back();
    emit({.code = Opcode::kLoopNext, .dst = var, .a = end, .target = start});
    out_.code[init].target = here();
    vars_.erase(s.var.get());
    for (const ExprNode* e : computed) invariants_.erase(e);
    if (is_threads) actor();
  }

  // ---- threads of GPUs ----
  // The register with the number of the thread, or of the first one of the warp or role.
  int32_t thread_number() {
    const int32_t number = new_temporary();
    emit({.code = Opcode::kMove, .dst = number, .a = constant({.i = first_thread_})});
    for (const ThreadDim& dim : thread_nest(threads_).dims) {
      const int32_t part = new_temporary();
      emit({.code = Opcode::kMulI,
            .dst = part,
            .a = vars_.at(dim.var.get()),
            .b = constant({.i = dim.stride})});
      emit({.code = Opcode::kAddI, .dst = number, .a = number, .b = part});
    }
    return number;
  }
  // Says who runs what follows.
  void actor() {
    if (!options_.races) return;
    temporaries_ = 0;
    const bool warps = !threads_.empty() && threads_.back()->for_kind == ForKind::kWarp;
    const Actor::Kind kind = warps                         ? Actor::kWarp
                             : of_gpu_ && threads_.empty() ? Actor::kGroup
                                                           : Actor::kThread;
    emit({.code = Opcode::kActor, .aux = kind, .a = thread_number()});
  }
  void roles(const StmtNode& s) {
    const auto number = static_cast<int32_t>(out_.roles.size());
    out_.roles.emplace_back();
    const int32_t start = emit({.code = Opcode::kRoles, .a = number});
    for (size_t i = 0; i < s.body.size(); ++i) {
      out_.roles[number].push_back(here());
      actor();
      statement(*s.body[i]);
      emit({.code = Opcode::kRoleEnd});
      first_thread_ += s.warps[i] * kWarpThreads;
    }
    first_thread_ = 0;
    out_.code[start].target = here();
    actor();
  }
  void copy(const StmtNode& s) {
    const Box &to = s.boxes[0], &from = s.boxes[1];
    statement_ = num_stores_++;
    const std::vector<int32_t> at_to = origin(to), at_from = origin(from);
    std::vector<int> dims_to, dims_from;
    for (size_t d = 0; d < to.extents.size(); ++d) {
      if (to.extents[d] > 1) dims_to.push_back(static_cast<int>(d));
    }
    for (size_t d = 0; d < from.extents.size(); ++d) {
      if (from.extents[d] > 1) dims_from.push_back(static_cast<int>(d));
    }
    if (dims_to.size() != dims_from.size())
      return fail(invalid("the boxes of a copy have other extents"));
    std::vector<std::pair<int, int32_t>> place_to, place_from;
    const std::function<void(size_t)> dimension = [&](size_t d) {
      if (d < dims_to.size()) {
        repeat(to.extents[dims_to[d]], [&](int32_t i) {
          place_to.emplace_back(dims_to[d], i);
          place_from.emplace_back(dims_from[d], i);
          dimension(d + 1);
        });
        return;
      }
      temporaries_ = 0;
      const int32_t r = new_temporary();
      emit({.code = Opcode::kLoad, .dst = r, .a = element(from, at_from, place_from, false)});
      emit({.code = Opcode::kStore, .a = element(to, at_to, place_to, true), .b = r});
    };
    dimension(0);
    temporaries_ = 0;
    emit({.code = Opcode::kArrive, .aux = 1, .a = access(s.buffer, s.indices, true)});
  }

  // ---- boxes ----
  template <typename F>
  void repeat(int64_t extent, const F& body) {
    const int32_t var = new_loop_register(), end = new_loop_register();
    const int32_t init = emit({.code = Opcode::kLoopInit,
                               .dst = var,
                               .a = constant({.i = 0}),
                               .b = constant({.i = extent}),
                               .end = end});
    const int32_t start = here();
    body(var);
    emit({.code = Opcode::kLoopNext, .dst = var, .a = end, .target = start});
    out_.code[init].target = here();
  }
  // Registers that keep the indices at which a box begins.
  std::vector<int32_t> origin(const Box& box) {
    std::vector<int32_t> registers;
    for (const Expr& e : box.indices) {
      temporaries_ = 0;
      registers.push_back(new_loop_register());
      value_into(e, registers.back());
    }
    return registers;
  }
  // The access at `origin` plus an offset in some dimensions, given by registers.
  int32_t element(const Box& box, const std::vector<int32_t>& origin,
                  const std::vector<std::pair<int, int32_t>>& offsets, bool is_store) {
    Access access = new_access(box.buffer, is_store);
    access.index = origin;
    access.of_stored |= &box == source_->boxes.data();
    for (const auto& [d, offset] : offsets) {
      if (d < 0) continue;
      const int32_t sum = new_temporary();
      emit({.code = Opcode::kAddI, .dst = sum, .a = origin[d], .b = offset});
      access.index[d] = sum;
    }
    out_.accesses.push_back(std::move(access));
    return static_cast<int32_t>(out_.accesses.size()) - 1;
  }
  // D += A * B, rounded once an element.
  void matrix(const StmtNode& s) {
    const std::optional<MatrixBox> d = matrix_of(s.boxes[0]), a = matrix_of(s.boxes[1]),
                                   b = matrix_of(s.boxes[2]);
    if (!d || !a || !b) return fail(invalid("a box of a matrix statement is no matrix"));
    statement_ = num_stores_++;
    const bool floats = is_float(s.boxes[0].buffer->dtype);
    const std::vector<int32_t> at_d = origin(s.boxes[0]), at_a = origin(s.boxes[1]),
                               at_b = origin(s.boxes[2]);
    const int32_t sum = new_loop_register();
    // The elements of the row of a, and of the column of b.
    std::vector<int32_t> row = at_a, column = at_b;
    if (a->row >= 0) row[a->row] = new_loop_register();
    if (b->column >= 0) column[b->column] = new_loop_register();
    const auto add = [&](int32_t to, int32_t from, int32_t offset) {
      emit({.code = Opcode::kAddI, .dst = to, .a = from, .b = offset});
    };
    repeat(d->rows, [&](int32_t i) {
      if (a->row >= 0) add(row[a->row], at_a[a->row], i);
      repeat(d->columns, [&](int32_t j) {
        if (b->column >= 0) add(column[b->column], at_b[b->column], j);
        temporaries_ = 0;
        const std::vector<std::pair<int, int32_t>> place = {{d->row, i}, {d->column, j}};
        emit({.code = Opcode::kLoad, .dst = sum, .a = element(s.boxes[0], at_d, place, false)});
        repeat(a->columns, [&](int32_t k) {
          temporaries_ = 0;
          const int32_t left = new_temporary(), right = new_temporary();
          emit({.code = Opcode::kLoad,
                .dst = left,
                .a = element(s.boxes[1], row, {{a->column, k}}, false)});
          emit({.code = Opcode::kLoad,
                .dst = right,
                .a = element(s.boxes[2], column, {{b->row, k}}, false)});
          emit(
              {.code = floats ? Opcode::kMulF : Opcode::kMulI, .dst = left, .a = left, .b = right});
          emit({.code = floats ? Opcode::kAddF : Opcode::kAddI, .dst = sum, .a = sum, .b = left});
        });
        round(sum, s.boxes[0].buffer->dtype, sum);
        emit({.code = Opcode::kStore, .a = element(s.boxes[0], at_d, place, true), .b = sum});
      });
    });
  }

  std::unordered_map<const Buffer*, int32_t> storage_;  // of allocations
  LoopInvariants before_loops_;                         // of the phase
  int32_t num_stores_ = 0;
  std::vector<const StmtNode*> threads_;  // the loops over threads around the statement
  int64_t first_thread_ = 0;              // of the role
  bool of_gpu_ = false;                   // threads are told apart in this phase
};

}  // namespace

Result<Bytecode> make_bytecode(const Program& program, const BytecodeOptions& options) {
  return Compiler(options).compile(program);
}

}  // namespace hone::ir
