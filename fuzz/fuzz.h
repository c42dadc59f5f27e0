// fuzz/fuzz.h - a fuzz target has two backends: libFuzzer, which calls LLVMFuzzerTestOneInput, and
// fuzz/seeded_main.cc, a loop over seeds that runs in CTest: `fuzz_NAME [first seed] [runs]
// [file]`, where the file receives the last input. Each run has a limit of time and memory. A
// target is one file that defines the two functions below; it aborts when it finds a bug.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "hone/base/rng.h"

namespace hone::fuzz {

// The input of a seeded run.
std::string make_input(Rng& rng);

// Called after so many seeded runs: says what is wrong with them as a whole, such as that something
// never happened. Empty: nothing is. A target that counts nothing need not define it.
std::string verdict(uint64_t runs);

// For targets whose input is a seed: its first bytes, the missing ones 0.
inline uint64_t seed_of(const uint8_t* data, size_t size) {
  uint64_t seed = 0;
  std::memcpy(&seed, data, std::min(size, sizeof(seed)));
  return seed;
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
