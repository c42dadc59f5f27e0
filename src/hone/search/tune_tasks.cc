#include "hone/search/tune_tasks.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "hone/base/log.h"
#include "hone/base/thread_pool.h"
#include "hone/compute/class_family.h"
#include "hone/search/task_bound.h"
#include "hone/search/task_scheduler.h"

namespace hone::search {
namespace {

constexpr int kFirstBatch = 4;

struct TaskBatch {
  int task = -1;
  double prepare_seconds = 0;
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
        bounds_(*options.context.target, options.context.threads) {
    for (const TuneTask& task : tasks)
      tuners_.push_back(std::make_unique<TaskTuner>(task, options_.context));
  }

  Result<TuneResult> run();

 private:
  [[nodiscard]] int compile_threads() const {
    if (options_.compile_threads > 0) return options_.compile_threads;
    const int cores = options_.context.target->cores;
    return std::max(1, overlap_ ? cores - options_.context.threads : cores);
  }
  [[nodiscard]] bool stopped() const {
    if (interrupted()) return true;
    if (options_.max_trials > 0 && handed_out_ >= options_.max_trials) return true;
    return clock_.now_seconds() >= search_end_;
  }
  [[nodiscard]] bool interrupted() const {
    return options_.interrupted && options_.interrupted->load();
  }
  [[nodiscard]] TaskTuner& tuner(int task) { return *tuners_[static_cast<size_t>(task)]; }
  [[nodiscard]] int batch_size(int task) const;
  [[nodiscard]] Result<std::optional<TaskBatch>> prepare();
  [[nodiscard]] Status submit(TaskBatch& batch);
  [[nodiscard]] Status finish(const TaskBatch& batch);
  [[nodiscard]] Status settle();
  [[nodiscard]] Status keep(const std::vector<db::Record>& records);
  void suggest_to_similar(int task);
  void report_progress(int task) const;

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
  int handed_out_ = 0;      // candidates with machine code, measured or about to be
  int trials_ = 0;          // measured
  double last_report_ = 0;  // when the last batch was reported
};

int Loop::batch_size(int task) const {
  const TaskTuner& tuner = *tuners_[static_cast<size_t>(task)];
  int size = std::min(options_.batch, tuner.max_batch());
  // A first look at every task comes before a second one at any.
  if (tuner.trials() == 0 && tuners_.size() > 4) size = std::min(size, kFirstBatch);
  if (options_.max_trials > 0) size = std::min(size, options_.max_trials - handed_out_);
  // What is left of the time holds only so many candidates.
  if (trials_ > 0) {
    const double each = (clock_.now_seconds() - begin_) / trials_;
    size = std::min(size, static_cast<int>(std::ceil((search_end_ - clock_.now_seconds()) / each)));
  }
  return std::max(size, 1);
}

Result<std::optional<TaskBatch>> Loop::prepare() {
  while (!stopped()) {
    TaskBatch batch;
    batch.task = scheduler_->next();
    if (batch.task < 0) return std::optional<TaskBatch>();
    const double start = clock_.now_seconds();
    TaskTuner& task = tuner(batch.task);
    Result<std::vector<Candidate>> proposed = task.propose(batch_size(batch.task));
    if (!proposed
             .ok()) {  // no memory for its operands, or no reference: the default schedule stays
      log_warning("task {} is not tuned: {}", task.task().name, proposed.status().message());
      scheduler_->finish(batch.task);
      continue;
    }
    batch.candidates = std::move(proposed).value();
    const bool exhausted = batch.candidates.empty();
    pool_.parallel_for(std::ssize(batch.candidates),
                       [&](int64_t i) { task.build(batch.candidates[static_cast<size_t>(i)]); });
    task.drop_known(batch.candidates);
    batch.prepare_seconds = clock_.now_seconds() - start;
    if (exhausted) scheduler_->finish(batch.task);
    if (batch.candidates.empty()) {
      if (!exhausted)
        scheduler_->report(batch.task, batch.prepare_seconds, scheduler_->best(batch.task));
      continue;
    }
    scheduler_->start(batch.task);
    for (const Candidate& candidate : batch.candidates) handed_out_ += candidate.runs();
    return std::optional<TaskBatch>(std::move(batch));
  }
  return std::optional<TaskBatch>();
}

Status Loop::submit(TaskBatch& batch) {
  HONE_RETURN_IF_ERROR(tuner(batch.task).refresh(batch.candidates, *options_.runner, clock_));
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
          measure::failed(candidate.job.id, measure::Outcome::kCompile, candidate.status.message());
    } else {
      if (next >= answers.size() || answers[next].id != candidate.job.id) continue;  // cancelled
      measurement = std::move(answers[next++]);
      ++trials_;
    }
    measurements.push_back(std::move(measurement));
    measured.push_back(candidate);
  }
  task.set_host_load(host_.sample());
  HONE_ASSIGN_OR_RETURN(const std::vector<db::Record> records,
                        task.observe(measured, std::move(measurements), *options_.runner, clock_));
  const double now = clock_.now_seconds();
  const double best =
      std::isfinite(task.quiet_seconds()) ? task.quiet_seconds() : scheduler_->best(batch.task);
  scheduler_->report(batch.task, now - last_report_, best);
  last_report_ = now;
  if (std::isfinite(best) && bounds_.learn(task.work(), best)) {
    for (int i = 0; i < std::ssize(tuners_); ++i)
      scheduler_->set_bound(i, bounds_.seconds(tuner(i).work()));
  }
  HONE_RETURN_IF_ERROR(keep(records));
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

Status Loop::keep(const std::vector<db::Record>& records) {
  return options_.store ? options_.store->add(records).status() : ok_status();
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
    HONE_ASSIGN_OR_RETURN(const std::vector<db::Record> records, tuner(i).settle(*options_.runner));
    HONE_RETURN_IF_ERROR(keep(records));
  }
  return ok_status();
}

void Loop::report_progress(int task) const {
  if (!options_.on_progress) return;
  TuneProgress progress;
  const double now = clock_.now_seconds();
  progress.elapsed = now - options_.start;
  progress.budget = options_.deadline - options_.start;
  progress.trials = trials_;
  progress.trials_per_second = trials_ / std::max(now - begin_, 1e-9);
  progress.task = task;
  progress.left = std::max(0.0, options_.deadline - now);
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
  search_end_ =
      options_.deadline - options_.final_share * std::max(0.0, options_.deadline - last_report_);

  HONE_ASSIGN_OR_RETURN(std::optional<TaskBatch> current, prepare());
  while (current) {
    HONE_RETURN_IF_ERROR(submit(*current));
    std::optional<TaskBatch> next;
    if (overlap_) {
      HONE_ASSIGN_OR_RETURN(next, prepare());
    }
    HONE_RETURN_IF_ERROR(finish(*current));
    if (!overlap_) {
      HONE_ASSIGN_OR_RETURN(next, prepare());
    }
    current = std::move(next);
  }
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
        tuned.runners_up.push_back({next.candidate.steps, next.seconds * quiet});
    } else if (const auto* stored = task->stored_best(); stored != nullptr) {
      tuned.steps = stored->first, tuned.seconds = stored->second;
    }
    result.tasks.push_back(std::move(tuned));
  }
  result.trials = trials_;
  result.seconds = clock_.now_seconds() - begin_;
  result.interrupted = interrupted();
  return result;
}

}  // namespace

Result<TuneResult> tune_tasks(std::span<const TuneTask> tasks, const TuneLoopOptions& options) {
  HONE_ASSERT(options.runner && options.context.target && options.context.model,
              "a tuner needs a runner, target and model");
  return Loop(tasks, options).run();
}

}  // namespace hone::search
