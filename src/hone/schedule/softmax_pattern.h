// schedule/softmax_pattern.h - matches the stages of a sum that is weighted by a softmax.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// most = max of s[n];  w[n] = c ^ (a (s[n] - most));  total = sum of w[n];  sums = sum of w[n] v
struct Softmax {
  compute::Stage most, weights, total, sums;
  ir::BufferPtr scores;  // the buffer s
  size_t key = 0;        // index of the weights that runs over the keys n
};

inline const ir::BufferPtr& buffer_of(const compute::Stage& stage) {
  return stage.outputs[0].buffer;
}

// Returns the axis of the weights along which they are summed.
[[nodiscard]] const compute::Axis& key_axis(const Softmax& softmax);

// A stage that has a value for each key.
struct StageOfKeys {
  compute::Stage stage;
  size_t key = 0;      // the dimension of its buffer that runs over keys
  compute::Axis axis;  // and the axis that does
};

// Returns the stage that computes the scores and those that only it reads, key by key, such as the
// products that it scales, the last one first; none if somebody else reads its scores, too. A stage
// that is also read at a key other than the reader's is left out.
[[nodiscard]] std::vector<StageOfKeys> stages_of_scores(const State& state, const Softmax& softmax);

// Matches the stages, of which the last one has this name. It is an error unless they are exactly
// those above, no step has changed them yet, and no other stage reads the intermediates.
[[nodiscard]] Result<Softmax> find_softmax(const State& state, const std::string& name);

}  // namespace hone::schedule
