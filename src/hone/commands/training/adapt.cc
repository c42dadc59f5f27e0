#include "hone/adapt.h"

#include <algorithm>
#include <filesystem>

#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/base/options.h"
#include "hone/commands/training/model_card.h"
#include "hone/cost/pretrained.h"
#include "hone/cost/registry.h"
#include "hone/evaluate.h"
#include "hone/learn/evaluate.h"
#include "hone/learn/representatives.h"
#include "hone/learn/task_list.h"
#include "hone/learn/train_trees.h"
#include "hone/machine/machine.h"
#include "hone/session/compile_options.h"
#include "hone/session/cost_models.h"
#include "hone/train.h"

namespace hone {
namespace {

using Keys = std::set<uint64_t>;
using ModelPtr = std::unique_ptr<cost::CostModel>;

// What corrects a trained model by the measured schedules of some tasks.
class Corrector {
 public:
  virtual ~Corrector() = default;
  [[nodiscard]] virtual Result<ModelPtr> as_it_was() = 0;
  [[nodiscard]] virtual Result<ModelPtr> corrected(const Keys& tasks) = 0;
  // Corrects it by all tasks and writes it.
  [[nodiscard]] virtual Status write(const std::string& output) = 0;
};

class TreeCorrector : public Corrector {
 public:
  TreeCorrector(cost::TrainedTrees known, const MeasuredData& data, cost::TreeLibrary library,
                uint64_t seed)
      : known_(std::move(known)), data_(data), library_(library), seed_(seed) {}
  Result<ModelPtr> as_it_was() override { return cost::make_gbdt_model(known_); }
  Result<ModelPtr> corrected(const Keys& tasks) override {
    HONE_ASSIGN_OR_RETURN(cost::TrainedTrees trees, adapted(tasks));
    return cost::make_gbdt_model(std::move(trees));
  }
  Status write(const std::string& output) override {
    HONE_ASSIGN_OR_RETURN(cost::TrainedTrees trees, adapted(data_.dataset.keys()));
    TrainedOn trained_on;
    trained_on.add(data_.device, data_.dataset);
    trees.card.merge(tree_notes(trained_on, {}, library_, seed_));
    return write_file_atomic(output, cost::format(trees));
  }

 private:
  [[nodiscard]] Result<cost::TrainedTrees> adapted(const Keys& tasks) const {
    const learn::Dataset part = learn::tasks_among(data_.dataset, tasks);
    const learn::DeviceTrials trials = {&part, &data_.target};
    return learn::adapt_trees(known_, {&trials, 1}, library_);
  }

  cost::TrainedTrees known_;
  const MeasuredData& data_;
  cost::TreeLibrary library_;
  uint64_t seed_;
};

class NetCorrector : public Corrector {
 public:
  NetCorrector(std::string from, const MeasuredData& data, std::string db, uint64_t seed,
               TempDir folder)
      : from_(std::move(from)), data_(data), folder_(std::move(folder)) {
    options_.data.db = std::move(db);
    options_.data.devices = {data.device.text()};
    options_.from = from_;
    options_.seed = seed;
  }
  Result<ModelPtr> as_it_was() override { return model_of(from_); }
  Result<ModelPtr> corrected(const Keys& tasks) override {
    const std::string file = folder_.file(fmt::format("part{}.onnx", parts_++));
    HONE_RETURN_IF_ERROR(train_on(tasks, file));
    return model_of(file);
  }
  Status write(const std::string& output) override {
    return train_on(data_.dataset.keys(), output);
  }

 private:
  [[nodiscard]] Status train_on(const Keys& tasks, const std::string& file) {
    options_.data.only = tasks;
    return train(file, options_).status();
  }
  [[nodiscard]] static Result<ModelPtr> model_of(const std::string& file) {
    return make_cost_model({.cost = file, .use_db = false, .use = cost::Use::kRank});
  }

  std::string from_;
  const MeasuredData& data_;
  TempDir folder_;
  TrainOptions options_;
  int parts_ = 0;
};

// Returns the trees of a file or, without a name, those that are used on the device by default.
Result<cost::TrainedTrees> known_trees(std::string& from, const target::Target& target) {
  std::string text;
  if (from.empty()) {
    from = cost::default_model(target);
    for (const cost::Pretrained& shipped : cost::pretrained_models()) {
      if (shipped.name == from) text = shipped.text;
    }
    if (text.empty())
      return invalid("no trained model comes with Hone for {}, expected one to start from (--from)",
                     target.name);
  } else {
    HONE_ASSIGN_OR_RETURN(text, read_file(from));
  }
  HONE_ASSIGN_OR_RETURN(cost::TrainedTrees known, start_trees(text, from));
  HONE_RETURN_IF_ERROR(
      check_kind(target, cost::device_kind(known.features), fmt::format("--from {}", from)));
  return known;
}

// Finds mistakes before anything is measured.
Status check(const std::string& output, const AdaptOptions& options) {
  const bool net = options.from.ends_with(".onnx");
  if (!options.from.empty() && !net && !options.from.ends_with(".model"))
    return invalid("--from {}: expected FILE.model or FILE.onnx", options.from);
  const char* const ending = net ? ".onnx" : ".model";
  if (!output.ends_with(ending))
    return invalid(
        "--output {}: --guide would not take it for a file, expected a name ending in {}", output,
        ending);
  const std::string folder = std::filesystem::path(output).parent_path().string();
  if (!folder.empty() && !std::filesystem::is_directory(folder))
    return error(Code::kNotFound, "--output {}: there is no folder {}", output, folder);
  HONE_RETURN_IF_ERROR(
      of_option("--output", TempDir::create("", folder.empty() ? "." : folder)).status());
  if (options.tasks < 2)
    return invalid("--tasks {}, expected 2 or more: each is judged by what the others taught",
                   options.tasks);
  if (options.measure.devices.size() != 1 || options.measure.threads.size() > 1)
    return invalid("{} devices and {} numbers of threads, expected one of each",
                   options.measure.devices.size(), options.measure.threads.size());
  if (!net) {
    HONE_ASSIGN_OR_RETURN(const cost::TreeLibrary library, parse_booster(options.booster));
    return cost::boosting_status(library);
  }
  if (!options.booster.empty())
    return invalid("--booster: for fitting trees, but --from {} is a net", options.from);
  return file_exists(options.from)
             ? ok_status()
             : error(Code::kNotFound, "--from {}: there is no such file", options.from);
}

std::vector<ListedTask> choose(const DatasetTasks& found, const AdaptOptions& options) {
  std::vector<learn::Represented> tasks;
  for (const DatasetTask& task : found.tasks)
    tasks.push_back({task.key, task.kernel_class, task.dag.get()});
  const size_t count = options.measure.only.empty() ? static_cast<size_t>(options.tasks)
                                                    : options.measure.only.size();
  return learn::representatives(tasks, static_cast<int>(count));
}

// Returns the mean scores of a model over the schedules of one task; nothing if these are too few.
std::optional<AdaptScore> score_of(const MeasuredData& data, uint64_t key,
                                   const cost::CostModel& model) {
  const Result<Evaluation> judged =
      learn::evaluate(learn::tasks_among(data.dataset, {key}), data.target, model);
  if (!judged.ok()) return std::nullopt;
  return AdaptScore{judged->all.pair_accuracy, judged->all.top1, judged->all.top5};
}

// Judges each task by the model as it was, and by one that the other tasks have corrected.
Status judge(const MeasuredData& data, Corrector& corrector, AdaptSummary& summary) {
  HONE_ASSIGN_OR_RETURN(const ModelPtr before, corrector.as_it_was());
  const Keys all = data.dataset.keys();
  int judged = 0;
  const auto add = [](const AdaptScore& one, AdaptScore& sum) {
    sum.pair_accuracy += one.pair_accuracy, sum.top1 += one.top1, sum.top5 += one.top5;
  };
  for (AdaptedTask& task : summary.tasks) {
    for (const learn::TaskTrials& trials : data.dataset.tasks)
      task.schedules += trials.key == task.task.key ? std::ssize(trials.trials) : 0;
    const std::optional<AdaptScore> was = score_of(data, task.task.key, *before);
    if (!was) continue;
    Keys others = all;
    others.erase(task.task.key);
    if (others.empty()) break;
    HONE_ASSIGN_OR_RETURN(const ModelPtr after, corrector.corrected(others));
    const std::optional<AdaptScore> is = score_of(data, task.task.key, *after);
    if (!is) continue;
    task.judged = true, task.before = *was, task.after = *is;
    add(task.before, summary.before), add(task.after, summary.after);
    ++judged;
  }
  if (judged < 2)
    return invalid(
        "{} of the {} tasks have {} measured schedules or more, expected 2 tasks: raise "
        "--budget or --schedules",
        judged, summary.tasks.size(), kMinTrialsToJudge);
  for (AdaptScore* score : {&summary.before, &summary.after})
    score->pair_accuracy /= judged, score->top1 /= judged, score->top5 /= judged;
  return ok_status();
}

Result<std::unique_ptr<Corrector>> make_corrector(const AdaptOptions& options,
                                                  const DatasetOptions& measure,
                                                  const MeasuredData& data, std::string& from) {
  if (from.ends_with(".onnx")) {
    HONE_RETURN_IF_ERROR(check_kind(data.target, target::Kind::kCpu, "a neural net"));
    HONE_ASSIGN_OR_RETURN(TempDir folder, TempDir::create());
    return std::unique_ptr<Corrector>(
        new NetCorrector(from, data, measure.db, measure.seed, std::move(folder)));
  }
  HONE_ASSIGN_OR_RETURN(const cost::TreeLibrary library, parse_booster(options.booster));
  HONE_ASSIGN_OR_RETURN(cost::TrainedTrees known, known_trees(from, data.target));
  return std::unique_ptr<Corrector>(
      new TreeCorrector(std::move(known), data, library, measure.seed));
}

}  // namespace

Result<AdaptSummary> adapt(const std::vector<std::string>& models, const std::string& output,
                           const AdaptOptions& options,
                           const std::function<void(const ModelVariant&)>& on_variant) {
  HONE_RETURN_IF_ERROR(check(output, options));
  DatasetOptions measure = options.measure;
  HONE_ASSIGN_OR_RETURN(const machine::Machine* const machine,
                        machine_of(measure.hooks, measure.machine));
  HONE_ASSIGN_OR_RETURN(const target::Target target, machine->find_measurable(measure.devices[0]));
  if (measure.threads.empty())
    measure.threads = {target.kind() == target::Kind::kCpu ? target.cpu().cores : 1};
  AdaptSummary summary;
  summary.from = options.from;
  if (!options.from.ends_with(".onnx")) {
    std::string from = options.from;
    HONE_RETURN_IF_ERROR(known_trees(from, target).status());
  }
  HONE_ASSIGN_OR_RETURN(DatasetTasks found, collect_tasks(models, measure, on_variant));
  if (found.tasks.size() < 2)
    return invalid("the models have {} task of {} schedules or more, expected 2 or more",
                   found.tasks.size(), kLeastSchedules);
  std::vector<ListedTask> chosen = choose(found, options);
  if (options.on_tasks) options.on_tasks(chosen);
  summary.all_tasks = std::ssize(found.tasks);
  Keys keys;
  for (ListedTask& task : chosen) {
    keys.insert(task.key);
    summary.tasks.push_back({.task = std::move(task)});
  }
  std::erase_if(found.tasks, [&](const DatasetTask& task) { return !keys.contains(task.key); });

  std::optional<TempDir> folder;
  if (measure.db.empty()) {
    HONE_ASSIGN_OR_RETURN(folder, TempDir::create());
    measure.db = folder->file("adapt.db");
  }
  HONE_ASSIGN_OR_RETURN(summary.measured, make_dataset(found, measure));
  if (summary.measured.interrupted)
    return error(Code::kCancelled, "interrupted; nothing is written{}",
                 folder ? "" : ", and the same command goes on with what was measured");
  const double start = real_clock().now_seconds();
  MeasuredStore store(measure.db);
  HONE_ASSIGN_OR_RETURN(MeasuredData data,
                        store.load(fmt::format("{}/{}", measure.devices[0], measure.threads[0])));
  data.dataset = learn::tasks_among(data.dataset, keys);
  summary.device = data.device.text();
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Corrector> corrector,
                        make_corrector(options, measure, data, summary.from));
  HONE_RETURN_IF_ERROR(judge(data, *corrector, summary));
  HONE_RETURN_IF_ERROR(corrector->write(output));
  summary.fit_seconds = real_clock().now_seconds() - start;
  return summary;
}

}  // namespace hone
