// cost/torch/vectorised.h - HONE_VECTORISED before a function: compiled for several instruction
// sets, the best that the machine has is taken at run time.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HONE_VECTORISED __attribute__((target_clones("default", "avx2,fma", "arch=skylake-avx512")))
#else
#define HONE_VECTORISED
#endif
