#include "hone/ir/interpreter.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "hone/base/assert.h"
#include "hone/base/rng.h"
#include "hone/ir/bytecode.h"
#include "hone/ir/gpu/fibers.h"
#include "hone/ir/gpu/race_detector.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/known_zeros.h"
#include "hone/ir/scalar.h"

namespace hone::ir {
namespace {

constexpr int64_t kMaxCells = int64_t{1} << 28;  // 2 GiB for all buffers together
constexpr int64_t kGarbage = 0x5A5A5A5A5A5A5A5A;

Cell garbage(DType type) {
  if (is_float(type)) return {.f = std::numeric_limits<double>::quiet_NaN()};
  return {.i = wrap_int(type, kGarbage)};
}

struct Storage {
  BufferPtr buffer;
  std::vector<Cell> cells;
};

bool is_wide_int(DType type) { return type == DType::kI64 || type == DType::kU64; }

void copy_in(const Tensor& tensor, std::vector<Cell>& cells) {
  const auto n = static_cast<int64_t>(cells.size());
  if (is_wide_int(tensor.dtype())) {
    const auto data = tensor.as<int64_t>();
    for (int64_t i = 0; i < n; ++i) cells[i].i = data[i];
  } else if (is_float(tensor.dtype())) {
    for (int64_t i = 0; i < n; ++i) cells[i].f = tensor.at(i);
  } else {
    for (int64_t i = 0; i < n; ++i) cells[i].i = static_cast<int64_t>(tensor.at(i));
  }
}

void copy_out(const std::vector<Cell>& cells, Tensor& tensor) {
  const auto n = static_cast<int64_t>(cells.size());
  if (is_wide_int(tensor.dtype())) {
    const auto data = tensor.as<int64_t>();
    for (int64_t i = 0; i < n; ++i) data[i] = cells[i].i;
  } else if (is_float(tensor.dtype())) {
    for (int64_t i = 0; i < n; ++i) tensor.set(i, cells[i].f);
  } else {
    for (int64_t i = 0; i < n; ++i) tensor.set(i, static_cast<double>(cells[i].i));
  }
}

// Elements touched, one bit each.
struct Bits {
  Touch touch;
  std::vector<uint64_t> words;
  void set(int64_t i) {
    ++touch.count;
    words[i >> 6] |= uint64_t{1} << (i & 63);
  }
};

class Machine {
 public:
  Machine(const Bytecode& code, const RunOptions& options) : code_(code), options_(options) {}

  Status prepare(const Program& program, std::span<Tensor> args);
  // What is noted of each access.
  enum class Note : uint8_t { kNothing, kCount, kRaces };
  template <Note kNote>
  Status execute();
  void finish(const Program& program, std::span<Tensor> args);
  void report(TouchReport& out);
  [[nodiscard]] int64_t operations() const { return operations_; }

 private:
  // A store or load as the loop below wants it: no indirection but one.
  struct FlatAccess {
    const int32_t* index;
    const int64_t* shape;
    Cell* cells;
    int32_t rank;
  };

  // Why an access failed.
  Status failed(const Access& access, const Cell* registers) const;
  Status call(const ExternCall& call);
  std::vector<FlatAccess> flat_accesses();
  template <Note kNote>
  Cell* element(const FlatAccess& access, int32_t number, const Cell* r);
  // Statements of GPUs; `r` are the registers, of which each role has its own.
  Status gpu_instruction(const Instruction& i, const FlatAccess* accesses, const Instruction*& pc,
                         Cell*& r);
  void order_instruction(const Instruction& i, const Cell* r);
  Status next_role(const Instruction*& pc, Cell*& r);
  void fill_with_garbage(Storage& s);
  void make_bits();
  int64_t bits_of(int statement, int32_t buffer, bool is_store);

  const Bytecode& code_;
  const RunOptions& options_;
  std::vector<Storage> storage_;
  std::vector<Bits> bits_;
  std::vector<std::pair<int64_t, int64_t>> access_bits_;  // per access: by statement, by buffer
  int64_t operations_ = 0;
  std::vector<Cell> registers_;
  std::optional<RaceDetector> races_;
  Fibers fibers_;
  int64_t arrivals_ = 0;  // at signals, so far
};

Status Machine::prepare(const Program& program, std::span<Tensor> args) {
  if (args.size() != program.params.size()) {
    return invalid("program {} takes {} arguments, got {}", program.name, program.params.size(),
                   args.size());
  }
  int64_t total = 0;
  for (const BufferPtr& buffer : code_.buffers) {
    const bool empty = std::count(buffer->shape.begin(), buffer->shape.end(), 0) > 0;
    int64_t n = empty ? 0 : 1;
    for (int64_t d : buffer->shape) {
      if (d < 0 || (d > 0 && n > kMaxCells / d))
        return invalid("buffer {} of shape {} is too large", buffer->name,
                       to_string(buffer->shape));
      n *= d;
    }
    total += n;
    if (total > kMaxCells)
      return invalid("the buffers have more than {} elements together", kMaxCells);
    storage_.push_back({buffer, std::vector<Cell>(n, garbage(buffer->dtype))});
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const Buffer& buffer = *program.params[i].buffer;
    const Role role = program.params[i].role;
    std::vector<Cell>& cells = storage_[i].cells;
    if (!buffer.values.empty()) {
      if (buffer.values.size() != cells.size())
        return invalid("{} has {} values, expected {}", buffer.name, buffer.values.size(),
                       cells.size());
      for (size_t k = 0; k < cells.size(); ++k) {
        cells[k] = is_float(buffer.dtype) ? Cell{.f = static_cast<double>(buffer.values[k])}
                                          : Cell{.i = float_to_int(buffer.dtype, buffer.values[k])};
      }
      continue;
    }
    const bool type_fits =
        args[i].dtype() == buffer.dtype ||
        (options_.float64 && is_float(buffer.dtype) && args[i].dtype() == DType::kF64);
    if (!type_fits || args[i].shape() != buffer.shape) {
      return invalid("argument {} is {}{}, expected {}{}", buffer.name, dtype_name(args[i].dtype()),
                     to_string(args[i].shape()), dtype_name(buffer.dtype), to_string(buffer.shape));
    }
    const bool given = role == Role::kInput || role == Role::kConstant ||
                       (options_.keep_outputs && role == Role::kOutput) ||
                       (role == Role::kPacked && options_.skip_prepare);
    if (given) copy_in(args[i], cells);
  }
  return ok_status();
}

void Machine::finish(const Program& program, std::span<Tensor> args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Role role = program.params[i].role;
    if (role != Role::kInput && role != Role::kConstant) copy_out(storage_[i].cells, args[i]);
  }
}

Status Machine::failed(const Access& access, const Cell* registers) const {
  if (races_ && !races_->error().empty()) return Status(Code::kInvalid, races_->error());
  std::vector<int64_t> index;
  for (int32_t r : access.index) index.push_back(registers[r].i);
  const Buffer& buffer = *storage_[access.buffer].buffer;
  return invalid("{} of {} at {} is outside of its shape {}", access.is_store ? "store" : "load",
                 buffer.name, to_string(index), to_string(buffer.shape));
}

Status Machine::call(const ExternCall& call) {
  if (!options_.externs || !options_.externs->contains(call.name)) {
    return {hone::Code::kNotFound, fmt::format("extern function {} is not registered", call.name)};
  }
  std::vector<Tensor> args;
  for (int32_t b : call.buffers) {
    const Storage& s = storage_[b];
    args.emplace_back(s.buffer->dtype, s.buffer->shape);
    copy_out(s.cells, args.back());
  }
  HONE_RETURN_IF_ERROR(options_.externs->find(call.name)->second(args));
  for (size_t i = 0; i < args.size(); ++i) {
    Storage& s = storage_[call.buffers[i]];
    if (args[i].dtype() != s.buffer->dtype || args[i].shape() != s.buffer->shape) {
      return invalid("extern function {} changed the shape of {}", call.name, s.buffer->name);
    }
    copy_in(args[i], s.cells);
  }
  return ok_status();
}

void Machine::fill_with_garbage(Storage& s) {
  const bool is_signal = s.buffer->scope == Scope::kSignal;
  std::fill(s.cells.begin(), s.cells.end(), is_signal ? Cell{.i = 0} : garbage(s.buffer->dtype));
  operations_ += static_cast<int64_t>(s.cells.size()) / 8;  // a fill is cheaper than an operation
}

int64_t Machine::bits_of(int statement, int32_t buffer, bool is_store) {
  for (size_t i = 0; i < bits_.size(); ++i) {
    const Touch& t = bits_[i].touch;
    if (t.statement == statement && t.buffer == storage_[buffer].buffer && t.is_store == is_store) {
      return static_cast<int64_t>(i);
    }
  }
  bits_.push_back({{statement, storage_[buffer].buffer, is_store}, {}});
  bits_.back().words.resize(storage_[buffer].cells.size() / 64 + 1);
  return static_cast<int64_t>(bits_.size()) - 1;
}

constexpr int kWholeBuffer = -2;

void Machine::make_bits() {
  for (const Access& a : code_.accesses) {
    const int64_t by_statement = bits_of(a.statement, a.buffer, a.is_store);
    access_bits_.emplace_back(by_statement, bits_of(kWholeBuffer, a.buffer, a.is_store));
  }
}

void Machine::report(TouchReport& out) {
  out.operations = operations_;
  for (Bits& bits : bits_) {
    Touch& t = bits.touch;
    const std::vector<int64_t>& shape = t.buffer->shape;
    for (size_t w = 0; w < bits.words.size(); ++w) {
      for (uint64_t word = bits.words[w]; word != 0; word &= word - 1) {
        int64_t flat = static_cast<int64_t>(w) * 64 + std::countr_zero(word);
        if (t.distinct++ == 0) t.low = shape, t.high.assign(shape.size(), -1);
        for (size_t d = shape.size(); d-- > 0; flat /= shape[d]) {
          t.low[d] = std::min(t.low[d], flat % shape[d]);
          t.high[d] = std::max(t.high[d], flat % shape[d]);
        }
      }
    }
    const bool whole = t.statement == kWholeBuffer;
    if (whole) t.statement = -1;
    (whole ? out.by_buffer : out.by_statement).push_back(std::move(t));
  }
}

std::vector<Machine::FlatAccess> Machine::flat_accesses() {
  std::vector<FlatAccess> accesses;
  for (const Access& a : code_.accesses) {
    Storage& s = storage_[a.buffer];
    accesses.push_back({a.index.data(), s.buffer->shape.data(), s.cells.data(),
                        static_cast<int32_t>(a.index.size())});
  }
  return accesses;
}

// Every load and store goes through here. Nothing if an index is outside of the shape.
template <Machine::Note kNote>
Cell* Machine::element(const FlatAccess& access, int32_t number, const Cell* r) {
  int64_t flat = 0;
  for (int32_t d = 0; d < access.rank; ++d) {
    const int64_t i = r[access.index[d]].i;
    if (static_cast<uint64_t>(i) >= static_cast<uint64_t>(access.shape[d])) return nullptr;
    flat = flat * access.shape[d] + i;
  }
  if (kNote == Note::kCount) {
    bits_[access_bits_[number].first].set(flat);
    bits_[access_bits_[number].second].set(flat);
  }
  if (kNote == Note::kRaces && !races_->access(number, flat)) return nullptr;
  return access.cells + flat;
}

// Executes the rare instructions, which execute() leaves out: integer divisions, functions, other
// types. Returns false after a division by zero.
bool compute(const Instruction& i, Cell* r) {
  const Cell a = r[i.a], b = r[i.b];
  Cell& to = r[i.dst];
  const auto op = static_cast<Op>(i.aux);
  const auto type = static_cast<DType>(i.aux & 0xff), from = static_cast<DType>(i.aux >> 8);
  switch (i.code) {
    case Opcode::kDivI:
    case Opcode::kFloorDivI:
    case Opcode::kFloorModI: {
      if (b.i == 0) return false;
      const Op division = i.code == Opcode::kDivI        ? Op::kDiv
                          : i.code == Opcode::kFloorDivI ? Op::kFloorDiv
                                                         : Op::kFloorMod;
      to.i = apply_binary(division, a.i, b.i);
      break;
    }
    case Opcode::kTyped: {
      const auto typed = static_cast<Op>(i.aux >> 8);
      if (is_division(typed) && b.i == 0) return false;
      to.i = apply_integer(typed, type, a.i, b.i);
      break;
    }
    case Opcode::kPowF: to.f = apply_binary(Op::kPow, a.f, b.f); break;
    case Opcode::kRemF: to.f = apply_binary(Op::kRem, a.f, b.f); break;
    case Opcode::kCompareU: to.i = compare_integers(op, DType::kU64, a.i, b.i); break;
    case Opcode::kUnaryI: to.i = apply_unary(op, a.i); break;
    case Opcode::kUnaryF: to.f = apply_unary(op, a.f); break;
    case Opcode::kWrap: to.i = wrap_int(type, a.i); break;
    case Opcode::kIntToFloat: to.f = int_to_float(from, type, a.i); break;
    case Opcode::kFloatToInt: to.i = float_to_int(type, a.f); break;
    case Opcode::kRoundFloat: to.f = round_float(type, a.f); break;
    case Opcode::kBits: {
      const uint64_t bits = is_float(from) ? float_bits(from, a.f) : static_cast<uint64_t>(a.i);
      if (is_float(type)) {
        to.f = bits_float(type, bits);
      } else {
        to.i = wrap_int(type, static_cast<int64_t>(bits));
      }
      break;
    }
    default: HONE_ASSERT(false, "an instruction that execute() does itself");
  }
  return true;
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
    return invalid("the wait for {} at {} never ends", storage_[access.buffer].buffer->name, place);
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
                           &fiber - fibers_.all().data(), storage_[access.buffer].buffer->name);
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
  if (kNote == Note::kCount) make_bits();
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
      case Opcode::kRoundF32: r[i.dst].f = static_cast<double>(static_cast<float>(r[i.a].f)); break;
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
      case Opcode::kAlloc: fill_with_garbage(storage_[i.a]); break;
      case Opcode::kExtern: HONE_RETURN_IF_ERROR(call(code_.externs[i.a])); break;
      case Opcode::kHalt: return ok_status();
      default:
        if (i.code > Opcode::kHalt) {
          // Copies, as what a call may change is kept in memory, not in a register.
          const Instruction* place = pc;
          Cell* registers = r;
          HONE_RETURN_IF_ERROR(gpu_instruction(i, accesses.data(), place, registers));
          pc = place;
          r = registers;
        } else if (!compute(i, r)) {
          return invalid("integer division by zero");
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
  Machine machine(code, options);
  HONE_RETURN_IF_ERROR(machine.prepare(program, args));
  if (report != nullptr && options.check_races)
    return invalid("a run that checks races has no report");
  const Status status = report                ? machine.execute<Machine::Note::kCount>()
                        : options.check_races ? machine.execute<Machine::Note::kRaces>()
                                              : machine.execute<Machine::Note::kNothing>();
  if (options.operations != nullptr) *options.operations = machine.operations();
  HONE_RETURN_IF_ERROR(status);
  machine.finish(program, args);
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
