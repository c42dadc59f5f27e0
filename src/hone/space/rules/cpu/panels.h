// space/rules/cpu/panels.h - an operand of a product, copied into panels (internal to space): as
// many channels as a register tile has, one step of the sum behind the other, as GotoBLAS packs
// them. So lines that a tile reads one after the other use all sets of a cache, and few pages. For
// operands that are known only at run time: constants are packed at compile time.
#pragma once

#include <optional>

#include "hone/space/sketch.h"

namespace hone::space {

class Panels {
 public:
  // Of the operand of a sum that moves with the sum's axis `channels`; nothing if there is none
  // that can be copied, or if it moves with `shared`, too: each of its elements must serve all
  // points of that axis.
  [[nodiscard]] static std::optional<Panels> find(const schedule::State& state,
                                                  const std::string& sum,
                                                  const std::string& channels,
                                                  const std::string& shared);
  // Makes the copy, ahead of all other steps of the sum.
  void append_copy(schedule::Steps& steps) const;
  // Its place and its order, `width` channels to a panel; behind the steps that made the loop.
  void append_loops(const std::string& stage, const std::string& loop, int64_t width,
                    schedule::Steps& steps) const;
  // A phase of its own instead, ahead of all that reads it.
  void append_phase(int64_t width, schedule::Steps& steps) const;
  [[nodiscard]] const std::string& buffer() const { return buffer_; }

 private:
  void append_order(int64_t width, schedule::Steps& steps) const;
  std::string sum_, buffer_, stage_, channels_;
  std::vector<std::string> outer_, along_;  // axes of the copy: beside the panels, of the sum
};

}  // namespace hone::space
