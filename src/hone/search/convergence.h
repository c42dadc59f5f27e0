// search/convergence.h - tells when the search of a task has converged: so many measurements in a
// row that improved its best schedule by less than a share (Fasor, section 6.2.1: "does not get
// improvement in consecutive steps").
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace hone::search {

class Convergence {
 public:
  static constexpr double kLeastGain = 0.01;

  // `patience` is that number of measurements; 0: no task ever converges.
  Convergence(size_t tasks, int patience) : patience_(patience), states_(tasks) {}
  // Takes a number of measurements of a task, after which its best schedule takes `best` seconds,
  // infinity if there is none. Returns whether it has converged.
  [[nodiscard]] bool add(size_t task, int measurements, double best) {
    State& state = states_[task];
    state.since += measurements;
    if (best < (1 - kLeastGain) * state.best) state = {best, 0};
    return patience_ > 0 && state.since >= patience_;
  }

 private:
  struct State {
    double best = INFINITY;
    int since = 0;  // measurements since the last gain
  };
  int patience_;
  std::vector<State> states_;
};

}  // namespace hone::search
