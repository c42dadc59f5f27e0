// own_search.h - a search strategy and a cost model of the caller's own, which take part in tune()
// and are asked for whole batches. After the first error of either (OwnParts::failure), none is
// asked any more: the strategy counts as having nothing left to propose, and the model's
// predictions are those of the analytic model, so that what was measured is stored and the library
// is written. To end the search at once, set TuneOptions::interrupted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/evaluate.h"
#include "hone/export.h"
#include "hone/model_task.h"
#include "hone/point_rows.h"
#include "hone/status.h"
#include "hone/tune.h"

namespace hone {

// Chooses what to measure next. Its functions are never called at the same time, but may be called
// from several threads and, for several tasks, by turns. A task may be kept.
class HONE_API OwnStrategy {
 public:
  virtual ~OwnStrategy();
  // Returns how many points a proposal should have at least. If these are more than are measured
  // next, the rest waits: the strategy is asked again when all have been handed out. What was
  // measured meanwhile is told right before, and the rest when the search has ended. 0: as many as
  // are measured next, which is some, and what was measured is told at once. It does not change.
  [[nodiscard]] virtual int batch_size() const { return 0; }
  // Proposes at most `count` points, the most promising first. Illegal points are observed as
  // failures when their turn comes, and points that were proposed before are left out. When several
  // proposals in a row have nothing new, the task gets no more time.
  [[nodiscard]] virtual Result<PointRows> propose(const ModelTask& task, int count) = 0;
  // Receives the measured seconds of points, of this or an earlier run and also of those that
  // others proposed, such as the default point; infinity for those that failed.
  [[nodiscard]] virtual Status observe(const ModelTask& task, const PointRows& points,
                                       std::span<const double> seconds) = 0;
};

// Candidates of one task.
struct FeatureBatch {
  uint64_t task = 0;  // its key
  int threads = 1;
  FeatureRows rows;
};

// Predicts times. Several threads may ask for predictions at the same time, but not while one
// updates.
class HONE_API OwnCostModel {
 public:
  virtual ~OwnCostModel();
  // Returns the name of the features that it reads, of feature_sets(); "" for the best ones of the
  // device. It does not change.
  [[nodiscard]] virtual std::string features() const { return {}; }
  // Returns the seconds of each row, above 0.
  [[nodiscard]] virtual Result<std::vector<double>> predict(FeatureBatch batch) = 0;
  // Returns whether update() has an effect.
  [[nodiscard]] virtual bool learns() const { return false; }
  // Learns the measured seconds of each row; infinity for those that failed. Returns whether
  // predictions have changed.
  [[nodiscard]] virtual Result<bool> update(FeatureBatch /*batch*/,
                                            std::span<const double> /*seconds*/) {
    return false;
  }
};

struct OwnParts {
  OwnStrategy* strategy = nullptr;     // in the place of SearchOptions::strategy; null: that one
  OwnCostModel* cost_model = nullptr;  // in the place of SearchOptions::guide; null: that one
  Status failure;                      // set by tune(): the first error of either, or ok
};

// Tunes as tune() does (hone/tune.h), with parts of the caller's own. It is an error if the options
// name what these take the place of, or a mode that measures nothing.
[[nodiscard]] HONE_API Result<TuneSummary> tune(const std::string& model, const std::string& output,
                                                const TuneOptions& options, OwnParts& parts);

// Judges a cost model as evaluate() does (hone/evaluate.h), as it is. It is an error if the options
// name a model, a replay or a split. The model's first error is that of the call.
[[nodiscard]] HONE_API Result<Evaluation> evaluate(const EvaluateOptions& options,
                                                   OwnCostModel& model);

}  // namespace hone
