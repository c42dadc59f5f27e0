// search/agent/dqn_walk.h - a walk of the deep Q-network through a space, from schedule to adjacent
// schedule (Fasor, section 6.2). Searches make walks, and so does the training on stored
// measurements; they differ in how a move is chosen and who is told of it.
#pragma once

#include <functional>

#include "hone/search/agent/dqn_agent.h"
#include "hone/search/guide.h"

namespace hone::search {

// Where a walk is.
struct DqnPlace {
  space::Point point;
  double log_seconds = 0;  // measured if the guide has observed the point, else what it expects
  std::shared_ptr<const std::vector<float>> state;
  trial::BoundScores bounds;
  std::vector<space::Point> neighbours;   // that were not visited
  std::vector<std::vector<float>> moves;  // to each of them
};

struct DqnWalker {
  // Returns the index of one of the place's moves, of which there is at least one.
  std::function<size_t(const DqnPlace&)> choose;
  std::function<void(Transition)> tell;
};

// Visits `options.candidates` schedules, the start included, and adds them to `visited`, whose
// schedules are not visited again.
void dqn_walk(Guide& guide, const DqnOptions& options, const space::Point& start,
              const DqnWalker& walker, std::vector<space::Point>& visited);

}  // namespace hone::search
