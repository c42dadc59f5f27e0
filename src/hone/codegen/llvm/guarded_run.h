// codegen/llvm/guarded_run.h - for tests: runs machine code in a child process where every buffer
// lies between pages that fault, once flush against the page before it and once against the page
// behind it, and what is only read cannot be written. So a load or store of one byte outside of a
// buffer is an error that names the buffer, and a crash or an endless loop is one, too.
//
// The runs differ in how tiles are called as well: all at once; one by one from the last to the
// first; by a pool of threads. Their outputs must be equal bit for bit.
#pragma once

#include <span>

#include "hone/codegen/llvm/compiler.h"
#include "hone/ir/in_place.h"
#include "hone/tensor/tensor.h"

namespace hone::codegen {

struct GuardOptions {
  // CompileOptions::argument_alignment of the code. A buffer ends less than that many bytes before
  // the page behind it; there stores are found, and loads whose values are used, as they are huge.
  // A load that is not used is found with an alignment of an element. With 64 none can be told from
  // a legal one, and it does no harm: no page ends within 64 aligned bytes. Apart from what the
  // instructions say of their addresses, the code is the same with both.
  int64_t alignment = 64;
  int threads = 2;                          // of the pool, also more than there are CPUs
  const ir::InPlacePair* shared = nullptr;  // an input and an output in one place
  unsigned seconds = 20;                    // of the processor, for all runs
  // true: denormals count as zero, as in the pool (codegen/runtime/float_mode.h). false: calls
  // without a pool keep them and give the result; pools are compared among themselves.
  bool flush_denormals = true;
};

// For `threads`, of a random seed: 2, 3, 7 or 64, the more the rarer.
[[nodiscard]] int some_threads(uint64_t seed);

// `args` as for ir::run; what the program writes is all ones (NaN, -1) before each run and, where
// the runs are right, in `args` after it.
[[nodiscard]] Status run_guarded(const ir::Program& program, const ObjectCode& code,
                                 std::span<Tensor> args, const GuardOptions& options = {});

}  // namespace hone::codegen
