// transfer_report.h - what the schedules of other models are worth for a model, in the terms of the
// Transfer-Tuning paper: per source and kernel class, the share of the greatest possible speed-up
// and of the time that full tuning took.
#pragma once

#include "hone/measure/runner.h"
#include "hone/measure/worker_process.h"
#include "hone/session/compile_options.h"

namespace hone {

struct TransferReportOptions {
  // Of the model; its database has the records of the sources and of tuning the model in full.
  CompileOptions compile;
  // Models by the name that the database has, ONNX files, databases, or "pool": everything. Empty:
  // the three models that the paper's heuristic ranks first, and the pool.
  std::vector<std::string> from;
  // Candidates measured per task, by a search that starts from what is transferred; 0: the best
  // predicted is believed.
  int measure = 0;
  // Of each source's search, spent on the tasks that shorten the model most, `measure` candidates
  // of each at most; 0: no limit of time. Without `measure` there is no limit of candidates.
  double search_seconds = 0;
  bool as_in_paper = false;  // steps as they are, same class only, the best predicted are measured
  double full_seconds = 0;   // of tuning in full; 0: as the times of its records say
  int rounds = 2;            // of the final comparison
  measure::WorkerOptions worker;
  measure::Runner* runner = nullptr;  // null: workers on this machine
  const std::atomic<bool>* interrupted = nullptr;
};

// Sums over tasks, seconds of one run of the model.
struct TransferClass {
  std::string kernel_class;
  int tasks = 0;
  int used = 0;     // tasks that run with a transferred schedule
  int sources = 0;  // records tried
  int invalid = 0;  // of them, those whose steps do not apply as they are
  double default_seconds = 0, transfer_seconds = 0, best_seconds = 0;
  // (default - transfer) / (default - best); nothing if nothing can be gained.
  [[nodiscard]] std::optional<double> share() const;
};

struct TransferSource {
  std::string name;
  double score = 0;           // the heuristic's, of a model; 0 of other sources
  double search_seconds = 0;  // spent on ranking, and on building and measuring candidates
  std::vector<TransferClass> classes;
  TransferClass total;
};

struct TransferReport {
  std::string model;
  int tasks = 0;        // with more than one schedule
  int untuned = 0;      // of them, those without a record: they are left out
  int full_trials = 0;  // of tuning in full
  double full_seconds = 0;
  std::vector<TransferSource> sources;
};

// The default is what compile() does with an empty database; the best is the fastest of everything
// measured, the model's own records included. All are timed together.
[[nodiscard]] Result<TransferReport> transfer_report(const std::string& model,
                                                     const TransferReportOptions& options);
[[nodiscard]] Result<TransferReport> transfer_report(graph::Graph model,
                                                     const TransferReportOptions& options);

}  // namespace hone
