#include "hone/learn/readable_tasks.h"

#include <algorithm>

#include "hone/base/thread_pool.h"
#include "hone/cost/inputs/model_inputs.h"

namespace hone::learn {
namespace {

using cost::Input;

// Returns the inputs of the net that cannot be written of every schedule.
cost::InputSet limited_inputs(const cost::net::Net& model) {
  cost::InputSet limited;
  for (const cost::net::NetInput& input : model.inputs) {
    const std::optional<Input> found = cost::find_input(input.name);
    if (found == Input::kTemplateNodes || found == Input::kTemplateMask)
      limited.set(static_cast<size_t>(Input::kTemplateMask));
  }
  return limited;
}

// Returns why the net cannot read a schedule of the task (Code::kUnsupported), or another error.
Status readable(const TaskTrials& task, const target::Target& target, cost::InputSet wanted) {
  for (const MeasuredSteps& trial : task.trials) {
    HONE_ASSIGN_OR_RETURN(const space::Candidate candidate,
                          space::make_candidate(*task.dag, trial.steps));
    HONE_RETURN_IF_ERROR(
        cost::model_inputs({&candidate, &target, task.threads, task.key}, wanted).status());
  }
  return ok_status();
}

}  // namespace

void UnreadableTasks::merge(const UnreadableTasks& more) {
  keys.insert(more.keys.begin(), more.keys.end());
  schedules += more.schedules;
  if (why.empty()) why = more.why;
}

Result<UnreadableTasks> remove_unreadable(Dataset& dataset, const target::Target& target,
                                          const cost::net::Net& model, int threads) {
  UnreadableTasks found;
  const cost::InputSet wanted = limited_inputs(model);
  if (wanted.none()) return found;
  std::vector<Status> statuses(dataset.tasks.size());
  ThreadPool pool(threads);
  pool.parallel_for(std::ssize(dataset.tasks), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    statuses[place] = readable(dataset.tasks[place], target, wanted);
  });
  std::vector<TaskTrials> kept;
  for (size_t i = 0; i < statuses.size(); ++i) {
    TaskTrials& task = dataset.tasks[i];
    if (statuses[i].ok()) {
      kept.push_back(std::move(task));
      continue;
    }
    if (statuses[i].code() != Code::kUnsupported) return statuses[i];
    found.keys.insert(task.key);
    found.schedules += std::ssize(task.trials);
    if (found.why.empty())
      found.why = fmt::format("{}: {}", task.kernel_class, statuses[i].message());
  }
  dataset.tasks = std::move(kept);
  return found;
}

}  // namespace hone::learn
