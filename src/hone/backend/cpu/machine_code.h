// backend/cpu/machine_code.h - decodes the functions of an object file, and estimates their time
// by LLVM's model of the processor. Only the .cc files here include this.
#pragma once

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/ir/program_hash.h"
#include "hone/target/cpu.h"

namespace hone::backend::cpu {

// The kinds of places where the code goes on behind an instruction.
enum class Flow : uint8_t { kNext, kJump, kBranch, kIndirect, kReturn, kCall };

struct CodeOperand {
  std::string_view reg;  // such as "RAX"; empty for a number and for a register that is left out
  int64_t number = 0;
  bool is_address = false;  // a part of the address of a memory operand, where LLVM tells it
};

struct Instruction {
  llvm::MCInst inst;
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::string text;                    // such as "vfmadd231ps (%rax){1to16}, %zmm1, %zmm2"
  std::optional<uint64_t> jumps_to;    // target of a branch within the section
  std::vector<std::string> registers;  // registers of its operands, such as "RAX" or "ZMM1"
  bool loads = false, stores = false;
  std::string_view opcode;  // LLVM's name, such as "ADD64ri32"
  std::vector<CodeOperand> operands;
  std::vector<std::string_view> defines;        // registers that it writes, implicit ones included
  size_t num_results = 0;                       // operands that it writes; they stand first
  std::vector<std::string_view> implicit_uses;  // registers that it reads beside its operands
  Flow flow = Flow::kNext;
  [[nodiscard]] std::string mnemonic() const { return text.substr(0, text.find(' ')); }
};

struct Function {
  std::string name;
  std::vector<Instruction> body;
};
// Returns the function of that name, which points into `functions`; an error if there is none.
[[nodiscard]] Result<const Function*> find_function(const std::vector<Function>& functions,
                                                    const std::string& name);

class Disassembler {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Disassembler>> create(const target::Cpu& target);
  // Returns all functions of the object's text sections, in the order of their addresses.
  [[nodiscard]] Result<std::vector<Function>> functions(const std::string& object) const;
  // Returns the cycles per iteration of a loop of these instructions (llvm-mca), a mean over so
  // many iterations; 0 if there is no model of the processor or of an instruction. Equal loops are
  // simulated once in a process.
  [[nodiscard]] double simulate(std::span<const Instruction> loop, unsigned iterations = 100) const;

 private:
  Disassembler() = default;
  [[nodiscard]] Result<std::vector<Instruction>> decode(llvm::StringRef bytes,
                                                        uint64_t address) const;
  [[nodiscard]] Instruction describe(llvm::MCInst inst, uint64_t address, uint64_t bytes) const;
  [[nodiscard]] std::optional<unsigned> cycles(std::span<const Instruction> loop,
                                               unsigned iterations) const;
  // Returns what the model's answer depends on.
  [[nodiscard]] ir::Identity identity(std::span<const Instruction> loop, unsigned iterations) const;

  std::unique_ptr<const llvm::MCRegisterInfo> registers_;
  std::unique_ptr<const llvm::MCAsmInfo> assembler_;
  std::unique_ptr<const llvm::MCSubtargetInfo> subtarget_;
  std::unique_ptr<const llvm::MCInstrInfo> instructions_;
  std::unique_ptr<const llvm::MCInstrAnalysis> analysis_;
  std::unique_ptr<llvm::MCContext> context_;
  std::unique_ptr<llvm::MCDisassembler> decoder_;
  std::unique_ptr<llvm::MCInstPrinter> printer_;
};

}  // namespace hone::backend::cpu
