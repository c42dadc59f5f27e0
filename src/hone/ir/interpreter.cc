#include "hone/ir/interpreter.h"

#include <algorithm>
#include <optional>

#include "hone/base/rng.h"
#include "hone/ir/bytecode.h"
#include "hone/ir/compute_instruction.h"
#include "hone/ir/gpu/fibers.h"
#include "hone/ir/gpu/race_detector.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/interpreter_memory.h"
#include "hone/ir/known_zeros.h"
#include "hone/ir/scalar.h"
#include "hone/ir/touch_recorder.h"

namespace hone::ir {
namespace {

double round_to_f32(double value) { return static_cast<double>(static_cast<float>(value)); }

Status division_by_zero() { return invalid("integer division by zero"); }

class Machine {
 public:
  Machine(const Bytecode& code, Memory& memory, const RunOptions& options)
      : code_(code), memory_(memory), options_(options) {}

  // What is noted of each access.
  enum class Note : uint8_t { kNothing, kCount, kRaces };
  template <Note kNote>
  Status execute();
  void report(TouchReport& out);
  [[nodiscard]] int64_t operations() const { return operations_; }

 private:
  // A store or load as the loop below wants it: no indirection but one.
  struct Dim {
    int32_t index;  // the register
    int64_t extent, stride;
  };
  struct FlatAccess {
    const Dim* dims;
    const Dim* end;
    Cell* cells;
  };

  // Why an access failed.
  Status failed(const Access& access, const Cell* registers) const;
  std::vector<FlatAccess> flat_accesses();
  template <Note kNote>
  Cell* element(const FlatAccess& access, int32_t number, const Cell* r);
  // Statements of GPUs; `r` are the registers, of which each role has its own.
  Status gpu_instruction(const Instruction& i, const FlatAccess* accesses, const Instruction*& pc,
                         Cell*& r);
  void order_instruction(const Instruction& i, const Cell* r);
  Status next_role(const Instruction*& pc, Cell*& r);
  void allocate(int32_t buffer);

  const Bytecode& code_;
  Memory& memory_;
  const RunOptions& options_;
  int64_t operations_ = 0;
  std::vector<Cell> registers_;
  std::vector<Dim> dims_;  // of all accesses
  std::optional<TouchRecorder> touches_;
  std::optional<RaceDetector> races_;
  Fibers fibers_;
  int64_t arrivals_ = 0;  // at signals, so far
};

Status Machine::failed(const Access& access, const Cell* registers) const {
  if (races_ && !races_->error().empty()) return Status(Code::kInvalid, races_->error());
  std::vector<int64_t> index;
  for (int32_t r : access.index) index.push_back(registers[r].i);
  const Buffer& buffer = *memory_[access.buffer].buffer;
  return invalid("{} of {} at {} is outside of its shape {}", access.is_store ? "store" : "load",
                 buffer.name, to_string(index), to_string(buffer.shape));
}

void Machine::report(TouchReport& out) {
  out.operations = operations_;
  touches_->report(out);
}

void Machine::allocate(int32_t buffer) {
  memory_.fill_with_garbage(buffer);
  // A fill is cheaper than an operation.
  operations_ += static_cast<int64_t>(memory_[buffer].cells.size()) / 8;
}

std::vector<Machine::FlatAccess> Machine::flat_accesses() {
  size_t num_dims = 0;
  for (const Access& a : code_.accesses) num_dims += a.index.size();
  dims_.resize(num_dims);
  Dim* next = dims_.data();
  std::vector<FlatAccess> accesses;
  for (const Access& a : code_.accesses) {
    Storage& s = memory_[a.buffer];
    Dim* const begin = next;
    next += a.index.size();
    int64_t stride = 1;
    for (size_t d = a.index.size(); d-- > 0;) {
      begin[d] = {a.index[d], s.buffer->shape[d], stride};
      stride = wrapping_mul(stride, s.buffer->shape[d]);
    }
    accesses.push_back({begin, next, s.cells.data()});
  }
  return accesses;
}

// Every load and store goes through here. Nothing if an index is outside of the shape.
template <Machine::Note kNote>
Cell* Machine::element(const FlatAccess& access, int32_t number, const Cell* r) {
  int64_t flat = 0;
  for (const Dim* d = access.dims; d != access.end; ++d) {
    const int64_t i = r[d->index].i;
    if (static_cast<uint64_t>(i) >= static_cast<uint64_t>(d->extent)) return nullptr;
    flat += d->stride * i;
  }
  if (kNote == Note::kCount) touches_->touch(number, flat);
  if (kNote == Note::kRaces && !races_->access(number, flat)) return nullptr;
  return access.cells + flat;
}

// What says who runs what follows and in which order. It is there for races alone.
void Machine::order_instruction(const Instruction& i, const Cell* r) {
  switch (i.code) {
    case Opcode::kPhase: return races_->begin_phase();
    case Opcode::kTile: return races_->begin_block();
    case Opcode::kActor:
      return races_->set_actor({static_cast<Actor::Kind>(i.aux), static_cast<int32_t>(r[i.a].i)});
    case Opcode::kCommit: return races_->commit();
    case Opcode::kWait: return races_->wait(i.target);
    default: break;
  }
  if (i.aux == 0) return races_->barrier();
  races_->warp_barrier(r[i.a].i / kWarpThreads);
}

// A signal's cell holds the number of its complete phases, and the arrivals since above that.
constexpr int kPhaseBits = 32;

Status Machine::gpu_instruction(const Instruction& i, const FlatAccess* accesses,
                                const Instruction*& pc, Cell*& r) {
  switch (i.code) {
    case Opcode::kArrive:
    case Opcode::kAwait: break;
    case Opcode::kRoles: {
      std::vector<const Instruction*> places;
      for (const int32_t place : code_.roles[i.a]) places.push_back(code_.code.data() + place);
      const Actor actor = races_ ? races_->actor() : Actor();
      fibers_.start(places, registers_, code_.code.data() + i.target, actor);
      if (races_) races_->begin_roles(places.size());
      if (races_) races_->set_role(0);
      pc = fibers_.current().pc;
      r = fibers_.current().registers.data();
      return ok_status();
    }
    case Opcode::kRoleEnd: fibers_.current().ended = true; return next_role(pc, r);
    default: order_instruction(i, r); return ok_status();
  }
  const Access& access = code_.accesses[i.a];
  Cell* const cell = element<Note::kNothing>(accesses[i.a], i.a, r);
  if (cell == nullptr) return failed(access, r);
  const int64_t place = cell - accesses[i.a].cells;
  const int64_t complete = cell->i & ((int64_t{1} << kPhaseBits) - 1);
  if (i.code == Opcode::kArrive) {
    const int64_t arrived = (cell->i >> kPhaseBits) + 1;
    const bool completes = arrived == code_.arrivals[access.buffer];
    cell->i = completes ? complete + 1 : arrived << kPhaseBits | complete;
    ++arrivals_;
    if (races_) races_->arrive(access.buffer, place, i.aux != 0, completes);
    return ok_status();
  }
  if ((complete & 1) != (r[i.b].i & 1)) {
    if (races_) races_->await(access.buffer, place);
    if (fibers_.running()) fibers_.current().awaits = -1;
    return ok_status();
  }
  if (!fibers_.running())
    return invalid("the wait for {} at {} never ends", memory_[access.buffer].buffer->name, place);
  Fiber& fiber = fibers_.current();
  fiber.pc = pc - 1;  // the wait is tried again
  fiber.awaits = i.a;
  fiber.arrivals = arrivals_;
  if (races_) fiber.actor = races_->actor();
  return next_role(pc, r);
}

Status Machine::next_role(const Instruction*& pc, Cell*& r) {
  if (fibers_.ended()) {
    pc = fibers_.after();
    r = registers_.data();
    fibers_.clear();
    if (races_) races_->end_roles();
    return ok_status();
  }
  if (!fibers_.next(arrivals_)) {
    std::string waits;
    for (const Fiber& fiber : fibers_.all()) {
      if (fiber.ended) continue;
      const Access& access = code_.accesses[fiber.awaits];
      waits += fmt::format("{}role {} for {}", waits.empty() ? "" : ", ",
                           &fiber - fibers_.all().data(), memory_[access.buffer].buffer->name);
    }
    return invalid("roles wait for signals that never come: {}", waits);
  }
  const Fiber& fiber = fibers_.current();
  pc = fiber.pc;
  r = fibers_.current().registers.data();
  if (races_) races_->set_role(fibers_.number());
  if (races_) races_->set_actor(fiber.actor);
  return ok_status();
}

template <Machine::Note kNote>
Status Machine::execute() {
  registers_.resize(code_.num_registers);
  std::copy(code_.constants.begin(), code_.constants.end(), registers_.begin());
  const std::vector<FlatAccess> accesses = flat_accesses();
  if (kNote == Note::kCount) touches_.emplace(code_, memory_);
  if (kNote == Note::kRaces) races_.emplace(code_);
  Cell* r = registers_.data();
  const Instruction* const begin = code_.code.data();
  const Instruction* pc = begin;
  while (true) {
    const Instruction& i = *pc++;
    switch (i.code) {
      case Opcode::kMove: r[i.dst] = r[i.a]; break;
      case Opcode::kAddI: r[i.dst].i = wrapping_add(r[i.a].i, r[i.b].i); break;
      case Opcode::kSubI: r[i.dst].i = wrapping_sub(r[i.a].i, r[i.b].i); break;
      case Opcode::kMulI: r[i.dst].i = wrapping_mul(r[i.a].i, r[i.b].i); break;
      case Opcode::kMulAddI:
        r[i.dst].i = wrapping_add(wrapping_mul(r[i.a].i, r[i.b].i), r[i.end].i);
        break;
      case Opcode::kFloorDivI:
        if (r[i.b].i == 0) return division_by_zero();
        r[i.dst].i = floor_div(r[i.a].i, r[i.b].i);
        break;
      case Opcode::kFloorModI:
        if (r[i.b].i == 0) return division_by_zero();
        r[i.dst].i = floor_mod(r[i.a].i, r[i.b].i);
        break;
      case Opcode::kMinI: r[i.dst].i = std::min(r[i.a].i, r[i.b].i); break;
      case Opcode::kMaxI: r[i.dst].i = std::max(r[i.a].i, r[i.b].i); break;
      case Opcode::kAddF: r[i.dst].f = r[i.a].f + r[i.b].f; break;
      case Opcode::kSubF: r[i.dst].f = r[i.a].f - r[i.b].f; break;
      case Opcode::kMulF: r[i.dst].f = r[i.a].f * r[i.b].f; break;
      case Opcode::kDivF: r[i.dst].f = r[i.a].f / r[i.b].f; break;
      case Opcode::kMinF: r[i.dst].f = r[i.a].f < r[i.b].f ? r[i.a].f : r[i.b].f; break;
      case Opcode::kMaxF: r[i.dst].f = r[i.a].f > r[i.b].f ? r[i.a].f : r[i.b].f; break;
      case Opcode::kLtI: r[i.dst].i = r[i.a].i < r[i.b].i; break;
      case Opcode::kLeI: r[i.dst].i = r[i.a].i <= r[i.b].i; break;
      case Opcode::kEqI: r[i.dst].i = r[i.a].i == r[i.b].i; break;
      case Opcode::kNeI: r[i.dst].i = r[i.a].i != r[i.b].i; break;
      case Opcode::kLtF: r[i.dst].i = r[i.a].f < r[i.b].f; break;
      case Opcode::kLeF: r[i.dst].i = r[i.a].f <= r[i.b].f; break;
      case Opcode::kEqF: r[i.dst].i = r[i.a].f == r[i.b].f; break;
      case Opcode::kNeF: r[i.dst].i = r[i.a].f != r[i.b].f; break;
      case Opcode::kAnd: r[i.dst].i = r[i.a].i & r[i.b].i; break;
      case Opcode::kOr: r[i.dst].i = r[i.a].i | r[i.b].i; break;
      case Opcode::kXor: r[i.dst].i = r[i.a].i ^ r[i.b].i; break;
      case Opcode::kRoundF32: r[i.dst].f = round_to_f32(r[i.a].f); break;
      case Opcode::kLoad: {
        const Cell* const from = element<kNote>(accesses[i.a], i.a, r);
        if (from == nullptr) return failed(code_.accesses[i.a], r);
        r[i.dst] = *from;
        break;
      }
      case Opcode::kStore: {
        Cell* const to = element<kNote>(accesses[i.a], i.a, r);
        if (to == nullptr) return failed(code_.accesses[i.a], r);
        *to = r[i.b];
        break;
      }
      case Opcode::kStoreF32: {
        Cell* const to = element<kNote>(accesses[i.a], i.a, r);
        if (to == nullptr) return failed(code_.accesses[i.a], r);
        to->f = round_to_f32(r[i.b].f);
        break;
      }
      case Opcode::kAddTo:
      case Opcode::kAddToF32: {
        Cell* const to = element<kNote>(accesses[i.a], i.a, r);
        if (to == nullptr) return failed(code_.accesses[i.a], r);
        if (kNote != Note::kNothing && element<kNote>(accesses[i.target], i.target, r) == nullptr)
          return failed(code_.accesses[i.target], r);
        const double sum = to->f + r[i.b].f;
        to->f = i.code == Opcode::kAddTo ? sum : round_to_f32(sum);
        break;
      }
      case Opcode::kJump: pc = begin + i.target; break;
      case Opcode::kJumpIfFalse:
        if (r[i.a].i == 0) pc = begin + i.target;
        break;
      case Opcode::kLoopInit: {
        const int64_t min = r[i.a].i;
        const int64_t extent = r[i.b].i;
        r[i.dst].i = min;
        r[i.end].i = wrapping_add(min, extent);
        if (extent <= 0) pc = begin + i.target;
        ++operations_;
        break;
      }
      case Opcode::kLoopNext:
        operations_ += (pc - begin) - i.target;
        if (operations_ > options_.max_operations) {
          return {hone::Code::kTimeout,
                  fmt::format("stopped after {} operations", options_.max_operations)};
        }
        r[i.dst].i = wrapping_add(r[i.dst].i, 1);
        if (r[i.dst].i != r[i.a].i) pc = begin + i.target;
        break;
      case Opcode::kAlloc: allocate(i.a); break;
      case Opcode::kExtern: HONE_RETURN_IF_ERROR(memory_.call(code_.externs[i.a])); break;
      case Opcode::kHalt: return ok_status();
      default:
        if (i.code > Opcode::kHalt) {
          // Copies, as what a call may change is kept in memory, not in a register.
          const Instruction* place = pc;
          Cell* registers = r;
          HONE_RETURN_IF_ERROR(gpu_instruction(i, accesses.data(), place, registers));
          pc = place;
          r = registers;
        } else if (!compute_instruction(i, r)) {
          return division_by_zero();
        }
    }
  }
}

}  // namespace

const Touch* TouchReport::find(const BufferPtr& buffer, bool is_store) const {
  for (const Touch& t : by_buffer) {
    if (t.buffer == buffer && t.is_store == is_store) return &t;
  }
  return nullptr;
}

Status run(const Program& program, std::span<Tensor> args, const RunOptions& options,
           TouchReport* report) {
  HONE_ASSIGN_OR_RETURN(
      const Bytecode code,
      make_bytecode(program, {options.float64, options.skip_prepare, options.check_races}));
  Memory memory(code, options);
  HONE_RETURN_IF_ERROR(memory.fill(program, args));
  Machine machine(code, memory, options);
  if (report != nullptr && options.check_races)
    return invalid("a run that checks races has no report");
  const Status status = report                ? machine.execute<Machine::Note::kCount>()
                        : options.check_races ? machine.execute<Machine::Note::kRaces>()
                                              : machine.execute<Machine::Note::kNothing>();
  if (options.operations != nullptr) *options.operations = machine.operations();
  HONE_RETURN_IF_ERROR(status);
  memory.copy_results(program, args);
  if (report) machine.report(*report);
  return ok_status();
}

std::vector<Tensor> random_arguments(const Program& program, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> args;
  for (const Param& param : program.params) {
    const Buffer& buffer = *param.buffer;
    Tensor tensor(buffer.dtype, buffer.shape);
    const bool given = param.role == Role::kInput || param.role == Role::kConstant;
    for (int64_t i = 0; given && i < tensor.size(); ++i) {
      const bool known = !buffer.values.empty();
      const double value =
          is_float(buffer.dtype) ? rng.normal() : static_cast<double>(rng.below(4));
      tensor.set(i, known ? static_cast<double>(buffer.values[i]) : value);
    }
    put_known_zeros(param, tensor);
    args.push_back(std::move(tensor));
  }
  return args;
}

}  // namespace hone::ir
