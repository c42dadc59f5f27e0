// backend/cpu/count_code.h - counts the instructions that a kernel executes, by its machine code
// and its program together, without running it.
//
// Source: Tuna (Wang et al. 2021), section III.A.1.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hone/backend/cpu/compiler.h"
#include "hone/explain.h"

namespace hone::backend::cpu {

class Disassembler;

struct TileRange {
  int64_t first = 0, last = 0;
};

// Returns the counts of each phase that runs with the model, in order; one that cannot be counted
// says why. `object` and `phases` are as compile() returned them for the program. `tiles` is the
// range of one call; nothing: all tiles of the phase. Unless it `simulates`, LLVM's model of the
// processor, which takes most of the time, is not asked, and mca_cycles are 0.
[[nodiscard]] Result<std::vector<CountedCode>> count_code(
    const std::string& object, std::span<const EntryPoint> phases, const ir::Program& program,
    const target::Cpu& target, std::optional<TileRange> tiles = {}, bool simulates = true);

}  // namespace hone::backend::cpu
