#include "hone/commands/task_programs.h"

#include "hone/ir/printer.h"

namespace hone {

std::string program_text(Session& session, const TaskPtr& task, const schedule::Steps& steps) {
  const Result<LoweredPtr> lowered = session.kernels().lower(task, steps);
  return lowered.ok() ? ir::print(*(*lowered)->program) : "";
}

std::vector<TaskPrograms> programs_of(const ModelTasks& model,
                                      std::span<const schedule::Steps> schedules,
                                      const TunedByKey& tuned) {
  std::vector<TaskPrograms> programs(schedules.size());
  model.session->pool().parallel_for(std::ssize(schedules), [&](int64_t i) {
    const auto g = static_cast<size_t>(i);
    Session& session = *model.session;
    programs[g].program = program_text(session, model.distinct[g], schedules[g]);
    const auto before = tuned.find(model.tasks.groups[g].key);
    if (before == tuned.end()) return;
    const schedule::Steps& steps = before->second->untuned_steps;
    programs[g].untuned_steps = schedule::to_string(steps);
    programs[g].untuned_program = program_text(session, model.distinct[g], steps);
  });
  return programs;
}

}  // namespace hone
