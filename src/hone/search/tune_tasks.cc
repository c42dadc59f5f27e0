#include "hone/search/tune_tasks.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "hone/base/log.h"
#include "hone/base/thread_pool.h"
#include "hone/compute/class_family.h"
#include "hone/search/task_bound.h"
#include "hone/search/task_scheduler.h"

namespace hone::search {
namespace {

constexpr int kFirstBatch = 4;
constexpr int kWarnings = 3;  // of tasks of which nothing can be measured
// Batches prepared at a time: with more, the choice of tasks would know too little of the last.
constexpr int kMostPrepared = 4;
// Seconds a task that the duels at its end can take: two long ones.
constexpr double kMostSettle = 1.2;

struct TaskBatch {
  int task = -1;
  int size = 0;  // candidates wanted
  // Its part of the time in which nothing was measured because candidates were being made.
  double prepare_seconds = 0;
  Status proposed = ok_status();
  bool exhausted = false;  // there is nothing left to propose
  std::vector<Candidate> candidates;
};

// What a schedule is good for: "conv2d+bias+relu" and "conv2d+bias" are alike.
std::string anchor(const TaskTuner& task) {
  return compute::class_family(compute::kernel_class(*task.task().dag));
}

class Loop {
 public:
  Loop(std::span<const TuneTask> tasks, const TuneLoopOptions& options)
      : options_(options),
        clock_(options.clock ? *options.clock : real_clock()),
        host_(options.host ? *options.host : own_host_),
        begin_(clock_.now_seconds()),
        overlap_(options.overlap.value_or(options.context.threads < options.context.target->cores)),
        pool_(compile_threads()),
        bounds_(*options.context.target, options.context.threads, options.roofline),
        handed_out_of_(tasks.size(), 0) {
    for (const TuneTask& task : tasks)
      tuners_.push_back(std::make_unique<TaskTuner>(task, options_.context, &pool_));
  }

  Result<TuneResult> run();

 private:
  [[nodiscard]] int compile_threads() const {
    if (options_.compile_threads > 0) return options_.compile_threads;
    const int cores = options_.context.target->cores;
    return std::max(1, overlap_ ? cores - options_.context.threads : cores);
  }
  [[nodiscard]] bool stopped() const {
    return ended() || (options_.max_trials > 0 && handed_out() >= options_.max_trials);
  }
  // There is no time left, or no place for what would be measured.
  [[nodiscard]] bool ended() const {
    return interrupted() || !store_status_.ok() || clock_.now_seconds() >= search_end_;
  }
  [[nodiscard]] bool interrupted() const {
    return options_.interrupted && options_.interrupted->load();
  }
  [[nodiscard]] int handed_out() const {
    return std::accumulate(handed_out_of_.begin(), handed_out_of_.end(), 0);
  }
  [[nodiscard]] TaskTuner& tuner(int task) { return *tuners_[static_cast<size_t>(task)]; }
  [[nodiscard]] int batch_size(int task, int handed_out) const;
  [[nodiscard]] std::vector<TaskBatch> choose();
  void fill(std::vector<TaskBatch>& group);
  void prepare(std::deque<TaskBatch>& ready);
  [[nodiscard]] Status submit(TaskBatch& batch);
  [[nodiscard]] Status finish(const TaskBatch& batch);
  [[nodiscard]] Status settle();
  void keep(const Findings& findings);
  [[nodiscard]] Status store(const Findings& findings);
  [[nodiscard]] Status withdraw(const trial::Record& bad);
  void warn_of_failures(int task, std::span<const trial::Record> records);
  void suggest_to_similar(int task);
  void report_progress(int task, std::string_view stage = "") const;

  const TuneLoopOptions& options_;
  Clock& clock_;
  measure::HostMonitor own_host_;
  measure::HostMonitor& host_;
  double begin_;
  double search_end_ = 0;
  bool overlap_;
  ThreadPool pool_;
  TaskBounds bounds_;
  std::vector<std::unique_ptr<TaskTuner>> tuners_;
  std::optional<TaskScheduler> scheduler_;
  std::vector<int> handed_out_of_;  // of each task: candidates with code, measured or about to be
  int trials_ = 0;                  // measured
  std::map<trial::Outcome, Failures> failures_;
  std::set<int> warned_of_;
  Status store_status_ = ok_status();  // the first failure of the store: nothing is kept after it
  double last_report_ = 0;  // when the last batch was reported, or the next ones were prepared
};

int Loop::batch_size(int task, int handed_out) const {
  const TaskTuner& tuner = *tuners_[static_cast<size_t>(task)];
  int size = std::min(options_.batch, tuner.max_batch());
  // A first look at every task comes before a second one at any.
  if (tuner.trials() == 0 && tuners_.size() > 4) size = std::min(size, kFirstBatch);
  if (options_.max_trials > 0) size = std::min(size, options_.max_trials - handed_out);
  if (options_.max_task_trials > 0)
    size = std::min(size, options_.max_task_trials - handed_out_of_[static_cast<size_t>(task)]);
  // What is left of the time holds only so many candidates.
  if (trials_ > 0) {
    const double each = (clock_.now_seconds() - begin_) / trials_;
    size = std::min(size, static_cast<int>(std::ceil((search_end_ - clock_.now_seconds()) / each)));
  }
  return std::max(size, 1);
}

// Tasks for the next batches, one for each thread that makes candidates.
std::vector<TaskBatch> Loop::choose() {
  std::vector<TaskBatch> group;
  int handed_out = this->handed_out();
  while (std::ssize(group) < std::min(pool_.threads(), kMostPrepared)) {
    if (options_.max_trials > 0 && handed_out >= options_.max_trials) break;
    const int task = scheduler_->next();
    const bool again = std::any_of(group.begin(), group.end(),
                                   [&](const TaskBatch& batch) { return batch.task == task; });
    if (task < 0 || again) break;
    scheduler_->start(task);
    group.push_back({.task = task, .size = batch_size(task, handed_out)});
    handed_out += group.back().size;
  }
  return group;
}

// A searcher is one thread's work, so batches of several tasks are proposed at the same time.
void Loop::fill(std::vector<TaskBatch>& group) {
  pool_.parallel_for(std::ssize(group), [&](int64_t i) {
    TaskBatch& batch = group[static_cast<size_t>(i)];
    Result<std::vector<Candidate>> proposed = tuner(batch.task).propose(batch.size);
    batch.proposed = proposed.status();
    if (proposed.ok()) batch.candidates = std::move(proposed).value();
    batch.exhausted = !proposed.ok() || tuner(batch.task).exhausted();
  });
  std::vector<std::pair<TaskTuner*, Candidate*>> all;
  for (TaskBatch& batch : group) {
    for (Candidate& candidate : batch.candidates) all.emplace_back(&tuner(batch.task), &candidate);
  }
  pool_.parallel_for(std::ssize(all), [&](int64_t i) {
    const auto& [task, candidate] = all[static_cast<size_t>(i)];
    task->build(*candidate);
  });
  for (TaskBatch& batch : group) tuner(batch.task).drop_known(batch.candidates);
}

void Loop::prepare(std::deque<TaskBatch>& ready) {
  while (ready.empty() && !stopped()) {
    const double start = clock_.now_seconds();
    std::vector<TaskBatch> group = choose();
    if (group.empty()) return;
    fill(group);
    const double now = clock_.now_seconds();
    if (!overlap_) last_report_ = now;
    for (TaskBatch& batch : group) {
      if (!overlap_) batch.prepare_seconds = (now - start) / static_cast<double>(group.size());
      if (!batch.proposed.ok()) {  // no memory for its operands, or no reference
        log_warning("task {} is not tuned: {}", tuner(batch.task).task().name,
                    batch.proposed.message());
      }
      const auto running = static_cast<int>(
          std::count_if(batch.candidates.begin(), batch.candidates.end(),
                        [](const Candidate& candidate) { return candidate.runs(); }));
      int& of_task = handed_out_of_[static_cast<size_t>(batch.task)];
      of_task += running;
      const bool enough = options_.max_task_trials > 0 && of_task >= options_.max_task_trials;
      if (batch.exhausted || enough) scheduler_->finish(batch.task);
      if (!batch.candidates.empty()) {
        ready.push_back(std::move(batch));
      } else if (!batch.exhausted) {
        scheduler_->report(batch.task, batch.prepare_seconds, scheduler_->best(batch.task));
      }
    }
  }
}

Status Loop::submit(TaskBatch& batch) {
  if (options_.cores) last_report_ += options_.cores->wait(search_end_);  // no task's time
  HONE_ASSIGN_OR_RETURN(const Findings findings,
                        tuner(batch.task).refresh(batch.candidates, *options_.runner, clock_));
  keep(findings);
  std::vector<measure::Job> jobs;
  for (const Candidate& candidate : batch.candidates) {
    if (candidate.runs()) jobs.push_back(candidate.job);
  }
  return options_.runner->submit(std::move(jobs));
}

Status Loop::finish(const TaskBatch& batch) {
  HONE_ASSIGN_OR_RETURN(std::vector<measure::Measurement> answers, options_.runner->collect());
  std::vector<measure::Measurement> measurements;
  TaskTuner& task = tuner(batch.task);
  size_t next = 0;
  std::vector<Candidate> measured;
  for (const Candidate& candidate : batch.candidates) {
    measure::Measurement measurement;
    if (!candidate.runs()) {
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
  const double best =
      std::isfinite(task.quiet_seconds()) ? task.quiet_seconds() : scheduler_->best(batch.task);
  scheduler_->report(batch.task, batch.prepare_seconds + now - last_report_, best);
  last_report_ = now;
  if (std::isfinite(best) && bounds_.learn(task.work(), best)) {
    for (int i = 0; i < std::ssize(tuners_); ++i)
      scheduler_->set_bound(i, bounds_.seconds(tuner(i).work()));
  }
  keep(findings);
  warn_of_failures(batch.task, findings.records);
  if (const std::string text = host_.complaint(task.incumbent().slowdown()); !text.empty())
    log_warning("{}", text);
  suggest_to_similar(batch.task);
  report_progress(batch.task);
  return ok_status();
}

void Loop::suggest_to_similar(int from) {
  const TaskTuner& source = tuner(from);
  const std::optional<Example> example = source.example();
  if (!example) return;
  for (const std::unique_ptr<TaskTuner>& other : tuners_) {
    if (other.get() == &source || other->trials() > 0 || anchor(*other) != anchor(source)) continue;
    other->adopt(*example);
  }
}

void Loop::keep(const Findings& findings) {
  for (const trial::Record& record : findings.records) {
    if (record.outcome == trial::Outcome::kOk) continue;
    Failures& alike = failures_[record.outcome];
    if (++alike.count == 1) alike.first = record.message;
  }
  if (options_.store && store_status_.ok()) store_status_ = store(findings);
}

Status Loop::store(const Findings& findings) {
  HONE_RETURN_IF_ERROR(options_.store->add(findings.records).status());
  for (const trial::Record& record : findings.withdrawn) HONE_RETURN_IF_ERROR(withdraw(record));
  return ok_status();
}

// A schedule that was right before is no best any more: another version of the compiler may have
// measured it, its mistake shows now and then, or it does not run here now.
Status Loop::withdraw(const trial::Record& bad) {
  db::Filter filter;
  filter.task = bad.task;
  filter.device = bad.device;
  filter.threads = bad.threads;
  filter.verified_only = true;
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> verified, options_.store->query(filter));
  for (const trial::Record& record : verified) {
    if (record.steps != bad.steps) continue;
    const Status status = options_.store->set_verified(record.id, bad.outcome, bad.message);
    if (!status.ok() && status.code() != Code::kNotFound) return status;  // removed by now
  }
  return ok_status();
}

// A task that stays as it was is not passed over in silence.
void Loop::warn_of_failures(int task, std::span<const trial::Record> records) {
  if (records.empty() || !tuner(task).finalists().empty()) return;
  if (std::ssize(warned_of_) >= kWarnings || !warned_of_.insert(task).second) return;
  log_warning("task {}: none of the first {} schedules could be measured; {}: {}",
              tuner(task).task().name, records.size(), trial::outcome_name(records.front().outcome),
              records.front().message);
}

Status Loop::settle() {
  // The tasks with the largest share of the model's time come first.
  const double whole = scheduler_->total();
  std::vector<int> order;
  for (int i = 0; i < std::ssize(tuners_); ++i) {
    if (tuner(i).finalists().size() > 1) order.push_back(i);
  }
  const auto share = [&](int i) {
    return tuner(i).task().multiplicity * tuner(i).quiet_seconds() / whole;
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return share(a) > share(b); });
  for (const int i : order) {
    if (interrupted() || clock_.now_seconds() >= options_.deadline || share(i) < 0.002) break;
    HONE_ASSIGN_OR_RETURN(const Findings findings, tuner(i).settle(*options_.runner));
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
  const double whole = scheduler_->total();
  for (int i = 0; i < std::ssize(tuners_); ++i) {
    const TaskTuner& t = *tuners_[static_cast<size_t>(i)];
    const double quiet = t.incumbent().quiet();
    TaskProgress line{t.task().name, t.task().multiplicity, t.untuned_seconds() * quiet, 0,
                      t.trials()};
    if (std::isfinite(t.quiet_seconds())) line.best_seconds = t.quiet_seconds();
    line.bound_seconds = scheduler_->bound(i);
    line.share = whole > 0 ? line.multiplicity * scheduler_->best(i) / whole : 0;
    line.expected_gain = whole > 0 ? scheduler_->gain_in(i, kGainSeconds) / whole : 0;
    line.at_limit = scheduler_->at_limit(i);
    progress.tasks.push_back(std::move(line));
  }
  options_.on_progress(progress);
}

Result<TuneResult> Loop::run() {
  std::vector<ScheduledTask> scheduled;
  std::map<std::string, int64_t> families;
  for (const std::unique_ptr<TaskTuner>& task : tuners_) {
    HONE_RETURN_IF_ERROR(task->open(options_.store));
    const auto family = families.emplace(anchor(*task), std::ssize(families)).first;
    scheduled.push_back({task->task().multiplicity, task->predicted_seconds(),
                         bounds_.seconds(task->work()), static_cast<int>(family->second)});
  }
  if (options_.pool) {
    pool_.parallel_for(std::ssize(tuners_), [&](int64_t i) {
      tuners_[static_cast<size_t>(i)]->start_from(*options_.pool);
    });
  }
  scheduler_.emplace(std::move(scheduled));
  last_report_ = clock_.now_seconds();
  search_end_ = options_.deadline -
                std::min(options_.final_share * std::max(0.0, options_.deadline - last_report_),
                         kMostSettle * static_cast<double>(tuners_.size()));

  std::deque<TaskBatch> ready;
  prepare(ready);
  while (!ready.empty()) {
    TaskBatch current = std::move(ready.front());
    ready.pop_front();
    HONE_RETURN_IF_ERROR(submit(current));
    if (overlap_ && ready.empty()) prepare(ready);
    HONE_RETURN_IF_ERROR(finish(current));
    if (ended()) break;
    if (!overlap_ && ready.empty()) prepare(ready);
  }
  report_progress(-1, "comparing the best of each kernel");
  HONE_RETURN_IF_ERROR(settle());

  TuneResult result;
  for (const std::unique_ptr<TaskTuner>& task : tuners_) {
    const double quiet = task->incumbent().quiet();
    TunedTask tuned{task->untuned_steps(), task->untuned_steps(), 0,
                    task->untuned_seconds() * quiet, task->trials()};
    if (!task->finalists().empty()) {
      tuned.steps = task->finalists().front().candidate.steps;
      tuned.seconds = task->finalists().front().seconds * quiet;
      for (const Finalist& next : std::span(task->finalists()).subspan(1))
        tuned.runners_up.push_back({next.candidate.steps, next.seconds * quiet,
                                    task->has_other_split(next), task->has_fewer_weights(next)});
    } else if (const auto* stored = task->stored_best(); stored != nullptr) {
      tuned.steps = stored->first, tuned.seconds = stored->second;
    }
    tuned.untuned_is_wrong = task->untuned_is_wrong();
    tuned.offered = task->offered();
    result.tasks.push_back(std::move(tuned));
  }
  result.trials = trials_;
  result.failures = failures_;
  result.seconds = clock_.now_seconds() - begin_;
  result.interrupted = interrupted();
  result.store_status = store_status_;
  return result;
}

}  // namespace

Result<TuneResult> tune_tasks(std::span<const TuneTask> tasks, const TuneLoopOptions& options) {
  HONE_ASSERT(options.runner && options.context.target && options.context.model,
              "a tuner needs a runner, target and model");
  return Loop(tasks, options).run();
}

}  // namespace hone::search
