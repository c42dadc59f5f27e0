// search/task_tuner.h - the tuning of one task in a run. It ties together the source of candidates
// (candidate_source.h), the measurements (trial_log.h), the schedules that were trusted before
// (trusted_schedules.h) and the best so far (champion.h). It makes machine code, and tells
// searcher, policy and cost model what was measured. propose() and build() may run while a batch is
// being measured; observe() may not run at the same time as propose().
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "hone/db/trial_store.h"
#include "hone/search/candidate_source.h"
#include "hone/search/champion.h"
#include "hone/search/task_bound.h"
#include "hone/search/task_context.h"
#include "hone/search/trial_log.h"

namespace hone::search {

// The number of schedules that other tasks offered.
struct Offered {
  int records = 0;  // records that were tried
  int invalid = 0;  // those of them whose steps do not apply as they are
};

// The records to store of a batch. `invalidated` are those that show that a schedule must not be
// used any more, however good it was: it computes something else, or twice it did not run while
// others did.
struct Findings {
  std::vector<trial::Record> records, invalidated;
};

struct MeasuredSchedule {
  schedule::Steps steps;
  double seconds = 0;
  bool other_split = false;  // threads divide its work otherwise than the fastest one's
  // It reads fewer weights than the fastest one, which may find fewer in caches.
  bool fewer_weights = false;
  ProgramPtr program = {};  // its program
};

struct TunedTask {
  schedule::Steps steps;  // the best verified of this run, else the stored, else the default
  schedule::Steps untuned_steps;
  double seconds = 0;  // seconds of the best; 0 if nothing was measured
  double untuned_seconds = 0;
  int trials = 0;
  std::vector<MeasuredSchedule> runners_up = {};  // next best, verified in this run; fastest first
  bool untuned_is_wrong = false;                  // untuned_steps fail here and must not be used
  Offered offered = {};                           // schedules of TuneLoopOptions::pool
  ProgramPtr program = {};                        // that of `steps`; null if it was not lowered
};

class TaskTuner {
 public:
  // `pool` helps with predictions; may be null.
  TaskTuner(const TuneTask& task, const TaskContext& context, ThreadPool* pool = nullptr)
      : task_(task), context_(context), pool_(pool), champion_(context) {}
  // Makes space and searcher, and reads the task's trials in `store`, which may be null; cheap.
  [[nodiscard]] Status open(db::TrialStore* store);
  // Schedules of other tasks are tried right after this task's own best and the default.
  void start_from(const TransferPool& pool);
  void add_example(const Example& example) { source_->add_example(example); }
  [[nodiscard]] std::optional<Example> example() const;  // this task's best

  // Proposes at most n candidates: first the best in the store, then the schedule to be beaten,
  // then schedules that are good for other tasks, then what the searcher proposes. Candidates are
  // lowered, and each program is proposed once in a run. The first call makes the operands and the
  // reference.
  [[nodiscard]] Result<std::vector<Candidate>> propose(int n);
  // Makes the operands and the reference ahead, on any thread; propose() waits for that. It says
  // what went wrong.
  void make_ready() { (void)make_operands(); }
  // Returns whether the last propose() found nothing that was not tried.
  [[nodiscard]] bool exhausted() const { return source_->exhausted(); }
  // Makes candidates of schedules that are measured as they are, outside of the search.
  [[nodiscard]] Result<std::vector<Candidate>> candidates_of(
      std::span<const schedule::Steps> schedules);
  // Makes machine code, and predicts its seconds if there is a filter; safe for different
  // candidates from several threads.
  void build(Candidate& candidate) const;
  // Drops candidates whose machine code was measured before, after telling the searcher.
  void drop_known(std::vector<Candidate>& candidates);
  // Takes out candidates that TaskContext::filter says are not worth measuring. The searcher, and
  // nobody else, is told the seconds that the filter expects.
  void filter(std::vector<Candidate>& candidates);
  // Prepares the batch right before it is measured: times the incumbent again if that is due, and
  // sets the seconds to beat in each job. Returns what to store.
  [[nodiscard]] Result<Findings> refresh(std::span<Candidate> candidates, measure::Runner& runner,
                                         const Clock& clock);
  // Takes one measurement per candidate, in order; candidates without machine code have outcome
  // kCompile. A candidate that seems faster than the best so far is measured again, alternating
  // with it. A schedule that was good before and does not run is tried once more. Returns what to
  // store.
  [[nodiscard]] Result<Findings> observe(std::vector<Candidate> candidates,
                                         std::vector<measure::Measurement> measurements,
                                         measure::Runner& runner, const Clock& clock);
  // Sets the load of the machine by other programs, which records carry from now on.
  void set_host_load(const measure::HostLoad& load) { host_load_ = load; }
  // Holds longer duels at the end, of the best with those that are hardly slower. Returns what to
  // store.
  [[nodiscard]] Result<Findings> compare_finalists(measure::Runner& runner);
  // Returns what became of the task.
  [[nodiscard]] TunedTask result() const;

  [[nodiscard]] const TuneTask& task() const { return task_; }
  [[nodiscard]] const TaskWork& work() const { return work_; }
  [[nodiscard]] const Incumbent& incumbent() const { return champion_.incumbent(); }
  // Returns the seconds of the best such that they can be compared with another task's; infinity if
  // there is none yet.
  [[nodiscard]] double undisturbed_seconds() const {
    return incumbent().seconds() * incumbent().least_drift();
  }
  [[nodiscard]] double untuned_seconds() const { return untuned_seconds_; }
  // Returns the predicted seconds of the schedule to be beaten.
  [[nodiscard]] double predicted_seconds() const { return predicted_seconds_; }
  // Returns the finalists, fastest first; the first one is the incumbent.
  [[nodiscard]] const std::vector<Finalist>& finalists() const {
    return champion_.finalists().all();
  }
  [[nodiscard]] int trials() const { return log_.trials(); }
  // Returns whether some decision may move, and the roles that could if none were fixed.
  [[nodiscard]] bool can_move() const { return !part_ || part_->can_move(); }
  [[nodiscard]] std::vector<std::string> open_roles() const { return space::open_roles(*space_); }
  // Returns the largest number of candidates in a batch, each of which packs all constants of the
  // task anew.
  [[nodiscard]] int max_batch() const;

 private:
  [[nodiscard]] SearchTask search_task() const;
  [[nodiscard]] Status make_source();
  [[nodiscard]] Status choose_part();
  [[nodiscard]] Status make_operands();  // once
  [[nodiscard]] Status load_stored_trials(db::TrialStore& store);
  // Tell searcher, policy and cost model, or the cost model alone, the measured seconds; infinity
  // for what failed.
  void teach(std::span<const space::Point> points, std::span<const double> seconds);
  void teach_model(std::span<const space::Point> points, std::span<const double> seconds);
  // Lowers a candidate. Returns false if its program is known, and then tells the searcher its
  // time, if that is known, too.
  [[nodiscard]] bool lower(Candidate& candidate);
  void depose(const Champion::Deposed& deposed, Findings& findings);
  void invalidate(const schedule::Steps& bad, Findings& findings);
  [[nodiscard]] trial::Record record(const Candidate& candidate, const Trial& trial) const;

  TuneTask task_;
  const TaskContext& context_;
  ThreadPool* pool_;
  std::optional<space::Space> space_;
  std::unique_ptr<Policy> default_policy_;  // if the context has none
  Policy* policy_ = nullptr;
  std::optional<space::Subspace> part_;  // that the search moves in; none: the whole space
  std::optional<space::Point> start_;    // the point of TuneTask::start, if there is a part
  std::optional<CandidateSource> source_;
  std::mutex operands_mutex_;
  TaskOperands operands_;
  TaskWork work_;
  int64_t constant_bytes_ = 0;
  double untuned_seconds_ = 0, predicted_seconds_ = 0;
  TrialLog log_;
  TrustedSchedules trusted_;
  Champion champion_;
  measure::HostLoad host_load_;
  Offered offered_;
  size_t stored_records_ = 0;
};

}  // namespace hone::search
