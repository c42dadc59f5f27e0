// measure/roofline_programs.h - the loop programs that reach a machine's limits, made by our own
// code generator so that every target has them. Tiles are independent and of equal work; the params
// are a small input (kConstantVectors vectors), one result per tile and the data that are read or
// written.
#pragma once

#include <cstdint>

#include "hone/ir/stmt.h"
#include "hone/target/target.h"

namespace hone::measure {

// Chains of dependent operations that run at the same time: enough to hide the latency of every
// unit, few enough to stay in registers with two operands beside them.
[[nodiscard]] int64_t roofline_chains(const target::Target& target);
// Vectors of the first param: two operands, then where each chain starts.
[[nodiscard]] int64_t roofline_vectors(const target::Target& target);
// Floats of one row of the data: what one iteration reads or writes.
[[nodiscard]] int64_t roofline_row(const target::Target& target);

// Multiply-adds in registers: kFmaUnroll a chain in each of `iterations`.
inline constexpr int64_t kFmaUnroll = 4;
[[nodiscard]] ir::Program fma_program(const target::Target& target, int64_t tiles,
                                      int64_t iterations);

// What goes through a tile's rows of data, `repeats` times from the first to the last.
struct Stream {
  int64_t tiles = 1;
  int64_t rows = 1;  // of a tile
  int64_t repeats = 1;
};
[[nodiscard]] ir::Program read_program(const target::Target& target, const Stream& stream);
[[nodiscard]] ir::Program write_program(const target::Target& target, const Stream& stream);

}  // namespace hone::measure
