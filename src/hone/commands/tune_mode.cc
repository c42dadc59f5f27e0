#include "hone/commands/tune_mode.h"

#include <set>

#include "hone/base/clock.h"
#include "hone/search/policy_state.h"
#include "hone/search/prediction.h"
#include "hone/space/portable_point.h"

namespace hone {
namespace {

constexpr std::string_view kQualityWeights = "phi1=0.45,phi2=0.35,phi3=0.2";

// What one kernel is chosen from.
struct Step {
  size_t group = 0;
  const space::Space* space = nullptr;
  search::SearchTask task;
  space::Point start;                     // that was chosen without it
  std::unique_ptr<space::Subspace> part;  // what the searcher moves in; the whole space if null
  std::unique_ptr<search::Searcher> searcher;
  search::Predicted best;
};

// The searcher sees the start with its predicted time, so that it begins there.
Result<Step> begin(const Untuned& untuned, size_t group, search::Policy& policy,
                   const CompileOptions& options) {
  const ModelTasks& model = untuned.model;
  Step step;
  step.group = group;
  const Result<space::Space>& space = model.task(group).space(unmeasured_accuracy(model, group));
  HONE_RETURN_IF_ERROR(space.status());
  step.space = &*space;
  step.task = search_task(model, group, *space, options.advanced.seed);
  step.task.model = model.session->guide().get();
  step.start = space::exact_point(std::nullopt, untuned.schedules[group], *space)
                   .value_or(space->default_point());
  if (policy.movable().restricts()) {  // fixed decisions stay as the start has them
    HONE_ASSIGN_OR_RETURN(space::Movable movable,
                          policy.movable().choose(step.task, model.dag(group)));
    movable.bases.push_back(step.start);
    step.part = std::make_unique<space::Subspace>(*space, movable);
  }
  step.searcher = policy.make_searcher(step.task, step.part.get());
  return step;
}

void propose(Step& step, double margin) {
  const double log = search::predict_log_seconds(step.task, {&step.start, 1})[0];
  const double seconds = std::exp(log);
  if (std::isfinite(seconds)) step.searcher->observe({&step.start, 1}, {&seconds, 1});
  const std::vector<space::Point> points = step.searcher->propose(kEfficientStep);
  step.best = search::best_of(step.task, points, step.start, margin);
}

// Returns whether the session's refiner prefers the start to the best of the step; it does so if
// both models together predict it to be faster by the margin.
Result<bool> prefers_start(ModelTasks& model, const Step& step, const schedule::Steps& start,
                           const schedule::Steps& best, double margin) {
  const Refiner* refiner = model.session->refiner();
  if (refiner == nullptr) return false;
  const double begin = real_clock().now_seconds();
  const std::vector<Rival> rivals = {{&best, step.best.seconds},
                                     {&start, step.best.default_seconds}};
  HONE_ASSIGN_OR_RETURN(const size_t winner,
                        refined_choice(*refiner, model.dag(step.group), model.target(),
                                       model.threads(), rivals, margin));
  model.refined.seconds += real_clock().now_seconds() - begin;
  return winner == 1;
}

}  // namespace

Result<TuneMode> tune_mode(const SearchOptions& options) {
  if (options.mode.empty()) return TuneMode::kUsual;
  if (options.mode == "quality") return TuneMode::kQuality;
  if (options.mode != "efficient")
    return invalid("--mode: unknown value '{}', expected efficient or quality", options.mode);
  const auto contradicts = [](std::string_view what) {
    return invalid("--mode efficient: nothing is measured, expected no {}", what);
  };
  if (options.overlap) return contradicts("overlap of compiling and measuring");
  if (options.adapt != "none") return contradicts("net that adapts to measurements (adapt)");
  if (options.max_trials > 0) return contradicts("number of trials");
  if (!options.filter.empty()) return contradicts("filter of what is measured (filter)");
  return TuneMode::kEfficient;
}

std::vector<const space::Space*> spaces_of(const ModelTasks& model) {
  std::vector<const space::Space*> spaces;
  const auto add = [&](const Result<space::Space>& space) {
    if (space.ok()) spaces.push_back(&*space);
  };
  for (size_t g = 0; g < model.tasks.groups.size(); ++g) add(model.space(g));
  for (const Alternative& other : model.alternatives) add(other.task->space(model.accuracy()));
  return spaces;
}

std::string strategy_of(const SearchOptions& options, TuneMode mode) {
  const std::string& text = options.strategy;
  const bool is_dqn = text == "dqn" || text.starts_with("dqn:");
  if (mode != TuneMode::kQuality || !is_dqn || text.find("phi") != std::string::npos) return text;
  return fmt::format("{}{}{}", text, text == "dqn" ? ':' : ',', kQualityWeights);
}

Status take_best_of_a_step(Untuned& untuned, search::Policy& policy,
                           const CompileOptions& options) {
  ModelTasks& model = untuned.model;
  const InPhase choosing(model.session->phases(), Phase::kChoosing);
  HONE_RETURN_IF_ERROR(policy.movable().check_names(spaces_of(model)));
  std::vector<Step> steps;
  std::set<std::string> fixed;  // roles of kernels in which nothing moves
  for (size_t g = 0; g < untuned.schedules.size(); ++g) {
    const std::string& source = model.summaries[g].source;
    if (source == "stored" || source == "shipped") continue;
    HONE_ASSIGN_OR_RETURN(Step step, begin(untuned, g, policy, options));
    if (step.space->size() <= 1) continue;
    if (!step.part || step.part->can_move()) {
      steps.push_back(std::move(step));
    } else {
      for (std::string& role : space::open_roles(*step.space)) fixed.insert(std::move(role));
    }
  }
  if (steps.empty() && !fixed.empty()) return policy.movable().nothing_moves(fixed);
  const double margin = unmeasured_margin(model.target());
  model.session->pool().parallel_for(
      std::ssize(steps), [&](int64_t i) { propose(steps[static_cast<size_t>(i)], margin); });
  for (Step& step : steps) {
    policy.observe(step.task, {}, {});
    if (step.best.point == step.start) continue;
    ChosenSchedule chosen;
    chosen.steps = step.space->steps(step.best.point);
    chosen.source = "predicted";
    chosen.predicted_seconds = step.best.seconds;
    schedule::Steps& start = untuned.schedules[step.group];
    HONE_ASSIGN_OR_RETURN(const bool stays,
                          prefers_start(model, step, start, chosen.steps, margin));
    if (stays) continue;
    chosen.describe(model.summaries[step.group]);
    start = std::move(chosen.steps);
  }
  return ok_status();
}

Result<TuneSummary> tune_without_measuring(Session& session, const graph::Graph& imported,
                                           const std::string& output, const TuneOptions& options,
                                           double start, search::Policy& policy) {
  const auto make = [&](const CompileOptions& with) -> Result<Untuned> {
    HONE_ASSIGN_OR_RETURN(Untuned untuned, make_untuned(session, imported, with));
    HONE_RETURN_IF_ERROR(take_best_of_a_step(untuned, policy, with));
    return untuned;
  };
  TuneSummary summary;
  HONE_ASSIGN_OR_RETURN(summary.compile,
                        compile_checked(imported, output, options.compile, start, make));
  summary.not_compared = "nothing is measured";
  summary.in_model.skipped = summary.not_compared;
  if (const std::string& state = options.search.policy_state; !state.empty())
    summary.policy_status = search::save_policy_state(state, session.target(), policy);
  return summary;
}

}  // namespace hone
