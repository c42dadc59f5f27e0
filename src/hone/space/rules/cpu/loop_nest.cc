#include "hone/space/rules/cpu/loop_nest.h"

namespace hone::space {

using schedule::Steps;

std::string append_nest(const std::string& stage, LoopNest loops, Steps& steps) {
  std::vector<std::string> order = loops.outer;
  order.insert(order.end(), loops.unrolled.begin(), loops.unrolled.end());
  if (!loops.vector.empty()) order.push_back(loops.vector);
  if (order.size() > 1) steps.emplace_back(schedule::Reorder{stage, std::move(order)});
  if (loops.joined) {
    loops.vector = fuse_loops(stage, {loops.unrolled.back(), loops.vector}, steps);
    loops.unrolled.pop_back();
  }
  std::string parallel;
  if (loops.parallel > 0) {
    loops.outer.resize(loops.parallel);
    parallel = fuse_loops(stage, loops.outer, steps);
    steps.emplace_back(schedule::Parallel{stage, parallel});
  }
  append_body(stage, loops.unrolled, loops.vector, steps);
  return parallel;
}

void append_body(const std::string& stage, const std::vector<std::string>& unrolled,
                 const std::string& vector, Steps& steps) {
  for (const std::string& loop : unrolled) steps.emplace_back(schedule::Unroll{stage, loop});
  if (!vector.empty()) steps.emplace_back(schedule::Vectorize{stage, vector});
}

}  // namespace hone::space
