#include "scheduler.h"

#include <hone/task_scheduler.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "errors.h"

namespace hone::python {

namespace nb = nanobind;

namespace {

std::vector<ScheduledTask> tasks_of(const std::vector<double>& weights,
                                    const std::vector<double>& expected,
                                    const std::vector<int>& families) {
  if (expected.size() != weights.size() || (!families.empty() && families.size() != weights.size()))
    raise_input_error("there are " + std::to_string(weights.size()) + " weights, " +
                      std::to_string(expected.size()) + " expected times and " +
                      std::to_string(families.size()) + " families, expected one for each task");
  std::vector<ScheduledTask> tasks;
  for (size_t i = 0; i < weights.size(); ++i)
    tasks.push_back({.multiplicity = weights[i],
                     .expected = expected[i],
                     .family = families.empty() ? -1 : families[i]});
  return tasks;
}

// Returns the index if there is such a task.
int checked(const TaskScheduler& scheduler, int task) {
  if (task < 0 || task >= scheduler.size())
    raise_input_error("there is no task " + std::to_string(task) + ", expected 0 to " +
                      std::to_string(scheduler.size() - 1));
  return task;
}

// A function of a task's index that checks the index first.
template <typename Result, typename... Arguments>
auto of_task(Result (TaskScheduler::*function)(int, Arguments...)) {
  return [function](TaskScheduler& scheduler, int task, Arguments... arguments) {
    return (scheduler.*function)(checked(scheduler, task), arguments...);
  };
}
template <typename Result, typename... Arguments>
auto of_task(Result (TaskScheduler::*function)(int, Arguments...) const) {
  return [function](const TaskScheduler& scheduler, int task, Arguments... arguments) {
    return (scheduler.*function)(checked(scheduler, task), arguments...);
  };
}

void report(TaskScheduler& scheduler, int task, double spent, double best) {
  if (!(spent >= 0)) raise_input_error("spent is negative, expected seconds");
  scheduler.report(checked(scheduler, task), spent, best);
}

}  // namespace

void bind_scheduler(nb::module_& module) {
  nb::class_<TaskScheduler>(
      module, "TaskScheduler",
      "Divides time over tasks by what they gain: what hone.tune asks which task is next.\n\n"
      "Tasks are numbered. Batches of a task may be under way at the same time.\n\n"
      "Args: weights: how much a second of each task counts, such as how often it occurs in the "
      "model. expected: seconds of one run of each, predicted or from an earlier run. families: "
      "tasks of the same number are alike; -1: like no other; []: all are so.")
      .def(
          "__init__",
          [](TaskScheduler* self, const std::vector<double>& weights,
             const std::vector<double>& expected, const std::vector<int>& families) {
            new (self) TaskScheduler(tasks_of(weights, expected, families));
          },
          nb::arg("weights"), nb::arg("expected"), nb::arg("families") = std::vector<int>())
      .def("next", &TaskScheduler::next,
           "The task that the next batch goes to; -1 if none can gain any more.")
      .def("start", of_task(&TaskScheduler::start), nb::arg("task"),
           "Says that a batch was handed out, which report or withdraw follows.")
      .def("withdraw", of_task(&TaskScheduler::withdraw), nb::arg("task"),
           "Takes a start back: the batch was lost.")
      .def("report", &report, nb::arg("task"), nb::arg("spent"), nb::arg("best"),
           "Reports a batch: the seconds that it took, and those of the task's best schedule.")
      .def("set_bound", of_task(&TaskScheduler::set_bound), nb::arg("task"), nb::arg("seconds"),
           "Sets the seconds that no schedule of the task can beat.")
      .def("finish", of_task(&TaskScheduler::finish), nb::arg("task"),
           "Says that the task has nothing more to try.")
      .def("best", of_task(&TaskScheduler::best), nb::arg("task"),
           "Seconds of the task's best schedule as reported last, else those expected.")
      .def("spent", of_task(&TaskScheduler::spent), nb::arg("task"),
           "Seconds that the task's batches took.")
      .def("gain", of_task(&TaskScheduler::gain), nb::arg("task"),
           "Seconds of total() that a second spent on the task is expected to gain.")
      .def("gain_in", of_task(&TaskScheduler::gain_in), nb::arg("task"), nb::arg("seconds"),
           "Seconds of total() that so many seconds spent on the task are expected to gain.")
      .def("at_limit", of_task(&TaskScheduler::at_limit), nb::arg("task"),
           "Whether the task is so close to its bound that its search is over.")
      .def("total", &TaskScheduler::total, "The sum of weight x best over all tasks, in seconds.")
      .def("__len__", &TaskScheduler::size);
}

}  // namespace hone::python
