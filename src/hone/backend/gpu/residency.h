// backend/gpu/residency.h - the blocks of a kernel that an SM holds at a time. Where registers
// alone leave no room for one more, and a few registers less would, the compiler is asked to do
// with these (the second number of __launch_bounds__). Analysis and rules count with the registers
// that a schedule needs, not with those that a compiler takes because they are there.
#pragma once

#include "hone/backend/gpu/code_notes.h"
#include "hone/backend/gpu/print_c.h"
#include "hone/target/gpu.h"

namespace hone::backend::gpu {

// Returns how many blocks an SM holds if a thread has so many registers; 0 if one is too large.
[[nodiscard]] int resident_blocks(const Kernel& kernel, int registers, const target::Gpu& gpu);
// Returns for how many blocks the compiler should make room that has taken the registers of the
// note, or 0 if what it made is to stay.
[[nodiscard]] int blocks_to_ask_for(const Kernel& kernel, const KernelNote& note,
                                    const target::Gpu& gpu);

}  // namespace hone::backend::gpu
