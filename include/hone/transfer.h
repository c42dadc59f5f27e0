// transfer.h - reports how much the schedules of other models help a model, in the terms of
// the Transfer-Tuning paper: for each source and kernel class, the share of the greatest possible
// speed-up, and the share of the time that full tuning took.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/options.h"
#include "hone/status.h"

namespace hone {

struct TransferReportOptions {
  // The options of the model. Its database has the records of the sources, and those of tuning the
  // model in full.
  CompileOptions compile;
  // The sources: names of models in the database, ONNX files, databases, or "pool", which is
  // everything. If it is empty, the sources are the three models that the paper's heuristic ranks
  // first, and the pool.
  std::vector<std::string> from;
  // The number of candidates measured per task by a search that starts from the transferred
  // schedules. If both this and `search_seconds` are 0, nothing is measured, and the schedule with
  // the best prediction is used.
  int measure = 0;
  // The limit of seconds for the search of each source. It is spent on the tasks that shorten the
  // model most, with at most `measure` candidates each. 0: no limit of time. If `measure` is 0, the
  // number of candidates has no limit.
  double search_seconds = 0;
  // Transfer as in the paper: steps are used unchanged, within the same class only, and the best
  // predicted ones are measured.
  bool as_in_paper = false;
  double full_seconds = 0;  // seconds of tuning in full; 0: according to its records
  int rounds = 2;           // number of rounds of the final comparison
  const std::atomic<bool>* interrupted = nullptr;
};

// Sums over the tasks of a class. Seconds are those of one run of the model.
struct TransferClass {
  std::string kernel_class;
  int tasks = 0;
  int used = 0;     // number of tasks that run with a transferred schedule
  int sources = 0;  // number of records that were tried
  int invalid = 0;  // number of these whose steps do not apply unchanged
  double default_seconds = 0, transfer_seconds = 0, best_seconds = 0;
  // Returns (default - transfer) / (default - best); nothing if no gain is possible.
  [[nodiscard]] HONE_API std::optional<double> share() const;
};

struct TransferSource {
  std::string name;
  double score = 0;           // score of a model by the heuristic; 0 for other sources
  double search_seconds = 0;  // seconds for ranking, and for building and measuring candidates
  std::vector<TransferClass> classes;
  TransferClass total;
};

struct TransferReport {
  std::string model;
  int tasks = 0;        // number of tasks with more than one schedule
  int untuned = 0;      // number of these without a record, which are left out
  int full_trials = 0;  // number of trials of tuning in full
  double full_seconds = 0;
  std::vector<TransferSource> sources;
};

// Makes the report for the model at the path `model`. The default is what compile() does with an
// empty database. The best is the fastest of all schedules that are measured, including those of
// the model's own records. All are timed together. The database of the options is needed.
[[nodiscard]] HONE_API Result<TransferReport> transfer_report(const std::string& model,
                                                              const TransferReportOptions& options);

}  // namespace hone
