// ir/bytecode.h - a program as flat code for a machine with registers, which the interpreter
// executes.
//
// Registers are 8-byte cells. Those in [0, constants.size()) hold constants; then come loop
// variables, loop ends and temporaries. A register is written before it is read.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

union Cell {
  int64_t i;
  double f;
};

// One line per kind.
// clang-format off
enum class Opcode : uint16_t {
  kMove,
  kAddI, kSubI, kMulI, kDivI, kFloorDivI, kFloorModI, kMinI, kMaxI,
  kAddF, kSubF, kMulF, kDivF, kMinF, kMaxF, kPowF,
  kLtI, kLeI, kEqI, kNeI, kLtF, kLeF, kEqF, kNeF,
  kAnd, kOr, kXor, kRemF,
  kMulAddI,                                      // dst = a * b + end
  kUnaryI, kUnaryF,                              // aux: Op
  kGelu,                                         // aux: by tanh
  kTyped,  // operations of kU64, shifts, kRem; aux: Op, DType
  kCompareU,                                     // aux: Op
  kWrap, kFloatToInt, kRoundF32, kRoundFloat,    // aux: DType
  kIntToFloat, kBits,                            // aux: from, to
  kLoad,                                         // dst = access a
  kStore,                                        // access a = register b
  kStoreF32,                                     // the same, rounded
  kAddTo, kAddToF32,  // access target = access a, which is the same element, + register b
  kJump, kJumpIfFalse,  // jumps to target (if register a is 0)
  kLoopInit,  // dst = a, register end = a + b; jumps to target if the loop is empty
  kLoopNext,  // ++dst < register a: jumps to target
  kAlloc,                                        // refills buffer a
  kExtern,  // calls externs[a]
  kHalt,
  // Statements of GPUs. Those in the first line are made for BytecodeOptions::races alone.
  kPhase, kTile, kActor, kBarrier, kCommit, kWait,  // aux: Actor::Kind; a: its number; kWait: target
  kArrive,  // one arrival at the signal of access a; aux: of a copy
  kAwait,   // waits for access a and the parity in register b
  kRoles,  // starts roles[a]
  kRoleEnd,
};
// clang-format on

struct Instruction {
  Opcode code;
  uint16_t aux = 0;
  int32_t dst = 0;
  int32_t a = 0;
  int32_t b = 0;
  int32_t target = 0;
  int32_t end = 0;  // kLoopInit: the register of the loop's end; kMulAddI: the third operand
};

// Who runs a statement.
struct Actor {
  enum Kind : uint8_t { kThread, kWarp, kGroup } kind = kThread;
  int32_t number = 0;  // the number of the thread, or of the first one of a warp
  bool operator==(const Actor&) const = default;
};

struct Access {
  int32_t buffer;
  std::vector<int32_t> index;  // registers that hold the indices
  int32_t statement;           // position as in Touch::statement
  bool is_store;
  bool async = false;                // belongs to a group that has to be waited for
  bool of_copy = false;              // belongs to a copy of a box, which ends by a signal
  const StmtNode* source = nullptr;  // the statement, which the program keeps alive
  bool of_stored = false;            // accesses the element that the statement stores
};

struct ExternCall {
  std::string name;
  std::vector<int32_t> buffers;
};

struct Bytecode {
  std::vector<Instruction> code;
  std::vector<Cell> constants;
  int32_t num_registers = 0;
  std::vector<Access> accesses;
  std::vector<BufferPtr> buffers;  // buffers of the params in order, then the others
  std::vector<ExternCall> externs;
  std::vector<std::vector<int32_t>> roles;  // where the roles of each kRoles begin
  std::vector<int64_t> arrivals;            // that complete a phase of each signal
};

struct BytecodeOptions {
  bool float64 = false;
  bool skip_prepare = false;
  bool races = false;  // tells who runs what
};

// Compiles a program. It is an error if the program names a variable or a buffer outside its scope.
[[nodiscard]] Result<Bytecode> make_bytecode(const Program& program,
                                             const BytecodeOptions& options);

}  // namespace hone::ir
