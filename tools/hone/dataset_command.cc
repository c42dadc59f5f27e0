#include <map>
#include <set>

#include "hone/base/hash.h"
#include "hone/base/options.h"
#include "hone/base/printable.h"
#include "hone/dataset.h"

#include "command.h"
#include "command_files.h"
#include "dataset_progress.h"
#include "interrupt.h"
#include "json_text.h"
#include "option_texts.h"
#include "progress.h"
#include "table.h"

namespace hone::tool {
namespace {

constexpr int kMaxSize = 1 << 20;

struct MakeOptions {
  std::vector<std::string> models, batches, sides, sequences;
  std::vector<std::string> devices = {"host"}, threads;
  std::string db, only, machine;
  std::string schedules = std::to_string(DatasetOptions().schedules);
  std::string round = std::to_string(DatasetOptions().round);
  std::string task_time = "20s", budget = "1h", max_tasks = "0";
  std::string seed = std::to_string(DatasetOptions().seed);
  bool list = false, linked_data = false, json = false;
};

Result<std::vector<int64_t>> parse_sizes(std::string_view option,
                                         const std::vector<std::string>& texts) {
  std::vector<int64_t> sizes;
  for (const std::string& text : texts) {
    HONE_ASSIGN_OR_RETURN(const int size, parse_count(option, text, 1, kMaxSize));
    sizes.push_back(size);
  }
  return sizes;
}

Result<DatasetOptions> parse(const MakeOptions& texts) {
  DatasetOptions options;
  HONE_ASSIGN_OR_RETURN(options.batches, parse_sizes("--batches", texts.batches));
  HONE_ASSIGN_OR_RETURN(options.sides, parse_sizes("--sides", texts.sides));
  HONE_ASSIGN_OR_RETURN(options.sequences, parse_sizes("--sequences", texts.sequences));
  HONE_ASSIGN_OR_RETURN(options.max_tasks,
                        parse_count("--max-tasks", texts.max_tasks, 0, kMaxSize));
  for (const std::string& text : texts.threads) {
    HONE_ASSIGN_OR_RETURN(const int threads, parse_count("--threads", text, 1, 1024));
    if (std::find(options.threads.begin(), options.threads.end(), threads) == options.threads.end())
      options.threads.push_back(threads);
  }
  options.devices.clear();
  for (const std::string& name : texts.devices) {
    if (std::find(options.devices.begin(), options.devices.end(), name) == options.devices.end())
      options.devices.push_back(name);
  }
  HONE_ASSIGN_OR_RETURN(options.schedules,
                        parse_count("--schedules", texts.schedules, 1, kMaxSize));
  HONE_ASSIGN_OR_RETURN(options.round, parse_count("--round", texts.round, 1, kMaxSize));
  HONE_ASSIGN_OR_RETURN(options.task_seconds,
                        of_option("--task-time", parse_duration(texts.task_time)));
  HONE_ASSIGN_OR_RETURN(options.budget_seconds,
                        of_option("--budget", parse_duration(texts.budget)));
  HONE_ASSIGN_OR_RETURN(options.seed, parse_seed(texts.seed));
  options.db = texts.db;
  options.machine = texts.machine;
  options.linked_data = texts.linked_data;
  if (!texts.only.empty()) {
    HONE_ASSIGN_OR_RETURN(const TaskList list, read_task_list(texts.only));
    options.only = list.keys();
  }
  return options;
}

template <typename... Args>
void tell(fmt::format_string<Args...> format, Args&&... args) {
  write_stderr(fmt::format(format, std::forward<Args>(args)...));
}

Json to_json(const DatasetTasks& found) {
  Json tasks = Json::array(), variants = Json::array();
  for (const ModelVariant& variant : found.variants) {
    Json json = {{"model", variant.model}, {"input", variant.text}, {"tasks", variant.tasks}};
    if (!variant.status.ok()) json["left_out"] = variant.status.message();
    variants.push_back(std::move(json));
  }
  for (const DatasetTask& task : found.tasks) {
    Json uses = Json::array();
    for (const auto& [variant, count] : task.uses)
      uses.push_back({{"variant", variant}, {"count", count}});
    tasks.push_back({{"task", hash_hex(task.key)},
                     {"name", task.name},
                     {"kernel", task.kernel_class},
                     {"flops", task.flops},
                     {"bytes", task.bytes},
                     {"uses", std::move(uses)}});
  }
  return {{"variants", std::move(variants)}, {"tasks", std::move(tasks)}};
}

void list(const DatasetTasks& found, bool json) {
  if (json) {
    fmt::print("{}", json_text(to_json(found)));
    return;
  }
  Table table({"kernel", "task", "models", "variants", "FLOP"}, 3);
  for (const DatasetTask& task : found.tasks) {
    std::set<std::string> models;
    for (const auto& [variant, count] : task.uses) models.insert(found.variants[variant].model);
    table.add({shorten(task.kernel_class, 40), hash_hex(task.key),
               shorten(fmt::format("{}", fmt::join(models, ",")), 40),
               std::to_string(task.uses.size()), format_count(task.flops)});
  }
  fmt::print("{}", table.text());
}

Status make(const MakeOptions& texts) {
  HONE_ASSIGN_OR_RETURN(DatasetOptions options, parse(texts));
  if (texts.db.empty() && !texts.list)
    return invalid("--db: a data set needs a database of its own, expected a file");
  options.interrupted = &listen_for_interrupt();
  HONE_ASSIGN_OR_RETURN(const DatasetTasks found,
                        collect_tasks(texts.models, options, print_variant));
  size_t left_out = 0;
  for (const ModelVariant& variant : found.variants) left_out += !variant.status.ok();
  if (!options.only.empty() && found.tasks.size() < options.only.size()) {
    tell("{}: the models have {} of its {} tasks\n", printable(texts.only), found.tasks.size(),
         options.only.size());
  }
  if (texts.list) list(found, texts.json);
  tell(
      "{} distinct tasks of {} variants ({} variants left out, and {} tasks of fewer than {} "
      "schedules)\n",
      found.tasks.size(), found.variants.size() - left_out, left_out, found.small, kLeastSchedules);
  if (texts.list) return ok_status();
  tell("memory-bound and core-bound scores: {}\n", bounds_source());
  DatasetProgressDisplay display;
  options.on_progress = [&](const DatasetProgress& progress) { display.show(progress); };
  const Result<DatasetSummary> made = make_dataset(found, options);
  display.finish();
  HONE_RETURN_IF_ERROR(made.status());
  const DatasetProgress& p = made->progress;
  if (texts.json) {
    fmt::print("{}", json_text(Json{{"tasks", found.tasks.size()},
                                    {"records", p.records},
                                    {"failed", p.failed},
                                    {"seconds", p.elapsed},
                                    {"compile_seconds", made->compile_seconds},
                                    {"measure_seconds", made->measure_seconds},
                                    {"prepare_seconds", made->prepare_seconds},
                                    {"complete", made->complete}}));
  } else {
    fmt::print(
        "{} records of {} tasks in {} ({:.1f}/s): {} measuring, {} compiling, {} choosing; {} "
        "gave no time\n",
        p.records, found.tasks.size(), format_seconds(p.elapsed),
        static_cast<double>(p.records) / std::max(p.elapsed, 1e-9),
        format_seconds(made->measure_seconds), format_seconds(made->compile_seconds),
        format_seconds(made->prepare_seconds), p.failed);
  }
  if (made->interrupted)
    return error(Code::kCancelled,
                 "interrupted after {} records, all kept; the same command resumes", p.records);
  return ok_status();
}

}  // namespace

Command dataset_make_command(CLI::App& dataset) {
  const auto options = std::make_shared<MakeOptions>();
  CLI::App* app = dataset.add_subcommand(
      "make", "Measure samples of the schedules of all kernels of many models and sizes");
  app->add_option("model", options->models, "ONNX models")->required()->type_name("MODEL");
  app->add_option("--db", options->db, "The database to create or continue, as for other commands")
      ->type_name("DB");
  add_linked_data(*app, options->linked_data);
  const auto add_list = [&](const char* name, std::vector<std::string>& texts, const char* text,
                            const char* type) {
    app->add_option(name, texts, text)->type_name(type)->delimiter(',');
  };
  add_list("--batches", options->batches, "Batch sizes in addition to each model's own: 1,4,8",
           "N,...");
  add_list("--sides", options->sides,
           "Heights and widths of images, in addition to the model's own", "N,...");
  add_list("--sequences", options->sequences,
           "Lengths of token sequences, in addition to the model's own", "N,...");
  add_list("--device", options->devices,
           "Machines to measure for: host and subsets of its features (host-avx2)", "NAME,...");
  add_machine(*app, options->machine);
  add_list("--threads", options->threads, "Numbers of threads; default: 1 and all cores", "N,...");
  app->add_option(
         "--schedules", options->schedules,
         "Number of schedules per kernel, device and number of threads, including those in the "
         "database")
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--round", options->round,
                  "Number of schedules of a kernel before the next kernel is measured")
      ->type_name("N")
      ->capture_default_str();
  app->add_option(
         "--task-time", options->task_time,
         "Time limit per kernel, device and number of threads, so slow kernels get fewer schedules")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--budget", options->budget, "Time limit of all measurements")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--max-tasks", options->max_tasks, "Largest number of kernels; 0: all")
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--only", options->only,
                  "Measure only the kernels in a file of hone dataset representatives")
      ->type_name("FILE");
  add_seed(*app, options->seed);
  app->add_flag(
      "--list,--dry-run", options->list,
      "Only print the distinct kernels; with --json also where and how often each occurs");
  add_json(*app, options->json);
  app->footer(
      "Ctrl-C ends early and keeps all measurements; the same command continues from there.");
  return {app, [options] { return make(*options); },
          [options](FileRoles& files) {
            for (const std::string& model : options->models) files.read("MODEL", model);
            files.read("--only", options->only);
            add_database_files("--db", options->db, DatabaseUse::kWrite, files);
          }};
}

}  // namespace hone::tool
