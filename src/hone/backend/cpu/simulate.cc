// LLVM's machine code analyzer as a library: the same numbers as the tool llvm-mca prints.
#include <llvm/MCA/Context.h>
#include <llvm/MCA/CustomBehaviour.h>
#include <llvm/MCA/InstrBuilder.h>
#include <llvm/MCA/Pipeline.h>
#include <llvm/MCA/SourceMgr.h>

#include <algorithm>

#include "hone/backend/cpu/machine_code.h"

namespace hone::backend::cpu {
namespace {

constexpr unsigned kWarmUp = 20;        // iterations at most
constexpr unsigned kCallLatency = 100;  // llvm-mca's

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
  // The cycles in which the first iterations fill the pipeline do not count.
  const unsigned warm_up = std::min(kWarmUp, iterations);
  const std::optional<unsigned> few = cycles(loop, warm_up);
  const std::optional<unsigned> many = cycles(loop, warm_up + iterations);
  if (!few || !many) return 0;
  return static_cast<double>(*many - *few) / iterations;
}

}  // namespace hone::backend::cpu
