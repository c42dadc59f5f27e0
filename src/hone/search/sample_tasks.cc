#include "hone/search/sample_tasks.h"

#include <algorithm>
#include <cmath>
#include <future>

#include "hone/base/log.h"
#include "hone/base/thread_pool.h"
#include "hone/machine/local.h"
#include "hone/search/reference.h"
#include "hone/search/repeated_timing.h"
#include "hone/search/sample_lanes.h"
#include "hone/space/portable_point.h"

namespace hone::search {
namespace {

constexpr double kTimeout = 5;            // seconds, while nothing is known of the task
constexpr double kTimeoutOfDefault = 20;  // times the default schedule's seconds, ...
constexpr double kLeastTimeout = 2;       // ... but no less: somebody else may have the machine
constexpr int kChunk = 16;                // between two looks at the clock and the drift, ...
constexpr double kChunkSeconds = 1;       // ... fewer where they take longer
// A space that is not small counts as ended once so many schedules, one after the other, become
// code that is known.
constexpr int kMostKnown = 512;

struct Turn {
  Lane* lane = nullptr;
  std::shared_ptr<const TaskOperands> operands;
  std::shared_ptr<const space::Space> space;
  Candidate reference;  // the default schedule, which shows how the machine drifts
  std::vector<Candidate> candidates;
  size_t built = 0;  // of them and the reference, which is the first
};

using Trial = std::pair<const Candidate*, measure::Measurement>;

class Sampling {
 public:
  Sampling(std::span<const SampledTask> tasks, const SampleOptions& options)
      : tasks_(tasks),
        options_(options),
        clock_(options.clock ? *options.clock : real_clock()),
        host_(options.host ? *options.host : own_host_),
        begin_(clock_.now_seconds()),
        pool_(cores()),
        lanes_(tasks, options) {}
  Result<DatasetSummary> run();

 private:
  [[nodiscard]] int cores() const {
    return std::max(1, machine::host_cores(*options_.devices[0].target));
  }
  [[nodiscard]] bool interrupted() const {
    return options_.interrupted && options_.interrupted->load();
  }
  [[nodiscard]] bool stopped() const {
    return interrupted() || clock_.now_seconds() >= options_.deadline;
  }
  [[nodiscard]] Result<std::optional<Turn>> prepare();
  [[nodiscard]] Status fill(Turn& turn);
  bool add(Turn& turn, Candidate candidate);
  void draw(Turn& turn, size_t wanted);
  void build_next(Turn& turn, size_t index) const;
  void build_some(Turn& turn, size_t most);
  void build_all(Turn& turn);
  [[nodiscard]] Status measure(Turn& turn, Turn* next);
  Result<bool> time_chunk(const Turn& turn, size_t slot, std::span<const Candidate* const> chunk,
                          double known, const Execute& execute, std::vector<Trial>& trials);
  [[nodiscard]] Status measure(Turn& turn, size_t slot, Turn* next);
  [[nodiscard]] Result<std::vector<measure::Measurement>> run_jobs(std::vector<measure::Job> jobs,
                                                                   int threads, Turn* next);
  [[nodiscard]] measure::Job job_of(const Turn& turn, const Candidate& candidate, size_t slot,
                                    double reference) const;
  [[nodiscard]] Status keep(const Turn& turn, size_t slot, std::span<const Trial> trials,
                            double drift);
  void report(const Turn& turn, size_t slot);

  std::span<const SampledTask> tasks_;
  const SampleOptions& options_;
  Clock& clock_;
  measure::HostMonitor own_host_;
  measure::HostMonitor& host_;
  double begin_;
  ThreadPool pool_;
  SampleLanes lanes_;
  std::pair<size_t, std::shared_ptr<const TaskOperands>> last_operands_;
  DatasetSummary result_;
};

Status Sampling::fill(Turn& turn) {
  Lane& lane = *turn.lane;
  const SampledTask& task = tasks_[lane.task];
  const target::Target& target = *options_.devices[lane.device].target;
  HONE_ASSIGN_OR_RETURN(space::Space space, space::Space::create(*task.dag, target));
  turn.space = std::make_shared<const space::Space>(std::move(space));
  if (!lane.loaded) HONE_RETURN_IF_ERROR(lanes_.load(lane, *turn.space));
  if (!last_operands_.second || last_operands_.first != lane.task) {
    HONE_ASSIGN_OR_RETURN(TaskOperands made, make_operands(*task.dag, options_.seed, cores()));
    last_operands_ = {lane.task, std::make_shared<const TaskOperands>(std::move(made))};
  }
  turn.operands = last_operands_.second;
  turn.reference.point = turn.space->default_point();
  turn.reference.steps = turn.space->steps(*turn.reference.point);

  const auto wanted = static_cast<size_t>(lanes_.wanted_now(lane));
  while (!lane.pending.empty() && turn.candidates.size() < wanted) {
    const schedule::Steps steps = std::move(lane.pending.back());
    lane.pending.pop_back();
    add(turn, {.point = space::exact_point(std::nullopt, steps, *turn.space), .steps = steps});
  }
  draw(turn, wanted);
  return ok_status();
}

// Adds a candidate, and returns true, unless it becomes the same machine code as another one: then
// it is as good as measured.
bool Sampling::add(Turn& turn, Candidate candidate) {
  lower(candidate, *tasks_[turn.lane->task].dag, *options_.devices[turn.lane->device].target);
  if (candidate.runs() && !turn.lane->programs.insert(candidate.program_hash).second) return false;
  turn.candidates.push_back(std::move(candidate));
  return true;
}

// Draws schedules until the turn has as many as are wanted, or the space has no other. Which ones
// are left may depend on the number of threads that the cost model is asked for.
void Sampling::draw(Turn& turn, size_t wanted) {
  Lane& lane = *turn.lane;
  const uint64_t key = tasks_[lane.task].key;
  const bool small = turn.space->size() < kSmallSpace;
  Rng rng(
      hash_combine(hash_combine(options_.seed, key), hash_combine(lane.device, lane.taken.size())));
  size_t guide = static_cast<size_t>(lane.rounds) % lane.slots.size();
  size_t without = 0;  // numbers of threads for which there is no other
  int known = 0;       // schedules one after the other that became code that is known
  while (turn.candidates.size() < wanted && !lane.exhausted && !stopped()) {
    const SearchTask search = {&*turn.space,
                               options_.devices[lane.device].target,
                               options_.model,
                               options_.threads[guide],
                               key,
                               options_.seed,
                               &pool_};
    const std::vector<space::Point> points =
        sample_schedules(search, lane.slots[guide].fastest, lane.taken,
                         static_cast<int>(wanted - turn.candidates.size()), rng);
    for (const space::Point& point : points)
      known = add(turn, {.point = point, .steps = turn.space->steps(point)}) ? 0 : known + 1;
    without = points.empty() ? without + 1 : 0;
    lane.exhausted = without == lane.slots.size() || (!small && known >= kMostKnown);
    guide = (guide + 1) % lane.slots.size();
  }
}

// The next lane's turn; nothing if none wants one.
Result<std::optional<Turn>> Sampling::prepare() {
  const double start = clock_.now_seconds();
  while (!stopped()) {
    Lane* const least = lanes_.next();
    if (least == nullptr) break;
    Lane& lane = *least;
    Turn turn;
    turn.lane = &lane;
    const Status filled = fill(turn);
    if (!filled.ok()) {
      log_warning("task {} is left out: {}", tasks_[lane.task].name, filled.message());
      lane.left_out = true;
    }
    if (lane.left_out || turn.candidates.empty()) continue;
    ++lane.prepared;
    result_.prepare_seconds += clock_.now_seconds() - start;
    return std::optional<Turn>(std::move(turn));
  }
  return std::optional<Turn>();
}

void Sampling::build_next(Turn& turn, size_t index) const {
  Candidate& candidate = index == 0 ? turn.reference : turn.candidates[index - 1];
  build(candidate, *tasks_[turn.lane->task].dag, *options_.devices[turn.lane->device].target,
        *turn.operands);
}

// The next of those that are not built yet.
void Sampling::build_some(Turn& turn, size_t most) {
  const size_t first = turn.built;
  turn.built = std::min(first + most, turn.candidates.size() + 1);
  pool_.parallel_for(static_cast<int64_t>(turn.built - first),
                     [&](int64_t i) { build_next(turn, first + static_cast<size_t>(i)); });
}

// What is not built yet.
void Sampling::build_all(Turn& turn) {
  const double start = clock_.now_seconds();
  build_some(turn, turn.candidates.size() + 1);
  result_.compile_seconds += clock_.now_seconds() - start;
}

measure::Job Sampling::job_of(const Turn& turn, const Candidate& candidate, size_t slot,
                              double reference) const {
  const SampledTask& task = tasks_[turn.lane->task];
  measure::Job job = candidate.job;
  job.threads = options_.threads[slot];
  job.timing = options_.timing;
  job.weights = task.weights;
  job.own_cache_bytes = options_.own_cache_bytes;
  job.tolerance = options_.tolerance > 0 ? tolerance_of(*task.dag, options_.tolerance) : 0;
  job.count_bounds = options_.count_bounds;
  job.timeout_seconds =
      load_seconds(turn.operands->constant_bytes, *options_.devices[turn.lane->device].target);
  job.timeout_seconds +=
      reference > 0 ? std::max(kLeastTimeout, kTimeoutOfDefault * reference) : kTimeout;
  job.label = task.name;
  return job;
}

// While kernels leave cores alone, these compile the next turn's.
Result<std::vector<measure::Measurement>> Sampling::run_jobs(std::vector<measure::Job> jobs,
                                                             int threads, Turn* next) {
  HONE_RETURN_IF_ERROR(options_.runner->submit(std::move(jobs)));
  const target::Target& target = *options_.devices[0].target;
  const bool gpu = target.kind() == target::Kind::kGpu;
  if (threads >= cores() || next == nullptr || (gpu && target.gpu().is_cpu))
    return options_.runner->collect();
  auto answers = std::async(std::launch::async, [this] { return options_.runner->collect(); });
  while (next->built < next->candidates.size() + 1 &&
         answers.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    build_some(*next, gpu ? static_cast<size_t>(cores() - threads) : 1);
  return answers.get();
}

Status Sampling::keep(const Turn& turn, size_t slot_index, std::span<const Trial> trials,
                      double drift) {
  const SampledTask& task = tasks_[turn.lane->task];
  Slot& slot = turn.lane->slots[slot_index];
  TrialSource source = {.dag = task.dag,
                        .space = &*turn.space,
                        .task = task.key,
                        .device = options_.devices[turn.lane->device].key,
                        .version = options_.version,
                        .model = {},
                        .threads = options_.threads[slot_index],
                        .seed = options_.seed,
                        .load = host_.sample()};
  std::vector<trial::Record> records;
  for (const auto& [candidate, measurement] : trials) {
    const bool ok = measurement.outcome == trial::Outcome::kOk;
    source.model = lanes_.next_name(*turn.lane);
    ++turn.lane->named[source.model];
    records.push_back(
        make_record(source, *candidate, measurement, measurement.timing.centre / drift, drift));
    slot.stored.insert(hash_string(records.back().steps));
    if (ok && candidate->point) slot.fastest.add(*candidate->point, fastest(measurement) / drift);
    result_.progress.failed += !ok;
  }
  result_.progress.records += std::ssize(records);
  return options_.store->add(records).status();
}

// Adds the trials of a chunk of candidates, where the default schedule takes `known` seconds.
// Returns false if their timing was cancelled.
Result<bool> Sampling::time_chunk(const Turn& turn, size_t slot,
                                  std::span<const Candidate* const> chunk, double known,
                                  const Execute& execute, std::vector<Trial>& trials) {
  std::vector<measure::Job> jobs;
  for (const Candidate* candidate : chunk) {
    if (candidate->runs()) jobs.push_back(job_of(turn, *candidate, slot, known));
  }
  HONE_ASSIGN_OR_RETURN(std::vector<measure::Measurement> answers,
                        time_repeatedly(jobs, known, execute));
  if (answers.size() != jobs.size()) return false;
  size_t answer = 0;
  for (const Candidate* candidate : chunk) {
    trials.push_back({candidate, candidate->runs() ? std::move(answers[answer++])
                                                   : measure::failed(0, trial::Outcome::kCompile,
                                                                     candidate->status.message())});
  }
  return true;
}

// In chunks, and between them the default schedule: its fastest sample of the whole turn, relative
// to that of the first turn, says how fast the machine is now.
Status Sampling::measure(Turn& turn, size_t slot_index, Turn* next) {
  Slot& slot = turn.lane->slots[slot_index];
  const Execute execute = [&](std::vector<measure::Job> jobs) {
    return run_jobs(std::move(jobs), options_.threads[slot_index], next);
  };
  double reference = std::numeric_limits<double>::infinity();
  const auto time_reference = [&]() -> Status {
    if (!turn.reference.runs()) return ok_status();
    measure::Job job = job_of(turn, turn.reference, slot_index, 0);
    job.tolerance = 0, job.count_bounds = false;  // it is not stored
    HONE_ASSIGN_OR_RETURN(const std::vector<measure::Measurement> answers, execute({job}));
    if (answers.size() == 1) reference = std::min(reference, fastest(answers[0]));
    return ok_status();
  };
  std::vector<const Candidate*> waiting;
  for (const Candidate& candidate : turn.candidates) {
    if (!slot.stored.contains(hash_string(schedule::to_string(candidate.steps))))
      waiting.push_back(&candidate);
  }
  if (waiting.empty()) return ok_status();
  if (options_.cores && options_.threads[slot_index] > 1) options_.cores->wait(options_.deadline);
  const double begin = clock_.now_seconds();
  const double turn_seconds =
      std::min(kTurnShare * options_.task_seconds, options_.task_seconds - slot.spent);
  const int64_t unnamed = lanes_.unnamed(*turn.lane);
  const int64_t missing = std::max(options_.schedules - std::ssize(slot.stored), unnamed);
  HONE_RETURN_IF_ERROR(time_reference());
  std::vector<Trial> trials;
  while (trials.size() < waiting.size() && std::ssize(trials) < missing) {
    const double spent = clock_.now_seconds() - begin;
    if (stopped() || (spent > turn_seconds && std::ssize(trials) >= unnamed)) break;
    const double known = std::isfinite(reference) ? reference : 0;
    const double each = trials.empty() ? kOverhead + kRunsOfRecord * known
                                       : spent / static_cast<double>(trials.size());
    const auto size = static_cast<size_t>(std::clamp<double>(kChunkSeconds / each, 1, kChunk));
    const size_t wanted = std::min(waiting.size(), static_cast<size_t>(missing)) - trials.size();
    const auto chunk = std::span(waiting).subspan(trials.size(), std::min(size, wanted));
    HONE_ASSIGN_OR_RETURN(const bool timed,
                          time_chunk(turn, slot_index, chunk, known, execute, trials));
    if (!timed) break;  // cancelled
    HONE_RETURN_IF_ERROR(time_reference());
  }
  if (slot.scale == 0 && std::isfinite(reference)) slot.scale = reference;
  const double drift = std::isfinite(reference) ? reference / slot.scale : 1;
  HONE_RETURN_IF_ERROR(keep(turn, slot_index, trials, drift));
  const double seconds = clock_.now_seconds() - begin;
  slot.spent += seconds, slot.timed_seconds += seconds;
  slot.timed += std::ssize(trials);
  result_.measure_seconds += seconds;
  report(turn, slot_index);
  return ok_status();
}

Status Sampling::measure(Turn& turn, Turn* next) {
  Lane& lane = *turn.lane;
  for (size_t slot = 0; slot < lane.slots.size() && !stopped(); ++slot) {
    if (lanes_.wants(lane, lane.slots[slot])) HONE_RETURN_IF_ERROR(measure(turn, slot, next));
  }
  --lane.prepared;
  for (const Candidate& candidate : turn.candidates) {  // what time was too short for
    const uint64_t hash = hash_string(schedule::to_string(candidate.steps));
    const bool missing = std::any_of(lane.slots.begin(), lane.slots.end(), [&](const Slot& slot) {
      return lanes_.wants(lane, slot) && !slot.stored.contains(hash);
    });
    if (!missing) continue;
    lane.pending.push_back(candidate.steps);
    lane.programs.erase(candidate.program_hash);
  }
  return ok_status();
}

void Sampling::report(const Turn& turn, size_t slot) {
  DatasetProgress& progress = result_.progress;
  const int64_t missing = lanes_.count(progress);
  const double now = clock_.now_seconds();
  progress.elapsed = now - begin_;
  progress.rate = static_cast<double>(progress.records) / std::max(progress.elapsed, 1e-9);
  progress.left = std::min(static_cast<double>(missing) / std::max(progress.rate, 1e-9),
                           std::max(0.0, options_.deadline - now));
  progress.task = tasks_[turn.lane->task].name;
  progress.device = options_.devices[turn.lane->device].target->name;
  progress.threads = options_.threads[slot];
  if (options_.on_progress) options_.on_progress(progress);
}

Result<DatasetSummary> Sampling::run() {
  HONE_RETURN_IF_ERROR(lanes_.count_stored());
  HONE_ASSIGN_OR_RETURN(std::optional<Turn> current, prepare());
  if (current) build_all(*current);
  while (current && !stopped()) {
    HONE_ASSIGN_OR_RETURN(std::optional<Turn> next, prepare());
    HONE_RETURN_IF_ERROR(measure(*current, next ? &*next : nullptr));
    if (next && !stopped()) build_all(*next);
    if (!next && lanes_.open(*current->lane)) {  // it alone is left
      HONE_ASSIGN_OR_RETURN(next, prepare());
      if (next) build_all(*next);
    }
    current = std::move(next);
  }
  result_.interrupted = interrupted();
  result_.complete = lanes_.complete();
  result_.progress.elapsed = clock_.now_seconds() - begin_;
  return std::move(result_);
}

}  // namespace

measure::TimingOptions SampleOptions::sample_timing() {
  return {.sample_seconds = 5e-5,
          .min_samples = 3,
          .max_samples = 5,
          .precision = 0.03,
          .max_seconds = 0.03};
}

Result<DatasetSummary> sample_tasks(std::span<const SampledTask> tasks,
                                    const SampleOptions& options) {
  HONE_ASSERT(options.runner && options.store && options.model && !options.devices.empty() &&
                  !options.threads.empty(),
              "sampling needs a runner, a store, a model, devices and threads");
  return Sampling(tasks, options).run();
}

}  // namespace hone::search
