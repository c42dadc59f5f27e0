// measure/roofline_programs.h - loop programs that reach a machine's limits. Our own code generator
// compiles them, so every target has them. Tiles are independent and have equal work; the params
// are a small input (kConstantVectors vectors), one result per tile and the data that is read or
// written.
#pragma once

#include <cstdint>

#include "hone/ir/stmt.h"
#include "hone/target/cpu.h"

namespace hone::measure {

// Returns the number of dependent chains that run at the same time: enough to hide the latency of
// every unit, few enough to stay in registers with two operands.
[[nodiscard]] int64_t roofline_chains(const target::Cpu& target);
// Returns the number of vectors in the first param: two operands, then the start value of each
// chain.
[[nodiscard]] int64_t roofline_vectors(const target::Cpu& target);
// Returns the number of floats in one row of the data, which one iteration reads or writes.
[[nodiscard]] int64_t roofline_row(const target::Cpu& target);

// Makes multiply-adds in registers: each of `iterations` has kFmaUnroll per chain.
inline constexpr int64_t kFmaUnroll = 4;
[[nodiscard]] ir::Program fma_program(const target::Cpu& target, int64_t tiles, int64_t iterations);

// A kernel that reads or writes a tile's rows of data from the first to the last, `repeats` times.
struct Stream {
  int64_t tiles = 1;
  int64_t rows = 1;  // rows per tile
  int64_t repeats = 1;
};
[[nodiscard]] ir::Program read_program(const target::Cpu& target, const Stream& stream);
[[nodiscard]] ir::Program write_program(const target::Cpu& target, const Stream& stream);

}  // namespace hone::measure
