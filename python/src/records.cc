#include "records.h"

#include <hone/database.h>
#include <hone/dataset.h>
#include <hone/evaluate.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>

#include "errors.h"
#include "jobs.h"
#include "number_arrays.h"
#include "own_parts.h"

namespace hone::python {
namespace {

// Texts of which many are equal: each has the index of one of the distinct ones.
class TextColumn {
 public:
  void add(const std::string& text) {
    const auto [at, fresh] = places_.emplace(text, static_cast<int32_t>(texts_.size()));
    if (fresh) texts_.push_back(text);
    codes_.push_back(at->second);
  }
  [[nodiscard]] nb::tuple take() {
    return nb::make_tuple(to_numbers(std::move(codes_)), std::move(texts_));
  }

 private:
  std::map<std::string, int32_t, std::less<>> places_;
  std::vector<std::string> texts_;
  std::vector<int32_t> codes_;
};

struct Columns {
  std::vector<uint64_t> task;
  std::vector<int32_t> threads;
  std::vector<double> seconds;
  std::vector<uint8_t> verified;
  std::vector<int64_t> unix_time;
  TextColumn kernel_class, device, model, version, algorithm, accuracy, steps, outcome;

  void add(const TrialInfo& trial) {
    task.push_back(trial.task), threads.push_back(trial.threads);
    seconds.push_back(trial.outcome == "ok" ? trial.seconds : INFINITY);
    verified.push_back(trial.verified ? 1 : 0), unix_time.push_back(trial.unix_time);
    kernel_class.add(trial.kernel_class), device.add(trial.device), model.add(trial.model);
    version.add(trial.version), algorithm.add(trial.algorithm), accuracy.add(trial.accuracy);
    steps.add(trial.steps), outcome.add(trial.outcome);
  }
  [[nodiscard]] nb::dict take() {
    nb::dict columns;
    columns["task"] = to_numbers(std::move(task));
    columns["kernel_class"] = kernel_class.take();
    columns["device"] = device.take();
    columns["threads"] = to_numbers(std::move(threads));
    columns["model"] = model.take();
    columns["version"] = version.take();
    columns["algorithm"] = algorithm.take();
    columns["accuracy"] = accuracy.take();
    columns["steps"] = steps.take();
    columns["outcome"] = outcome.take();
    columns["seconds"] = to_numbers(std::move(seconds));
    columns["verified"] = to_flags(std::move(verified));
    columns["unix_time"] = to_numbers(std::move(unix_time));
    return columns;
  }
};

nb::dict records(const std::string& db, std::optional<uint64_t> task,
                 std::optional<std::string> kernel_class, std::optional<std::string> device,
                 std::optional<std::string> model, std::optional<int> threads) {
  const TrialFilter filter{.task = task,
                           .kernel_class = std::move(kernel_class),
                           .device = std::move(device),
                           .model = std::move(model),
                           .threads = threads};
  Columns columns;
  TuneOptions flags;
  const auto read = [&]() -> Result<bool> {
    Result<Database> opened = Database::open(db);
    if (!opened.ok()) return opened.status();
    const Status status = opened->for_each(filter, [&](TrialInfo&& trial) -> Status {
      if (*flags.compile.interrupted) return {Code::kCancelled, "interrupted"};
      columns.add(trial);
      return {};
    });
    if (!status.ok()) return status;
    return true;
  };
  static_cast<void>(run_job<bool>(flags, AtTheEnd::kWritesNothing, nb::none(), read));
  return columns.take();
}

void export_dataset(const std::string& db, const std::string& path) {
  TuneOptions flags;
  static_cast<void>(run_job<ExportedDataset>(flags, AtTheEnd::kWritesNothing, nb::none(),
                                             [&] { return hone::export_dataset(db, path); }));
}

Evaluation evaluate(const std::string& db, const std::string& cost, nb::handle cost_model,
                    const std::string& device, const std::string& split,
                    const std::string& split_file, const std::set<uint64_t>& except_tasks) {
  EvaluateOptions options;
  options.db = db, options.device = device, options.cost = cost;
  options.split = split, options.split_file = split_file, options.except = except_tasks;
  PythonCalls calls;
  std::optional<PythonCostModel> own;
  if (!cost_model.is_none()) own.emplace(cost_model, calls);
  TuneOptions flags;
  return run_job<Evaluation>(
      flags, AtTheEnd::kWritesNothing, nb::none(),
      [&] { return own ? hone::evaluate(options, *own) : hone::evaluate(options); }, &calls);
}

void bind_scores(nb::module_& module) {
  nb::class_<Score>(module, "Score", "How well a cost model ranks the schedules of some tasks.")
      .def_ro("kernel_class", &Score::kernel_class, "class of the tasks; 'all' for all of them")
      .def_ro("tasks", &Score::tasks, "number of tasks, over which the rest are means")
      .def_ro("trials", &Score::trials, "number of schedules")
      .def_ro(
          "pair_accuracy", &Score::pair_accuracy,
          "share of pairs of schedules that are ordered correctly; Kendall's rank correlation is "
          "2 * pair_accuracy - 1")
      .def_ro("clear_pair_accuracy", &Score::clear_pair_accuracy,
              "the same of pairs whose times differ by more than 5 %")
      .def_ro("top1", &Score::top1, "best time / time of the one that is predicted to be fastest")
      .def_ro("top5", &Score::top5,
              "best time / best among the five that are predicted to be fastest")
      .def_ro("peak5", &Score::peak5, "mean of top1 to top5")
      .def_ro("r_squared", &Score::r_squared, "determination of best time / time")
      .def_ro("rmse", &Score::rmse, "root of the mean squared error of best time / time")
      .def("__repr__", [](const Score& s) {
        return "Score(" + s.kernel_class + ", top1 " + std::to_string(s.top1) + ", top5 " +
               std::to_string(s.top5) + ", pairs " + std::to_string(s.pair_accuracy) + ")";
      });
  nb::class_<Evaluation>(module, "Evaluation", "How good a cost model is, by hone.evaluate.")
      .def_ro("all", &Evaluation::all, "the Score over all tasks")
      .def_ro("classes", &Evaluation::classes, "a list of Score, one for each kernel class")
      .def_ro("not_judged", &Evaluation::not_judged, "number of tasks with too few schedules")
      .def_ro("refused", &Evaluation::refused, "number of tasks that the model cannot judge");
}

}  // namespace

void bind_records(nb::module_& module) {
  bind_scores(module);
  module.def("records", &records, nb::arg("db"), nb::arg("task").none(),
             nb::arg("kernel_class").none(), nb::arg("device").none(), nb::arg("model").none(),
             nb::arg("threads").none());
  module.def("export_dataset", &export_dataset, nb::arg("db"), nb::arg("path"));
  module.def("evaluate", &evaluate, nb::arg("db"), nb::arg("cost"), nb::arg("cost_model").none(),
             nb::arg("device"), nb::arg("split"), nb::arg("split_file"), nb::arg("except_tasks"));
}

}  // namespace hone::python
