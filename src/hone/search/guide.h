// search/guide.h - what every strategy that asks a cost model works with: the points already spent,
// predictions (remembered) corrected on line by what was measured on this task, and the measured
// points in order. Illegal points are never ranked.
#pragma once

#include <optional>
#include <unordered_map>

#include "hone/cost/decision_history.h"
#include "hone/search/correction.h"
#include "hone/search/proposals.h"
#include "hone/search/recall.h"
#include "hone/search/searcher.h"

namespace hone::search {

struct Scored {
  space::Point point;
  double score = 0;        // log_seconds less some optimism; lower is better
  double log_seconds = 0;  // logarithm of the expected seconds
  double deviation = 0;    // its standard deviation; 0 while nothing is known
};

struct MeasuredPoint {
  space::Point point;
  double seconds = 0;
};

inline constexpr double kOptimism = 0.5;

class Guide {
 public:
  // `optimism`: standard deviations of the correction in a candidate's favour. `recall`: corrects
  // predictions before anything is measured, and outlives it; may be null.
  explicit Guide(const SearchTask& task, double optimism = kOptimism,
                 const Recall* recall = nullptr);

  [[nodiscard]] const space::Space& space() const { return *task_.space; }
  [[nodiscard]] Rng& rng() { return rng_; }
  [[nodiscard]] Proposals& proposals() { return proposals_; }

  // From now on points are ranked with what came later made by rule of thumb
  // (cost/decision_history.h): nothing will be measured that could correct a model which has seen
  // no others.
  void keep_usual(cost::DecisionHistory history) { usual_.emplace(std::move(history)); }
  // Legal points only, each once, the best first; equal ones in the order given.
  [[nodiscard]] std::vector<Scored> rank(std::vector<space::Point> points);
  // From the point to its best neighbour while that is better by the score, so many steps at most.
  [[nodiscard]] Scored climb(Scored from, int max_steps);
  // Of so many samples and every sketch's default point the best, each climbed from; the best
  // first.
  [[nodiscard]] std::vector<Scored> climbed_samples(int samples, size_t climbers, int max_steps);

  void observe(std::span<const space::Point> points, std::span<const double> seconds);
  // Takes what was observed since the last call into account.
  void fit() { correction_.fit(); }
  // Fastest first, without failures; of a point that was observed again only the last time.
  [[nodiscard]] const std::vector<MeasuredPoint>& measured() const { return measured_; }
  [[nodiscard]] size_t observations() const { return times_.size(); }
  // What was observed of a point: infinity if it failed; null if nothing.
  [[nodiscard]] const double* seconds_of(const space::Point& point) const;

 private:
  [[nodiscard]] std::vector<double> predict(std::span<const space::Point> points);
  void correct(const MeasuredPoint& observed, double predicted);
  // Changes when predictions do.
  [[nodiscard]] uint64_t revision() const;
  // The model has learned: what it said before is forgotten, the correction begins anew.
  void relearn();

  SearchTask task_;
  const Recall* recall_;
  uint64_t revision_;  // that predictions_ are of
  double optimism_;
  std::optional<cost::DecisionHistory> usual_;
  Proposals proposals_;
  Rng rng_;
  Correction correction_;
  std::unordered_map<uint64_t, double> predictions_;  // logarithms, by hash of the point
  std::unordered_map<uint64_t, double> times_;        // seconds, by hash of the point
  std::vector<MeasuredPoint> measured_;
  std::vector<MeasuredPoint> history_;  // the newest, as observed, failures too: for relearn()
};

}  // namespace hone::search
