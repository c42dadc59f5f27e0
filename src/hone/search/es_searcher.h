// search/es_searcher.h - evolution strategies (Tuna, section 5, algorithm 4; Wierstra et al., JMLR
// 2014): a normal distribution over the decisions of each sketch moves along the natural gradient
// of the predicted time. All samples of a generation are predicted at once.
#pragma once

#include "hone/search/guided_searcher.h"

namespace hone::search {

struct EsOptions {
  int population = 64;      // samples of a generation, half of them mirrored
  int generations = 12;     // before a batch
  double rate = 0.3;        // learning rate of the means
  double sigma = 0.25;      // standard deviation at the start, with decisions in [0, 1]
  double sigma_rate = 0.1;  // learning rate of the logarithm of the deviation
  double least_sigma = 0.05;
};

class EsSearcher : public GuidedSearcher {
 public:
  EsSearcher(std::shared_ptr<Guide> guide, const EsOptions& options = {})
      : GuidedSearcher(std::move(guide)), options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "es"; }
  void fill(Batch& batch, int count) override;

 private:
  struct Distribution {
    int sketch = 0;
    std::vector<double> mean, log_sigma;  // one number for each decision
  };
  struct Sample {
    std::vector<double> noise;
    double fitness = 0;
  };
  [[nodiscard]] Distribution around(const space::Point& point);
  // The distribution of the fastest measured point's sketch begins again around it.
  void start_again(const space::Point& best);
  // The legal point that is nearest to a place, if rounding finds one.
  [[nodiscard]] space::Point point_at(const Distribution& distribution,
                                      std::span<const double> noise);
  void evolve(Distribution& distribution, std::vector<space::Point>& visited);
  void move(Distribution& distribution, std::span<const Sample> samples) const;

  EsOptions options_;
  std::vector<Distribution> distributions_;
};

}  // namespace hone::search
