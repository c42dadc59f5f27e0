// search/mixed_searcher.h - the default: starts from the default points of the promising sketches
// and from what the cost model finds best without measuring (a task tuner adds what is
// transferred), then evolves, then descends along single decisions; how much of each is decided by
// what gained lately. All phases share what was spent and learned.
#pragma once

#include "hone/search/coordinate_searcher.h"
#include "hone/search/evolutionary_searcher.h"

namespace hone::search {

struct MixedOptions {
  int samples = 1024;         // samples that the starts are chosen among
  size_t starts = 6;          // best samples, which are climbed from and proposed first
  int climb = 8;              // most steps of each climb
  size_t descent_after = 16;  // measurements before the first descent
  double least_share = 0.25;  // least share of a batch for evolution, and for descent
  double hopeless = 2;  // default points so many times slower than the best predicted are not tried
  double memory = 0.9;  // weight of a measurement's gain one batch later
  double recall = 0;    // share of the remembered errors by which predictions are corrected
};

class MixedSearcher : public GuidedSearcher {
 public:
  explicit MixedSearcher(const std::shared_ptr<Guide>& guide, const MixedOptions& options = {});
  [[nodiscard]] std::string_view name() const override { return "mixed"; }
  void fill(Batch& batch, int count) override;

 private:
  // The recent gain of a phase: the decrease of the logarithm of the best time, and the
  // measurements spent.
  struct Credit {
    double gained = 0, spent = 0;
    std::vector<space::Point> pending;  // proposed and not yet measured
    [[nodiscard]] double rate() const { return (gained + 0.01) / (spent + 8); }
  };
  void update(Credit& credit);
  // Returns the default points of the promising sketches, the best first.
  [[nodiscard]] std::vector<Scored> promising_defaults();
  // Lets one phase fill the batch, remembers what it added and returns how many points.
  int fill_from(Credit& credit, Batch& batch, int count);

  MixedOptions options_;
  EvolutionarySearcher evolution_;
  CoordinateSearcher descent_;
  Credit evolved_, descended_;
  double best_ = 0;  // seconds, when credits were updated last; 0: nothing was measured
  bool started_ = false;
};

}  // namespace hone::search
