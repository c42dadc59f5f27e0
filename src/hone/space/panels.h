// space/panels.h - an operand of a product, copied into panels (internal to space): as many columns
// as a register tile has, one step of the sum behind the other, as GotoBLAS packs them. For
// operands that are computed or given: those of constants are packed at compile time.
#pragma once

#include <optional>

#include "hone/space/sketch.h"

namespace hone::space {

class Panels {
 public:
  // Of the operand of a sum that moves with the sum's axis `vector`; nothing if there is none, or
  // if it moves with `fixed`, too: each of its elements must serve many points.
  [[nodiscard]] static std::optional<Panels> find(const schedule::State& state,
                                                  const std::string& sum, const std::string& vector,
                                                  const std::string& fixed);
  // Makes the copy, ahead of all other steps of the sum.
  void append_copy(schedule::Steps& steps) const;
  // Its place and its order, `width` columns to a panel; behind the steps that made the loop.
  void append_loops(const std::string& stage, const std::string& loop, int64_t width,
                    schedule::Steps& steps) const;

 private:
  std::string sum_, buffer_, stage_, vector_;
  std::vector<std::string> outer_, along_;  // axes of the copy: beside the panels, of the sum
};

}  // namespace hone::space
