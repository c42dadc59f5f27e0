// search/mixed_searcher.h - the default: starts from the default points of the promising sketches
// and from what the cost model finds best without measuring (a task tuner adds what is
// transferred), then evolves, then descends along single decisions; how much of each is decided by
// what gained lately. All phases share what was spent and learned.
#pragma once

#include "hone/search/coordinate_searcher.h"
#include "hone/search/evolutionary_searcher.h"

namespace hone::search {

struct MixedOptions {
  int samples = 1024;         // that the analytic best are chosen among
  size_t starts = 6;          // of them, proposed first
  int climb = 8;              // steps from each
  size_t descent_after = 16;  // measurements
  double least_share = 0.25;  // of a batch, for evolution as for descent
  double hopeless = 2;        // times the fastest predicted sketch's: a default point not tried
  double memory = 0.9;        // what a measurement's gain still counts one batch later
  double recall = 0;          // share of the remembered errors that predictions are corrected by
};

class MixedSearcher : public GuidedSearcher {
 public:
  explicit MixedSearcher(const std::shared_ptr<Guide>& guide, const MixedOptions& options = {});
  [[nodiscard]] std::string_view name() const override { return "mixed"; }
  void fill(Batch& batch, int count) override;

 private:
  // What a phase gained lately: logarithms of the best time, per measurement.
  struct Credit {
    double gained = 0, spent = 0;
    std::vector<space::Point> pending;  // proposed and not yet measured
    [[nodiscard]] double rate() const { return (gained + 0.01) / (spent + 8); }
  };
  void settle(Credit& credit);
  [[nodiscard]] std::vector<Scored> promising_defaults();  // of each sketch, the best first
  // Lets one phase fill the batch and remembers what it added.
  int fill_from(Credit& credit, Batch& batch, int count);

  MixedOptions options_;
  EvolutionarySearcher evolution_;
  CoordinateSearcher descent_;
  Credit evolved_, descended_;
  double best_ = 0;  // seconds, when credits were settled last; 0: nothing was measured
  bool started_ = false;
};

}  // namespace hone::search
