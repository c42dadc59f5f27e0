#include "hone/commands/tuned_schedules.h"

#include "hone/base/clock.h"

namespace hone {
namespace {

// What the network has had instead of the task's fastest schedule holds as long as that one is the
// fastest, but not by so much that it must be in the model, too.
void take_chosen(const NetworkChoices& choices, const compute::Dag& dag, uint64_t key,
                 const search::TunedTask& task, schedule::Steps& steps, TaskSummary& line) {
  const auto chosen = choices.find({key, schedule::to_string(steps)});
  if (chosen == choices.end()) return;
  std::optional<ChosenSchedule> other = applicable_schedule(dag, chosen->second, "stored");
  if (!other) return;
  const bool timed = task.untuned_seconds > 0 && other->steps == task.untuned_steps;
  if (timed && task.seconds > 0 && task.untuned_seconds > kCloseOtherData * task.seconds) return;
  steps = std::move(other->steps);
  line.seconds = timed ? task.untuned_seconds : other->seconds;
  line.source = other->source;
  line.from = other->from;
}

}  // namespace

Result<std::vector<schedule::Steps>> tuned_schedules(ModelTasks& model, const Untuned& before,
                                                     const TunedByKey& tuned,
                                                     const CompileOptions& options) {
  std::map<uint64_t, size_t> known;
  for (size_t g = 0; g < before.schedules.size(); ++g) known[before.model.tasks.groups[g].key] = g;
  const bool same_network = network_key(model) == network_key(before.model);
  std::vector<schedule::Steps> schedules;
  for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
    const uint64_t key = model.tasks.groups[g].key;
    const auto found = tuned.find(key);
    HONE_ASSERT(found != tuned.end(), "a choice between tasks that were all tuned");
    const search::TunedTask& task = *found->second;
    TaskSummary& line = model.summaries[g];
    schedule::Steps steps = task.steps;
    const auto at = known.find(key);
    const bool as_before = task.seconds <= 0 || task.steps == task.untuned_steps;
    if (at != known.end() && as_before && !task.untuned_is_wrong) {
      line = before.model.summaries[at->second];
      steps = before.schedules[at->second];
      if (task.seconds > 0) line.seconds = task.seconds;
    } else if (task.seconds > 0) {
      line.source = task.trials == 0 ? "stored" : "tuned";
      line.seconds = task.seconds;
    } else if (task.untuned_is_wrong) {
      const Result<space::Space>& space = model.space(g);
      HONE_RETURN_IF_ERROR(space.status());
      steps = space->steps(space->default_point());
      line.source = "default";
    } else {  // a task that takes another's place
      HONE_ASSIGN_OR_RETURN(ChosenSchedule other,
                            unmeasured_schedule(model, g, before.sources, options));
      line.source = other.source, line.from = other.from;
      line.predicted_seconds = other.predicted_seconds;
      steps = std::move(other.steps);
    }
    if (same_network && !task.untuned_is_wrong)
      take_chosen(before.sources.choices, model.dag(g), key, task, steps, line);
    line.untuned_seconds = task.untuned_seconds;
    line.trials = task.trials;
    line.steps = schedule::to_string(steps);
    schedules.push_back(std::move(steps));
  }
  return schedules;
}

Status choose_in_model(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                       const TunedByKey& tuned, int most, const InModelOptions& options,
                       InModelSummary& summary) {
  const double start = real_clock().now_seconds();
  std::vector<std::vector<search::MeasuredSchedule>> runners_up;
  for (size_t g = 0; g < schedules.size(); ++g) {
    const search::TunedTask& task = *tuned.at(model.tasks.groups[g].key);
    runners_up.push_back(task.runners_up);
    if (task.seconds > 0 && task.steps != schedules[g])  // another one was chosen before
      runners_up.back().insert(runners_up.back().begin(), {task.steps, task.seconds});
  }
  const std::vector<Contest> contests = contests_of(model, schedules, runners_up, most);
  if (contests.empty()) {
    summary.skipped = "no kernel has a second schedule that is about as fast";
    return ok_status();
  }
  HONE_ASSIGN_OR_RETURN(const InModelResult result,
                        compare_in_model(model, schedules, contests, options));
  if (result.rounds == 0) {
    summary.skipped = "there was no time left";
    return ok_status();
  }
  summary.compared = static_cast<int>(contests.size());
  summary.model_seconds = result.model_seconds;
  summary.saved_seconds = result.saved_seconds;
  for (size_t c = 0; c < contests.size(); ++c) {
    if (result.winners[c] < 0) continue;
    const size_t group = contests[c].group;
    const auto& winner = contests[c].challengers[static_cast<size_t>(result.winners[c])];
    ++summary.changed;
    schedules[group] = winner.steps;
    TaskSummary& line = model.summaries[group];
    line.source = "tuned";
    line.from.clear();
    line.seconds = winner.seconds;
    line.steps = schedule::to_string(winner.steps);
  }
  summary.seconds = real_clock().now_seconds() - start;
  return ok_status();
}

}  // namespace hone
