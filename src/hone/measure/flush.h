// measure/flush.h - takes memory out of all caches, as it is after the rest of a model has run.
#pragma once

#include <span>

namespace hone::measure {

void flush_from_caches(std::span<const char> memory);

}  // namespace hone::measure
