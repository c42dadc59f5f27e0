// learn/torch/vectorised.h - a function with HONE_VECTORISED before it is compiled for several
// instruction sets, of which the best that the machine has is chosen at run time.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HONE_VECTORISED __attribute__((target_clones("default", "avx2,fma", "arch=skylake-avx512")))
#else
#define HONE_VECTORISED
#endif
