#include "hone/ir/random_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "hone/ir/ranges.h"

namespace hone::ir {
namespace {

struct Loop {
  VarPtr var;
  int64_t extent;
  ForKind kind;
  bool peel;
};

class Generator {
 public:
  Generator(uint64_t seed, const RandomProgramOptions& options) : rng_(seed), options_(options) {}

  Program program() {
    Program p;
    p.name = "random";
    for (int64_t i = rng_.between(1, 3); i > 0; --i) add_param(p, Role::kInput, type());
    if (rng_.chance(0.5)) add_param(p, Role::kConstant, type());
    if (rng_.chance(0.3)) {
      const BufferPtr packed = add_param(p, Role::kPacked, DType::kF32);
      std::vector<BufferPtr> all = std::move(sources_);
      sources_.clear();
      for (const Param& param : p.params) {
        if (param.role == Role::kConstant) sources_.push_back(param.buffer);
      }
      p.phases.push_back({phase_body(packed), true});
      sources_ = std::move(all);
      sources_.push_back(packed);
    }
    for (int64_t i = rng_.between(1, 2); i > 0; --i) {
      const bool last = i == 1;
      const BufferPtr target = add_param(p, last ? Role::kOutput : Role::kWorkspace, type());
      p.phases.push_back({phase_body(target)});
      sources_.push_back(target);
    }
    return p;
  }

 private:
  DType type() {
    const DType types[] = {DType::kF64, DType::kI32, DType::kI64, DType::kU8, DType::kF16};
    return options_.only_f32 || rng_.chance(0.7) ? DType::kF32 : types[rng_.below(5)];
  }
  std::vector<int64_t> shape(int64_t max_rank) {
    std::vector<int64_t> s;
    for (int64_t d = rng_.between(0, max_rank); d > 0; --d)
      s.push_back(rng_.between(1, options_.max_extent));
    return s;
  }
  BufferPtr add_param(Program& p, Role role, DType type) {
    const char* names[] = {"in", "weight", "packed", "work", "out"};
    Buffer b{names[static_cast<int>(role)], type, shape(3), Scope::kGlobal, {}};
    if (role == Role::kConstant && rng_.chance(0.4)) {
      for (int64_t i = b.num_elements(); i > 0; --i)
        b.values.push_back(static_cast<float>(rng_.between(is_float(type) ? -2 : 0, 2)));
    }
    p.params.push_back({std::make_shared<const Buffer>(std::move(b)), role});
    const bool readable = role == Role::kInput || role == Role::kConstant;
    if (readable) sources_.push_back(p.params.back().buffer);
    return p.params.back().buffer;
  }

  // ---- expressions ----
  Expr affine() {
    Expr e = constant(rng_.between(-2, 3));
    for (const VarPtr& v : vars_) {
      if (rng_.chance(0.6))
        e = e + variable(v) * rng_.choice(std::vector<int64_t>{1, 1, 1, 2, 3, -1});
    }
    if (rng_.chance(0.15)) e = floordiv(e, rng_.between(2, 5));
    if (rng_.chance(0.15)) e = floormod(e, rng_.between(2, 9));
    if (!vars_.empty() && rng_.chance(0.1)) {
      e = e - floormod(variable(rng_.choice(vars_)), rng_.between(2, 4));
    }
    return e;
  }
  Expr condition() {
    const Op ops[] = {Op::kLt, Op::kLe, Op::kEq, Op::kNe};
    const Expr c =
        make(ops[rng_.below(4)], {affine(), constant(rng_.between(-1, options_.max_extent))});
    if (rng_.chance(0.2)) return make(rng_.chance(0.5) ? Op::kOr : Op::kAnd, {c, condition()});
    return rng_.chance(0.1) ? make(Op::kNot, {c}) : c;
  }
  // Reads an element; what may be out of bounds is guarded.
  Expr read(DType type) {
    if (sources_.empty()) return cast(type, affine());
    const BufferPtr source = rng_.choice(sources_);
    std::vector<Expr> index;
    Expr guard = constant_bool(true);
    for (const int64_t n : source->shape) {
      const Expr e = affine();
      const Interval i = ranges_.of(e);
      if (i.lo >= 0 && i.hi < n) {
        index.push_back(e);
      } else if (rng_.chance(0.3)) {
        index.push_back(floormod(e, n));
      } else if (rng_.chance(0.3)) {
        index.push_back(max(min(e, constant(n - 1)), constant(0)));
      } else {
        index.push_back(e);
        guard = logical_and(guard, logical_and(less_equal(constant(0), e), less(e, constant(n))));
      }
    }
    const Expr value = cast(type, load(source, std::move(index)));
    return select(guard, value, literal(type));
  }
  Expr literal(DType type) {
    if (!is_float(type)) return constant_int(rng_.between(-3, 5), type);
    return constant_float(
        rng_.chance(0.5) ? static_cast<double>(rng_.between(-2, 2)) : rng_.normal(), type);
  }
  Expr value(DType type, int depth) {
    if (depth == 0) return rng_.chance(0.2) ? literal(type) : read(type);
    const auto operand = [&] { return value(type, depth - 1); };
    switch (rng_.below(10)) {
      case 0: return operand() - operand();
      case 1: return operand() * operand();
      case 2: return make(Op::kMin, {operand(), operand()});
      case 3: return make(Op::kMax, {operand(), operand()});
      case 4: return select(condition(), operand(), operand());
      case 5: return make(rng_.chance(0.5) ? Op::kNeg : Op::kAbs, {operand()});
      case 6: return select(make(Op::kLt, {operand(), operand()}), operand(), operand());
      case 7:
        if (options_.transcendental && is_float(type))
          return make(rng_.chance(0.5) ? Op::kTanh : Op::kSigmoid, {operand()});
        return operand();
      case 8: return cast(type, value(is_float(type) ? type : DType::kI64, depth - 1));
      default: return operand() + operand();
    }
  }

  // ---- statements ----
  void push(const VarPtr& var, int64_t extent) {
    vars_.push_back(var);
    ranges_.bind(var, {0, extent - 1});
  }
  void pop(size_t n, Ranges::Mark mark) {
    vars_.resize(n);
    ranges_.reset(mark);
  }
  ForKind serial_kind() { return rng_.chance(0.25) ? ForKind::kUnrolled : ForKind::kSerial; }
  VarPtr fresh(std::string_view name) { return make_var(fmt::format("{}{}", name, next_var_++)); }

  // One loop for a dimension, or two and a guard; the element's index.
  Expr dimension(int64_t n, std::vector<Loop>& loops, Expr& guard) {
    if (n == 1 || rng_.chance(0.5)) {
      loops.push_back({fresh("i"), n, serial_kind(), rng_.chance(0.3)});
      return variable(loops.back().var);
    }
    const int64_t inner = rng_.between(1, n);
    loops.push_back({fresh("o"), (n + inner - 1) / inner, serial_kind(), rng_.chance(0.5)});
    const Expr outer = variable(loops.back().var);
    loops.push_back({fresh("i"), inner, serial_kind(), rng_.chance(0.2)});
    const Expr index = outer * inner + variable(loops.back().var);
    if (n % inner != 0) guard = logical_and(guard, less(index, constant(n)));
    return index;
  }

  // Loops over what of a buffer's shape is not fixed by `index` yet, and the reduction if any.
  Stmt nest(const BufferPtr& target, std::vector<Expr> index, bool update) {
    const size_t num_vars = vars_.size();
    const auto mark = ranges_.mark();
    std::vector<Loop> loops;
    Expr guard = constant_bool(true);
    for (size_t d = index.size(); d < target->shape.size(); ++d)
      index.push_back(dimension(target->shape[d], loops, guard));
    const bool vectorize = !loops.empty() && rng_.chance(0.4);
    Loop vector_loop{};
    if (vectorize) {
      vector_loop = loops.back();
      vector_loop.kind = ForKind::kVectorized;
      loops.pop_back();
    }
    for (int64_t r = update ? rng_.between(0, 2) : 0; r > 0; --r)
      loops.push_back(
          {fresh("k"), rng_.between(1, options_.max_extent), serial_kind(), rng_.chance(0.3)});
    if (rng_.chance(0.5)) rng_.shuffle(loops);
    if (vectorize) loops.push_back(vector_loop);
    for (const Loop& l : loops) push(l.var, l.extent);
    Expr v = value(target->dtype, update ? 2 : 1);
    if (update) v = make(rng_.chance(0.8) ? Op::kAdd : Op::kMax, {load(target, index), v});
    if (update && rng_.chance(0.3)) guard = logical_and(guard, condition());
    std::vector<Stmt> body = {make_store(target, index, v)};
    if (!sources_.empty() && rng_.chance(0.1)) {
      const BufferPtr ahead = rng_.choice(sources_);
      body.insert(body.begin(),
                  make_prefetch(ahead, std::vector<Expr>(ahead->shape.size(), affine()),
                                static_cast<int>(rng_.between(1, 2))));
    }
    if (!is_true(guard)) body = {make_if(guard, std::move(body))};
    for (size_t l = loops.size(); l-- > 0;) {
      body = {make_for(loops[l].var, constant(0), constant(loops[l].extent), loops[l].kind,
                       std::move(body), loops[l].peel)};
    }
    pop(num_vars, mark);
    return body[0];
  }

  // Writes every element of target once, then may update it; a temporary may come first.
  std::vector<Stmt> compute(const BufferPtr& target, const std::vector<Expr>& index) {
    if (rng_.chance(0.35)) {
      const Scope scopes[] = {Scope::kStack, Scope::kThread, Scope::kRegister};
      const BufferPtr temporary = make_buffer("tmp", rng_.chance(0.7) ? DType::kF32 : type(),
                                              shape(2), scopes[rng_.below(3)]);
      std::vector<Stmt> body = {nest(temporary, {}, false)};
      sources_.push_back(temporary);
      for (Stmt& s : write(target, index)) body.push_back(std::move(s));
      std::erase(sources_, temporary);
      return {make_alloc(temporary, std::move(body))};
    }
    return write(target, index);
  }
  std::vector<Stmt> write(const BufferPtr& target, const std::vector<Expr>& index) {
    std::vector<Stmt> body = {nest(target, index, false)};
    if (rng_.chance(0.6)) body.push_back(nest(target, index, true));
    return body;
  }

  Stmt phase_body(const BufferPtr& target) {
    if (target->shape.empty() || rng_.chance(0.4)) return make_block(compute(target, {}));
    const VarPtr tile = fresh("t");
    const auto mark = ranges_.mark();
    push(tile, target->shape[0]);
    std::vector<Stmt> body = compute(target, {variable(tile)});
    pop(0, mark);
    return make_for(tile, constant(0), constant(target->shape[0]), ForKind::kParallel,
                    std::move(body), rng_.chance(0.2));
  }

  Rng rng_;
  RandomProgramOptions options_;
  std::vector<BufferPtr> sources_;  // readable now
  std::vector<VarPtr> vars_;        // variables of the loops around
  Ranges ranges_;
  int next_var_ = 0;
};

}  // namespace

Program random_program(uint64_t seed, const RandomProgramOptions& options) {
  return Generator(seed, options).program();
}

}  // namespace hone::ir
