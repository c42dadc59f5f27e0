// hone adapt: fits what guides the search to a new device.
#include "hone/adapt.h"
#include "hone/base/hash.h"
#include "hone/base/options.h"

#include "command.h"
#include "command_files.h"
#include "dataset_progress.h"
#include "interrupt.h"
#include "json_text.h"
#include "option_texts.h"
#include "output.h"
#include "table.h"

namespace hone::tool {
namespace {

constexpr int kMostTasks = 1 << 20;

struct Texts {
  std::vector<std::string> models;
  std::string output, from, booster, db, only, device = "host", threads;
  std::string tasks = std::to_string(AdaptOptions().tasks);
  std::string schedules = std::to_string(AdaptOptions().measure.schedules);
  std::string budget = "5m";
  std::string seed = std::to_string(DatasetOptions().seed);
  bool linked_data = false, json = false;
};

Result<AdaptOptions> parse(const Texts& texts) {
  AdaptOptions options;
  HONE_ASSIGN_OR_RETURN(options.tasks, parse_count("--tasks", texts.tasks, 1, kMostTasks));
  DatasetOptions& measure = options.measure;
  HONE_ASSIGN_OR_RETURN(measure.schedules,
                        parse_count("--schedules", texts.schedules, 1, kMostTasks));
  HONE_ASSIGN_OR_RETURN(measure.budget_seconds,
                        of_option("--budget", parse_duration(texts.budget)));
  HONE_ASSIGN_OR_RETURN(measure.seed, parse_seed(texts.seed));
  if (!texts.threads.empty()) {
    HONE_ASSIGN_OR_RETURN(const int threads, parse_count("--threads", texts.threads, 1, 1024));
    measure.threads = {threads};
  }
  if (!texts.only.empty()) {
    HONE_ASSIGN_OR_RETURN(const TaskList list, read_task_list(texts.only));
    measure.only = list.keys();
  }
  // One task's turn is its share of the time, so that all get as many schedules.
  const auto count =
      static_cast<double>(measure.only.empty() ? static_cast<size_t>(options.tasks)
                                               : std::max<size_t>(measure.only.size(), 1));
  measure.task_seconds = measure.budget_seconds / count;
  measure.devices = {texts.device};
  measure.db = texts.db;
  measure.linked_data = texts.linked_data;
  options.from = texts.from;
  options.booster = texts.booster;
  return options;
}

Json to_json(const AdaptScore& score) {
  return {{"pair_accuracy", score.pair_accuracy}, {"top1", score.top1}, {"top5", score.top5}};
}

Json to_json(const AdaptSummary& summary) {
  Json tasks = Json::array();
  for (const AdaptedTask& one : summary.tasks) {
    tasks.push_back({{"task", hash_hex(one.task.key)},
                     {"kernel", one.task.kernel_class},
                     {"stands_for", one.task.cluster},
                     {"similarity", one.task.similarity},
                     {"schedules", one.schedules},
                     {"judged", one.judged}});
    if (!one.judged) continue;
    tasks.back()["before"] = to_json(one.before);
    tasks.back()["after"] = to_json(one.after);
  }
  return {{"device", summary.device},
          {"from", summary.from},
          {"all_tasks", summary.all_tasks},
          {"tasks", std::move(tasks)},
          {"before", to_json(summary.before)},
          {"after", to_json(summary.after)},
          {"gained", summary.gained()},
          {"records", summary.measured.progress.records},
          {"measure_seconds", summary.measured.measure_seconds},
          {"compile_seconds", summary.measured.compile_seconds},
          {"prepare_seconds", summary.measured.prepare_seconds},
          {"fit_seconds", summary.fit_seconds}};
}

void print(const AdaptSummary& summary, const std::string& output) {
  Table table({"kernel", "task", "stands for", "schedules", "pairs before", "after", "top-1 before",
               "after"},
              2);
  const auto row = [&](std::vector<std::string> cells, const AdaptScore& before,
                       const AdaptScore& after) {
    for (const double score : {before.pair_accuracy, after.pair_accuracy, before.top1, after.top1})
      cells.push_back(fmt::format("{:.3f}", score));
    table.add(std::move(cells));
  };
  int64_t schedules = 0;
  for (const AdaptedTask& one : summary.tasks) {
    schedules += one.schedules;
    std::vector<std::string> cells = {shorten(one.task.kernel_class, 36), hash_hex(one.task.key),
                                      std::to_string(one.task.cluster),
                                      std::to_string(one.schedules)};
    if (one.judged) {
      row(std::move(cells), one.before, one.after);
    } else {
      cells.insert(cells.end(), 4, "-");
      table.add(std::move(cells));
    }
  }
  row({"mean", "", std::to_string(summary.all_tasks), std::to_string(schedules)}, summary.before,
      summary.after);
  fmt::print("{}", table.text());
  fmt::print("each task is judged by {} as it was, and as the other tasks correct it\n",
             summary.from);
  fmt::print("measuring {}, compiling {}, choosing {}, fitting and judging {}\n",
             format_seconds(summary.measured.measure_seconds),
             format_seconds(summary.measured.compile_seconds),
             format_seconds(summary.measured.prepare_seconds), format_seconds(summary.fit_seconds));
  fmt::print("wrote {}{}\n", output,
             summary.gained() ? ""
                              : ", which orders schedules of other tasks no better than before: it "
                                "is not worth using");
}

Status adapt(const Texts& texts) {
  HONE_ASSIGN_OR_RETURN(AdaptOptions options, parse(texts));
  options.measure.interrupted = &listen_for_interrupt();
  DatasetProgressDisplay display;
  options.measure.on_progress = [&](const DatasetProgress& progress) { display.show(progress); };
  const Result<AdaptSummary> summary =
      hone::adapt(texts.models, texts.output, options, print_variant);
  display.finish();
  if (!summary.ok()) return summary.status();
  if (texts.json) {
    fmt::print("{}", json_text(to_json(*summary)));
  } else {
    print(*summary, texts.output);
  }
  return ok_status();
}

}  // namespace

Command adapt_command(CLI::App& root) {
  const auto texts = std::make_shared<Texts>();
  CLI::App* app = root.add_subcommand(
      "adapt",
      "Fit what guides the search to this device, by measuring a few representative kernels");
  app->add_option("models", texts->models, "ONNX models whose kernels are chosen from")
      ->required()
      ->type_name("MODEL");
  app->add_option("-o,--output", texts->output,
                  "The file to write: FILE.model for trees, FILE.onnx for a net; hone tune --guide "
                  "and --cost take it")
      ->required()
      ->type_name("FILE");
  app->add_option("--tasks", texts->tasks, "Number of kernels to measure, which represent all")
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--budget", texts->budget, "Time limit of measuring: 90s, 5m")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--schedules", texts->schedules, "Number of schedules per kernel")
      ->type_name("N")
      ->capture_default_str();
  app->add_option(
         "--from", texts->from,
         "The trained model to correct: FILE.model or FILE.onnx; default: the trees that are used "
         "on the device")
      ->type_name("FILE");
  app->add_option("--only", texts->only,
                  "Measure the kernels in a file of hone dataset representatives instead of "
                  "choosing --tasks")
      ->type_name("FILE");
  add_booster(*app, texts->booster);
  add_device(*app, texts->device);
  app->add_option("--threads", texts->threads,
                  "Number of threads that kernels run on; default: all cores")
      ->type_name("N");
  app->add_option("--db", texts->db,
                  "A database to keep the measurements in; what it has counts. Default: they are "
                  "forgotten")
      ->type_name("FILE");
  add_linked_data(*app, texts->linked_data);
  add_seed(*app, texts->seed);
  add_json(*app, texts->json);
  app->footer(
      "Ctrl-C ends it without a model; with --db the same command goes on with what was measured.");
  return {app, [texts] { return adapt(*texts); },
          [texts](FileRoles& files) {
            for (const std::string& model : texts->models) files.read("MODEL", model);
            files.read("--from", texts->from);
            files.read("--only", texts->only);
            if (!texts->db.empty())
              add_database_files("--db", texts->db, DatabaseUse::kWrite, files);
            files.written("--output", texts->output);
          }};
}

}  // namespace hone::tool
