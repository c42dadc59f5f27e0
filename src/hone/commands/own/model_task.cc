#include "hone/model_task.h"

#include <cmath>
#include <limits>

#include "hone/commands/own/point_conversion.h"
#include "hone/commands/own/task_state.h"
#include "hone/compute/bytes_moved.h"
#include "hone/cost/own_model.h"
#include "hone/ir/printer.h"
#include "hone/search/in_parts.h"
#include "hone/search/lower_schedule.h"
#include "hone/search/prediction.h"
#include "hone/session/cost_models.h"

namespace hone {

Result<CostModelPtr> NamedModels::get(const std::string& name, const target::Target& target) {
  const std::string full = name == cost::kAutoModel ? cost::default_model(target) : name;
  const std::lock_guard lock(mutex_);
  CostModelPtr& model = models_[full];
  if (!model) {
    HONE_ASSIGN_OR_RETURN(model, make_cost_model({.cost = full, .db = db_, .use_db = uses_db_}));
  }
  HONE_RETURN_IF_ERROR(cost::check_knows(*model, full, target));
  return model;
}

const TaskInfo& ModelTask::info() const { return state_->info; }
const std::vector<SketchInfo>& ModelTask::sketches() const { return state_->sketches; }
double ModelTask::space_size() const { return state_->space.size(); }
size_t ModelTask::width() const { return row_width(state_->space); }

PointRows ModelTask::default_points() const {
  return to_rows(state_->space, state_->space.default_points());
}

PointRows ModelTask::sample(int count, uint64_t seed) const {
  Rng rng(seed);
  std::vector<space::Point> points;
  for (int i = 0; i < count; ++i) points.push_back(state_->space.sample(rng));
  return to_rows(state_->space, points);
}

Result<PointRows> ModelTask::mutate(const PointRows& points, uint64_t seed) const {
  HONE_ASSIGN_OR_RETURN(std::vector<space::Point> made, from_rows(state_->space, points));
  Rng rng(seed);
  for (space::Point& point : made) point = state_->space.mutate(point, rng);
  return to_rows(state_->space, made);
}

Result<PointRows> ModelTask::crossover(const PointRows& first, const PointRows& second,
                                       uint64_t seed) const {
  HONE_ASSIGN_OR_RETURN(std::vector<space::Point> made, from_rows(state_->space, first));
  HONE_ASSIGN_OR_RETURN(const std::vector<space::Point> other, from_rows(state_->space, second));
  if (made.size() != other.size())
    return invalid("there are {} first points and {} second ones, expected as many", made.size(),
                   other.size());
  Rng rng(seed);
  for (size_t i = 0; i < made.size(); ++i)
    made[i] = state_->space.crossover(made[i], other[i], rng);
  return to_rows(state_->space, made);
}

Result<PointRows> ModelTask::neighbours(std::span<const int32_t> point) const {
  HONE_ASSIGN_OR_RETURN(const space::Point from, from_row(state_->space, point));
  return to_rows(state_->space, state_->space.neighbours(from));
}

Result<std::vector<uint8_t>> ModelTask::legal(const PointRows& points) const {
  HONE_ASSIGN_OR_RETURN(const std::vector<space::Point> asked, from_rows(state_->space, points));
  std::vector<uint8_t> legal;
  legal.reserve(asked.size());
  for (const space::Point& point : asked) legal.push_back(state_->space.legal(point) ? 1 : 0);
  return legal;
}

Result<std::string> ModelTask::steps(std::span<const int32_t> point) const {
  HONE_ASSIGN_OR_RETURN(const space::Point asked, from_row(state_->space, point));
  return schedule::to_string(state_->space.steps(asked));
}

Result<std::string> ModelTask::program(std::span<const int32_t> point) const {
  HONE_ASSIGN_OR_RETURN(const space::Point asked, from_row(state_->space, point));
  HONE_ASSIGN_OR_RETURN(
      const search::ProgramPtr program,
      search::lower_schedule(*state_->dag, state_->space.steps(asked), *state_->target));
  return ir::print(*program);
}

Result<PointRows> ModelTask::locate(const std::string& steps) const {
  HONE_ASSIGN_OR_RETURN(const schedule::Steps parsed, schedule::parse_steps(steps));
  const std::optional<space::Point> point = state_->space.locate(parsed);
  if (!point) return invalid("no point of the space is like these steps");
  return to_rows(state_->space, {&*point, 1});
}

namespace {

// The rows of one task by the threads of a pool, which may be null.
FeatureRows make_features(const ModelTask::State& state, std::span<const space::Point> points,
                          cost::FeatureSet set, ThreadPool* pool) {
  FeatureRows rows;
  rows.width = cost::candidate_feature_names(set).size();
  rows.values.assign(points.size() * rows.width, std::numeric_limits<float>::quiet_NaN());
  rows.estimates.assign(points.size(), INFINITY);
  search::in_parts(pool, points.size(), [&](size_t begin, size_t size) {
    for (size_t i = begin; i < begin + size; ++i) {
      const Result<space::Candidate> candidate = state.space.instantiate(points[i]);
      if (!candidate.ok()) continue;
      const cost::CandidateFeatures made = cost::candidate_features(
          {&*candidate, state.target.get(), state.info.threads, state.info.key}, set);
      std::ranges::copy(made.row, rows.values.data() + i * rows.width);
      rows.estimates[i] = made.base_seconds;
    }
  });
  return rows;
}

// Calls work with the pool of whoever the task is of, or null.
auto with_pool(const ModelTask::State& state, const auto& work) {
  if (state.opened) return work(&state.opened->session->pool());
  return state.live->use(
      [&](const search::SearchTask* task) { return work(task ? task->pool : nullptr); });
}

Result<std::vector<double>> predict_by(const ModelTask::State& state,
                                       std::span<const space::Point> points,
                                       const cost::CostModel& model, ThreadPool* pool) {
  const search::SearchTask task{.space = &state.space,
                                .target = state.target.get(),
                                .model = &model,
                                .threads = state.info.threads,
                                .key = state.info.key,
                                .pool = pool};
  std::vector<double> seconds = search::predict_log_seconds(task, points);
  for (double& time : seconds) time = std::exp(time);
  return seconds;
}

}  // namespace

Result<FeatureRows> ModelTask::features(const PointRows& points, const std::string& set) const {
  HONE_ASSIGN_OR_RETURN(const std::vector<space::Point> asked, from_rows(state_->space, points));
  HONE_ASSIGN_OR_RETURN(const cost::FeatureSet features,
                        cost::parse_feature_set(set, state_->target->kind()));
  return with_pool(*state_,
                   [&](ThreadPool* pool) { return make_features(*state_, asked, features, pool); });
}

Result<std::vector<double>> ModelTask::predict(const PointRows& points,
                                               const std::string& cost) const {
  HONE_ASSIGN_OR_RETURN(const std::vector<space::Point> asked, from_rows(state_->space, points));
  if (!cost.empty()) {
    HONE_ASSIGN_OR_RETURN(const CostModelPtr model, state_->models->get(cost, *state_->target));
    return with_pool(*state_,
                     [&](ThreadPool* pool) { return predict_by(*state_, asked, *model, pool); });
  }
  if (state_->opened) {
    const Session& session = *state_->opened->session;
    return predict_by(*state_, asked, *session.cost(), &state_->opened->session->pool());
  }
  return state_->live->use([&](const search::SearchTask* task) -> Result<std::vector<double>> {
    if (task == nullptr)
      return invalid(
          "the cost model of a search may be asked only while the search calls its strategy, "
          "expected the name of another model");
    return predict_by(*state_, asked, *task->model, task->pool);
  });
}

TaskInfo describe_task(const compute::Dag& dag, const space::Space& space,
                       const target::Target& target) {
  TaskInfo info;
  info.kernel_class = compute::kernel_class(dag);
  info.text = compute::describe(dag);
  info.flops = compute::flops(dag);
  info.bytes = compute::bytes_moved(dag);
  info.least_flops = space.least_flops();
  info.device = target::device_key(target);
  return info;
}

}  // namespace hone
