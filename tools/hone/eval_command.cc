#include "hone/base/file.h"
#include "hone/dataset.h"
#include "hone/evaluate.h"

#include "command.h"
#include "command_files.h"
#include "eval_report.h"
#include "option_texts.h"

namespace hone::tool {
namespace {

struct Texts {
  std::string cost = "analytic", except, predictions;
  std::vector<std::string> schedules, adapt_samples;
  bool json = false;
  EvaluateOptions options;
};

Status evaluate(const Texts& texts, const CLI::App& app) {
  EvaluateOptions options = texts.options;
  for (const std::string& text : texts.schedules) {
    HONE_ASSIGN_OR_RETURN(const int count, parse_count("--schedules", text, 2, 1 << 20));
    options.schedules.push_back(count);
  }
  for (const std::string& text : texts.adapt_samples) {
    HONE_ASSIGN_OR_RETURN(const int count, parse_count("--adapt-samples", text, 0, 1 << 20));
    options.adapt_samples.push_back(count);
  }
  if (app.count("--cost") > 0) options.cost = texts.cost;
  if (!texts.except.empty()) {
    HONE_ASSIGN_OR_RETURN(const TaskList list, read_task_list(texts.except));
    options.except = list.keys();
  }
  std::string predictions;
  if (!texts.predictions.empty()) {
    options.on_task = [&](const TaskPrediction& task) { predictions += predictions_line(task); };
  }
  HONE_ASSIGN_OR_RETURN(const Evaluation evaluation, hone::evaluate(options));
  FileRoles roles;
  roles.written("--predictions", texts.predictions);
  for (const std::string& file : evaluation.files) roles.read("--network", file);
  HONE_RETURN_IF_ERROR(roles.check());
  print(evaluation, texts.json);
  if (texts.predictions.empty()) return ok_status();
  return write_file_atomic(texts.predictions, predictions);
}

}  // namespace

Command eval_command(CLI::App& root) {
  const auto texts = std::make_shared<Texts>();
  EvaluateOptions& options = texts->options;
  CLI::App* app = root.add_subcommand(
      "eval", "Judge a cost model on the measured schedules of a database, per kernel class");
  add_db(*app, options.db);
  add_measured_device(*app, options.device);
  add_cost(*app, texts->cost);
  app->add_option(
         "--split", options.split,
         "How models that learn are trained anew: none: they stay as they are; by-model: each "
         "network in turn is held out; by-task: a fifth of the tasks is; within: a fifth of the "
         "schedules of each task is, with near duplicates together")
      ->type_name("SPLIT")
      ->capture_default_str();
  app->add_option(
         "--split-file", options.split_file,
         "Judge on the test part of a file of hone dataset split; gbdt, combined and gpu are "
         "trained anew on its training part")
      ->type_name("FILE")
      ->excludes("--split");
  add_booster(*app, options.booster);
  app->add_option(
         "--replay", options.replay,
         "Rank schedules that ran on both devices by their times on this one, NAME or "
         "NAME/THREADS as for --device. With --cost, rank by the model's predictions, corrected "
         "by its errors on this device")
      ->type_name("NAME")
      ->excludes("--split");
  app->add_option(
         "--replay-db", options.replay_db,
         "The database with those times, named as for --db. It may be of the same device, "
         "measured again, which tells the best possible result. Default: the same database")
      ->type_name("DB")
      ->needs("--replay");
  app->add_option(
         "--except", texts->except,
         "Do not judge on the tasks in a file of hone dataset representatives, as a model that "
         "was trained on them knows them")
      ->type_name("FILE");
  app->add_option("--network", options.networks,
                  "A model whose tasks are judged together, each as often as it occurs; repeat per "
                  "network. Default: those of the records, each task once")
      ->type_name("MODEL.onnx")
      ->expected(1)
      ->take_all();
  add_linked_data(*app, options.linked_data);
  app->add_option(
         "--schedules", texts->schedules,
         "Judge also with only this many schedules per task, such as 25,100,500, drawn 16 times "
         "from the tasks that have as many as the largest number")
      ->type_name("N,...")
      ->delimiter(',');
  app->add_option(
         "--adapt-samples", texts->adapt_samples,
         "Judge the model also after it has learnt from so many schedules of a task, such as "
         "0,16,32, by other schedules of it. Trees learn by more trees, a net by --adapt")
      ->type_name("N,...")
      ->delimiter(',');
  app->add_option("--adapt", options.adapt,
                  "How a net learns from these schedules, as --adapt of hone tune")
      ->type_name("HOW")
      ->capture_default_str();
  app->add_option(
         "--predictions", texts->predictions,
         "Write the measured and predicted time of each schedule, as one JSON object per line for "
         "each task and number of threads")
      ->type_name("FILE.jsonl");
  add_json(*app, texts->json);
  app->footer(
      "pairs: share of pairs of schedules in the right order; top-k: best time / best among the k "
      "that are\npredicted to be fastest; peak-5: the mean of top-1 to top-5; sum-k: the sum "
      "of the k best times / that of the k predicted\nto be fastest, of tasks with more schedules; "
      "R^2, RMSE: of best time / time. Means over tasks of\n8 schedules and more, the RMSE over their schedules; R^2 "
      "s, "
      "R^2 ln s: of seconds and of their logarithm, all schedules\nof all these tasks together. Of "
      "a network: the sum of its tasks' best times / the sum of what the best of k takes, each "
      "task "
      "once or, with\n--network, as often as it occurs there; below it the mean over networks and "
      "threads.\nAfter learning from schedules of a task: MSE: the mean squared error of best "
      "time / time; MSE(D): that of the fastest\nquarter; of schedules that it did not learn from, "
      "means over tasks.");
  return {app, [texts, app] { return evaluate(*texts, *app); },
          [texts](FileRoles& files) {
            const EvaluateOptions& options = texts->options;
            add_database_files("--db", options.db, DatabaseUse::kRead, files);
            if (!options.replay_db.empty())
              add_database_files("--replay-db", options.replay_db, DatabaseUse::kRead, files);
            add_cost_file(texts->cost, files);
            files.read("--split-file", options.split_file);
            files.read("--except", texts->except);
            for (const std::string& file : options.networks) files.read("--network", file);
            files.written("--predictions", texts->predictions);
          }};
}

}  // namespace hone::tool
