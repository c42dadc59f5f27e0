// search/task_tuner.h - the tuning of one task: its space and searcher, the data its candidates run
// on, what was measured, and the few best. propose() and build() may run while a batch is being
// measured; observe() may not run at the same time as propose().
#pragma once

#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "hone/db/trial_store.h"
#include "hone/search/candidate.h"
#include "hone/search/incumbent.h"
#include "hone/search/policy.h"
#include "hone/search/task_bound.h"
#include "hone/search/transfer.h"
#include "hone/space/portable_point.h"

namespace hone::search {

struct TuneTask {
  const compute::Dag* dag = nullptr;
  uint64_t key = 0;
  double multiplicity = 1;
  std::string name;  // for people
  // What is to be beaten, where the search begins; none: the space's default point.
  std::optional<schedule::Steps> start = {};
};

// What all tasks of a run have in common; everything pointed to outlives the run.
struct TaskContext {
  const target::Target* target = nullptr;
  cost::CostModel* model = nullptr;  // learns from what is measured
  Policy* policy = nullptr;          // makes the searchers; null: kDefaultStrategy
  std::string device;                // target::device_key
  std::string version;               // of compiler and space
  std::string source;                // Record::model
  int threads = 1;                   // that the kernels run on
  uint64_t seed = 1;
  const std::set<uint64_t>* forgotten = nullptr;  // tasks of which nothing stored counts
  trial::Accuracy accuracy = trial::Accuracy::kDefault;
  double tolerance = 1e-4;  // of the largest output
  measure::Weights weights = measure::Weights::kWarm;
  int64_t own_cache_bytes = 0;  // of a core
  measure::TimingOptions timing;
  int64_t most_known = 20000;  // records of a task, the newest: what they have is not tried again
};

// The best of a task, for others like it.
struct Example {
  std::optional<space::PortablePoint> point;  // none: steps from elsewhere
  schedule::Steps steps;
};

// What other tasks had for one.
struct Offered {
  int records = 0;  // tried
  int invalid = 0;  // of them, those whose steps do not apply as they are
};

// What to store of a batch, and of it what shows that a schedule must not be used any more, however
// good it was: it computes something else, or twice it did not run while others did.
struct Findings {
  std::vector<trial::Record> records, withdrawn;
};

// A schedule that was measured in this run and computes the right result.
struct Finalist {
  Candidate candidate;
  double seconds = 0;  // on the task's scale (search/incumbent.h)
};

class TaskTuner {
 public:
  // `pool` helps with predictions; may be null.
  TaskTuner(const TuneTask& task, const TaskContext& context, ThreadPool* pool = nullptr)
      : task_(task), context_(context), pool_(pool) {}
  // Makes space and searcher and learns what `store` (may be null) knows of the task; cheap.
  [[nodiscard]] Status open(db::TrialStore* store);
  // Schedules of other tasks are tried right after this task's own best and the default.
  void start_from(const TransferPool& pool);
  [[nodiscard]] const Offered& offered() const { return offered_; }

  // What the store knows to be best, then the default point, then what is good for other tasks or
  // known to be good, then what the searcher says; lowered, each program once in a run. The first
  // call makes the operands and the reference.
  [[nodiscard]] Result<std::vector<Candidate>> propose(int n);
  // The last propose() found nothing that was not tried.
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  // Steps to try soon, as they are; `point` if it is known which one they are.
  void suggest(const schedule::Steps& steps, const std::optional<space::Point>& point = {});
  // The best of a similar task: of the points of this space that correspond to it, the one that is
  // predicted best is tried soon. Only the last few count.
  void adopt(const Example& example);
  [[nodiscard]] std::optional<Example> example() const;  // this task's best
  // Schedules to be measured as they are, outside of the search.
  [[nodiscard]] Result<std::vector<Candidate>> candidates_of(
      std::span<const schedule::Steps> schedules);
  // Makes machine code; safe for different candidates from several threads.
  void build(Candidate& candidate) const;
  // Drops candidates whose machine code was measured before, after telling the searcher.
  void drop_known(std::vector<Candidate>& candidates);
  // Right before the batch is measured: times the incumbent again if that is due, and says in each
  // job what there is to beat. Returns what to store.
  [[nodiscard]] Result<Findings> refresh(std::span<Candidate> candidates, measure::Runner& runner,
                                         const Clock& clock);
  // One measurement per candidate, in order; those that did not run have outcome kCompile. Who
  // seems faster than the best so far is measured again, in turns with it. What was good before and
  // does not run is tried once more. Returns what to store.
  [[nodiscard]] Result<Findings> observe(std::vector<Candidate> candidates,
                                         std::vector<measure::Measurement> measurements,
                                         measure::Runner& runner, const Clock& clock);
  // What the machine does besides, from now on: records carry it.
  void set_host_load(const measure::HostLoad& load) { host_load_ = load; }
  // At the end: longer duels of the best with those that are hardly slower. Returns what to store.
  [[nodiscard]] Result<Findings> settle(measure::Runner& runner);

  [[nodiscard]] const TuneTask& task() const { return task_; }
  [[nodiscard]] const TaskWork& work() const { return work_; }
  [[nodiscard]] double best_seconds() const { return incumbent_.seconds(); }  // infinity: none yet
  // ... that can be compared with another task's.
  [[nodiscard]] double quiet_seconds() const { return best_seconds() * incumbent_.quiet(); }
  [[nodiscard]] const Incumbent& incumbent() const { return incumbent_; }
  [[nodiscard]] double untuned_seconds() const { return untuned_seconds_; }
  [[nodiscard]] double predicted_seconds() const {
    return predicted_seconds_;
  }  // of the default point
  [[nodiscard]] const schedule::Steps& untuned_steps() const { return untuned_steps_; }
  // The stored best, if its time can be compared with this run's; nullptr: there is none.
  [[nodiscard]] const std::pair<schedule::Steps, double>* stored_best() const {
    return stored_.empty() || stored_[0].second == 0 ? nullptr : &stored_[0];
  }
  // The schedule that was to be beaten computes something else or does not run.
  [[nodiscard]] bool untuned_is_wrong() const { return untuned_is_wrong_; }
  // Fastest first: the first one is the incumbent.
  [[nodiscard]] const std::vector<Finalist>& finalists() const { return finalists_; }
  // Whether several threads run other parts of it than of the fastest finalist: by its number of
  // tiles, that of the last phase.
  [[nodiscard]] bool has_other_split(const Finalist& finalist) const;
  // Whether it reads at most half the weights of the fastest finalist, where these were measured in
  // the cache that all cores share: in the model they may be further away.
  [[nodiscard]] bool has_fewer_weights(const Finalist& finalist) const;
  [[nodiscard]] int trials() const { return trials_; }
  // Candidates in a batch at most: each packs all constants of the task anew.
  [[nodiscard]] int max_batch() const;

 private:
  [[nodiscard]] SearchTask search_task() const;
  [[nodiscard]] Status find_start();
  void suggest_like(const Example& example);
  [[nodiscard]] bool suggested(const schedule::Steps& steps) const;
  [[nodiscard]] Status make_operands();  // once
  [[nodiscard]] Status learn(db::TrialStore& store);
  // Tells searcher and cost model, or the latter alone; infinity for what failed.
  void teach(std::span<const space::Point> points, std::span<const double> seconds);
  void teach_model(std::span<const space::Point> points, std::span<const double> seconds);
  // False if its program is known: the searcher hears its time, if that is known, too.
  [[nodiscard]] bool lower(Candidate& candidate);
  // A trial on the task's scale: what observe() makes of a candidate and its measurement.
  struct Trial {
    double seconds = INFINITY;
    bool usable = false, crowned = false;
    measure::Measurement measurement;
  };
  void install(std::span<const Candidate> candidates, std::span<const Trial> trials, double now);
  [[nodiscard]] Status hold_duel(const Candidate& candidate, Trial& trial, measure::Runner& runner,
                                 const trial::DuelOptions& options);
  void insert_finalist(const Candidate& candidate, double seconds);
  // Known to be good before this run: one failure may be an accident.
  [[nodiscard]] bool trusted(const schedule::Steps& steps) const;
  [[nodiscard]] Status try_again(std::vector<Candidate>& candidates,
                                 std::vector<measure::Measurement>& measurements,
                                 measure::Runner& runner);
  [[nodiscard]] Result<Findings> depose(const measure::Measurement& first,
                                        const measure::Measurement& second);
  void withdraw(const schedule::Steps& bad, const trial::Record& record, Findings& findings);
  [[nodiscard]] trial::Record record(const Candidate& candidate, const Trial& trial) const;

  TuneTask task_;
  const TaskContext& context_;
  ThreadPool* pool_;
  std::optional<space::Space> space_;
  std::unique_ptr<Searcher> searcher_;
  TaskOperands operands_;
  schedule::Steps untuned_steps_;
  TaskWork work_;
  int64_t constant_bytes_ = 0;
  double untuned_seconds_ = 0, predicted_seconds_ = 0;
  struct Suggestion {
    schedule::Steps steps;
    std::optional<space::Point> point;  // none: not looked for yet
  };
  std::vector<Suggestion> first_;       // to be proposed before the searcher's, in order
  std::vector<Example> adopted_;        // of similar tasks, the latest last
  std::unordered_set<uint64_t> tried_;  // hashes of steps proposed in this run
  std::unordered_map<uint64_t, uint64_t> programs_;  // code by program; 0: not built yet
  std::unordered_map<uint64_t, double> known_code_;  // seconds by hash of the machine code
  std::set<uint64_t> in_flight_;                     // codes handed out and not yet heard of
  Incumbent incumbent_;
  std::vector<std::pair<schedule::Steps, double>> stored_;  // best ones and their seconds
  std::vector<Finalist> finalists_;
  std::vector<Candidate> doubtful_;            // trusted ones that failed before anything else ran
  std::unordered_set<uint64_t> failed_twice_;  // hashes of steps
  measure::HostLoad host_load_;
  int trials_ = 0;
  bool exhausted_ = false, untuned_is_wrong_ = false;
  Offered offered_;
  size_t learned_ = 0;  // records of earlier runs
  uint64_t next_id_ = 1;
};

}  // namespace hone::search
