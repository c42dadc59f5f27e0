#include "hone/search/tune_tasks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "hone/base/log.h"
#include "hone/compute/class_family.h"
#include "hone/machine/local.h"
#include "hone/search/batch_maker.h"
#include "hone/search/convergence.h"
#include "hone/search/task_bound.h"

namespace hone::search {
namespace {

constexpr int kWarnings = 3;  // of tasks of which nothing can be measured
// Seconds a task that the duels at its end can take: two long ones.
constexpr double kMostFinalSeconds = 1.2;

// What a schedule is good for: "conv2d+bias+relu" and "conv2d+bias" are alike.
std::string anchor(const TaskTuner& task) {
  return compute::class_family(compute::kernel_class(*task.task().dag));
}

// Candidates that are being compiled or wait to be measured on a GPU, for each thread that
// compiles: so many that no thread waits for what is measured. What is proposed then knows that
// much less of what was measured.
constexpr int kAheadOfThreads = 2;

// Whether measuring leaves a core for compiling: a device of OpenCL may be all the cores.
bool leaves_a_core(const TaskContext& context, int cores) {
  const target::Target& target = *context.target;
  if (target.kind() == target::Kind::kGpu && target.gpu().is_cpu) return false;
  return context.threads < cores;
}

class Loop {
 public:
  Loop(std::span<const TuneTask> tasks, const TuneLoopOptions& options)
      : options_(options),
        clock_(options.clock ? *options.clock : real_clock()),
        host_(options.host ? *options.host : own_host_),
        begin_(clock_.now_seconds()),
        cores_(machine::host_cores(*options.context.target)),
        overlap_(options.overlap.value_or(leaves_a_core(options.context, cores_))),
        pool_(compile_threads()),
        bounds_(*options.context.target, options.context.threads, options.roofline),
        builders_(compiles_ahead() ? std::make_unique<ThreadPool>(compile_threads() + 1) : nullptr),
        keeper_(options.store),
        convergence_(tasks.size(), options.patience) {
    for (const TuneTask& task : tasks)
      tuners_.push_back(std::make_unique<TaskTuner>(task, options_.context, &pool_));
  }

  Result<TuneResult> run();

 private:
  [[nodiscard]] int compile_threads() const {
    if (options_.compile_threads > 0) return options_.compile_threads;
    return std::max(1, overlap_ ? cores_ - options_.context.threads : cores_);
  }
  // While a GPU runs candidates, the host's cores have nothing else to do.
  [[nodiscard]] bool compiles_ahead() const {
    return overlap_ && options_.context.target->kind() == target::Kind::kGpu;
  }
  // There is no time left, or no place for what would be measured.
  [[nodiscard]] bool ended() const {
    return interrupted() || !keeper_.status().ok() || clock_.now_seconds() >= search_end_;
  }
  [[nodiscard]] bool interrupted() const {
    return options_.interrupted && options_.interrupted->load();
  }
  [[nodiscard]] TaskTuner& tuner(int task) { return *tuners_[static_cast<size_t>(task)]; }
  // That what is left of the time holds.
  [[nodiscard]] int most_candidates() const;
  void prepare(std::deque<TaskBatch>& ready);
  void keep_ready(TaskBatch batch, std::deque<TaskBatch>& ready);
  void pass_over(const TaskBatch& batch);
  [[nodiscard]] Status measure(TaskBatch& batch, std::deque<TaskBatch>& ready);
  // Returns an error if there are decisions, and all of them are fixed.
  [[nodiscard]] Status check_movable() const;
  [[nodiscard]] Status submit(TaskBatch& batch);
  [[nodiscard]] Result<std::vector<measure::Measurement>> collect();
  [[nodiscard]] Status finish(const TaskBatch& batch);
  [[nodiscard]] double share(int task) const;
  [[nodiscard]] std::vector<int> by_share() const;
  [[nodiscard]] Status compare_finalists();
  void keep(const Findings& findings);
  void warn_of_failures(int task, std::span<const trial::Record> records);
  void suggest_to_similar(int task);
  void report_progress(int task, std::string_view stage = "") const;

  const TuneLoopOptions& options_;
  Clock& clock_;
  measure::HostMonitor own_host_;
  measure::HostMonitor& host_;
  double begin_;
  double search_end_ = 0;
  int cores_;
  bool overlap_;
  ThreadPool pool_;
  TaskBounds bounds_;
  std::vector<std::unique_ptr<TaskTuner>> tuners_;
  std::optional<TaskScheduler> scheduler_;
  std::optional<BatchMaker> batches_;
  // Null: candidates are compiled by pool_. Its threads use what is above, so they end first.
  std::unique_ptr<ThreadPool> builders_;
  PhaseClock* phases_ = options_.context.phases;
  double overlapped_ = 0;  // seconds of prepare() while candidates were being measured
  int trials_ = 0;         // measured
  DroppedCandidates dropped_;
  TrialKeeper keeper_;
  Convergence convergence_;
  std::set<int> warned_of_;
  double last_report_ = 0;  // when the last batch was reported, or the next ones were prepared
};

int Loop::most_candidates() const {
  if (trials_ == 0) return std::numeric_limits<int>::max();
  const double now = clock_.now_seconds();
  const double each = (now - begin_) / trials_;
  return static_cast<int>(std::clamp(std::ceil((search_end_ - now) / each), 1.0, 1e9));
}

void Loop::prepare(std::deque<TaskBatch>& ready) {
  const int64_t wanted = builders_ ? int64_t{kAheadOfThreads} * compile_threads() : 1;
  constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
  const auto candidates = [&] {
    int64_t sum = 0;
    for (const TaskBatch& batch : ready) sum += std::ssize(batch.candidates);
    return sum;
  };
  while (candidates() < wanted && !ended() && !batches_->spent()) {
    const double start = clock_.now_seconds();
    std::vector<TaskBatch> group =
        batches_->make(most_candidates(), builders_ ? wanted - candidates() : kAny);
    if (group.empty()) return;
    const double now = clock_.now_seconds();
    if (!overlap_) last_report_ = now;
    for (TaskBatch& batch : group) {
      if (!overlap_) batch.prepare_seconds = (now - start) / static_cast<double>(group.size());
      keep_ready(std::move(batch), ready);
    }
  }
}

void Loop::keep_ready(TaskBatch batch, std::deque<TaskBatch>& ready) {
  if (!batch.proposed.ok()) {  // no memory for its operands, or no reference
    log_warning("task {} is not tuned: {}", tuner(batch.task).task().name,
                batch.proposed.message());
  }
  if (!batch.candidates.empty())
    ready.push_back(std::move(batch));
  else
    pass_over(batch);
}

// A batch without candidates.
void Loop::pass_over(const TaskBatch& batch) {
  if (!batch.exhausted)
    scheduler_->report(batch.task, batch.prepare_seconds, scheduler_->best(batch.task));
}

Status Loop::measure(TaskBatch& batch, std::deque<TaskBatch>& ready) {
  batches_->complete(batch);
  const bool empty = batch.candidates.empty();
  if (!empty) HONE_RETURN_IF_ERROR(submit(batch));
  if (overlap_) {
    const double begin = clock_.now_seconds();
    prepare(ready);
    if (!empty) overlapped_ += clock_.now_seconds() - begin;
  }
  if (empty)
    pass_over(batch);
  else
    HONE_RETURN_IF_ERROR(finish(batch));
  if (!overlap_) prepare(ready);
  return ok_status();
}

Status Loop::submit(TaskBatch& batch) {
  if (options_.cores) {
    const InPhase waiting(phases_, Phase::kWaiting);
    last_report_ += options_.cores->wait(search_end_);  // no task's time
  }
  const InPhase measuring(phases_, Phase::kMeasuring);
  HONE_ASSIGN_OR_RETURN(const Findings findings,
                        tuner(batch.task).refresh(batch.candidates, *options_.runner, clock_));
  keep(findings);
  std::vector<measure::Job> jobs;
  for (const Candidate& candidate : batch.candidates) {
    if (candidate.runs()) jobs.push_back(candidate.job);
  }
  return options_.runner->submit(std::move(jobs));
}

Result<std::vector<measure::Measurement>> Loop::collect() {
  const InPhase measuring(phases_, Phase::kMeasuring);
  return options_.runner->collect();
}

Status Loop::finish(const TaskBatch& batch) {
  HONE_ASSIGN_OR_RETURN(std::vector<measure::Measurement> answers, collect());
  std::vector<measure::Measurement> measurements;
  TaskTuner& task = tuner(batch.task);
  size_t next = 0;
  std::vector<Candidate> measured;
  for (const Candidate& candidate : batch.candidates) {
    measure::Measurement measurement;
    if (!candidate.runs()) {
      dropped_.cannot_run += candidate.dropped == Dropped::kCannotRun;
      dropped_.spilling += candidate.dropped == Dropped::kSpills;
      measurement =
          measure::failed(candidate.job.id, trial::Outcome::kCompile, candidate.status.message());
    } else {
      if (next >= answers.size() || answers[next].id != candidate.job.id) continue;  // cancelled
      measurement = std::move(answers[next++]);
      ++trials_;
    }
    measurements.push_back(std::move(measurement));
    measured.push_back(candidate);
  }
  task.set_host_load(host_.sample());
  HONE_ASSIGN_OR_RETURN(
      const Findings findings,
      task.observe(std::move(measured), std::move(measurements), *options_.runner, clock_));
  const double now = clock_.now_seconds();
  const double best = std::isfinite(task.undisturbed_seconds()) ? task.undisturbed_seconds()
                                                                : scheduler_->best(batch.task);
  scheduler_->report(batch.task, batch.prepare_seconds + now - last_report_, best);
  last_report_ = now;
  if (std::isfinite(best) && bounds_.learn(task.work(), best)) {
    for (int i = 0; i < std::ssize(tuners_); ++i)
      scheduler_->set_bound(i, bounds_.seconds(tuner(i).work()));
  }
  keep(findings);
  if (convergence_.add(static_cast<size_t>(batch.task), static_cast<int>(findings.records.size()),
                       task.undisturbed_seconds()))
    scheduler_->finish(batch.task);
  warn_of_failures(batch.task, findings.records);
  if (const std::string text = host_.complaint(task.incumbent().slowdown()); !text.empty())
    log_warning("{}", text);
  suggest_to_similar(batch.task);
  report_progress(batch.task);
  return ok_status();
}

void Loop::keep(const Findings& findings) {
  keeper_.keep(findings);
  if (options_.on_records && !findings.records.empty()) options_.on_records(findings.records);
}

void Loop::suggest_to_similar(int from) {
  const TaskTuner& source = tuner(from);
  const std::optional<Example> example = source.example();
  if (!example) return;
  for (const std::unique_ptr<TaskTuner>& other : tuners_) {
    if (other.get() == &source || other->trials() > 0 || anchor(*other) != anchor(source)) continue;
    other->add_example(*example);
  }
}

// A task that stays as it was is not passed over in silence.
void Loop::warn_of_failures(int task, std::span<const trial::Record> records) {
  if (records.empty() || !tuner(task).finalists().empty()) return;
  if (std::ssize(warned_of_) >= kWarnings || !warned_of_.insert(task).second) return;
  log_warning("task {}: none of the first {} schedules could be measured; {}: {}",
              tuner(task).task().name, records.size(), trial::outcome_name(records.front().outcome),
              records.front().message);
}

double Loop::share(int task) const {
  return tuners_[static_cast<size_t>(task)]->task().multiplicity * scheduler_->best(task) /
         scheduler_->total();
}

// The tasks that take at least a part in 500 of the model's time, those with most of it first.
std::vector<int> Loop::by_share() const {
  std::vector<int> order;
  for (int i = 0; i < std::ssize(tuners_); ++i) {
    if (share(i) >= 0.002) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return share(a) > share(b); });
  return order;
}

Status Loop::compare_finalists() {
  const InPhase measuring(phases_, Phase::kMeasuring);
  for (const int i : by_share()) {
    if (tuner(i).finalists().size() < 2) continue;
    if (interrupted() || clock_.now_seconds() >= options_.deadline) break;
    HONE_ASSIGN_OR_RETURN(const Findings findings, tuner(i).compare_finalists(*options_.runner));
    keep(findings);
  }
  return ok_status();
}

void Loop::report_progress(int task, std::string_view stage) const {
  if (!options_.on_progress) return;
  TuneProgress progress;
  const double now = clock_.now_seconds();
  progress.elapsed = now - options_.start;
  const double end = options_.end > 0 ? options_.end : options_.deadline;
  progress.budget = end - options_.start;
  progress.trials = trials_;
  progress.trials_per_second = trials_ / std::max(now - begin_, 1e-9);
  progress.task = task;
  progress.stage = stage;
  progress.left = std::max(0.0, end - now);
  if (options_.max_trials > 0 && trials_ > 0) {
    progress.left = std::min(progress.left, (options_.max_trials - trials_) /
                                                std::max(progress.trials_per_second, 1e-9));
  }
  progress.tasks = progress_of(tuners_, *scheduler_);
  options_.on_progress(progress);
}

Status Loop::check_movable() const {
  std::set<std::string> roles;
  for (const std::unique_ptr<TaskTuner>& task : tuners_) {
    if (task->can_move()) return ok_status();
    for (std::string& role : task->open_roles()) roles.insert(std::move(role));
  }
  if (roles.empty()) return ok_status();
  return options_.context.policy->movable().nothing_moves(roles);
}

Result<TuneResult> Loop::run() {
  std::optional<InPhase> choosing(std::in_place, phases_, Phase::kChoosing);
  std::vector<ScheduledTask> scheduled;
  std::map<std::string, int64_t> families;
  for (const std::unique_ptr<TaskTuner>& task : tuners_) {
    HONE_RETURN_IF_ERROR(task->open(options_.store));
    const auto family = families.emplace(anchor(*task), std::ssize(families)).first;
    scheduled.push_back({task->task().multiplicity, task->predicted_seconds(),
                         bounds_.seconds(task->work()), static_cast<int>(family->second)});
  }
  HONE_RETURN_IF_ERROR(check_movable());
  if (options_.pool) {
    pool_.parallel_for(std::ssize(tuners_), [&](int64_t i) {
      tuners_[static_cast<size_t>(i)]->start_from(*options_.pool);
    });
  }
  choosing.reset();
  scheduler_.emplace(std::move(scheduled));
  batches_.emplace(tuners_, *scheduler_, pool_, builders_.get(),
                   BatchLimits{options_.batch, options_.max_trials, options_.max_task_trials},
                   phases_);
  last_report_ = clock_.now_seconds();
  search_end_ = options_.deadline -
                std::min(options_.final_share * std::max(0.0, options_.deadline - last_report_),
                         kMostFinalSeconds * static_cast<double>(tuners_.size()));

  if (builders_) batches_->make_ready(by_share());
  std::deque<TaskBatch> ready;
  prepare(ready);
  Status status = ok_status();
  while (status.ok() && !ready.empty()) {
    TaskBatch current = std::move(ready.front());
    ready.pop_front();
    status = measure(current, ready);
    if (ended()) break;
  }
  const bool nothing_left = ready.empty() && !ended() && !batches_->spent();
  batches_->give_up(ready);
  HONE_RETURN_IF_ERROR(status);
  report_progress(-1, "comparing the best of each kernel");
  HONE_RETURN_IF_ERROR(compare_finalists());

  TuneResult result;
  for (const std::unique_ptr<TaskTuner>& task : tuners_) result.tasks.push_back(task->result());
  result.trials = trials_;
  result.compiled = batches_->compile_time().compiled();
  result.compile_seconds = batches_->compile_time().seconds();
  result.overlapped_seconds = overlapped_;
  result.dropped = dropped_;
  if (options_.context.filter != nullptr) result.filtered = options_.context.filter->counts();
  result.failures = keeper_.failures();
  result.seconds = clock_.now_seconds() - begin_;
  result.interrupted = interrupted();
  result.nothing_left = nothing_left;
  result.store_status = keeper_.status();
  return result;
}

}  // namespace

Result<TuneResult> tune_tasks(std::span<const TuneTask> tasks, const TuneLoopOptions& options) {
  HONE_ASSERT(options.runner && options.context.target && options.context.model,
              "a tuner needs a runner, target and model");
  return Loop(tasks, options).run();
}

}  // namespace hone::search
