// space/space_testing.h - for tests: a machine so small that small shapes have all kinds of tiles.
#pragma once

#include "hone/target/target.h"

namespace hone::space {

// Few registers and, unless vectors of more bytes are wanted, few lanes, so that small shapes have
// full tiles and tails.
inline target::Target narrow(int vector_bytes = 16) {
  target::Target target;
  target.vector_bytes = vector_bytes;
  target.vector_registers = 16;
  target.cores = 2;
  return target;
}

}  // namespace hone::space
