// space/rules/cpu/panels.h - an operand of a product, copied into panels as GotoBLAS packs them
// (internal to space). A panel has as many channels as a register tile, and the terms of the sum
// follow one another in it. The lines that a tile reads one after the other therefore use all sets
// of a cache, and few pages. Panels are for operands that are known only at run time; constants are
// packed at compile time.
#pragma once

#include <optional>

#include "hone/space/sketch.h"

namespace hone::space {

class Panels {
 public:
  // Finds the operand of stage `sum` that moves with the sum's axis `channels`. Returns nullopt
  // unless there is exactly one and it can be copied, or if it also moves with the axis `shared`:
  // each of its elements must serve all points of that axis.
  [[nodiscard]] static std::optional<Panels> find(const schedule::State& state,
                                                  const std::string& sum,
                                                  const std::string& channels,
                                                  const std::string& shared);
  // Appends the step that makes the copy, which comes before all other steps of the sum.
  void append_copy(schedule::Steps& steps) const;
  // Appends the steps that compute the copy in a loop of `stage`, with `width` channels in a panel.
  // They come after the steps that make the loop.
  void append_loops(const std::string& stage, const std::string& loop, int64_t width,
                    schedule::Steps& steps) const;
  // Appends the steps that compute the copy in a phase of its own instead, ahead of all that reads
  // it.
  void append_phase(int64_t width, schedule::Steps& steps) const;
  [[nodiscard]] const std::string& buffer() const { return buffer_; }

 private:
  void append_order(int64_t width, schedule::Steps& steps) const;
  std::string sum_, buffer_, stage_, channels_;
  // Axes of the copy: outside of the panels, along the sum.
  std::vector<std::string> outer_, along_;
};

}  // namespace hone::space
