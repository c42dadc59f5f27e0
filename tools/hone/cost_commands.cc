#include <fmt/ranges.h>

#include "hone/base/file.h"
#include "hone/cost/evaluate.h"
#include "hone/cost/gbdt_model.h"
#include "hone/cost/registry.h"
#include "hone/db/registry.h"
#include "hone/target/target.h"

#include "command.h"
#include "json_text.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

struct EvalOptions {
  std::string db, cost = "analytic", split = "none", device = "host";
  bool json = false;
};

Json to_json(const cost::Score& score) {
  return {{"kernel", score.kernel_class},
          {"tasks", score.tasks},
          {"trials", score.trials},
          {"pair_accuracy", score.pair_accuracy},
          {"clear_pair_accuracy", score.clear_pair_accuracy},
          {"top1", score.top1},
          {"top5", score.top5},
          {"r_squared", score.r_squared}};
}

void print(const cost::Evaluation& evaluation, const cost::Dataset& dataset, bool json) {
  if (json) {
    Json list = Json::array();
    for (const cost::Score& score : evaluation.classes) list.push_back(to_json(score));
    fmt::print("{}", json_text(Json{{"classes", list}, {"all", to_json(evaluation.all)}}));
    return;
  }
  Table table({"kernel", "tasks", "trials", "pairs", "clear", "top-1", "top-5", "R^2"}, 1);
  const auto add = [&](const cost::Score& score) {
    table.add({shorten(score.kernel_class, 40), std::to_string(score.tasks),
               std::to_string(score.trials), fmt::format("{:.3f}", score.pair_accuracy),
               fmt::format("{:.3f}", score.clear_pair_accuracy), fmt::format("{:.3f}", score.top1),
               fmt::format("{:.3f}", score.top5), fmt::format("{:.2f}", score.r_squared)});
  };
  for (const cost::Score& score : evaluation.classes) add(score);
  add(evaluation.all);
  fmt::print("{}", table.text());
  if (dataset.left_out > 0)
    fmt::print("{} records left out: no schedule of this version can be made of them\n",
               dataset.left_out);
}

struct Data {
  target::Target target;
  cost::Dataset dataset;
};

Result<Data> load(const std::string& db, const std::string& device) {
  Data data;
  HONE_ASSIGN_OR_RETURN(data.target, target::find(device));
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(db, {.read_only = true, .create = false}));
  HONE_ASSIGN_OR_RETURN(data.dataset, cost::load_dataset(*store, target::device_key(data.target)));
  return data;
}

Result<cost::FeatureSet> learning_model(const std::string& name) {
  for (const auto set : {cost::FeatureSet::kStatements, cost::FeatureSet::kStatementsAndMeasure}) {
    if (name == cost::model_name(set)) return set;
  }
  return invalid(
      "cost model '{}' cannot be trained here, expected gbdt or combined (a trained file is judged "
      "as it is, without --split)",
      name);
}

Status evaluate(const EvalOptions& options) {
  HONE_ASSIGN_OR_RETURN(const cost::Split split, cost::parse_split(options.split));
  const bool trains = split != cost::Split::kNone && options.cost != "analytic";
  cost::FeatureSet features{};
  if (trains) {
    HONE_ASSIGN_OR_RETURN(features, learning_model(options.cost));
  } else {
    HONE_RETURN_IF_ERROR(cost::make_model(options.cost).status());
  }
  HONE_ASSIGN_OR_RETURN(const Data data, load(options.db, options.device));
  const auto make = [&](const cost::Dataset& rest) -> Result<std::unique_ptr<cost::CostModel>> {
    if (!trains) return cost::make_model(options.cost);
    HONE_ASSIGN_OR_RETURN(cost::TrainedTrees trees, cost::train(rest, data.target, features));
    return cost::make_gbdt_model(std::move(trees));
  };
  HONE_ASSIGN_OR_RETURN(const cost::Evaluation evaluation,
                        cost::cross_evaluate(data.dataset, data.target, split, make));
  print(evaluation, data.dataset, options.json);
  return ok_status();
}

struct TrainOptions {
  std::string db, output, cost = "combined", device = "host";
  std::vector<std::string> excluded;
};

Status train(const TrainOptions& options) {
  HONE_ASSIGN_OR_RETURN(const cost::FeatureSet features, learning_model(options.cost));
  if (!cost::is_model_file(options.output))
    return invalid(
        "--output {}: --cost would not take it for a file, expected a name ending in .model",
        options.output);
  HONE_ASSIGN_OR_RETURN(const Data data, load(options.db, options.device));
  const std::set<std::string> models = data.dataset.models();
  for (const std::string& name : options.excluded) {
    if (!models.contains(name))
      return invalid("--exclude-model: the database has no trial of '{}', but of {}", name,
                     fmt::join(models, ", "));
  }
  const cost::Dataset dataset =
      cost::without_models(data.dataset, {options.excluded.begin(), options.excluded.end()});
  if (dataset.tasks.empty())
    return invalid("{}: no trials on device {} to train on", options.db,
                   target::device_key(data.target));
  HONE_ASSIGN_OR_RETURN(const cost::TrainedTrees trained,
                        cost::train(dataset, data.target, features));
  HONE_RETURN_IF_ERROR(write_file_atomic(options.output, cost::format(trained)));
  fmt::print("wrote {}: {} trees from {} schedules of {} tasks\n", options.output,
             trained.trees.size(), dataset.size(), dataset.tasks.size());
  return ok_status();
}

}  // namespace

Command train_command(CLI::App& root) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* app =
      root.add_subcommand("train", "Train a cost model on the measured schedules of a database");
  add_db(*app, options->db);
  add_device(*app, options->device);
  app->add_option("-o,--output", options->output, "The file to write, FILE.model")
      ->type_name("FILE")
      ->required();
  app->add_option("--cost", options->cost,
                  "gbdt: trees over features of statements; combined: the analytic model, too")
      ->type_name("NAME")
      ->capture_default_str();
  app->add_option("--exclude-model", options->excluded,
                  "Leave out every task of this network; repeat per network")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  return {app, [options] { return train(*options); }};
}

Command eval_command(CLI::App& root) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* app = root.add_subcommand(
      "eval", "Judge a cost model by the measured schedules of a database, per kernel class");
  add_db(*app, options->db);
  add_device(*app, options->device);
  app->add_option("--cost", options->cost,
                  fmt::format("The cost model: {}, or a file that hone train wrote",
                              join_names(cost::model_names())))
      ->type_name("NAME")
      ->capture_default_str();
  app->add_option("--split", options->split,
                  "What a model that learns is trained on anew and judged by: none: it stays as it "
                  "is; by-model: each network in turn is held out; by-task, within: a fifth of the "
                  "tasks, of the schedules of each")
      ->type_name("SPLIT")
      ->capture_default_str();
  add_json(*app, options->json);
  app->footer(
      "pairs: share of pairs of schedules in the right order; top-k: best time / best among the k "
      "that are\npredicted to be fastest. Means over tasks of 8 schedules and more.");
  return {app, [options] { return evaluate(*options); }};
}

}  // namespace hone::tool
