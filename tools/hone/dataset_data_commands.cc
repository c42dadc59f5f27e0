// hone dataset split, import, export: what was measured as training data.
#include <algorithm>
#include <map>
#include <set>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/options.h"
#include "hone/cost/bound_scores.h"
#include "hone/cost/candidate_features.h"
#include "hone/cost/data_split.h"
#include "hone/db/copy.h"
#include "hone/db/json_lines.h"
#include "hone/db/registry.h"
#include "hone/model_tasks.h"
#include "hone/tensor/npy.h"

#include "command.h"
#include "dataset_load.h"
#include "json_text.h"
#include "option_texts.h"

namespace hone::tool {
namespace {

struct SplitTexts {
  std::string db, output, by = "task", fraction = "0.1", validation = "0.1", seed = "1";
  std::vector<std::string> held_out;
};

Status split(const SplitTexts& texts) {
  cost::SplitOptions options;
  HONE_ASSIGN_OR_RETURN(options.by, cost::parse_split_by(texts.by));
  HONE_ASSIGN_OR_RETURN(options.fraction,
                        of_option("--fraction", parse_real(texts.fraction, 0, 1)));
  HONE_ASSIGN_OR_RETURN(options.validation,
                        of_option("--validation", parse_real(texts.validation, 0, 1)));
  HONE_ASSIGN_OR_RETURN(options.seed, parse_seed(texts.seed));
  options.held_out = texts.held_out;
  HONE_ASSIGN_OR_RETURN(const std::vector<cost::Dataset> datasets, load_all_devices(texts.db));
  HONE_ASSIGN_OR_RETURN(const cost::DataSplit made,
                        cost::make_split(datasets, options, kScheduleVersion));
  HONE_RETURN_IF_ERROR(write_file_atomic(texts.output, cost::format(made)));
  int64_t train = 0, validation = 0, test = 0;
  for (const cost::Dataset& dataset : datasets) {
    const cost::SplitData data = cost::apply_split(dataset, made);
    train += data.train.size(), validation += data.validation.size(), test += data.test.size();
  }
  fmt::print("wrote {}: {} schedules to train on, {} to validate, {} to test by\n", texts.output,
             train, validation, test);
  return ok_status();
}

struct FileTexts {
  std::string db, file;
};

Status import_lines(const FileTexts& texts) {
  if (texts.file.ends_with(".npz"))
    return invalid("{}: holds features, not schedules, expected JSON lines", texts.file);
  // Everything is looked at before anything is added.
  HONE_RETURN_IF_ERROR(db::for_each_json_line(texts.file, [&](db::Record&& record) -> Status {
    if (record.version == kScheduleVersion) return ok_status();
    return invalid("{}: task {} was measured with space version '{}', expected {}", texts.file,
                   hash_hex(record.task), record.version, kScheduleVersion);
  }));
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(texts.db));
  HONE_ASSIGN_OR_RETURN(const db::Copied copied, db::import_json_lines(texts.file, *store));
  fmt::print("{} records added, {} were there before\n", copied.added, copied.known);
  return ok_status();
}

// Rows of numbers for other programs; a row is a schedule on a device with a number of threads.
struct Arrays {
  std::vector<float> statements, measure, bounds;
  std::vector<double> seconds;
  std::vector<int32_t> task, device, threads;
  std::vector<uint8_t> counted;  // whether the bounds are of hardware counters
  std::map<uint64_t, int32_t> tasks;
  Json meta = {{"tasks", Json::array()}, {"devices", Json::array()}};

  [[nodiscard]] Status add(const cost::Dataset& dataset, const target::Target& target) {
    const auto device_index = static_cast<int32_t>(meta["devices"].size());
    meta["devices"].push_back(dataset.device);
    for (const cost::TaskTrials& one : dataset.tasks) {
      const auto [place, added] = tasks.emplace(one.key, static_cast<int32_t>(tasks.size()));
      if (added) {
        meta["tasks"].push_back(
            {{"task", hash_hex(one.key)}, {"kernel", one.kernel_class}, {"models", one.models}});
      }
      for (const cost::MeasuredSteps& trial : one.trials) {
        HONE_ASSIGN_OR_RETURN(const space::Candidate candidate,
                              space::make_candidate(*one.dag, trial.steps));
        const cost::Query query = {&candidate, &target, one.threads, one.key};
        const auto append = [&](std::vector<float>& to, cost::FeatureSet set) {
          const std::vector<float> row = cost::candidate_features(query, set).row;
          to.insert(to.end(), row.begin(), row.end());
        };
        append(statements, cost::FeatureSet::kStatements);
        append(measure, cost::FeatureSet::kCombined);
        const cost::BoundScores scores = cost::bound_scores(query, trial.counted);
        counted.push_back(trial.counted.has_value());
        bounds.push_back(static_cast<float>(scores.memory));
        bounds.push_back(static_cast<float>(scores.core));
        seconds.push_back(trial.seconds);
        task.push_back(place->second);
        device.push_back(device_index);
        threads.push_back(one.threads);
      }
    }
    return ok_status();
  }
};

template <typename T>
NamedTensor named(std::string name, DType dtype, const std::vector<T>& values, int64_t columns) {
  Shape shape = {static_cast<int64_t>(values.size()) / columns};
  if (columns > 1) shape.push_back(columns);
  Tensor tensor(dtype, shape);
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return {std::move(name), std::move(tensor)};
}

Status export_npz(const FileTexts& texts) {
  HONE_ASSIGN_OR_RETURN(const std::vector<cost::Dataset> datasets, load_all_devices(texts.db));
  Arrays arrays;
  for (const cost::Dataset& dataset : datasets) {
    HONE_ASSIGN_OR_RETURN(const target::Target target, target_of_key(dataset.device));
    HONE_RETURN_IF_ERROR(arrays.add(dataset, target));
  }
  const auto& statements = cost::candidate_feature_names(cost::FeatureSet::kStatements);
  const auto& measure = cost::candidate_feature_names(cost::FeatureSet::kCombined);
  arrays.meta["space_version"] = kScheduleVersion;
  arrays.meta["feature_version"] = cost::kCandidateFeatureVersion;
  const auto& counted = arrays.counted;
  arrays.meta["bounds_source"] =
      cost::bounds_source(std::count(counted.begin(), counted.end(), 1), std::ssize(counted));
  arrays.meta["statements"] = statements;
  arrays.meta["measure"] = measure;
  const std::string text = json_text(arrays.meta);
  const std::vector<NamedTensor> tensors = {
      named("statements", DType::kF32, arrays.statements, std::ssize(statements)),
      named("measure", DType::kF32, arrays.measure, std::ssize(measure)),
      named("bounds", DType::kF32, arrays.bounds, 2),
      named("bounds_counted", DType::kU8, counted, 1),
      named("seconds", DType::kF64, arrays.seconds, 1),
      named("task", DType::kI32, arrays.task, 1),
      named("device", DType::kI32, arrays.device, 1),
      named("threads", DType::kI32, arrays.threads, 1),
      named("meta", DType::kU8, std::vector<uint8_t>(text.begin(), text.end()), 1)};
  HONE_RETURN_IF_ERROR(write_npz(texts.file, tensors, true));
  fmt::print("wrote {}: {} schedules of {} tasks\n", texts.file, arrays.seconds.size(),
             arrays.tasks.size());
  return ok_status();
}

Status export_data(const FileTexts& texts) {
  if (texts.file.ends_with(".npz")) return export_npz(texts);
  HONE_ASSIGN_OR_RETURN(const auto store,
                        db::open_store(texts.db, {.read_only = true, .create = false}));
  HONE_ASSIGN_OR_RETURN(const int64_t lines, db::export_json_lines(*store, {}, texts.file));
  if (texts.file != "-") fmt::print("wrote {}: {} records\n", texts.file, lines);
  return ok_status();
}

Command file_command(CLI::App& dataset, const char* name, const char* description, const char* file,
                     Status (*action)(const FileTexts&)) {
  const auto texts = std::make_shared<FileTexts>();
  CLI::App* app = dataset.add_subcommand(name, description);
  app->add_option("file", texts->file, file)->required()->type_name("FILE");
  add_db(*app, texts->db);
  return {app, [texts, action] { return action(*texts); }};
}

}  // namespace

Command dataset_split_command(CLI::App& dataset) {
  const auto texts = std::make_shared<SplitTexts>();
  CLI::App* app = dataset.add_subcommand(
      "split", "Divide a data set into what models are trained on, chosen by and judged by");
  add_db(*app, texts->db);
  app->add_option("-o,--output", texts->output, "The split to write, for --split-file")
      ->type_name("FILE")
      ->required();
  app->add_option("--by", texts->by,
                  "within: schedules of each task, near duplicates on one side; task; model: the "
                  "tasks of networks; device: of devices")
      ->type_name("WHAT")
      ->capture_default_str();
  app->add_option("--hold-out", texts->held_out,
                  "What to test by: networks, or devices as KEY or KEY/THREADS; repeat for more")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  app->add_option("--fraction", texts->fraction, "Of schedules or tasks, to test by")
      ->type_name("SHARE")
      ->capture_default_str();
  app->add_option("--validation", texts->validation, "Of the rest, to validate by")
      ->type_name("SHARE")
      ->capture_default_str();
  add_seed(*app, texts->seed);
  return {app, [texts] { return split(*texts); }};
}

Command dataset_import_command(CLI::App& dataset) {
  return file_command(dataset, "import", "Add the records of a file of JSON lines, each once",
                      "What export wrote as JSON lines", import_lines);
}

Command dataset_export_command(CLI::App& dataset) {
  return file_command(
      dataset, "export", "Write all records as JSON lines, or features and times for NumPy (.npz)",
      "The file to write, by its name an .npz or JSON lines; -: standard output", export_data);
}

}  // namespace hone::tool
