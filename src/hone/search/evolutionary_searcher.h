// search/evolutionary_searcher.h - evolution under a cost model (after Ansor, OSDI 2020), corrected
// online by what was measured on this task; once there is an incumbent, part of each batch descends
// along single decisions from it.
#pragma once

#include "hone/search/guided_searcher.h"

namespace hone::search {

struct EvolutionOptions {
  int first_population = 384;  // samples before the first generation
  int population = 96;
  int generations = 3;
  double crossover = 0.3;      // share of the children; the others are mutations
  double descent_share = 0.4;  // share of each batch: neighbours of the best measured points
  size_t descent_after = 8;    // measurements before the first descent
  double recall = 0;           // share of the remembered errors by which predictions are corrected
};

class EvolutionarySearcher : public GuidedSearcher {
 public:
  explicit EvolutionarySearcher(std::shared_ptr<Guide> guide, const EvolutionOptions& options = {})
      : GuidedSearcher(std::move(guide)), options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "evolutionary"; }
  void fill(Batch& batch, int count) override;

 private:
  [[nodiscard]] std::vector<Scored> evolve();
  [[nodiscard]] std::vector<Scored> descend();
  [[nodiscard]] const space::Point& tournament(std::span<const Scored> parents);

  EvolutionOptions options_;
  std::vector<space::Point> survivors_;  // best points of the last evolution
};

}  // namespace hone::search
