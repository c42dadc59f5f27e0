#include <fmt/ranges.h>

#include "hone/cost/evaluate.h"
#include "hone/cost/gbdt_model.h"
#include "hone/cost/registry.h"
#include "hone/cost/replay.h"
#include "hone/inspect.h"
#include "hone/model/model_tasks.h"
#include "hone/neural/neural_model.h"

#include "command.h"
#include "cost_data.h"
#include "json_text.h"
#include "model_card.h"
#include "option_texts.h"
#include "table.h"
#include "unused_options.h"

namespace hone::tool {
namespace {

struct EvalOptions {
  std::string db, cost = "analytic", split = "none", split_file, except, replay, replay_db,
                  device = "host";
  std::string booster = cost::tree_library_names().front();
  std::vector<std::string> networks;  // files
  std::vector<std::string> schedules;
  bool cost_given = false, json = false;
};

Json to_json(const cost::Score& score) {
  return {{"kernel", score.kernel_class},
          {"tasks", score.tasks},
          {"trials", score.trials},
          {"pair_accuracy", score.pair_accuracy},
          {"clear_pair_accuracy", score.clear_pair_accuracy},
          {"top1", score.top1},
          {"top5", score.top5},
          {"peak5", score.peak5},
          {"r_squared", score.r_squared},
          {"rmse", score.rmse},
          {"r_squared_seconds", score.seconds.r_squared()},
          {"r_squared_log_seconds", score.log_seconds.r_squared()}};
}

Json to_json(const cost::NetworkScore& score) {
  return {
      {"network", score.network},     {"threads", score.threads},           {"tasks", score.tasks},
      {"listed_tasks", score.listed}, {"best_seconds", score.best_seconds}, {"top1", score.top1()},
      {"top5", score.top5()}};
}

void print_networks(std::span<const cost::NetworkScore> networks) {
  if (networks.empty()) return;
  Table table({"network", "threads", "tasks", "best ms", "top-1", "top-5"}, 1);
  double top1 = 0, top5 = 0;
  int tasks = 0;
  for (const cost::NetworkScore& score : networks) {
    table.add({shorten(score.network, 40), std::to_string(score.threads),
               score.listed > 0 ? fmt::format("{} of {}", score.tasks, score.listed)
                                : std::to_string(score.tasks),
               fmt::format("{:.3f}", 1e3 * score.best_seconds), fmt::format("{:.3f}", score.top1()),
               fmt::format("{:.3f}", score.top5())});
    top1 += score.top1() / static_cast<double>(networks.size());
    top5 += score.top5() / static_cast<double>(networks.size());
    tasks += score.tasks;
  }
  table.add({"mean", "", std::to_string(tasks), "", fmt::format("{:.3f}", top1),
             fmt::format("{:.3f}", top5)});
  fmt::print("\n{}", table.text());
}

void print_by_schedules(std::span<const cost::ScheduleCountScore> scores) {
  if (scores.empty()) return;
  Table table({"schedules of a task", "tasks", "pairs", "clear", "top-1", "top-5", "peak-5",
               "network top-1", "network top-5"},
              0);
  for (const cost::ScheduleCountScore& one : scores) {
    std::vector<std::string> row = {std::to_string(one.schedules), std::to_string(one.score.tasks)};
    for (const double value :
         {one.score.pair_accuracy, one.score.clear_pair_accuracy, one.score.top1, one.score.top5,
          one.score.peak5, one.network_top1, one.network_top5})
      row.push_back(fmt::format("{:.3f}", value));
    table.add(std::move(row));
  }
  fmt::print("\n{}", table.text());
}

struct Printed {
  bool json = false;
  Json replay = {};     // null: none
  Json card = nullptr;  // the model's, likewise
};

void print(const cost::Evaluation& evaluation, const Printed& how) {
  if (how.json) {
    Json list = Json::array();
    for (const cost::Score& score : evaluation.classes) list.push_back(to_json(score));
    Json networks = Json::array();
    for (const cost::NetworkScore& score : evaluation.networks) networks.push_back(to_json(score));
    Json text = {{"classes", list},
                 {"all", to_json(evaluation.all)},
                 {"not_judged", evaluation.not_judged},
                 {"networks", networks}};
    if (!how.replay.is_null()) text["replay"] = how.replay;
    if (!how.card.is_null()) text["card"] = how.card;
    for (const cost::ScheduleCountScore& score : evaluation.by_schedules) {
      Json one = to_json(score.score);
      one.erase("kernel");
      one["schedules"] = score.schedules;
      one["network_top1"] = score.network_top1, one["network_top5"] = score.network_top5;
      text["by_schedules"].push_back(std::move(one));
    }
    fmt::print("{}", json_text(text));
    return;
  }
  Table table({"kernel", "tasks", "trials", "pairs", "clear", "top-1", "top-5", "peak-5", "R^2",
               "RMSE", "R^2 s", "R^2 ln s"},
              1);
  const auto add = [&](const cost::Score& score) {
    table.add({shorten(score.kernel_class, 40), std::to_string(score.tasks),
               std::to_string(score.trials), fmt::format("{:.3f}", score.pair_accuracy),
               fmt::format("{:.3f}", score.clear_pair_accuracy), fmt::format("{:.3f}", score.top1),
               fmt::format("{:.3f}", score.top5), fmt::format("{:.3f}", score.peak5),
               fmt::format("{:.2f}", score.r_squared), fmt::format("{:.3f}", score.rmse),
               fmt::format("{:.3f}", score.seconds.r_squared()),
               fmt::format("{:.3f}", score.log_seconds.r_squared())});
  };
  for (const cost::Score& score : evaluation.classes) add(score);
  add(evaluation.all);
  fmt::print("{}", table.text());
  if (evaluation.not_judged > 0)
    fmt::print("tasks of fewer than {} schedules, not judged: {}\n", cost::kMinTrialsToJudge,
               evaluation.not_judged);
  print_networks(evaluation.networks);
  print_by_schedules(evaluation.by_schedules);
  fmt::print("{}", card_line(how.card));
}

Result<cost::FeatureSet> learning_model(const std::string& name) {
  for (const auto set : cost::kTreeFeatures) {
    if (name == cost::model_name(set)) return set;
  }
  return invalid(
      "cost model '{}' cannot be trained here, expected gbdt or combined (a trained file is judged "
      "as it is, without --split)",
      name);
}

Result<cost::Networks> count_tasks(const EvalOptions& options, const target::Target& target) {
  cost::Networks networks;
  for (const std::string& file : options.networks) {
    HONE_ASSIGN_OR_RETURN(TaskCounts counts,
                          hone::count_tasks(file, {.device = target.name, .use_db = false}));
    networks[counts.model] = std::move(counts.tasks);
  }
  return networks;
}

// The times that another device took for the same schedules, or this one when they were measured
// again, instead of a model or as what corrects one.
Status evaluate_replay(const EvalOptions& options, MeasuredStore& store, const CostData& data,
                       const cost::Networks& networks, std::span<const int> schedules,
                       const cost::CostModel* model) {
  HONE_ASSIGN_OR_RETURN(const MeasuredDevice other,
                        parse_measured_device("--replay", options.replay));
  const bool apart = !options.replay_db.empty();
  if (!apart && other.overlaps(data.device)) {
    return invalid("--replay: {} is judged by its own times, expected another device than {}",
                   other.text(), data.device.text());
  }
  cost::Dataset judged = data.dataset;
  if (!options.split_file.empty()) {
    HONE_ASSIGN_OR_RETURN(cost::SplitData parts, parts_of(data, options.split_file));
    judged = std::move(parts.test);
  }
  MeasuredStore others(options.replay_db);
  HONE_ASSIGN_OR_RETURN(const cost::Dataset measured, (apart ? others : store).load(other));
  target::Target target;
  std::optional<cost::Translation> translation;
  if (model != nullptr) {
    HONE_ASSIGN_OR_RETURN(target, measured_target(options.replay));
    translation = {model, &target, other.threads};
  }
  const cost::Replay replay = cost::make_replay(judged, measured, other.threads > 0, translation);
  if (replay.tasks == 0) {
    return invalid("--replay: no task has {} schedules that were measured on {} and on {}",
                   cost::kMinTrialsToJudge, data.device.text(), other.text());
  }
  HONE_ASSIGN_OR_RETURN(
      const cost::Evaluation evaluation,
      cost::evaluate(replay.dataset, data.target, *replay.model, networks, schedules));
  Printed how = {options.json};
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

Status evaluate(EvalOptions options, const CLI::App& app) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int> schedules, parse_schedules(options.schedules));
  HONE_ASSIGN_OR_RETURN(const cost::Split split, cost::parse_split(options.split));
  const bool by_file = !options.split_file.empty();
  if (options.cost == cost::kAutoModel) {
    HONE_ASSIGN_OR_RETURN(const target::Target target, measured_target(options.device));
    options.cost = cost::default_model(target);
  }
  // What is trained anew is of a kind, not of a processor.
  if (by_file || split != cost::Split::kNone) options.cost = cost::model_kind(options.cost);
  const bool trees = options.cost == "gbdt" || options.cost == "combined";
  const bool replays = !options.replay.empty();
  const bool learns = by_file ? trees : split != cost::Split::kNone && options.cost != "analytic";
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
  HONE_ASSIGN_OR_RETURN(const cost::Networks networks, count_tasks(options, data.target));
  if (!options.except.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::set<uint64_t> keys, read_task_keys(options.except));
    data.dataset = cost::tasks_except(data.dataset, keys);
  }
  if (replays) return evaluate_replay(options, store, data, networks, schedules, known.model.get());
  const Printed how = {.json = options.json, .card = card_json(known.card)};
  const auto make = [&](const cost::Dataset& rest) -> Result<std::unique_ptr<cost::CostModel>> {
    if (known.model) return std::move(known.model);
    if (!trains) return cost::make_model(options.cost);  // "analytic": others have one part
    const cost::DeviceTrials trials = {&rest, &data.target};
    HONE_ASSIGN_OR_RETURN(cost::TrainedTrees trees, cost::train({&trials, 1}, features, boosting));
    return cost::make_gbdt_model(std::move(trees));
  };
  if (by_file) {
    HONE_ASSIGN_OR_RETURN(const cost::SplitData parts, parts_of(data, options.split_file));
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost::CostModel> model, make(parts.train));
    HONE_ASSIGN_OR_RETURN(const cost::Evaluation evaluation,
                          cost::evaluate(parts.test, data.target, *model, networks, schedules));
    print(evaluation, how);
    return ok_status();
  }
  HONE_ASSIGN_OR_RETURN(
      const cost::Evaluation evaluation,
      cost::cross_evaluate(data.dataset, data.target, split, make, networks, schedules));
  print(evaluation, how);
  return ok_status();
}

}  // namespace

void add_booster(CLI::App& app, std::string& name) {
  app.add_option("--booster", name,
                 fmt::format("The library that fits trees: {} (of the Python package lightgbm; "
                             "HONE_LIGHTGBM may name its file)",
                             fmt::join(cost::tree_library_names(), ", ")))
      ->type_name("NAME")
      ->capture_default_str();
}

Result<cost::BoostOptions> parse_booster(const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const cost::TreeLibrary library,
                        of_option("--booster", cost::parse_tree_library(name)));
  return cost::BoostOptions{.library = library};
}

Command eval_command(CLI::App& root) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* app = root.add_subcommand(
      "eval", "Judge a cost model by the measured schedules of a database, per kernel class");
  add_db(*app, options->db);
  add_measured_device(*app, options->device);
  add_cost(*app, options->cost);
  app->add_option("--split", options->split,
                  "What a model that learns is trained on anew and judged by: none: it stays as it "
                  "is; by-model: each network in turn is held out; by-task, within: a fifth of the "
                  "tasks, of the schedules of each, near duplicates together")
      ->type_name("SPLIT")
      ->capture_default_str();
  app->add_option("--split-file", options->split_file,
                  "Judge by the test part of a file of hone dataset split; gbdt and combined are "
                  "trained anew on its training part")
      ->type_name("FILE")
      ->excludes("--split");
  add_booster(*app, options->booster);
  app->add_option("--replay", options->replay,
                  "Rank by the times of this device, NAME/THREADS as of --device: the schedules "
                  "that ran on both. With --cost, by what that model predicts here, corrected by "
                  "what it got wrong there")
      ->type_name("NAME")
      ->excludes("--split");
  app->add_option("--replay-db", options->replay_db,
                  "Where those times are, a database as of --db, which may be of the same device, "
                  "measured again: how much can be known. Default: the same database")
      ->type_name("DB")
      ->needs("--replay");
  app->add_option("--except", options->except,
                  "Don't judge by the tasks that a file of hone dataset representatives lists: a "
                  "model that was trained on them knows them")
      ->type_name("FILE");
  app->add_option("--network", options->networks,
                  "A model whose tasks are judged together, each as often as it occurs; repeat per "
                  "network. Default: those of the records, each task once")
      ->type_name("MODEL.onnx")
      ->expected(1)
      ->take_all();
  app->add_option("--schedules", options->schedules,
                  "Judge by so many schedules of each task, too, such as 25,100,500: of the tasks "
                  "that have the most of these, drawn 16 times")
      ->type_name("N,...")
      ->delimiter(',');
  add_json(*app, options->json);
  app->footer(
      "pairs: share of pairs of schedules in the right order; top-k: best time / best among the k "
      "that are\npredicted to be fastest; peak-5: the mean of top-1 to top-5; R^2, RMSE: of best "
      "time / time. Means over tasks of\n8 schedules and more, the RMSE over their schedules; R^2 s, "
      "R^2 ln s: of seconds and of their logarithm, all schedules\nof all these tasks together. Of "
      "a network: the sum of its tasks' best times / the sum of what the best of k takes, each task "
      "once or, with\n--network, as often as it occurs there; below it the mean over networks and "
      "threads.");
  return {app, [options, app] {
            options->cost_given = app->count("--cost") > 0;
            return evaluate(*options, *app);
          }};
}

}  // namespace hone::tool
