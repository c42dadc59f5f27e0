// schedule/softmax_pattern.h - finds the stages of a sum that is weighted by a softmax.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// most = max of s[n];  w[n] = c ^ (a (s[n] - most));  total = sum of w[n];  sums = sum of w[n] v
struct Softmax {
  compute::Stage most, weights, total, sums;
  ir::BufferPtr scores;  // s
  size_t key = 0;        // the index of the weights that counts keys n
};

inline const ir::BufferPtr& buffer_of(const compute::Stage& stage) {
  return stage.outputs[0].buffer;
}

// The axis of the weights along which they are summed up.
[[nodiscard]] const compute::Axis& key_axis(const Softmax& softmax);

// The stages whose last one has that name; an error unless they are exactly those, nothing was done
// to them yet, and nobody else needs what is between them.
[[nodiscard]] Result<Softmax> find_softmax(const State& state, const std::string& name);

}  // namespace hone::schedule
