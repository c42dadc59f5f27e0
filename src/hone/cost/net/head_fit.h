// cost/net/head_fit.h - corrects a net's scores by a linear function of the input of its last layer
// (head.h), which is fitted to measured times: the last layer is trained, the others stay.
//
// The fit is a ridge regression of the error of the log time within each task, so the tasks' levels
// do not matter. The penalty pulls towards the trained weights, and a fit is a fixed number of
// steps of conjugate gradients over a bounded number of samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hone::cost::net {

struct HeadSample {
  uint64_t task = 0;  // task within which times are compared
  double seconds = 0, score = 0;
  std::vector<float> head;
};

class HeadFit {
 public:
  static constexpr size_t kMaximum = 2000;  // a fit uses at most this many of the newest samples

  explicit HeadFit(double log_seconds_per_score) : scale_(log_seconds_per_score) {}
  void add(HeadSample sample);
  void fit();
  // Returns what to add to the score of a schedule; 0 before the first fit.
  [[nodiscard]] double change(std::span<const float> head) const;
  [[nodiscard]] size_t samples() const { return samples_.size(); }

 private:
  double scale_;  // as log_seconds_per_score
  std::vector<HeadSample> samples_;
  std::vector<double> weights_;  // to be added to the layer's; empty before the first fit
};

}  // namespace hone::cost::net
