// space/rules/cpu/loop_nest.h - the loops of a stage, once their axes are split, and the steps that
// make them (internal to space). All rules write the loops of a tiled nest by this.
#pragma once

#include <string>
#include <vector>

#include "hone/space/sketch.h"

namespace hone::space {

// The names of a stage's loops, the outermost first.
struct LoopNest {
  std::vector<std::string> outer;          // the loops around the straight-line code
  size_t parallel = 0;                     // so many of `outer` become one loop that threads share
  std::vector<std::string> unrolled = {};  // the loops that become straight-line code
  std::string vector = {};                 // the loop along the lanes; "" if there is none
  bool joined = false;  // the last unrolled loop and `vector` become one loop along the lanes
};

// Appends the order of the loops, the parallel loop, the straight-line code and the lanes. Returns
// the name of the parallel loop; "" if there is none.
std::string append_nest(const std::string& stage, LoopNest loops, schedule::Steps& steps);
// Appends the straight-line code and the lanes alone.
void append_body(const std::string& stage, const std::vector<std::string>& unrolled,
                 const std::string& vector, schedule::Steps& steps);

}  // namespace hone::space
