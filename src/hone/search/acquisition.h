// search/acquisition.h - which point of a pool batch Bayesian optimisation takes next, and what
// keeps the points of a batch apart (bayes_searcher.h). Values are logarithms of seconds: less is
// better.
#pragma once

#include <cmath>

#include "hone/search/gaussian_process.h"
#include "hone/space/space.h"

namespace hone::search {

struct PoolPoint {
  space::Point point;
  double prior = 0;
  GaussianProcess::Followed followed;  // the process's correction of the prior
  double penalty = 1;                  // factor of the acquisition
  [[nodiscard]] double mean() const { return prior + followed.posterior.mean; }
  [[nodiscard]] double deviation() const { return std::sqrt(followed.posterior.variance) + 1e-9; }
};

// Acquisition functions: more is better. All are positive, so that a penalty can be a factor.
// Returns how far below `best` a normal variable is on average, where being above counts 0 (Jones
// et al., 1998).
[[nodiscard]] double expected_improvement(double best, double mean, double deviation);
// Returns a number that grows with how far `kappa` standard deviations below the mean are below
// `best`.
[[nodiscard]] double confidence_bound(double best, double mean, double deviation, double kappa);

// A chosen point's time is expected to be `gap` above the best one, with a standard deviation, and
// times differ by at most `reach` between it and a place. Returns the chance that the place may be
// as fast as the best: that it is not in the ball around the point in which all are slower.
[[nodiscard]] double chance_outside_ball(double reach, double gap, double deviation);

// The kriging believer (Ginsbourger et al., 2010): the chosen point's mean becomes an observation
// of the process. `best` and the pool follow.
void believe(const PoolPoint& chosen, GaussianProcess& process, double& best,
             std::span<PoolPoint> pool);
// Local penalisation (Gonzalez et al., AISTATS 2016): points near the chosen one lose by the chance
// that they are in its ball, by the steepest slope between it and the pool. Points of other
// sketches have other decisions and are not near; in an embedding they may be.
void penalise(const PoolPoint& chosen, double best, std::span<PoolPoint> pool);

}  // namespace hone::search
