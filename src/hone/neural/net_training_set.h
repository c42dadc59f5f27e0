// net_training_set.h - what was measured in a run as rows that a net is trained on: the newest of
// each kind, and of those not more at a time than a bounded amount of work allows (internal to
// net_adaptation.cc).
#pragma once

#include <deque>

#include "hone/cost/net/train.h"
#include "hone/neural/net_adaptation.h"

namespace hone {

class NetTrainingSet {
 public:
  static constexpr size_t kMaximum = 2000;  // the newest are kept

  void add(const NetObservation& observation);
  [[nodiscard]] size_t size() const { return samples_.size(); }
  // At most `most` rows of tasks that have two and more: first those that were added since the last
  // call, then others by chance. Speeds are relative to the fastest that was ever added.
  [[nodiscard]] cost::net::NetRows pick(const cost::net::Net& net, size_t most, uint64_t seed);

 private:
  struct Sample {
    uint64_t task;
    double seconds, default_seconds;
    std::vector<std::vector<float>> inputs;  // as NetFile::inputs
  };
  std::deque<Sample> samples_;
  std::map<uint64_t, double> best_;  // seconds by task
  size_t fresh_ = 0;                 // at the end of samples_
};

}  // namespace hone
