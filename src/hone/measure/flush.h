// measure/flush.h - removes memory from all caches, as the rest of a model does.
#pragma once

#include <span>

#include "hone/runtime/pool.h"

namespace hone::measure {

void flush_from_caches(std::span<const char> memory);
// Flushes with all threads of the pool, which are then as awake as in the middle of a model.
void flush_from_caches(runtime::Pool* pool, std::span<const std::span<char>> pieces);

}  // namespace hone::measure
