// ir/program_hash.h - what a program does, as a number: the same for programs that differ only in
// the names and addresses of variables and buffers, in the order of integer sums, which follows
// from names, or in marks to peel loops, which count for nothing once that is done. Machine code
// need not be made of both.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] uint64_t hash(const Program& program);

}  // namespace hone::ir
