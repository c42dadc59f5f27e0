#include "hone/cost/evaluate.h"
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
  return {{"kernel", score.kernel_class},         {"tasks", score.tasks}, {"trials", score.trials},
          {"pair_accuracy", score.pair_accuracy}, {"top1", score.top1},   {"top5", score.top5},
          {"r_squared", score.r_squared}};
}

void print(const cost::Evaluation& evaluation, const cost::Dataset& dataset, bool json) {
  if (json) {
    Json list = Json::array();
    for (const cost::Score& score : evaluation.classes) list.push_back(to_json(score));
    fmt::print("{}", json_text(Json{{"classes", list}, {"all", to_json(evaluation.all)}}));
    return;
  }
  Table table({"kernel", "tasks", "trials", "pairs", "top-1", "top-5", "R^2"}, 1);
  const auto add = [&](const cost::Score& score) {
    table.add({shorten(score.kernel_class, 40), std::to_string(score.tasks),
               std::to_string(score.trials), fmt::format("{:.3f}", score.pair_accuracy),
               fmt::format("{:.3f}", score.top1), fmt::format("{:.3f}", score.top5),
               fmt::format("{:.2f}", score.r_squared)});
  };
  for (const cost::Score& score : evaluation.classes) add(score);
  add(evaluation.all);
  fmt::print("{}", table.text());
  if (dataset.left_out > 0)
    fmt::print("{} records left out: no schedule of this version can be made of them\n",
               dataset.left_out);
}

Status evaluate(const EvalOptions& options) {
  HONE_ASSIGN_OR_RETURN(const cost::Split split, cost::parse_split(options.split));
  HONE_RETURN_IF_ERROR(cost::make_model(options.cost).status());
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::find(options.device));
  HONE_ASSIGN_OR_RETURN(const auto store,
                        db::open_store(options.db, {.read_only = true, .create = false}));
  HONE_ASSIGN_OR_RETURN(const cost::Dataset dataset,
                        cost::load_dataset(*store, target::device_key(target)));
  HONE_ASSIGN_OR_RETURN(const cost::Evaluation evaluation,
                        cost::cross_evaluate(dataset, target, split, [&](const cost::Dataset&) {
                          return cost::make_model(options.cost);
                        }));
  print(evaluation, dataset, options.json);
  return ok_status();
}

}  // namespace

Command eval_command(CLI::App& root) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* app = root.add_subcommand(
      "eval", "Judge a cost model by the measured schedules of a database, per kernel class");
  add_db(*app, options->db);
  add_device(*app, options->device);
  app->add_option("--cost", options->cost,
                  fmt::format("The cost model: {}", join_names(cost::model_names())))
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
