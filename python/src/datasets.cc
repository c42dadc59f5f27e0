#include "datasets.h"

#include <hone/database.h>
#include <hone/dataset.h>
#include <hone/null_machine.h>
#include <hone/train.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <set>

#include "errors.h"
#include "jobs.h"
#include "options.h"

namespace hone::python {

namespace nb = nanobind;

namespace {

// `null_seconds` as for the tasks of a model (tasks.cc).
void set_machine(DatasetOptions& options, double null_seconds) {
  if (null_seconds >= 0) options.hooks = null_machine(null_seconds);
}

// The tasks of models in several sizes. Nothing of it is the interpreter's.
struct DatasetTaskList {
  DatasetTasks tasks;
  [[nodiscard]] std::vector<uint64_t> keys() const {
    std::vector<uint64_t> keys;
    for (const DatasetTask& task : tasks.tasks) keys.push_back(task.key);
    return keys;
  }
};

DatasetTaskList collect(const std::vector<std::string>& models, const nb::dict& keywords,
                        double null_seconds) {
  DatasetOptions options = dataset_options_from(keywords);
  set_machine(options, null_seconds);
  TuneOptions flags;
  return {run_job<DatasetTasks>(flags, AtTheEnd::kWritesNothing, nb::none(), [&] {
    options.interrupted = flags.compile.interrupted;
    return collect_tasks(models, options);
  })};
}

TuneProgress progress_of(const DatasetProgress& progress, double budget) {
  return {.elapsed = progress.elapsed,
          .budget = budget,
          .left = progress.left,
          .trials = static_cast<int>(progress.records),
          .trials_per_second = progress.rate};
}

// `keys`: only these of the tasks; all if it is empty.
DatasetSummary make(const DatasetTaskList& list, const std::string& db, const nb::dict& keywords,
                    const std::vector<uint64_t>& keys, double null_seconds,
                    nb::handle on_progress) {
  DatasetOptions options = dataset_options_from(keywords);
  options.db = db;
  set_machine(options, null_seconds);
  DatasetTasks tasks = list.tasks;
  const std::set<uint64_t> wanted(keys.begin(), keys.end());
  if (!wanted.empty())
    std::erase_if(tasks.tasks, [&](const DatasetTask& task) { return !wanted.contains(task.key); });
  TuneOptions flags;
  DatasetSummary summary =
      run_job<DatasetSummary>(flags, AtTheEnd::kWritesTheBest, on_progress, [&] {
        options.interrupted = flags.interrupted;
        options.on_progress = [&](const DatasetProgress& progress) {
          flags.on_progress(progress_of(progress, options.budget_seconds));
        };
        return make_dataset(tasks, options);
      });
  return summary;
}

nb::tuple split(const std::string& db, const std::string& path, const std::string& by,
                const std::vector<std::string>& held_out, double fraction, double validation,
                uint64_t seed) {
  const SplitOptions options{.by = value_or_raise(parse_split_by(by)),
                             .held_out = held_out,
                             .fraction = fraction,
                             .validation = validation,
                             .seed = seed};
  TuneOptions flags;
  const auto sizes = run_job<SplitSizes>(flags, AtTheEnd::kWritesNothing, nb::none(),
                                         [&] { return split_dataset(db, path, options); });
  return nb::make_tuple(sizes.train, sizes.validation, sizes.test);
}

TrainSummary train(const std::string& db, const std::string& output, const nb::dict& keywords) {
  TrainOptions options = train_options_from(keywords);
  options.data.db = db;
  TuneOptions flags;
  return run_job<TrainSummary>(flags, AtTheEnd::kWritesNothing, nb::none(), [&] {
    options.interrupted = flags.compile.interrupted;
    return hone::train(output, options);
  });
}

void create_database(const std::string& db) {
  TuneOptions flags;
  static_cast<void>(
      run_job<bool>(flags, AtTheEnd::kWritesNothing, nb::none(), [&]() -> Result<bool> {
        const Result<Database> opened = Database::open(db, Database::Access::kCreate);
        if (!opened.ok()) return opened.status();
        return true;
      }));
}

void bind_summaries_of_datasets(nb::module_& module) {
  nb::class_<DatasetSummary>(module, "DatasetSummary", "What hone.make_dataset did.")
      .def_prop_ro(
          "records", [](const DatasetSummary& s) { return s.progress.records; },
          "number of measurements of this call")
      .def_prop_ro(
          "failed", [](const DatasetSummary& s) { return s.progress.failed; },
          "number of those without a time")
      .def_prop_ro(
          "stored", [](const DatasetSummary& s) { return s.progress.stored; },
          "number of schedules that count, also those from before")
      .def_prop_ro(
          "wanted", [](const DatasetSummary& s) { return s.progress.wanted; },
          "number of schedules that is wanted")
      .def_prop_ro(
          "seconds", [](const DatasetSummary& s) { return s.progress.elapsed; },
          "seconds that it took")
      .def_ro("complete", &DatasetSummary::complete, "whether all samples exist now")
      .def_ro("interrupted", &DatasetSummary::interrupted, "whether it ended early")
      .def("__repr__", [](const DatasetSummary& s) {
        return "DatasetSummary(" + std::to_string(s.progress.records) + " records)";
      });
  nb::class_<TrainSummary>(module, "TrainSummary", "What hone.train did.")
      .def_ro("kind", &TrainSummary::kind, "'gbdt', 'combined', 'gpu' or the family of the net")
      .def_ro("schedules", &TrainSummary::schedules, "number of schedules that it is trained on")
      .def_ro("tasks", &TrainSummary::tasks, "number of their tasks")
      .def_ro("trees", &TrainSummary::trees, "number of trees; 0 for nets")
      .def_ro("weights", &TrainSummary::weights, "number of weights of a net; 0 for trees")
      .def("__repr__", [](const TrainSummary& s) {
        return "TrainSummary(" + s.kind + ", " + std::to_string(s.schedules) + " schedules)";
      });
}

}  // namespace

void bind_datasets(nb::module_& module) {
  bind_summaries_of_datasets(module);
  nb::class_<DatasetTaskList>(module, "DatasetTaskList")
      .def_prop_ro("keys", &DatasetTaskList::keys);
  module.def("collect_tasks", &collect, nb::arg("models"), nb::arg("options"),
             nb::arg("null_seconds") = -1.0);
  module.def("make_dataset", &make, nb::arg("tasks"), nb::arg("db"), nb::arg("options"),
             nb::arg("keys") = std::vector<uint64_t>(), nb::arg("null_seconds") = -1.0,
             nb::arg("on_progress").none() = nb::none());
  module.def("split_dataset", &split, nb::arg("db"), nb::arg("path"), nb::arg("by"),
             nb::arg("held_out"), nb::arg("fraction"), nb::arg("validation"), nb::arg("seed"));
  module.def("train", &train, nb::arg("db"), nb::arg("output"), nb::arg("options"));
  module.def("create_database", &create_database, nb::arg("db"));
}

}  // namespace hone::python
