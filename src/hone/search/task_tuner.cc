#include "hone/search/task_tuner.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "hone/compute/affine.h"
#include "hone/schedule/lower.h"
#include "hone/search/prediction.h"
#include "hone/search/reference.h"
#include "hone/search/registry.h"
#include "hone/space/portable_point.h"

namespace hone::search {
namespace {

constexpr size_t kFinalists = 3;
constexpr int kStoredBest = 2;         // of earlier runs, measured again
constexpr size_t kTransferred = 6;     // schedules of other tasks, measured before any search ...
constexpr size_t kKnownWell = 16;      // ... unless the task has so many records of its own
constexpr size_t kAdopted = 3;         // schedules of similar tasks, tried at a time
constexpr int64_t kMaxLearned = 2000;  // records of earlier runs that the searcher hears of
constexpr double kTimeout = 5;         // seconds, for one candidate ...
constexpr double kPackRate =
    2e7;  // ... and bytes a second, at the very least, to pack its constants
constexpr int64_t kBatchBytes = 256 << 20;  // of constants that one batch packs

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace

Status TaskTuner::open(db::Store* store) {
  HONE_ASSIGN_OR_RETURN(space_,
                        space::Space::create(*task_.dag, *context_.target, context_.accuracy));
  const SearchTask search = search_task();
  HONE_ASSIGN_OR_RETURN(searcher_, make_searcher(context_.searcher, search));
  const space::Point start = space_->default_point();
  default_steps_ = space_->steps(start);
  predicted_seconds_ = std::exp(predict_log_seconds(search, std::span(&start, 1))[0]);
  suggest(default_steps_);
  if (store) HONE_RETURN_IF_ERROR(learn(*store));
  own_ = first_.size();
  for (int sketch = 1; sketch < space_->num_sketches(); ++sketch)
    suggest(space_->steps(space_->default_point(sketch)));
  return ok_status();
}

void TaskTuner::start_from(const TransferPool& pool) {
  if (learned_ >= kKnownWell) return;
  const TransferResult found =
      transfer(search_task(), *task_.dag, pool, {.device = context_.device});
  // The best predicted of each algorithm first: between algorithms a model errs most.
  std::vector<const Transferred*> firsts, others;
  std::set<std::string> algorithms;
  for (const Transferred& candidate : found.candidates) {
    const bool first = algorithms.insert(schedule::algorithm_of(candidate.steps)).second;
    (first ? firsts : others).push_back(&candidate);
  }
  firsts.insert(firsts.end(), others.begin(), others.end());
  if (firsts.size() > kTransferred) firsts.resize(kTransferred);
  std::vector<schedule::Steps> later(first_.begin() + static_cast<std::ptrdiff_t>(own_),
                                     first_.end());
  first_.resize(own_);
  for (const Transferred* candidate : firsts) suggest(candidate->steps);
  for (const schedule::Steps& steps : later) suggest(steps);
}

SearchTask TaskTuner::search_task() const {
  return {&*space_, context_.target, context_.model, context_.threads, task_.key, context_.seed};
}

Status TaskTuner::learn(db::Store& store) {
  const bool strict = context_.accuracy == space::Accuracy::kStrict;
  HONE_ASSIGN_OR_RETURN(const std::vector<db::Record> best,
                        store.best({.task = task_.key,
                                    .device = context_.device,
                                    .threads = context_.threads,
                                    .algorithm = strict ? "direct" : "",
                                    .limit = kStoredBest}));
  for (const db::Record& record : best) {
    if (Result<schedule::Steps> steps = schedule::parse_steps(record.steps); steps.ok())
      suggest(*steps);
  }
  db::Filter filter;
  filter.task = task_.key;
  filter.device = context_.device;
  filter.threads = context_.threads;
  filter.version = context_.version;
  filter.limit = kMaxLearned;
  HONE_ASSIGN_OR_RETURN(const std::vector<db::Record> records, store.query(filter));
  std::vector<space::Point> points;
  std::vector<double> seconds;
  for (const db::Record& record : records) {
    const Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
    if (!steps.ok()) continue;
    const std::optional<space::Point> point = space_->locate(*steps);
    if (!point || space_->steps(*point) != *steps) continue;
    points.push_back(*point);
    seconds.push_back(record.outcome == measure::Outcome::kOk ? record.centre : INFINITY);
  }
  learned_ = records.size();
  searcher_->observe(points, seconds);
  return ok_status();
}

void TaskTuner::suggest(const schedule::Steps& steps) {
  if (tried_.contains(schedule::hash(steps)) || std::count(first_.begin(), first_.end(), steps) > 0)
    return;
  first_.push_back(steps);
}

void TaskTuner::adopt(const Finalist& best) {
  std::vector<space::Point> points;
  if (best.point) {
    points = space::adapt(*best.point, *space_);
  } else if (const auto nearest = space_->locate(best.steps)) {
    points.push_back(*nearest);
  }
  if (points.empty()) return;
  const std::vector<double> logs = predict_log_seconds(search_task(), points);
  const auto fastest = std::min_element(logs.begin(), logs.end()) - logs.begin();
  schedule::Steps own = space_->steps(points[static_cast<size_t>(fastest)]);
  std::erase(adopted_, own);
  adopted_.push_back(std::move(own));
  if (adopted_.size() > kAdopted) adopted_.erase(adopted_.begin());
}

Status TaskTuner::make_operands() {
  std::vector<Tensor> arguments = task_arguments(*task_.dag, context_.seed);
  HONE_ASSIGN_OR_RETURN(
      const std::vector<measure::Expected> expected,
      reference_outputs(*task_.dag, arguments,
                        {.seed = context_.seed, .threads = context_.target->cores}));
  std::vector<measure::OperandSpec> specs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ir::Param& param = task_.dag->params[i];
    const bool given = param.role != ir::Role::kOutput;
    specs.push_back({param.role, arguments[i].bytes(), given ? arguments[i].data() : nullptr});
    operand_of_[param.buffer.get()] = static_cast<int>(i);
  }
  // Small constants that the Dag itself carries.
  for (const compute::Stage& stage : task_.dag->stages) {
    for (const compute::Access& access : compute::reads(stage)) {
      const ir::Buffer& buffer = *access.buffer;
      if (buffer.values.empty() || operand_of_.contains(&buffer)) continue;
      Tensor tensor(buffer.dtype, buffer.shape);
      for (size_t j = 0; j < buffer.values.size(); ++j)
        tensor.set(static_cast<int64_t>(j), buffer.values[j]);
      operand_of_[&buffer] = static_cast<int>(specs.size());
      specs.push_back({ir::Role::kConstant, tensor.bytes(), tensor.data()});
      arguments.push_back(std::move(tensor));
    }
  }
  HONE_ASSIGN_OR_RETURN(operands_, measure::Operands::create(specs, expected));
  return ok_status();
}

Result<std::vector<Candidate>> TaskTuner::propose(int n) {
  if (!operands_) HONE_RETURN_IF_ERROR(make_operands());
  std::vector<Candidate> candidates;
  const auto add = [&](std::optional<space::Point> point, schedule::Steps steps) {
    if (!tried_.emplace(schedule::hash(steps), true).second) return;
    candidates.push_back({.point = std::move(point), .steps = std::move(steps)});
  };
  for (const schedule::Steps& steps : std::exchange(adopted_, {})) suggest(steps);
  while (!first_.empty() && static_cast<int>(candidates.size()) < n) {
    schedule::Steps steps = std::move(first_.front());
    first_.erase(first_.begin());
    std::optional<space::Point> point = space_->locate(steps);
    if (point && space_->steps(*point) != steps) point.reset();
    add(std::move(point), std::move(steps));
  }
  // The searcher may name a point that was suggested: ask again until the batch is full.
  for (int round = 0; round < 3 && static_cast<int>(candidates.size()) < n; ++round) {
    const std::vector<space::Point> points =
        searcher_->propose(n - static_cast<int>(candidates.size()));
    if (points.empty()) break;
    for (const space::Point& point : points) add(point, space_->steps(point));
  }
  return candidates;
}

Result<std::vector<Candidate>> TaskTuner::candidates_of(
    std::span<const schedule::Steps> schedules) {
  if (!operands_) HONE_RETURN_IF_ERROR(make_operands());
  std::vector<Candidate> candidates;
  for (const schedule::Steps& steps : schedules) {
    candidates.push_back({.point = std::nullopt, .steps = steps});
    candidates.back().job.id = next_id_++;
  }
  return candidates;
}

void TaskTuner::build(Candidate& candidate) const {
  Result<ir::Program> program = schedule::lower(*task_.dag, candidate.steps);
  if (!program.ok()) {
    candidate.status = program.status();
    return;
  }
  Result<codegen::ObjectCode> code = codegen::compile(*program, *context_.target);
  if (!code.ok()) {
    candidate.status = code.status();
    return;
  }
  measure::Job& job = candidate.job;
  for (const ir::Param& param : program->params) {
    measure::Argument argument{param.role,
                               param.buffer->num_elements() * dtype_bytes(param.buffer->dtype), -1};
    const auto operand = operand_of_.find(param.buffer.get());
    if (operand != operand_of_.end()) argument.operand = operand->second;
    job.arguments.push_back(argument);
  }
  candidate.code = hash_string(code->object);
  job.object = std::move(code->object);
  job.phases = std::move(code->phases);
  job.scratch_bytes = code->scratch_bytes;
  job.operands = operands_;
  job.threads = context_.threads;
  job.timing = context_.timing;
  job.cold_weights = context_.cold_weights;
  job.tolerance = context_.tolerance;
  job.timeout_seconds = kTimeout + static_cast<double>(constant_bytes()) / kPackRate;
  job.label = task_.name;
}

void TaskTuner::drop_known(std::vector<Candidate>& candidates) {
  std::vector<space::Point> points;
  std::vector<double> seconds;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (!candidate.runs()) return false;
    if (in_flight_.contains(candidate.code)) return true;  // its time is not known yet
    const auto known = known_code_.find(candidate.code);
    if (known == known_code_.end()) return false;
    if (candidate.point) points.push_back(*candidate.point), seconds.push_back(known->second);
    return true;
  });
  // Two of one batch: the second is dropped without a word, its time is not known yet.
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto twin = [&](const Candidate& other) {
      return other.runs() && other.code == candidates[i].code;
    };
    if (!candidates[i].runs()) continue;
    candidates.erase(std::remove_if(candidates.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                    candidates.end(), twin),
                     candidates.end());
  }
  for (Candidate& candidate : candidates) {
    if (candidate.runs()) in_flight_.insert(candidate.code);
    candidate.job.id = next_id_++;
    candidate.job.timing.best = best_seconds();
  }
  searcher_->observe(points, seconds);
}

int64_t TaskTuner::constant_bytes() const {
  int64_t bytes = 0;
  for (const ir::Param& param : task_.dag->params) {
    if (param.role == ir::Role::kConstant)
      bytes += param.buffer->num_elements() * dtype_bytes(param.buffer->dtype);
  }
  return bytes;
}

int TaskTuner::max_batch() const {
  return static_cast<int>(
      std::clamp<int64_t>(kBatchBytes / std::max<int64_t>(constant_bytes(), 1), 2, 1024));
}

double TaskTuner::best_seconds() const {
  return finalists_.empty() ? INFINITY : finalists_.front().seconds;
}

void TaskTuner::observe(std::span<const Candidate> candidates,
                        std::span<const measure::Measurement> measurements) {
  HONE_ASSERT(candidates.size() == measurements.size(), "one measurement per candidate");
  std::vector<space::Point> points;
  std::vector<double> seconds;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    const bool ok = measurements[i].outcome == measure::Outcome::kOk;
    const double time = ok ? measurements[i].timing.centre : INFINITY;
    if (candidate.point) points.push_back(*candidate.point), seconds.push_back(time);
    in_flight_.erase(candidate.code);
    if (candidate.runs()) known_code_[candidate.code] = time, ++trials_;
    if (!ok) continue;
    if (candidate.steps == default_steps_) default_seconds_ = time;
    if (!measurements[i].verified && context_.tolerance > 0) continue;
    const auto place = std::upper_bound(finalists_.begin(), finalists_.end(), time,
                                        [](double t, const Finalist& f) { return t < f.seconds; });
    if (place - finalists_.begin() >= static_cast<std::ptrdiff_t>(kFinalists)) continue;
    std::optional<space::PortablePoint> portable;
    if (candidate.point) portable = space::to_portable(*space_, *candidate.point);
    finalists_.insert(place, {std::move(portable), candidate.steps, candidate.job, time});
    if (finalists_.size() > kFinalists) finalists_.pop_back();
  }
  searcher_->observe(points, seconds);
}

db::Record TaskTuner::record(const Candidate& candidate,
                             const measure::Measurement& measurement) const {
  db::Record record;
  record.task = task_.key;
  record.kernel_class = compute::kernel_class(*task_.dag);
  record.task_text = compute::describe(*task_.dag);
  record.device = context_.device;
  record.version = context_.version;
  record.algorithm = schedule::algorithm_of(candidate.steps);
  record.steps = schedule::to_string(candidate.steps);
  if (candidate.point) {
    record.decisions = space::to_string(space::to_portable(*space_, *candidate.point));
  }
  record.outcome = measurement.outcome;
  record.message = measurement.message;
  if (measurement.outcome == measure::Outcome::kOk) {
    record.times = measurement.timing.samples;
    record.centre = measurement.timing.centre;
    record.low = measurement.timing.low;
    record.high = measurement.timing.high;
  }
  record.threads = context_.threads;
  record.seed = context_.seed;
  record.verified = measurement.verified && measurement.outcome == measure::Outcome::kOk;
  record.unix_time = static_cast<int64_t>(std::time(nullptr));
  record.host_load = load_average();
  record.model = context_.source;
  return record;
}

}  // namespace hone::search
