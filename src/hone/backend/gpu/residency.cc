#include "hone/backend/gpu/residency.h"

#include <algorithm>

#include "hone/base/round_up.h"

namespace hone::backend::gpu {
namespace {

// A thread gets a multiple of so many registers (CUDA Programming Guide).
constexpr int kRegisterUnit = 8;
// A kernel is asked to give up at most one in so many of its registers: giving up more would end in
// spills, or results would no longer be computed side by side.
constexpr int kShare = 8;
constexpr int kMostBlocks = 4;  // with more blocks on an SM than this, one more hides little

int warps_of(const Kernel& kernel, const target::Gpu& gpu) {
  return ceil_div(kernel.threads, gpu.warp);
}

}  // namespace

int resident_blocks(const Kernel& kernel, int registers, const target::Gpu& gpu) {
  const int warps = warps_of(kernel, gpu);
  int64_t blocks = std::min(gpu.blocks_per_sm, gpu.warps_per_sm / warps);
  const int64_t shared = kernel.shared_bytes + gpu.shared_bytes_reserved;
  if (shared > 0) blocks = std::min(blocks, gpu.shared_bytes_per_sm / shared);
  const int64_t each = int64_t{warps} * gpu.warp * round_up(registers, kRegisterUnit);
  if (gpu.registers_per_sm > 0 && each > 0) blocks = std::min(blocks, gpu.registers_per_sm / each);
  return static_cast<int>(blocks);
}

int blocks_to_ask_for(const Kernel& kernel, const KernelNote& note, const target::Gpu& gpu) {
  const int blocks = resident_blocks(kernel, note.registers, gpu);
  const int wanted = blocks + 1;
  if (blocks == 0 || wanted > kMostBlocks || kernel.tiles <= int64_t{blocks} * gpu.sms) return 0;
  const int fewer = note.registers - note.registers / kShare;
  return resident_blocks(kernel, fewer, gpu) >= wanted ? wanted : 0;
}

}  // namespace hone::backend::gpu
