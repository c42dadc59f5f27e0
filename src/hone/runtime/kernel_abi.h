/* runtime/kernel_abi.h - the one function type that generated code has (DESIGN.md 3.4).
 * A kernel runs the tiles first_tile <= t < last_tile of one phase. Tiles are independent: any
 * partition over threads gives the same result. `args` are the buffers of the program's params in
 * order; `scratch` is 64-byte aligned memory of this thread; `thread` is its index. Returns 0. */
#pragma once

#include <stdint.h>

typedef int (*hone_kernel)(void* const* args, void* scratch, int64_t first_tile, int64_t last_tile,
                           int thread);
