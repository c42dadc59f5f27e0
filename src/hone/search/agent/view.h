// search/agent/view.h - the view that an agent which learns to search has of a point and of a move
// from one point to a neighbour: numbers that have the same meaning in every task, so that what was
// learned on one task guides the search of another (Fasor, section 6.2.1: states are encoded as the
// features of the cost model).
#pragma once

#include <vector>

#include "hone/cost/candidate_features.h"
#include "hone/search/searcher.h"
#include "hone/trial/bounds.h"

namespace hone::search {

struct Sight {
  std::vector<float> state;  // state_size() numbers, most of them between -1 and 1
  // Shares of memory and of arithmetic: by the cost model if it predicts them
  // (cost/bound_scores.h), else by the static analysis.
  trial::BoundScores bounds;
};

// Returns the features that a state has on devices of the kind.
[[nodiscard]] cost::FeatureSet state_features(target::Kind kind);
[[nodiscard]] int state_size(target::Kind kind);
[[nodiscard]] int move_size();
// Returns what is seen of a legal point.
[[nodiscard]] Sight look_at(const SearchTask& task, const space::Point& point);
// Returns move_size() numbers that tell which decisions differ between two points of one sketch.
[[nodiscard]] std::vector<float> describe_move(const space::Space& space, const space::Point& from,
                                               const space::Point& to);

// This version changes if a number changes its meaning, other than by the features, which have a
// version of their own. What was learned with another one is refused.
inline constexpr int kViewVersion = 1;

}  // namespace hone::search
