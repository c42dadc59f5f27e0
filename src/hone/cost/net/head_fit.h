// cost/net/head_fit.h - corrects a net's scores by a linear function of what enters its last layer
// (head.h), fitted to measured times: the last layer is trained, the others stay.
//
// Ridge regression of the error of the logarithm of the time within each task, whatever the tasks'
// levels. The penalty pulls towards the weights as trained, and a fit is a fixed number of steps of
// conjugate gradients over so many samples at most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hone::cost::net {

struct HeadSample {
  uint64_t task = 0;  // within which times are compared
  double seconds = 0, score = 0;
  std::vector<float> head;
};

class HeadFit {
 public:
  static constexpr size_t kMaximum = 2000;  // samples that a fit looks at: the newest

  explicit HeadFit(double log_seconds_per_score) : scale_(log_seconds_per_score) {}
  void add(HeadSample sample);
  void fit();
  // What to add to the score of a schedule; 0 before the first fit.
  [[nodiscard]] double change(std::span<const float> head) const;
  [[nodiscard]] size_t samples() const { return samples_.size(); }

 private:
  double scale_;  // log_seconds_per_score
  std::vector<HeadSample> samples_;
  std::vector<double> weights_;  // to be added to the layer's; empty: none yet
};

}  // namespace hone::cost::net
