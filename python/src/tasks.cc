#include "tasks.h"

#include <hone/null_machine.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <atomic>
#include <optional>

#include "errors.h"
#include "jobs.h"
#include "number_arrays.h"
#include "options.h"

namespace hone::python {
namespace {

// A task with the state of its random draws. It is of the process that made it: a fork has neither
// the threads nor the worker.
class TaskObject {
 public:
  explicit TaskObject(ModelTask task) : task_(std::make_unique<ModelTask>(std::move(task))) {}
  ~TaskObject() {
    if (getpid() != process_) static_cast<void>(task_.release());
  }
  TaskObject(const TaskObject&) = delete;
  TaskObject& operator=(const TaskObject&) = delete;

  [[nodiscard]] const ModelTask& task() const {
    if (getpid() != process_)
      raise_input_error(
          "the task was made before this process was forked: call hone.tasks again here");
    return *task_;
  }
  [[nodiscard]] const TaskInfo& info() const { return task_->info(); }
  // The seed that is given or, for None, the next of a sequence that the task's seed begins.
  [[nodiscard]] uint64_t seed(std::optional<uint64_t> given) {
    return given ? *given : info().seed * 0x9e3779b97f4a7c15ULL + info().key + ++draws_;
  }

 private:
  std::unique_ptr<ModelTask> task_;
  const pid_t process_ = getpid();
  std::atomic<uint64_t> draws_ = 0;
};

// The space of a task; it keeps the task.
struct SpaceObject {
  std::shared_ptr<TaskObject> of;
  [[nodiscard]] const ModelTask& task() const { return of->task(); }
};

// Runs work of Hone's that may take a while without the GIL.
auto without_gil(const auto& work) {
  const RunningModel running;
  const nb::gil_scoped_release others_may_run;
  return work();
}

Rows<int32_t> sample(SpaceObject& space, int count, std::optional<uint64_t> seed) {
  if (count < 0) raise_input_error("n is " + std::to_string(count) + ", expected 0 or more");
  const ModelTask& task = space.task();
  const uint64_t from = space.of->seed(seed);
  return to_rows(without_gil([&] { return task.sample(count, from); }));
}

Rows<int32_t> mutate(SpaceObject& space, nb::handle points, std::optional<uint64_t> seed) {
  const ModelTask& task = space.task();
  const PointRows rows = points_from(points, "points");
  const uint64_t from = space.of->seed(seed);
  return to_rows(value_or_raise(without_gil([&] { return task.mutate(rows, from); })));
}

Rows<int32_t> crossover(SpaceObject& space, nb::handle first, nb::handle second,
                        std::optional<uint64_t> seed) {
  const ModelTask& task = space.task();
  const PointRows a = points_from(first, "first"), b = points_from(second, "second");
  const uint64_t from = space.of->seed(seed);
  return to_rows(value_or_raise(without_gil([&] { return task.crossover(a, b, from); })));
}

Rows<int32_t> neighbours(SpaceObject& space, nb::handle point) {
  const ModelTask& task = space.task();
  const std::vector<int32_t> row = point_from(point, "point");
  return to_rows(value_or_raise(without_gil([&] { return task.neighbours(row); })));
}

Numbers<bool> legal(SpaceObject& space, nb::handle points) {
  const ModelTask& task = space.task();
  const PointRows rows = points_from(points, "points");
  return to_flags(value_or_raise(without_gil([&] { return task.legal(rows); })));
}

std::string steps(SpaceObject& space, nb::handle point) {
  return value_or_raise(space.task().steps(point_from(point, "point")));
}

std::string program(SpaceObject& space, nb::handle point) {
  const ModelTask& task = space.task();
  const std::vector<int32_t> row = point_from(point, "point");
  return value_or_raise(without_gil([&] { return task.program(row); }));
}

Numbers<int32_t> locate(SpaceObject& space, const std::string& steps) {
  return to_numbers(value_or_raise(space.task().locate(steps)).values);
}

Rows<float> features(SpaceObject& space, nb::handle points, const std::string& set) {
  const ModelTask& task = space.task();
  const PointRows rows = points_from(points, "points");
  FeatureRows made = value_or_raise(without_gil([&] { return task.features(rows, set); }));
  const size_t count = made.size();
  return to_rows(std::move(made.values), count, made.width);
}

Numbers<double> predict(SpaceObject& space, nb::handle points, const std::string& cost) {
  const ModelTask& task = space.task();
  const PointRows rows = points_from(points, "points");
  return to_numbers(value_or_raise(without_gil([&] { return task.predict(rows, cost); })));
}

nb::object measure(SpaceObject& space, nb::handle points, int rounds) {
  const ModelTask& task = space.task();
  const PointRows rows = points_from(points, "points");
  TuneOptions flags;
  MeasurePointsOptions options{.rounds = rounds};
  const auto times =
      run_job<std::vector<PointTime>>(flags, AtTheEnd::kWritesNothing, nb::none(), [&] {
        options.interrupted = flags.compile.interrupted;
        return task.measure(rows, options);
      });
  std::vector<double> seconds, low, high;
  nb::list outcomes, messages;
  for (const PointTime& time : times) {
    seconds.push_back(time.seconds), low.push_back(time.low), high.push_back(time.high);
    outcomes.append(time.outcome), messages.append(time.message);
  }
  return nb::module_::import_("hone._search")
      .attr("Measurements")(to_numbers(std::move(seconds)), to_numbers(std::move(low)),
                            to_numbers(std::move(high)), outcomes, messages);
}

TaskTuning tune(SpaceObject& space, nb::handle on_progress, const nb::kwargs& keywords) {
  const ModelTask& task = space.task();
  TuneTaskOptions options{.search = search_options_from(keywords)};
  TuneOptions flags;
  return run_job<TaskTuning>(flags, AtTheEnd::kWritesTheBest, on_progress, [&] {
    options.interrupted = flags.interrupted;
    options.on_progress = flags.on_progress;
    return task.tune(options);
  });
}

// `null_seconds` of 0 or more: the tasks are measured on a machine that measures nothing
// (hone/null_machine.h).
nb::list open_tasks(const std::string& model, const nb::dict& keywords, double null_seconds) {
  TuneOptions options = options_from(keywords, false);
  if (null_seconds >= 0) options.compile.advanced.hooks = null_machine(null_seconds);
  const auto tasks =
      run_job<std::vector<ModelTask>>(options, AtTheEnd::kWritesNothing, nb::none(),
                                      [&] { return hone::model_tasks(model, options.compile); });
  nb::list list;
  for (const ModelTask& task : tasks) list.append(task_object(task));
  return list;
}

void bind_sketches(nb::module_& module) {
  nb::class_<DecisionInfo>(module, "Decision", "A choice that a schedule makes.")
      .def_ro("name", &DecisionInfo::name, "a stage and the role, such as 'conv2d.ow.tile'")
      .def_ro("kind", &DecisionInfo::kind,
              "'tile', 'order', 'unroll', 'vector', 'parallel', 'tail' or 'packing'")
      .def_ro(
          "options", &DecisionInfo::options,
          "its values, a list of int, ascending where they are sizes; points have indices of it")
      .def("__repr__", [](const DecisionInfo& d) {
        return "Decision(" + d.name + ", " + std::to_string(d.options.size()) + " options)";
      });
  nb::class_<SketchInfo>(module, "Sketch",
                         "A structure of schedules with the decisions that it leaves open.")
      .def_ro("algorithm", &SketchInfo::algorithm, "such as 'direct' or 'winograd_4'")
      .def_ro("for_threads", &SketchInfo::for_threads,
              "it only divides work among threads, so it is predicted as inf with one thread")
      .def_ro("decisions", &SketchInfo::decisions,
              "a list of Decision: those of the columns of a point from the second one on")
      .def("__repr__", [](const SketchInfo& s) {
        return "Sketch(" + s.algorithm + ", " + std::to_string(s.decisions.size()) + " decisions)";
      });
}

void bind_task(nb::module_& module) {
  nb::class_<TaskObject>(
      module, "Task",
      "A distinct computation of a model for a device and a number of threads.\n\n"
      "hone.tasks makes it, and hone.tune for a search strategy of Python's. It is of its process: "
      "after a fork, it raises InputError.")
      .def_prop_ro(
          "key", [](const TaskObject& t) { return t.info().key; },
          "int, equal for equal tasks, in whatever models")
      .def_prop_ro(
          "name", [](const TaskObject& t) { return t.info().name; },
          "name of its first node; empty for a task of hone.tune")
      .def_prop_ro(
          "kernel_class", [](const TaskObject& t) { return t.info().kernel_class; },
          "such as 'conv2d+bias+relu'")
      .def_prop_ro(
          "text", [](const TaskObject& t) { return t.info().text; },
          "its class, and its operands with their shapes")
      .def_prop_ro(
          "multiplicity", [](const TaskObject& t) { return t.info().multiplicity; },
          "how often it occurs in the model, which is its weight in the model's time; 1 for a "
          "task of hone.tune")
      .def_prop_ro(
          "flops", [](const TaskObject& t) { return t.info().flops; },
          "FLOPs of one occurrence, as its operators are written")
      .def_prop_ro(
          "least_flops", [](const TaskObject& t) { return t.info().least_flops; },
          "FLOPs of the algorithm that needs the fewest")
      .def_prop_ro(
          "bytes", [](const TaskObject& t) { return t.info().bytes; },
          "bytes that it reads and writes, each once")
      .def_prop_ro(
          "device", [](const TaskObject& t) { return t.info().device; },
          "key of the device, as records have it")
      .def_prop_ro(
          "threads", [](const TaskObject& t) { return t.info().threads; },
          "threads that its kernels run on")
      .def(
          "space", [](std::shared_ptr<TaskObject> t) { return SpaceObject{std::move(t)}; },
          "The Space of its schedules.")
      .def(
          "tune",
          [](std::shared_ptr<TaskObject> t, nb::handle on_progress, const nb::kwargs& keywords) {
            SpaceObject space{std::move(t)};
            return tune(space, on_progress, keywords);
          },
          nb::arg("on_progress") = nb::none(), nb::arg("options"),
          "Searches for faster schedules of this task alone, and stores what it measures.\n\n"
          "hone.compile and hone.tune of any model with this task use what is found. It begins "
          "with what the database that was given to hone.tasks has, and no library is written.\n\n"
          "Args: on_progress: as for hone.tune. **options: those of hone.options() that hone.tasks "
          "does not take, without mode and policy_state; budget_seconds is the time for the "
          "search. Returns: a TaskTuning. Raises: InputError, UnsupportedError, InternalError; "
          "KeyboardInterrupt after Ctrl-C, and what on_progress raises: what was measured is "
          "stored.")
      .def("__repr__", [](const TaskObject& t) {
        return "Task(" + t.info().text + ", " + std::to_string(t.info().threads) + " threads)";
      });
}

void bind_task_tuning(nb::module_& module) {
  nb::class_<TaskTuning>(module, "TaskTuning", "What became of a task that Task.tune tuned.")
      .def_ro("trials", &TaskTuning::trials, "number of measurements")
      .def_ro("seconds", &TaskTuning::seconds,
              "of a run with the fastest schedule; 0 if none could be measured")
      .def_ro("untuned_seconds", &TaskTuning::untuned_seconds,
              "of the schedule that was the fastest known or predicted before")
      .def_ro("bound_seconds", &TaskTuning::bound_seconds,
              "seconds that no schedule is expected to beat; 0 if unknown")
      .def_ro("search_seconds", &TaskTuning::search_seconds, "seconds that the search took")
      .def_ro("finished", &TaskTuning::finished,
              "nothing is left to try or to gain, whatever budget there is")
      .def_ro("interrupted", &TaskTuning::interrupted, "whether the search ended early")
      .def_ro("failures", &TaskTuning::failures, "a list of FailureSummary")
      .def_prop_ro(
          "store_problem", [](const TaskTuning& t) { return t.store_status.message(); },
          "the first failure of the database, which ended the search; empty: none")
      .def("__repr__", [](const TaskTuning& t) {
        return "TaskTuning(" + std::to_string(t.trials) + " trials, " + std::to_string(t.seconds) +
               " s)";
      });
}

void bind_space_points(nb::class_<SpaceObject>& space) {
  space
      .def_prop_ro(
          "task", [](const SpaceObject& s) { return s.of; }, "the Task")
      .def_prop_ro(
          "sketches", [](const SpaceObject& s) { return s.task().sketches(); }, "a list of Sketch")
      .def_prop_ro(
          "size", [](const SpaceObject& s) { return s.task().space_size(); },
          "float, number of points, legal or not")
      .def_prop_ro(
          "width", [](const SpaceObject& s) { return s.task().width(); },
          "numbers of a point: 1 and the most decisions of a sketch")
      .def(
          "defaults", [](const SpaceObject& s) { return to_rows(s.task().default_points()); },
          "The point of each sketch that a rule of thumb chooses: int32 [sketches, width].")
      .def("sample", &sample, nb::arg("n"), nb::arg("seed") = nb::none(),
           "Draws n random legal points; all sketches are equally likely.\n\n"
           "Returns: int32 [n, width]; a point may come more than once. The same seed gives the "
           "same points; None goes on with the task's own sequence, which options' seed begins.")
      .def("mutate", &mutate, nb::arg("points"), nb::arg("seed") = nb::none(),
           "Changes one to three decisions of each point at random, to a legal point.\n\n"
           "Args: points: whole numbers [n, width]. Returns: int32 [n, width]. Raises: InputError "
           "for what is no point of this space.")
      .def("crossover", &crossover, nb::arg("first"), nb::arg("second"),
           nb::arg("seed") = nb::none(),
           "Takes each decision of a pair of points from one of the two at random.\n\n"
           "Args: first, second: whole numbers [n, width]. Returns: int32 [n, width]; a copy of "
           "the first where their sketches differ. Raises: InputError.")
      .def("neighbours", &neighbours, nb::arg("point"),
           "All legal points that differ from a point by one option of one decision.\n\n"
           "Args: point: whole numbers [width]. Returns: int32 [any, width]. Raises: InputError.")
      .def("legal", &legal, nb::arg("points"),
           "Whether points can be schedules.\n\n"
           "Args: points: whole numbers [n, width]. Returns: bool [n]. Raises: InputError for a "
           "row with an option or a sketch that does not exist.")
      .def("locate", &locate, nb::arg("steps"),
           "The point with these steps, or the legal one whose steps are most similar.\n\n"
           "Args: steps: text of a schedule. Returns: int32 [width]. Raises: InputError.");
}

void bind_space_schedules(nb::class_<SpaceObject>& space) {
  space
      .def("steps", &steps, nb::arg("point"),
           "The schedule of a point as text, one step a line.\n\n"
           "Args: point: whole numbers [width]. Raises: InputError.")
      .def("program", &program, nb::arg("point"),
           "The loop program of a point as text, after all passes.\n\n"
           "Args: point: whole numbers [width]. Raises: InputError, also for an illegal point.")
      .def("features", &features, nb::arg("points"), nb::arg("set") = "",
           "The features of points by the static analysis, which cost models read.\n\n"
           "Args: points: whole numbers [n, width]. set: a name of hone.feature_sets(); '': "
           "'combined' for CPUs, 'gpu' for GPUs. Returns: float32 [n, "
           "len(hone.feature_names(set))]; NaN for illegal points. Raises: InputError.")
      .def("predict", &predict, nb::arg("points"), nb::arg("cost") = "",
           "The seconds that a cost model predicts.\n\n"
           "Args: points: whole numbers [n, width]. cost: a name of hone.cost_models() or a file; "
           "'': that of the options or, while hone.tune calls a search strategy, the one that "
           "guides the search and learns. Returns: float64 [n]; inf for illegal points and, on one "
           "thread, for those that only divide work. Raises: InputError.")
      .def("measure", &measure, nb::arg("points"), nb::arg("rounds") = 1,
           "Runs points in a worker process, and compares their outputs with the reference.\n\n"
           "Args: points: whole numbers [n, width]. rounds: how often each is measured, in turns; "
           "the least time counts. Returns: Measurements. Nothing is stored. Raises: InputError, "
           "also for a task of hone.tune, which measures what its strategy proposes; "
           "KeyboardInterrupt after Ctrl-C.");
}

}  // namespace

nb::object task_object(const ModelTask& task) {
  return nb::cast(std::make_shared<TaskObject>(task));
}

void bind_tasks(nb::module_& module) {
  bind_sketches(module);
  bind_task(module);
  bind_task_tuning(module);
  nb::class_<SpaceObject> space(
      module, "Space",
      "All schedules of a task: sketches with decisions.\n\n"
      "A point is a row of `width` int32: the index of the sketch, the index of the option of each "
      "of its decisions, and -1 behind them. Several threads may use a space.");
  bind_space_points(space);
  bind_space_schedules(space);
  module.def("tasks", &open_tasks, nb::arg("model"), nb::arg("options"),
             nb::arg("null_seconds") = -1.0);
  module.def("feature_sets", &hone::feature_sets);
  module.def("feature_names", &hone::feature_names, nb::arg("set"));
}

}  // namespace hone::python
