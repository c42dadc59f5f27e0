// fuzz/fuzz.h - a fuzz target has two backends: libFuzzer, which calls LLVMFuzzerTestOneInput, and
// fuzz/seeded_main.cc, a loop over seeds that runs in CTest: `fuzz_NAME [first seed] [runs]
// [file]`, where the file receives the last input. Each run has a limit of time and memory. A
// target is one file that defines the two functions below; it aborts when it finds a bug.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hone/base/rng.h"

namespace hone::fuzz {

// The input of a seeded run.
std::string make_input(Rng& rng);

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
