#include "hone/ir/bytecode.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "hone/ir/gpu/matrix_box.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/scalar.h"

namespace hone::ir {
namespace {

constexpr int32_t kTemporary =
    1 << 24;  // temporaries are numbered from here until the end is known

class Compiler {
 public:
  explicit Compiler(const BytecodeOptions& options) : options_(options) {}

  Result<Bytecode> compile(const Program& program) && {
    for (const Param& param : program.params) declare(param.buffer);
    for (const Phase& phase : program.phases) {
      if ((phase.prepare && options_.skip_prepare) || !phase.body) continue;
      if (options_.races) emit({.code = Opcode::kPhase});
      of_gpu_ = options_.races && is_gpu_code(*phase.body);
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
  int32_t emit(Instruction instruction) {
    out_.code.push_back(instruction);
    return static_cast<int32_t>(out_.code.size()) - 1;
  }
  int32_t here() const { return static_cast<int32_t>(out_.code.size()); }
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  int32_t declare(const BufferPtr& buffer) {
    const auto [it, added] =
        buffers_.try_emplace(buffer.get(), static_cast<int32_t>(out_.buffers.size()));
    if (added) out_.buffers.push_back(buffer);
    return it->second;
  }
  int32_t find(const BufferPtr& buffer) {
    const auto it = buffers_.find(buffer.get());
    if (it != buffers_.end()) return it->second;
    fail(invalid("buffer {} is not declared where it is used", buffer->name));
    return 0;
  }

  // Constants and loop registers share the numbers below kTemporary: constants are even until
  // number_registers() sorts them out.
  int32_t constant(Cell cell) {
    const auto [it, added] =
        constants_.try_emplace(cell.i, static_cast<int32_t>(out_.constants.size()));
    if (added) out_.constants.push_back(cell);
    return it->second * 2;
  }
  int32_t new_loop_register() { return loop_registers_++ * 2 + 1; }
  int32_t new_temporary() {
    max_temporaries_ = std::max(max_temporaries_, temporaries_ + 1);
    return kTemporary + temporaries_++;
  }

  int32_t resolve(int32_t r) const {
    const auto num_constants = static_cast<int32_t>(out_.constants.size());
    if (r >= kTemporary) return num_constants + loop_registers_ + (r - kTemporary);
    return r % 2 == 0 ? r / 2 : num_constants + r / 2;
  }
  void number_registers() {
    out_.num_registers =
        static_cast<int32_t>(out_.constants.size()) + loop_registers_ + max_temporaries_;
    for (Instruction& i : out_.code) {
      const bool a_is_register = i.code != Opcode::kLoad && i.code != Opcode::kStore &&
                                 i.code != Opcode::kAlloc && i.code != Opcode::kExtern &&
                                 i.code != Opcode::kArrive && i.code != Opcode::kAwait &&
                                 i.code != Opcode::kRoles;
      i.dst = resolve(i.dst);
      if (a_is_register) i.a = resolve(i.a);
      i.b = resolve(i.b);
      i.end = resolve(i.end);
    }
    for (Access& access : out_.accesses) {
      for (int32_t& r : access.index) r = resolve(r);
    }
  }

  Access new_access(const BufferPtr& buffer, bool is_store) {
    const bool async = source_ != nullptr && source_->async;
    return {find(buffer), {},      statement_,
            is_store,     async,   source_ != nullptr && source_->kind == StmtKind::kBoxCopy,
            source_,      is_store};
  }
  int32_t access(const BufferPtr& buffer, const std::vector<Expr>& indices, bool is_store) {
    Access access = new_access(buffer, is_store);
    for (const Expr& i : indices) access.index.push_back(value(i));
    const bool of_store = source_ != nullptr && source_->kind == StmtKind::kStore;
    access.of_stored |= of_store && buffer == source_->buffer &&
                        std::equal(indices.begin(), indices.end(), source_->indices.begin(),
                                   [](const Expr& a, const Expr& b) { return equal(a, b); });
    out_.accesses.push_back(std::move(access));
    return static_cast<int32_t>(out_.accesses.size()) - 1;
  }

  // The register that holds a leaf, or -1.
  int32_t leaf(const Expr& e) {
    if (e->op == Op::kInt) return constant({.i = e->int_value});
    if (e->op == Op::kFloat) return constant({.f = e->float_value});
    if (e->op != Op::kVar) return -1;
    const auto it = vars_.find(e->var.get());
    if (it != vars_.end()) return it->second;
    fail(invalid("variable {} is not bound where it is used", e->var->name));
    return constant({.i = 0});
  }

  // Computes e; the register may be shared (leaves).
  int32_t value(const Expr& e) {
    const int32_t r = leaf(e);
    if (r >= 0) return r;
    const int32_t saved = temporaries_;
    const int32_t dst = new_temporary();
    value_into(e, dst);
    temporaries_ = saved + 1;
    return dst;
  }

  void value_into(const Expr& e, int32_t dst) {
    if (const int32_t r = leaf(e); r >= 0) {
      emit({.code = Opcode::kMove, .dst = dst, .a = r});
      return;
    }
    if (e->op == Op::kLoad) {
      emit({.code = Opcode::kLoad, .dst = dst, .a = access(e->buffer, e->args, false)});
      return;
    }
    if (e->op == Op::kSelect) {
      const int32_t test = emit({.code = Opcode::kJumpIfFalse, .a = value(e->args[0])});
      value_into(e->args[1], dst);
      const int32_t skip = emit({.code = Opcode::kJump});
      out_.code[test].target = here();
      value_into(e->args[2], dst);
      out_.code[skip].target = here();
      return;
    }
    if (e->op == Op::kCast) return convert(value(e->args[0]), e->args[0]->type, e->type, dst);
    if (e->op == Op::kBits) {
      emit({.code = Opcode::kBits,
            .aux = pair(e->args[0]->type, e->type),
            .dst = dst,
            .a = value(e->args[0])});
      return;
    }
    const int32_t a = value(e->args[0]);
    if (e->args.size() == 1) {
      const bool kept = e->op == Op::kAbs && e->type == DType::kU64;
      const Opcode code = kept                ? Opcode::kMove
                          : is_float(e->type) ? Opcode::kUnaryF
                                              : Opcode::kUnaryI;
      emit({.code = code, .aux = static_cast<uint16_t>(e->op), .dst = dst, .a = a});
    } else {
      const DType type = e->args[0]->type;
      const Opcode code = binary_code(e->op, type);
      emit({.code = code,
            .aux = code == Opcode::kTyped ? pair(e->op, type) : static_cast<uint16_t>(e->op),
            .dst = dst,
            .a = a,
            .b = value(e->args[1])});
    }
    if (is_narrow(e->type)) {
      emit({.code = Opcode::kWrap, .aux = static_cast<uint16_t>(e->type), .dst = dst, .a = dst});
    }
  }

  static bool is_narrow(DType type) {
    return !is_float(type) && type != DType::kBool && dtype_bytes(type) < 8;
  }

  void convert(int32_t r, DType from, DType to, int32_t dst) {
    const auto aux = static_cast<uint16_t>(to);
    if (!is_float(from) && is_float(to)) {
      emit({.code = Opcode::kIntToFloat,
            .aux = pair(from, options_.float64 ? DType::kF64 : to),
            .dst = dst,
            .a = r});
      return;
    } else if (is_float(from) && !is_float(to)) {
      emit({.code = Opcode::kFloatToInt, .aux = aux, .dst = dst, .a = r});
      return;
    }
    round(r, to, dst);
  }
  // dst = r rounded to a type.
  void round(int32_t r, DType to, int32_t dst) {
    const auto aux = static_cast<uint16_t>(to);
    if (!is_float(to)) {
      emit({.code = Opcode::kWrap, .aux = aux, .dst = dst, .a = r});
    } else if (options_.float64 || to == DType::kF64) {
      emit({.code = Opcode::kMove, .dst = dst, .a = r});
    } else {
      emit({.code = to == DType::kF32 ? Opcode::kRoundF32 : Opcode::kRoundFloat,
            .aux = aux,
            .dst = dst,
            .a = r});
    }
  }

  template <typename T>
  static uint16_t pair(T first, DType second) {
    return static_cast<uint16_t>(static_cast<int>(first) << 8 | static_cast<int>(second));
  }

  static Opcode binary_code(Op op, DType type) {
    const bool floats = is_float(type);
    if (type == DType::kU64) {
      if (is_compare(op)) return Opcode::kCompareU;
      if (is_division(op) || op == Op::kMin || op == Op::kMax) return Opcode::kTyped;
    }
    switch (op) {
      case Op::kAdd: return floats ? Opcode::kAddF : Opcode::kAddI;
      case Op::kSub: return floats ? Opcode::kSubF : Opcode::kSubI;
      case Op::kMul: return floats ? Opcode::kMulF : Opcode::kMulI;
      case Op::kDiv: return floats ? Opcode::kDivF : Opcode::kDivI;
      case Op::kMin: return floats ? Opcode::kMinF : Opcode::kMinI;
      case Op::kMax: return floats ? Opcode::kMaxF : Opcode::kMaxI;
      case Op::kFloorDiv: return Opcode::kFloorDivI;
      case Op::kFloorMod: return Opcode::kFloorModI;
      case Op::kPow: return Opcode::kPowF;
      case Op::kLt: return floats ? Opcode::kLtF : Opcode::kLtI;
      case Op::kLe: return floats ? Opcode::kLeF : Opcode::kLeI;
      case Op::kEq: return floats ? Opcode::kEqF : Opcode::kEqI;
      case Op::kNe: return floats ? Opcode::kNeF : Opcode::kNeI;
      case Op::kAnd:
      case Op::kBitAnd: return Opcode::kAnd;
      case Op::kOr:
      case Op::kBitOr: return Opcode::kOr;
      case Op::kBitXor: return Opcode::kXor;
      case Op::kShl:
      case Op::kShr: return Opcode::kTyped;
      case Op::kRem: return floats ? Opcode::kRemF : Opcode::kTyped;
      default: HONE_ASSERT(false, "not a binary operator");
    }
  }

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
      case StmtKind::kStore: {
        statement_ = num_stores_++;
        int32_t r = value(s.value);
        const DType type = s.buffer->dtype;
        const bool exact =
            type == DType::kF64 || (options_.float64 && is_float(type)) || !is_float(type);
        if (!exact) {
          const int32_t rounded = new_temporary();
          round(r, type, rounded);
          r = rounded;
        }
        emit({.code = Opcode::kStore, .a = access(s.buffer, s.indices, true), .b = r});
        return;
      }
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

  void loop(const StmtNode& s) {
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
    repeat(d->rows, [&](int32_t i) {
      repeat(d->columns, [&](int32_t j) {
        temporaries_ = 0;
        const std::vector<std::pair<int, int32_t>> place = {{d->row, i}, {d->column, j}};
        emit({.code = Opcode::kLoad, .dst = sum, .a = element(s.boxes[0], at_d, place, false)});
        repeat(a->columns, [&](int32_t k) {
          temporaries_ = 0;
          const int32_t left = new_temporary(), right = new_temporary();
          emit({.code = Opcode::kLoad,
                .dst = left,
                .a = element(s.boxes[1], at_a, {{a->row, i}, {a->column, k}}, false)});
          emit({.code = Opcode::kLoad,
                .dst = right,
                .a = element(s.boxes[2], at_b, {{b->row, k}, {b->column, j}}, false)});
          emit(
              {.code = floats ? Opcode::kMulF : Opcode::kMulI, .dst = left, .a = left, .b = right});
          emit({.code = floats ? Opcode::kAddF : Opcode::kAddI, .dst = sum, .a = sum, .b = left});
        });
        round(sum, s.boxes[0].buffer->dtype, sum);
        emit({.code = Opcode::kStore, .a = element(s.boxes[0], at_d, place, true), .b = sum});
      });
    });
  }

  BytecodeOptions options_;
  Bytecode out_;
  Status status_;
  std::unordered_map<const Buffer*, int32_t> buffers_;  // in scope; looked up only
  std::unordered_map<const Buffer*, int32_t> storage_;
  std::unordered_map<const Var*, int32_t> vars_;
  std::map<int64_t, int32_t> constants_;  // by bits
  int32_t loop_registers_ = 0;
  int32_t temporaries_ = 0;
  int32_t max_temporaries_ = 0;
  int32_t num_stores_ = 0;
  int32_t statement_ = -1;
  const StmtNode* source_ = nullptr;
  std::vector<const StmtNode*> threads_;  // the loops over threads around the statement
  int64_t first_thread_ = 0;              // of the role
  bool of_gpu_ = false;                   // threads are told apart in this phase
};

}  // namespace

Result<Bytecode> make_bytecode(const Program& program, const BytecodeOptions& options) {
  return Compiler(options).compile(program);
}

}  // namespace hone::ir
