#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "hone/commands/training/training_data.h"
#include "hone/compute/bytes_moved.h"
#include "hone/cost/registry.h"
#include "hone/dataset.h"
#include "hone/db/store_to_add.h"
#include "hone/graph/import_onnx.h"
#include "hone/machine/machine.h"
#include "hone/measure/counters.h"
#include "hone/search/sample_tasks.h"
#include "hone/session/compile_options.h"
#include "hone/session/model_tasks.h"
#include "hone/trial/schedule_version.h"

namespace hone {
namespace {

enum class InputKind : uint8_t { kImage, kTokens, kOther };

struct Input {
  std::string name;
  Shape shape;
  InputKind kind = InputKind::kOther;
};

InputKind kind_of(const graph::Value& value) {
  const Shape& shape = value.shape;
  if (shape.size() == 4 && shape[1] == 3 && shape[2] == shape[3] && is_float(value.dtype))
    return InputKind::kImage;
  if (shape.size() == 2 && !is_float(value.dtype)) return InputKind::kTokens;
  return InputKind::kOther;
}

// A data set takes fixed shapes only: it is an error if the model leaves some open.
Result<graph::Graph> import_fixed(const std::string& path,
                                  const std::map<std::string, Shape>& shapes, bool linked_data) {
  return graph::import_onnx(path, {.shapes = shapes, .linked_data = linked_data});
}

Result<std::vector<Input>> inputs_of(const std::string& path, bool linked_data) {
  HONE_ASSIGN_OR_RETURN(const graph::Graph graph, import_fixed(path, {}, linked_data));
  std::vector<Input> inputs;
  for (const graph::ValueId id : graph.inputs) {
    const graph::Value& value = graph.value(id);
    inputs.push_back({value.name, value.shape, kind_of(value)});
  }
  return inputs;
}

// The model's own size first, then the others, each once.
std::vector<int64_t> with_own(int64_t own, const std::vector<int64_t>& others) {
  std::vector<int64_t> sizes = {own};
  for (const int64_t size : others) {
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }
  return sizes;
}

// All combinations of batch and length (of images or sequences) that apply to the inputs.
std::vector<std::map<std::string, Shape>> sizes_of(const std::vector<Input>& inputs,
                                                   const DatasetOptions& options) {
  const auto first_of = [&](InputKind kind) {
    return std::find_if(inputs.begin(), inputs.end(),
                        [&](const Input& input) { return input.kind == kind; });
  };
  const auto image = first_of(InputKind::kImage), tokens = first_of(InputKind::kTokens);
  std::vector<int64_t> lengths = {0};  // 0: as it is
  if (image != inputs.end())
    lengths = with_own(image->shape[2], options.sides);
  else if (tokens != inputs.end())
    lengths = with_own(tokens->shape[1], options.sequences);
  std::vector<int64_t> batches = {0};
  const bool batched = !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [&](auto& in) {
    return !in.shape.empty() && in.shape[0] == inputs[0].shape[0];
  });
  if (batched) batches = with_own(inputs[0].shape[0], options.batches);
  std::vector<std::map<std::string, Shape>> all;
  for (const int64_t length : lengths) {
    for (const int64_t batch : batches) {
      std::map<std::string, Shape> shapes;
      for (const Input& input : inputs) {
        Shape shape = input.shape;
        if (batch > 0) shape[0] = batch;
        if (image != inputs.end() && input.kind == InputKind::kImage)
          shape[2] = shape[3] = length;
        else if (image == inputs.end() && input.kind == InputKind::kTokens)
          shape[1] = length;
        if (shape != input.shape) shapes[input.name] = std::move(shape);
      }
      all.push_back(std::move(shapes));
    }
  }
  return all;
}

std::string describe(const std::vector<Input>& inputs, const std::map<std::string, Shape>& shapes) {
  if (inputs.empty()) return "";
  const auto changed = shapes.find(inputs[0].name);
  return fmt::format("{}",
                     fmt::join(changed == shapes.end() ? inputs[0].shape : changed->second, "x"));
}

class Collector {
 public:
  Collector(const DatasetOptions& options, target::Target target)
      : options_(options), target_(std::move(target)) {}

  void add(const std::string& path, const std::vector<Input>& inputs,
           std::map<std::string, Shape> shapes,
           const std::function<void(const ModelVariant&)>& on_variant) {
    ModelVariant variant;
    variant.model = std::filesystem::path(path).stem().string();
    variant.text = describe(inputs, shapes);
    variant.shapes = std::move(shapes);
    variant.status = take(path, variant);
    if (on_variant) on_variant(variant);
    found_.variants.push_back(std::move(variant));
  }
  [[nodiscard]] DatasetTasks found() && { return std::move(found_); }

 private:
  [[nodiscard]] Status take(const std::string& path, ModelVariant& variant) {
    CompileOptions compile;
    compile.model.shapes = variant.shapes;
    compile.model.linked_data = options_.linked_data;
    compile.records.use_db = false;
    compile.advanced.cost =
        "analytic";  // which tasks there are does not hang on trees that learn from them
    compile.target.device = options_.devices[0];
    compile.target.machine = options_.machine;
    compile.advanced.seed = options_.seed;
    compile.advanced.hooks = options_.hooks;
    HONE_ASSIGN_OR_RETURN(graph::Graph graph,
                          import_fixed(path, variant.shapes, options_.linked_data));
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(compile));
    HONE_ASSIGN_OR_RETURN(const ModelTasks model, make_tasks(*session, std::move(graph), compile));
    if (!model.name.empty()) variant.model = model.name;
    // Whether larger weights stay in the shared cache is tried out while tuning; here all data is
    // to be of one kind.
    const bool cold = constant_bytes(model.tasks) > 2 * own_cache_bytes(model.target());
    for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
      const TaskSummary& line = model.summaries[g];
      take(model.dag(g), model.tasks.groups[g].key, line.name, line.multiplicity, cold, variant);
    }
    for (const Alternative& other : model.alternatives)
      take(other.task->dag(), other.task->key(), other.task->kernel_class(), 0, cold, variant);
    return ok_status();
  }

  void take(const compute::Dag& dag, uint64_t key, const std::string& name, int count, bool cold,
            ModelVariant& variant) {
    const auto [place, added] = place_.emplace(key, found_.tasks.size());
    if (added && !worthwhile(dag)) place->second = kSmall, ++found_.small;
    if (place->second == kSmall) return;
    if (added) {
      found_.tasks.push_back({.key = key,
                              .name = name,
                              .kernel_class = compute::kernel_class(dag),
                              .flops = compute::flops(dag),
                              .bytes = compute::bytes_moved(dag),
                              .uses = {},
                              .dag = std::make_shared<const compute::Dag>(dag)});
      ++variant.added;
    }
    DatasetTask& task = found_.tasks[place->second];
    task.cold_weights |= cold;
    task.uses.emplace_back(found_.variants.size(), count);
    ++variant.tasks;
  }

  [[nodiscard]] bool worthwhile(const compute::Dag& dag) const {
    const Result<space::Space> space = space::Space::create(dag, target_);
    return space.ok() && space->size() >= kLeastSchedules;
  }

  static constexpr size_t kSmall = SIZE_MAX;
  const DatasetOptions& options_;
  target::Target target_;
  DatasetTasks found_;
  std::unordered_map<uint64_t, size_t> place_;  // in found_.tasks, by key
};

Result<std::vector<target::Target>> measured_targets(const DatasetOptions& options,
                                                     const machine::Machine& machine) {
  std::vector<target::Target> targets;
  for (const std::string& name : options.devices) {
    HONE_ASSIGN_OR_RETURN(target::Target target, machine.find_measurable(name));
    if (target.kind() == target::Kind::kGpu && options.devices.size() > 1)
      return invalid("{} and other devices, expected a GPU alone", name);
    targets.push_back(std::move(target));
  }
  return targets;
}

// One thread of the host drives a GPU.
Result<std::vector<int>> numbers_of_threads(const DatasetOptions& options,
                                            const target::Target& target) {
  const int cores = target.kind() == target::Kind::kCpu ? target.cpu().cores : 1;
  if (options.threads.empty()) return cores > 1 ? std::vector{1, cores} : std::vector{1};
  for (const int threads : options.threads) {
    if (threads < 1 || threads > cores)
      return invalid("{} threads, but this machine has {} cores", threads, cores);
  }
  return options.threads;
}

}  // namespace

Result<DatasetTasks> collect_tasks(const std::vector<std::string>& models,
                                   const DatasetOptions& options,
                                   const std::function<void(const ModelVariant&)>& on_variant) {
  if (options.devices.empty()) return invalid("no device is named, expected one or more");
  HONE_ASSIGN_OR_RETURN(const machine::Machine* const machine,
                        machine_of(options.hooks, options.machine));
  HONE_ASSIGN_OR_RETURN(std::vector<target::Target> targets, measured_targets(options, *machine));
  Collector collector(options, std::move(targets[0]));
  for (const std::string& path : models) {
    const Result<std::vector<Input>> inputs = inputs_of(path, options.linked_data);
    if (!inputs.ok()) {
      // A missing file or a broken one is a mistake; what cannot be done is left out.
      if (inputs.status().code() != Code::kUnsupported) return inputs.status();
      collector.add(path, {}, {}, on_variant);
      continue;
    }
    for (auto& shapes : sizes_of(*inputs, options)) {
      if (options.interrupted && options.interrupted->load())
        return error(Code::kCancelled, "interrupted while the models were read");
      collector.add(path, *inputs, std::move(shapes), on_variant);
    }
  }
  DatasetTasks found = std::move(collector).found();
  if (found.tasks.empty())
    return invalid("the models have no task of {} schedules or more", kLeastSchedules);
  if (!options.only.empty()) {
    std::erase_if(found.tasks,
                  [&](const DatasetTask& task) { return !options.only.contains(task.key); });
    if (found.tasks.empty())
      return invalid("the models have none of the {} tasks that are wanted", options.only.size());
  }
  // In no particular order, so that any beginning of the list is a fair sample of it, but always
  // the same one, whatever the models are.
  std::sort(found.tasks.begin(), found.tasks.end(),
            [](const DatasetTask& a, const DatasetTask& b) { return a.key < b.key; });
  const auto most = static_cast<size_t>(options.max_tasks);
  if (most > 0 && most < found.tasks.size())
    found.tasks.erase(found.tasks.begin() + static_cast<std::ptrdiff_t>(most), found.tasks.end());
  return found;
}

Result<DatasetSummary> make_dataset(const DatasetTasks& tasks, const DatasetOptions& options) {
  if (tasks.tasks.empty() || options.devices.empty())
    return invalid("{} tasks for {} devices, expected one or more of each", tasks.tasks.size(),
                   options.devices.size());
  HONE_ASSIGN_OR_RETURN(const machine::Machine* const named,
                        machine_of(options.hooks, options.machine));
  const machine::Machine& machine = *named;
  HONE_ASSIGN_OR_RETURN(const std::vector<target::Target> targets,
                        measured_targets(options, machine));
  search::SampleOptions sample;
  for (const target::Target& target : targets)
    sample.devices.push_back({&target, target::device_key(target)});
  HONE_ASSIGN_OR_RETURN(sample.threads, numbers_of_threads(options, targets[0]));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost::CostModel> model, cost::make_model("analytic"));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::Store> store, db::open_store_to_add(options.db));
  const double deadline = real_clock().now_seconds() + options.budget_seconds;
  measure::HostMonitor load(machine.conditions().load());
  measure::CoreWatch watch =
      machine.watch_cores(*std::max_element(sample.threads.begin(), sample.threads.end()),
                          {measure::kUsualPatience * options.budget_seconds, options.interrupted});
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<measure::Runner> runner,
      machine.make_runner(options.hooks ? options.hooks->worker : measure::WorkerOptions(),
                          targets[0]));
  sample.cores = &watch;
  sample.host = &load;
  std::vector<search::SampledTask> sampled;
  for (const DatasetTask& task : tasks.tasks) {
    std::set<std::string> models;
    for (const auto& [variant, count] : task.uses) models.insert(tasks.variants[variant].model);
    sampled.push_back({task.dag.get(),
                       task.key,
                       task.name,
                       {models.begin(), models.end()},
                       task.cold_weights ? measure::Weights::kShared : measure::Weights::kWarm});
  }
  sample.model = model.get();
  sample.version = kScheduleVersion;
  sample.seed = options.seed;
  sample.schedules = options.schedules;
  sample.round = options.round;
  sample.task_seconds = options.task_seconds;
  sample.tolerance = options.tolerance;
  sample.own_cache_bytes = own_cache_bytes(targets[0]);
  sample.count_bounds = targets[0].kind() == target::Kind::kCpu;
  sample.runner = runner.get();
  sample.store = store.get();
  sample.deadline = deadline;
  sample.interrupted = options.interrupted;
  sample.on_progress = options.on_progress;
  return search::sample_tasks(sampled, sample);
}

std::string bounds_source() {
  const Result<measure::HardwareEvents>& events = measure::machine_events();
  return events.ok() ? fmt::format("hardware counters, {}", events->plan->name)
                     : fmt::format("static analysis ({})", events.status().message());
}

}  // namespace hone
