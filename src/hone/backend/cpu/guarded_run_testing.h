// backend/cpu/guarded_run_testing.h - runs machine code of tests in a child process in which every
// buffer lies between pages that fault, once adjacent to the page before it and once to the page
// behind it, and in which buffers that are only read are write-protected. A load or store of one
// byte outside a buffer is then an error that names the buffer; a crash or an endless loop is an
// error, too.
//
// The runs also differ in the order of tiles: all at once, one by one from the last to the first,
// and by a pool of threads. Their outputs must be equal bit for bit.
#pragma once

#include <span>

#include "hone/backend/cpu/compiler.h"
#include "hone/ir/in_place.h"
#include "hone/tensor/tensor.h"

namespace hone::backend::cpu {

struct GuardOptions {
  // The CompileOptions::argument_alignment of the code. A buffer ends less than this many bytes
  // before the page behind it; in that gap stores are detected, and loads whose values are used, as
  // they are huge. A load whose value is not used is detected only if the alignment is that of an
  // element. With 64 it cannot be distinguished from a legal one and does no harm, as no page ends
  // within 64 aligned bytes. Apart from the alignments in the instructions, the code is the same
  // with both.
  int64_t alignment = 64;
  int threads = 2;                          // threads of the pool; may be more than there are CPUs
  const ir::InPlacePair* shared = nullptr;  // an input and an output that share their memory
  unsigned seconds = 20;                    // limit of CPU time for all runs
  // If true, denormals count as zero, as in the pool (runtime/float_mode.h). If false,
  // calls without a pool keep them and give the result, and results of pools are compared with each
  // other.
  bool flush_denormals = true;
};

// Returns a random number of threads: 2, 3, 7 or 64, where more are rarer.
[[nodiscard]] int some_threads(uint64_t seed);

// Runs the code. `args` are as for ir::run. What the program writes is all ones (NaN, -1) before
// each run; if the runs are right, `args` has the results afterwards.
[[nodiscard]] Status run_guarded(const ir::Program& program, const ObjectCode& code,
                                 std::span<Tensor> args, const GuardOptions& options = {});

}  // namespace hone::backend::cpu
