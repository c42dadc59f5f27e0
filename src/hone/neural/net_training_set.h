// net_training_set.h - the measurements of a run as rows that a net is trained on. It keeps the
// newest measurements and picks a limited number of them at a time, so that training takes a
// limited amount of work (internal to net_adaptation.cc).
#pragma once

#include <deque>

#include "hone/cost/net/train.h"
#include "hone/neural/net_adaptation.h"

namespace hone {

class NetTrainingSet {
 public:
  static constexpr size_t kMaximum = 2000;  // the number of samples that are kept, the newest

  void add(const NetObservation& observation);
  [[nodiscard]] size_t size() const { return samples_.size(); }
  // Picks at most `most` samples: first those that were added since the last call, then others at
  // random. Returns rows for the tasks of which at least two samples were picked. Speeds are
  // relative to the fastest sample of the task that was ever added.
  [[nodiscard]] cost::net::NetRows pick(const cost::net::Net& net, size_t most, uint64_t seed);

 private:
  struct Sample {
    uint64_t task;
    double seconds, default_seconds;
    // Values of each input, in the order of NetFile::inputs.
    std::vector<std::vector<float>> inputs;
  };
  std::deque<Sample> samples_;
  std::map<uint64_t, double> best_;  // fastest seconds of each task
  size_t fresh_ = 0;  // number of samples, at the end of samples_, since the last pick()
};

}  // namespace hone
