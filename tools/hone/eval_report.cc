#include "eval_report.h"

#include "model_card.h"
#include "table.h"

namespace hone::tool {
namespace {

Json to_json(const learn::Score& score) {
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

Json to_json(const learn::NetworkScore& score) {
  return {
      {"network", score.network},     {"threads", score.threads},           {"tasks", score.tasks},
      {"listed_tasks", score.listed}, {"best_seconds", score.best_seconds}, {"top1", score.top1()},
      {"top5", score.top5()}};
}

void print_networks(std::span<const learn::NetworkScore> networks) {
  if (networks.empty()) return;
  Table table({"network", "threads", "tasks", "best ms", "top-1", "top-5"}, 1);
  double top1 = 0, top5 = 0;
  int tasks = 0;
  for (const learn::NetworkScore& score : networks) {
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

void print_by_schedules(std::span<const learn::ScheduleCountScore> scores) {
  if (scores.empty()) return;
  Table table({"schedules of a task", "tasks", "pairs", "clear", "top-1", "top-5", "peak-5",
               "network top-1", "network top-5"},
              0);
  for (const learn::ScheduleCountScore& one : scores) {
    std::vector<std::string> row = {std::to_string(one.schedules), std::to_string(one.score.tasks)};
    for (const double value :
         {one.score.pair_accuracy, one.score.clear_pair_accuracy, one.score.top1, one.score.top5,
          one.score.peak5, one.network_top1, one.network_top5})
      row.push_back(fmt::format("{:.3f}", value));
    table.add(std::move(row));
  }
  fmt::print("\n{}", table.text());
}

}  // namespace

void print(const learn::Evaluation& evaluation, const Printed& how) {
  if (how.json) {
    Json list = Json::array();
    for (const learn::Score& score : evaluation.classes) list.push_back(to_json(score));
    Json networks = Json::array();
    for (const learn::NetworkScore& score : evaluation.networks) networks.push_back(to_json(score));
    Json text = {{"classes", list},
                 {"all", to_json(evaluation.all)},
                 {"not_judged", evaluation.not_judged},
                 {"networks", networks}};
    if (!how.replay.is_null()) text["replay"] = how.replay;
    if (!how.card.is_null()) text["card"] = how.card;
    for (const learn::ScheduleCountScore& score : evaluation.by_schedules) {
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
  const auto add = [&](const learn::Score& score) {
    table.add({shorten(score.kernel_class, 40), std::to_string(score.tasks),
               std::to_string(score.trials), fmt::format("{:.3f}", score.pair_accuracy),
               fmt::format("{:.3f}", score.clear_pair_accuracy), fmt::format("{:.3f}", score.top1),
               fmt::format("{:.3f}", score.top5), fmt::format("{:.3f}", score.peak5),
               fmt::format("{:.2f}", score.r_squared), fmt::format("{:.3f}", score.rmse),
               fmt::format("{:.3f}", score.seconds.r_squared()),
               fmt::format("{:.3f}", score.log_seconds.r_squared())});
  };
  for (const learn::Score& score : evaluation.classes) add(score);
  add(evaluation.all);
  fmt::print("{}", table.text());
  if (evaluation.not_judged > 0)
    fmt::print("tasks of fewer than {} schedules, not judged: {}\n", learn::kMinTrialsToJudge,
               evaluation.not_judged);
  print_networks(evaluation.networks);
  print_by_schedules(evaluation.by_schedules);
  fmt::print("{}", card_line(how.card));
}

std::string predictions_line(const learn::TaskTrials& task, std::span<const double> predicted) {
  Json schedules = Json::array(), measured = Json::array();
  for (const learn::MeasuredSteps& trial : task.trials) {
    schedules.push_back(fmt::format("{:016x}", schedule::hash(trial.steps)));
    measured.push_back(trial.seconds);
  }
  const Json line = {{"task", fmt::format("{:016x}", task.key)},
                     {"kernel_class", task.kernel_class},
                     {"threads", task.threads},
                     {"models", task.models},
                     {"schedules", schedules},
                     {"measured", measured},
                     {"predicted", predicted}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hone::tool
