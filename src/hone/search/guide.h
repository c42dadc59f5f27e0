// search/guide.h - the state of every strategy that asks a cost model: the points already spent,
// predictions (remembered), which are corrected online by what was measured on this task, and the
// measured points in order. Illegal points are never ranked.
#pragma once

#include <optional>
#include <unordered_map>

#include "hone/cost/decision_history.h"
#include "hone/search/correction.h"
#include "hone/search/proposals.h"
#include "hone/search/recall.h"
#include "hone/search/searcher.h"
#include "hone/space/subspace.h"

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
  // `optimism` is the number of standard deviations of the correction by which scores favour a
  // candidate. `recall` corrects predictions before anything is measured. `part` is the part of the
  // space that the search moves in; null: all of it. Both must outlive the guide and may be null.
  explicit Guide(const SearchTask& task, double optimism = kOptimism,
                 const Recall* recall = nullptr, const space::Subspace* part = nullptr);

  [[nodiscard]] const SearchTask& task() const { return task_; }
  [[nodiscard]] const space::Space& space() const { return *task_.space; }
  // Returns what the search moves in; whatever moves asks it instead of the space.
  [[nodiscard]] const space::Subspace& part() const { return part_; }
  [[nodiscard]] Rng& rng() { return rng_; }
  [[nodiscard]] Proposals& proposals() { return proposals_; }

  // From now on points are ranked with later decisions as the default point has them
  // (cost/decision_history.h). This is for callers that measure nothing, so that nothing corrects a
  // model which has not seen other choices of these decisions.
  void keep_usual(cost::DecisionHistory history) { usual_.emplace(std::move(history)); }
  // Returns the legal points with their scores, each once and the best first; equal ones stay in
  // the given order. If only some decisions move, they are those that Subspace::project() makes of
  // the points.
  [[nodiscard]] std::vector<Scored> rank(std::vector<space::Point> points);
  // Moves from the point to its best neighbour while that has a better score, at most `max_steps`
  // times.
  [[nodiscard]] Scored climb(Scored from, int max_steps);
  // Ranks so many samples and every sketch's default point, and climbs from the best `climbers` of
  // them. Returns the points that it reached, the best first.
  [[nodiscard]] std::vector<Scored> climbed_samples(int samples, size_t climbers, int max_steps);

  void observe(std::span<const space::Point> points, std::span<const double> seconds);
  // Fits the correction to what was observed.
  void fit() { correction_.fit(); }
  // Returns the measured points that did not fail, the fastest first. A point that was observed
  // again has its last time.
  [[nodiscard]] const std::vector<MeasuredPoint>& measured() const { return measured_; }
  // The newest observations in their order, failures too; at most Correction::kMaximum.
  [[nodiscard]] const std::vector<MeasuredPoint>& history() const { return history_; }
  [[nodiscard]] size_t observations() const { return times_.size(); }
  // Returns the observed seconds of a point, infinity if it failed; null if it was not observed.
  [[nodiscard]] const double* seconds_of(const space::Point& point) const;

 private:
  [[nodiscard]] std::vector<double> predict(std::span<const space::Point> points);
  void correct(const MeasuredPoint& observed, double predicted);
  // Returns a number that changes when predictions do.
  [[nodiscard]] uint64_t revision() const;
  // Forgets all predictions and makes the correction anew, because the model or `recall` has
  // learned.
  void relearn();

  SearchTask task_;
  space::Subspace part_;
  const Recall* recall_;
  uint64_t revision_;  // the revision of predictions_
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
