// search/evolutionary_searcher.h - evolution under a cost model (after Ansor, OSDI 2020), corrected
// on line by what was measured on this task; once there is an incumbent, part of each batch
// descends along single decisions from it, and a small share stays random.
#pragma once

#include <unordered_map>

#include "hone/search/correction.h"
#include "hone/search/proposals.h"
#include "hone/search/searcher.h"

namespace hone::search {

struct EvolutionOptions {
  int first_population = 384;  // samples before the first generation
  int population = 96;
  int generations = 3;
  double crossover = 0.3;      // of the children; the others are mutations
  double random_share = 0.08;  // of each batch
  double descent_share = 0.4;  // of each batch, neighbours of the best measured points
  size_t descent_after = 8;    // measurements
  double optimism = 0.5;       // standard deviations of the correction in a candidate's favour
};

class EvolutionarySearcher : public Searcher {
 public:
  explicit EvolutionarySearcher(const SearchTask& task, const EvolutionOptions& options = {});
  [[nodiscard]] std::string_view name() const override { return "evolutionary"; }
  [[nodiscard]] std::vector<space::Point> propose(int n) override;
  void observe(std::span<const space::Point> points, std::span<const double> seconds) override;

 private:
  struct Scored {
    space::Point point;
    double score;  // logarithm of the expected seconds, less some optimism; lower is better
  };
  struct Measured {
    space::Point point;
    double seconds;
  };
  // Logarithms of the model's predictions; infinity where the point is illegal. Remembered.
  [[nodiscard]] std::vector<double> predict(std::span<const space::Point> points);
  [[nodiscard]] std::vector<Scored> rank(std::vector<space::Point> points);
  [[nodiscard]] std::vector<Scored> evolve();
  [[nodiscard]] std::vector<Scored> descend();
  [[nodiscard]] const space::Point& tournament(const std::vector<Scored>& parents);

  SearchTask task_;
  EvolutionOptions options_;
  Proposals proposals_;
  Rng rng_;
  Correction correction_;
  std::unordered_map<uint64_t, double> predictions_;  // by hash of the point
  std::vector<Measured> measured_;                    // fastest first, without failures
  size_t observations_ = 0;
  std::vector<space::Point> survivors_;  // of the last evolution
};

}  // namespace hone::search
