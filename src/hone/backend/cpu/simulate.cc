// LLVM's machine code analyzer as a library: the same numbers as the tool llvm-mca prints.
#include <llvm/MCA/Context.h>
#include <llvm/MCA/CustomBehaviour.h>
#include <llvm/MCA/InstrBuilder.h>
#include <llvm/MCA/Pipeline.h>
#include <llvm/MCA/SourceMgr.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "hone/backend/cpu/machine_code.h"
#include "hone/base/hash.h"

namespace hone::backend::cpu {
namespace {

constexpr unsigned kWarmUp = 20;        // iterations at most
constexpr unsigned kCallLatency = 100;  // llvm-mca's
constexpr size_t kMostKnown = 50'000;   // blocks whose cycles are kept

// The cycles of blocks that were simulated in this process: the schedules of a task differ in some
// loops and have the others in common.
class KnownCycles {
 public:
  std::optional<double> find(const ir::Identity& block) {
    const std::lock_guard lock(mutex_);
    const auto known = cycles_.find(block);
    return known == cycles_.end() ? std::nullopt : std::optional(known->second);
  }
  void add(const ir::Identity& block, double cycles) {
    const std::lock_guard lock(mutex_);
    if (cycles_.size() < kMostKnown) cycles_.emplace(block, cycles);
  }

 private:
  std::mutex mutex_;
  std::map<ir::Identity, double> cycles_;
};
KnownCycles& known_cycles() {
  static KnownCycles known;
  return known;
}

void append(std::string& text, uint64_t word) {
  text.append(reinterpret_cast<const char*>(&word), sizeof(word));
}

// Appends all of an instruction that the model may read: not where a branch goes, nor how far from
// its registers a memory access is. A LEA with a distance takes longer on some processors.
void append(std::string& text, const Instruction& instruction) {
  constexpr size_t kDistance = 3;  // of the parts of an address: base, scale, index, distance
  append(text, instruction.inst.getOpcode());
  const std::vector<CodeOperand>& known = instruction.operands;
  const bool is_load_or_store = !instruction.opcode.starts_with("LEA");
  size_t part = 0;
  for (size_t i = 0; i < instruction.inst.getNumOperands(); ++i) {
    const llvm::MCOperand& operand = instruction.inst.getOperand(static_cast<unsigned>(i));
    const bool is_distance = known[i].is_address && part == kDistance;
    part = known[i].is_address ? part + 1 : 0;
    if (operand.isReg()) append(text, operand.getReg().id());
    if (!operand.isImm() || instruction.jumps_to) continue;
    const int64_t number = operand.getImm();
    append(text, static_cast<uint64_t>(is_distance && is_load_or_store ? number != 0 : number));
  }
}

}  // namespace

std::optional<unsigned> Disassembler::cycles(std::span<const Instruction> loop,
                                             unsigned iterations) const {
  namespace mca = llvm::mca;
  const mca::InstrumentManager instruments(*subtarget_, *instructions_);
  mca::InstrBuilder builder(*subtarget_, *instructions_, *registers_, analysis_.get(), instruments,
                            kCallLatency);
  std::vector<std::unique_ptr<mca::Instruction>> sequence;
  for (const Instruction& instruction : loop) {
    auto lowered = builder.createInstruction(instruction.inst, {});
    if (!lowered) {
      llvm::consumeError(lowered.takeError());
      return std::nullopt;
    }
    sequence.push_back(std::move(*lowered));
  }
  mca::CircularSourceMgr source(sequence, iterations);
  mca::CustomBehaviour behaviour(*subtarget_, source, *instructions_);
  mca::Context context(*registers_, *subtarget_);
  const mca::PipelineOptions options(0, 0, 0, 0, 0, 0, true);
  const bool in_order = !subtarget_->getSchedModel().isOutOfOrder();
  const std::unique_ptr<mca::Pipeline> pipeline =
      in_order ? context.createInOrderPipeline(options, source, behaviour)
               : context.createDefaultPipeline(options, source, behaviour);
  auto total = pipeline->run();
  if (total) return *total;
  llvm::consumeError(total.takeError());
  return std::nullopt;
}

double Disassembler::simulate(std::span<const Instruction> loop, unsigned iterations) const {
  if (loop.empty() || !subtarget_->getSchedModel().hasInstrSchedModel()) return 0;
  const ir::Identity block = identity(loop, iterations);
  if (const std::optional<double> known = known_cycles().find(block)) return *known;
  // The cycles in which the first iterations fill the pipeline do not count.
  const unsigned warm_up = std::min(kWarmUp, iterations);
  const std::optional<unsigned> few = cycles(loop, warm_up);
  const std::optional<unsigned> many = cycles(loop, warm_up + iterations);
  if (!few || !many) return 0;
  const double each = static_cast<double>(*many - *few) / iterations;
  known_cycles().add(block, each);
  return each;
}

ir::Identity Disassembler::identity(std::span<const Instruction> loop, unsigned iterations) const {
  std::string text = subtarget_->getTargetTriple().str();
  (text += ' ') += subtarget_->getCPU();
  (text += ' ') += subtarget_->getFeatureString();
  append(text, iterations);
  for (const Instruction& instruction : loop) append(text, instruction);
  return {hash_string(text), hash_string(text, 1)};
}

}  // namespace hone::backend::cpu
