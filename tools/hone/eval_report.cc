#include "eval_report.h"

#include <fmt/ranges.h>

#include "hone/base/hash.h"

#include "json_text.h"
#include "table.h"

namespace hone::tool {
namespace {

Json to_json(const Score& score) {
  return {{"kernel", score.kernel_class},
          {"tasks", score.tasks},
          {"trials", score.trials},
          {"pair_accuracy", score.pair_accuracy},
          {"clear_pair_accuracy", score.clear_pair_accuracy},
          {"top1", score.top1},
          {"top5", score.top5},
          {"peak5", score.peak5},
          {"sum10", score.sum10},
          {"sum10_tasks", score.sum10_tasks},
          {"sum50", score.sum50},
          {"sum50_tasks", score.sum50_tasks},
          {"r_squared", score.r_squared},
          {"rmse", score.rmse},
          {"r_squared_seconds", score.r_squared_seconds},
          {"r_squared_log_seconds", score.r_squared_log_seconds}};
}

Json to_json(const NetworkScore& score) {
  return {
      {"network", score.network},     {"threads", score.threads},           {"tasks", score.tasks},
      {"listed_tasks", score.listed}, {"best_seconds", score.best_seconds}, {"top1", score.top1()},
      {"top5", score.top5()}};
}

// Too few schedules say nothing about a choice of many.
std::string sum_text(double score, int tasks) {
  return tasks == 0 ? "-" : fmt::format("{:.3f}", score);
}

void print_networks(std::span<const NetworkScore> networks) {
  if (networks.empty()) return;
  Table table({"network", "threads", "tasks", "best ms", "top-1", "top-5"}, 1);
  double top1 = 0, top5 = 0;
  int tasks = 0;
  for (const NetworkScore& score : networks) {
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

void print_by_schedules(std::span<const ScheduleCountScore> scores) {
  if (scores.empty()) return;
  Table table({"schedules of a task", "tasks", "pairs", "clear", "top-1", "top-5", "peak-5",
               "network top-1", "network top-5"},
              0);
  for (const ScheduleCountScore& one : scores) {
    std::vector<std::string> row = {std::to_string(one.schedules), std::to_string(one.score.tasks)};
    for (const double value :
         {one.score.pair_accuracy, one.score.clear_pair_accuracy, one.score.top1, one.score.top5,
          one.score.peak5, one.network_top1, one.network_top5})
      row.push_back(fmt::format("{:.3f}", value));
    table.add(std::move(row));
  }
  fmt::print("\n{}", table.text());
}

Json to_json(const ScheduleCountScore& score) {
  Json one = to_json(score.score);
  one.erase("kernel");
  one["schedules"] = score.schedules;
  one["network_top1"] = score.network_top1, one["network_top5"] = score.network_top5;
  return one;
}

Json to_json(const AdaptedScore& score) {
  return {{"samples", score.samples},
          {"tasks", score.tasks},
          {"refused", score.refused},
          {"schedules", score.schedules},
          {"mse", score.mse},
          {"top_mse", score.top_mse},
          {"pair_accuracy", score.pair_accuracy}};
}

void print_adapted(std::span<const AdaptedScore> scores) {
  if (scores.empty()) return;
  Table table({"learnt from", "tasks", "schedules", "MSE", "MSE(D)", "pairs"}, 0);
  for (const AdaptedScore& score : scores) {
    table.add({std::to_string(score.samples), std::to_string(score.tasks),
               std::to_string(score.schedules), fmt::format("{:.4f}", score.mse),
               fmt::format("{:.4f}", score.top_mse), fmt::format("{:.3f}", score.pair_accuracy)});
  }
  fmt::print("\n{}", table.text());
}

Json to_json(const BoundsScore& bounds) {
  return {{"predicted_by", bounds.predicted_by},    {"judged_by", bounds.judged_by},
          {"schedules", bounds.schedules},          {"memory_error", bounds.memory_error},
          {"core_error", bounds.core_error},        {"memory_r_squared", bounds.memory_r_squared},
          {"core_r_squared", bounds.core_r_squared}};
}

void print_bounds(const BoundsScore& bounds) {
  fmt::print(
      "memory and core scores by the {}, against {} scores of {} schedules: off by {:.3f} and "
      "{:.3f} on average, R^2 {:.3f} and {:.3f}\n",
      bounds.predicted_by, bounds.judged_by, bounds.schedules, bounds.memory_error,
      bounds.core_error, bounds.memory_r_squared, bounds.core_r_squared);
}

void print_classes(const Evaluation& evaluation) {
  Table table({"kernel", "tasks", "trials", "pairs", "clear", "top-1", "top-5", "peak-5", "sum-10",
               "sum-50", "R^2", "RMSE", "R^2 s", "R^2 ln s"},
              1);
  const auto add = [&](const Score& score) {
    table.add({shorten(score.kernel_class, 40), std::to_string(score.tasks),
               std::to_string(score.trials), fmt::format("{:.3f}", score.pair_accuracy),
               fmt::format("{:.3f}", score.clear_pair_accuracy), fmt::format("{:.3f}", score.top1),
               fmt::format("{:.3f}", score.top5), fmt::format("{:.3f}", score.peak5),
               sum_text(score.sum10, score.sum10_tasks), sum_text(score.sum50, score.sum50_tasks),
               fmt::format("{:.2f}", score.r_squared), fmt::format("{:.3f}", score.rmse),
               fmt::format("{:.3f}", score.r_squared_seconds),
               fmt::format("{:.3f}", score.r_squared_log_seconds)});
  };
  for (const Score& score : evaluation.classes) add(score);
  add(evaluation.all);
  fmt::print("{}", table.text());
}

// Returns how the model was trained, without notes that are empty; null if nothing is known.
Json card_of(const Evaluation& evaluation) {
  Json json;
  for (const auto& [name, value] : evaluation.card) {
    if (!value.empty()) json[name] = value;
  }
  return json;
}

}  // namespace

void print(const Evaluation& evaluation, bool json) {
  const Json card = card_of(evaluation);
  const std::optional<ReplayCoverage>& replay = evaluation.replay;
  if (json) {
    Json list = Json::array();
    for (const Score& score : evaluation.classes) list.push_back(to_json(score));
    Json networks = Json::array();
    for (const NetworkScore& score : evaluation.networks) networks.push_back(to_json(score));
    Json text = {{"classes", list},
                 {"all", to_json(evaluation.all)},
                 {"not_judged", evaluation.not_judged},
                 {"refused", evaluation.refused},
                 {"networks", networks}};
    if (replay) {
      text["replay"] = {{"device", replay->device},
                        {"tasks", replay->tasks},
                        {"of_tasks", replay->all_tasks},
                        {"schedules", replay->schedules},
                        {"of_schedules", replay->all_schedules}};
    }
    if (evaluation.bounds) text["bounds"] = to_json(*evaluation.bounds);
    if (!card.is_null()) text["card"] = card;
    for (const ScheduleCountScore& score : evaluation.by_schedules)
      text["by_schedules"].push_back(to_json(score));
    for (const AdaptedScore& score : evaluation.adapted) text["adapted"].push_back(to_json(score));
    fmt::print("{}", json_text(text));
    return;
  }
  print_classes(evaluation);
  if (evaluation.not_judged > 0)
    fmt::print("tasks of fewer than {} schedules, not judged: {}\n", kMinTrialsToJudge,
               evaluation.not_judged);
  print_networks(evaluation.networks);
  print_by_schedules(evaluation.by_schedules);
  print_adapted(evaluation.adapted);
  if (evaluation.bounds) print_bounds(*evaluation.bounds);
  std::vector<std::string> notes;
  for (const auto& [name, value] : card.items())
    notes.push_back(fmt::format("{} {}", name, value.get<std::string>()));
  if (!notes.empty()) fmt::print("trained: {}\n", fmt::join(notes, "; "));
  if (replay) {
    fmt::print("replayed from {}: {} of {} tasks, {} of {} schedules\n", replay->device,
               replay->tasks, replay->all_tasks, replay->schedules, replay->all_schedules);
  }
}

std::string predictions_line(const TaskPrediction& task) {
  Json schedules = Json::array();
  for (const uint64_t hash : task.schedules) schedules.push_back(hash_hex(hash));
  const Json line = {{"task", hash_hex(task.task)}, {"kernel_class", task.kernel_class},
                     {"threads", task.threads},     {"models", task.models},
                     {"schedules", schedules},      {"measured", task.measured},
                     {"predicted", task.predicted}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hone::tool
