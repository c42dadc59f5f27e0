#include "hone/base/file.h"
#include "hone/commands/inspect.h"
#include "hone/cost/gbdt_model.h"
#include "hone/cost/registry.h"
#include "hone/learn/replay.h"
#include "hone/learn/train_trees.h"
#include "hone/session/cost_models.h"
#include "hone/session/model_tasks.h"

#include "command.h"
#include "command_files.h"
#include "cost_data.h"
#include "eval_report.h"
#include "model_card.h"
#include "option_texts.h"
#include "unused_options.h"

namespace hone::tool {
namespace {

struct EvalOptions {
  std::string db, cost = "analytic", split = "none", split_file, except, replay, replay_db,
                  predictions, device = "host";
  std::string booster = cost::tree_library_names().front();
  std::vector<std::string> networks;  // files
  std::vector<std::string> schedules;
  bool cost_given = false, linked_data = false, json = false;
};

Result<cost::FeatureSet> learning_model(const std::string& name) {
  for (const auto set : cost::kTreeFeatures) {
    if (name == cost::model_name(set)) return set;
  }
  return invalid(
      "cost model '{}' cannot be trained here, expected gbdt or combined (a trained file is judged "
      "as it is, without --split)",
      name);
}

Result<learn::Networks> count_tasks(const EvalOptions& options, const target::Target& target) {
  learn::Networks networks;
  FileRoles roles;
  roles.written("--predictions", options.predictions);
  for (const std::string& file : options.networks) {
    HONE_ASSIGN_OR_RETURN(TaskCounts counts,
                          hone::count_tasks(file, {.model = {.linked_data = options.linked_data},
                                                   .target = {.device = target.name},
                                                   .records = {.use_db = false}}));
    networks[counts.model] = std::move(counts.tasks);
    for (const std::string& name : counts.files) roles.read("--network", name);
  }
  HONE_RETURN_IF_ERROR(roles.check());
  return networks;
}

// The times that another device took for the same schedules, or this one when they were measured
// again, instead of a model or as what corrects one.
Status evaluate_replay(const EvalOptions& options, MeasuredStore& store, const CostData& data,
                       const learn::Judging& judging, const cost::CostModel* model) {
  HONE_ASSIGN_OR_RETURN(const MeasuredDevice other,
                        parse_measured_device("--replay", options.replay));
  const bool apart = !options.replay_db.empty();
  if (!apart && other.overlaps(data.device)) {
    return invalid("--replay: {} is judged by its own times, expected another device than {}",
                   other.text(), data.device.text());
  }
  learn::Dataset judged = data.dataset;
  if (!options.split_file.empty()) {
    HONE_ASSIGN_OR_RETURN(learn::SplitData parts, parts_of(data, options.split_file));
    judged = std::move(parts.test);
  }
  MeasuredStore others(options.replay_db);
  HONE_ASSIGN_OR_RETURN(const learn::Dataset measured, (apart ? others : store).load(other));
  target::Target target;
  std::optional<learn::Translation> translation;
  if (model != nullptr) {
    HONE_ASSIGN_OR_RETURN(target, measured_target(options.replay));
    translation = {model, &target, other.threads};
  }
  const learn::Replay replay = learn::make_replay(judged, measured, other.threads > 0, translation);
  if (replay.tasks == 0) {
    return invalid("--replay: no task has {} schedules that were measured on {} and on {}",
                   learn::kMinTrialsToJudge, data.device.text(), other.text());
  }
  HONE_ASSIGN_OR_RETURN(const learn::Evaluation evaluation,
                        learn::evaluate(replay.dataset, data.target, *replay.model, judging));
  Printed how = {.json = options.json};
  how.replay = {{"device", other.text()},
                {"tasks", replay.tasks},
                {"of_tasks", replay.all_tasks},
                {"schedules", replay.schedules},
                {"of_schedules", replay.all_schedules}};
  print(evaluation, how);
  if (!options.json) {
    fmt::print("replayed from {}: {} of {} tasks, {} of {} schedules\n", other.text(), replay.tasks,
               replay.all_tasks, replay.schedules, replay.all_schedules);
  }
  return ok_status();
}

Result<std::vector<int>> parse_schedules(const std::vector<std::string>& texts) {
  std::vector<int> counts;
  for (const std::string& text : texts) {
    HONE_ASSIGN_OR_RETURN(const int count, parse_count("--schedules", text, 2, 1 << 20));
    counts.push_back(count);
  }
  return counts;
}

// For where nothing is trained.
Status check_booster(const CLI::App& app, const EvalOptions& options, bool trees) {
  std::string found = fmt::format("--cost {} is judged as it is", options.cost);
  if (trees) found += " without --split or --split-file";
  if (!options.replay.empty()) found = "--replay trains nothing";
  return check_unused(app, {"--booster"}, "fitting trees", found);
}

// `train` is asked for a model of what is not judged.
Result<learn::Evaluation> evaluate_model(const CostData& data, const std::string& split_file,
                                         learn::Split split, const learn::Trainer& train,
                                         const learn::Judging& judging) {
  if (split_file.empty())
    return learn::cross_evaluate(data.dataset, data.target, split, train, judging);
  HONE_ASSIGN_OR_RETURN(const learn::SplitData parts, parts_of(data, split_file));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost::CostModel> model, train(parts.train));
  return learn::evaluate(parts.test, data.target, *model, judging);
}

Status evaluate(EvalOptions options, const CLI::App& app) {
  learn::Judging judging;
  HONE_ASSIGN_OR_RETURN(judging.schedules, parse_schedules(options.schedules));
  HONE_ASSIGN_OR_RETURN(const learn::Split split, learn::parse_split(options.split));
  const bool by_file = !options.split_file.empty();
  if (options.cost == cost::kAutoModel) {
    HONE_ASSIGN_OR_RETURN(const target::Target target, measured_target(options.device));
    options.cost = cost::default_model(target);
  }
  // What is trained anew is of a kind, not of a processor.
  if (by_file || split != learn::Split::kNone) options.cost = cost::model_kind(options.cost);
  const bool trees = options.cost == "gbdt" || options.cost == "combined";
  const bool replays = !options.replay.empty();
  const bool learns = by_file ? trees : split != learn::Split::kNone && options.cost != "analytic";
  const bool trains = learns && !replays;
  cost::FeatureSet features{};
  cost::ModelWithCard known = {};  // one that is judged as it is
  HONE_ASSIGN_OR_RETURN(const cost::BoostOptions boosting, parse_booster(options.booster));
  if (trains) {
    HONE_ASSIGN_OR_RETURN(features, learning_model(options.cost));
  } else {
    HONE_RETURN_IF_ERROR(check_booster(app, options, trees));
    if (!replays || options.cost_given) {
      HONE_ASSIGN_OR_RETURN(known,
                            make_cost_model_with_card(
                                {.cost = options.cost, .db = options.db, .use = cost::Use::kRank}));
    }
  }
  MeasuredStore store(options.db);
  HONE_ASSIGN_OR_RETURN(CostData data, load_cost_data(store, options.device));
  HONE_ASSIGN_OR_RETURN(judging.networks, count_tasks(options, data.target));
  std::string predictions;
  if (!options.predictions.empty()) {
    judging.predicted = [&](const learn::TaskTrials& task, std::span<const double> seconds) {
      predictions += predictions_line(task, seconds);
    };
  }
  if (!options.except.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::set<uint64_t> keys, read_task_keys(options.except));
    data.dataset = learn::tasks_except(data.dataset, keys);
  }
  const auto make = [&](const learn::Dataset& rest) -> Result<std::unique_ptr<cost::CostModel>> {
    if (known.model) return std::move(known.model);
    if (!trains) return cost::make_model(options.cost);  // "analytic": others have one part
    const learn::DeviceTrials trials = {&rest, &data.target};
    HONE_ASSIGN_OR_RETURN(cost::TrainedTrees trees,
                          learn::train_trees({&trials, 1}, features, boosting));
    return cost::make_gbdt_model(std::move(trees));
  };
  if (replays) {
    HONE_RETURN_IF_ERROR(evaluate_replay(options, store, data, judging, known.model.get()));
  } else {
    HONE_ASSIGN_OR_RETURN(const learn::Evaluation evaluation,
                          evaluate_model(data, options.split_file, split, make, judging));
    print(evaluation, {.json = options.json, .card = card_json(known.card)});
  }
  if (options.predictions.empty()) return ok_status();
  return write_file_atomic(options.predictions, predictions);
}

}  // namespace

Command eval_command(CLI::App& root) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* app = root.add_subcommand(
      "eval", "Judge a cost model on the measured schedules of a database, per kernel class");
  add_db(*app, options->db);
  add_measured_device(*app, options->device);
  add_cost(*app, options->cost);
  app->add_option(
         "--split", options->split,
         "How models that learn are trained anew: none: they stay as they are; by-model: each "
         "network in turn is held out; by-task: a fifth of the tasks is; within: a fifth of the "
         "schedules of each task is, with near duplicates together")
      ->type_name("SPLIT")
      ->capture_default_str();
  app->add_option(
         "--split-file", options->split_file,
         "Judge on the test part of a file of hone dataset split; gbdt and combined are trained "
         "anew on its training part")
      ->type_name("FILE")
      ->excludes("--split");
  add_booster(*app, options->booster);
  app->add_option(
         "--replay", options->replay,
         "Rank schedules that ran on both devices by their times on this one, NAME or "
         "NAME/THREADS as for --device. With --cost, rank by the model's predictions, corrected "
         "by its errors on this device")
      ->type_name("NAME")
      ->excludes("--split");
  app->add_option(
         "--replay-db", options->replay_db,
         "The database with those times, named as for --db. It may be of the same device, "
         "measured again, which tells the best possible result. Default: the same database")
      ->type_name("DB")
      ->needs("--replay");
  app->add_option(
         "--except", options->except,
         "Do not judge on the tasks in a file of hone dataset representatives, as a model that "
         "was trained on them knows them")
      ->type_name("FILE");
  app->add_option("--network", options->networks,
                  "A model whose tasks are judged together, each as often as it occurs; repeat per "
                  "network. Default: those of the records, each task once")
      ->type_name("MODEL.onnx")
      ->expected(1)
      ->take_all();
  add_linked_data(*app, options->linked_data);
  app->add_option(
         "--schedules", options->schedules,
         "Judge also with only this many schedules per task, such as 25,100,500, drawn 16 times "
         "from the tasks that have as many as the largest number")
      ->type_name("N,...")
      ->delimiter(',');
  app->add_option(
         "--predictions", options->predictions,
         "Write the measured and predicted time of each schedule, as one JSON object per line for "
         "each task and number of threads")
      ->type_name("FILE.jsonl");
  add_json(*app, options->json);
  app->footer(
      "pairs: share of pairs of schedules in the right order; top-k: best time / best among the k "
      "that are\npredicted to be fastest; peak-5: the mean of top-1 to top-5; R^2, RMSE: of best "
      "time / time. Means over tasks of\n8 schedules and more, the RMSE over their schedules; R^2 "
      "s, "
      "R^2 ln s: of seconds and of their logarithm, all schedules\nof all these tasks together. Of "
      "a network: the sum of its tasks' best times / the sum of what the best of k takes, each "
      "task "
      "once or, with\n--network, as often as it occurs there; below it the mean over networks and "
      "threads.");
  return {app,
          [options, app] {
            options->cost_given = app->count("--cost") > 0;
            return evaluate(*options, *app);
          },
          [options](FileRoles& files) {
            add_database_files("--db", options->db, DatabaseUse::kRead, files);
            if (!options->replay_db.empty())
              add_database_files("--replay-db", options->replay_db, DatabaseUse::kRead, files);
            add_cost_file(options->cost, files);
            files.read("--split-file", options->split_file);
            files.read("--except", options->except);
            for (const std::string& file : options->networks) files.read("--network", file);
            files.written("--predictions", options->predictions);
          }};
}

}  // namespace hone::tool
