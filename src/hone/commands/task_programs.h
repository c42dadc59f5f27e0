// task_programs.h - prints the loop programs of tasks that were tuned (internal).
#pragma once

#include <span>
#include <vector>

#include "hone/commands/tuned_schedules.h"

namespace hone {

// Returns the loop program of a task's schedule as text, or "" if the schedule cannot be lowered.
[[nodiscard]] std::string program_text(Session& session, const TaskPtr& task,
                                       const schedule::Steps& steps);

// Returns the programs of a model's groups, with these schedules and with those of before.
[[nodiscard]] std::vector<TaskPrograms> programs_of(const ModelTasks& model,
                                                    std::span<const schedule::Steps> schedules,
                                                    const TunedByKey& tuned);

}  // namespace hone
