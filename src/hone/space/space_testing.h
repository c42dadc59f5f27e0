// space/space_testing.h - for tests: a machine so small that small shapes have all kinds of tiles.
#pragma once

#include "hone/target/target.h"

namespace hone::space {

// Returns a target with few registers and, unless `vector_bytes` is larger, few lanes, so that
// small shapes have full tiles and tails.
inline target::Target narrow(int vector_bytes = 16) {
  target::Target target;
  target.cpu().vector_bytes = vector_bytes;
  target.cpu().vector_registers = 16;
  target.cpu().cores = 2;
  return target;
}

// Returns the target with caches so small that products which the interpreter can run have blocks
// and panels.
inline target::Target with_small_caches(target::Target target) {
  target.cpu().caches.resize(2);
  target.cpu().caches[0].bytes = 1 << 10;
  target.cpu().caches[1].bytes = 16 << 10;
  return target;
}

}  // namespace hone::space
