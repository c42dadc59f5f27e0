#include "hone/search/movable.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "hone/base/hash.h"
#include "hone/base/options.h"
#include "hone/compute/class_family.h"
#include "hone/compute/dag_text.h"
#include "hone/search/prediction.h"
#include "hone/search/sensitivity.h"
#include "hone/search/transfer.h"

namespace hone::search {
namespace {

using Scores = std::map<std::string, double, std::less<>>;

constexpr size_t kAlike = 3;       // measured tasks that a task is compared with
constexpr double kNearest = 0.25;  // distance of shapes within which tasks count alike
constexpr double kPrior = 1;       // weight of all tasks; a task at kNearest has 1 / (2 * kNearest)
// Tasks whose shares of memory are so far apart hardly count for each other.
constexpr double kSharesApart = 0.2;
constexpr double kLeastShare = 0.01;  // of memory or of arithmetic in a schedule's time
// The predicted best point, whose loss without a role is asked for.
constexpr BestPredictedOptions kPredictedBest = {.samples = 400, .climbers = 3, .max_climb = 8};

}  // namespace

Scores mean_effects(std::span<const trial::TaskSensitivity> tasks) {
  std::map<std::string, std::pair<double, int>, std::less<>> sums;
  for (const trial::TaskSensitivity& task : tasks) {
    for (const auto& [role, effect] : task.roles) {
      auto& [sum, count] = sums[role];
      sum += effect.size(), ++count;
    }
  }
  Scores means;
  for (const auto& [role, sum] : sums) means[role] = sum.first / sum.second;
  return means;
}

Scores effects_like(std::span<const trial::TaskSensitivity> tasks, const compute::Dag& dag) {
  const std::string family = compute::class_family(compute::kernel_class(dag)),
                    shape = compute::describe(dag);
  std::vector<std::pair<double, const trial::TaskSensitivity*>> alike;
  for (const trial::TaskSensitivity& task : tasks) {
    if (compute::class_family(task.kernel_class) == family)
      alike.emplace_back(shape_distance(task.shape, shape), &task);
  }
  std::ranges::stable_sort(alike, {}, [](const auto& near) { return near.first; });
  if (alike.size() > kAlike) alike.resize(kAlike);
  Scores scores = mean_effects(tasks);
  for (auto& [role, score] : scores) {
    double sum = kPrior * score, weights = kPrior;
    for (const auto& [distance, task] : alike) {
      const auto effect = task->roles.find(role);
      if (effect == task->roles.end() || !std::isfinite(distance)) continue;
      const double weight = 1 / (kNearest + distance);
      sum += weight * effect->second.size(), weights += weight;
    }
    score = sum / weights;
  }
  return scores;
}

Scores effects_by_memory(std::span<const trial::TaskSensitivity> tasks, double memory) {
  Scores scores = mean_effects(tasks);
  for (auto& [role, score] : scores) {
    double sum = kPrior * score, weights = kPrior;
    for (const trial::TaskSensitivity& task : tasks) {
      const auto effect = task.roles.find(role);
      if (effect == task.roles.end() || !task.memory) continue;
      const double apart = (*task.memory - memory) / kSharesApart;
      const double weight = std::exp(-apart * apart) / kNearest;
      sum += weight * effect->second.size(), weights += weight;
    }
    score = sum / weights;
  }
  return scores;
}

Result<MovableDecisions> MovableDecisions::parse(std::string_view text, bool powers_of_two) {
  MovableDecisions parsed;
  parsed.text_ = text;
  parsed.powers_of_two_ = powers_of_two;
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::optional<std::string_view> rest =
      colon == std::string_view::npos ? std::nullopt : std::optional(text.substr(colon + 1));
  if (text == "all") return parsed;
  if (name == "roles" && rest) {
    parsed.by_ = By::kNames;
    for (size_t at = 0; at <= rest->size();) {
      const size_t end = std::min(rest->find('+', at), rest->size());
      parsed.names_.emplace(rest->substr(at, end - at));
      at = end + 1;
    }
    if (parsed.names_.contains(""))
      return invalid("'{}': expected names of roles after ':', as in roles:column+order", text);
    return parsed;
  }
  const std::pair<std::string_view, By> kinds[] = {{"random", By::kRandom},
                                                   {"learned", By::kLearned},
                                                   {"predicted", By::kPredicted},
                                                   {"scores", By::kScores}};
  const auto kind = std::ranges::find(kinds, name, [](const auto& k) { return k.first; });
  const bool is_count = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  if (kind == std::end(kinds) && !is_count)
    return invalid(
        "unknown choice '{}', expected all, a number of roles, random:N, learned:N, predicted:N, "
        "scores:N or roles:NAME+NAME",
        text);
  parsed.by_ = is_count ? By::kDevice : kind->second;
  const std::optional<std::string_view> number = is_count ? std::optional(text) : rest;
  if (!number) return parsed;
  const Result<int64_t> count = parse_int(*number, 1, kMostCount);
  if (!count.ok()) return invalid("number of roles: {}", count.status().message());
  parsed.count_ = static_cast<int>(*count);
  return parsed;
}

Status MovableDecisions::set_sensitivities(std::vector<trial::TaskSensitivity> measured,
                                           std::string_view where) {
  if (!needs_sensitivities()) {
    measured_ = std::move(measured);
    return ok_status();
  }
  if (measured.empty())
    return error(
        Code::kNotFound,
        "--movable {} needs to know how much the roles of decisions matter, and nothing is "
        "stored of {}: measure it with hone sensitivity",
        text_, where);
  const auto known = static_cast<int>(mean_effects(measured).size());
  if (count_ > known)
    return invalid("--movable {}: found {} roles, expected at most the {} that were measured on {}",
                   text_, count_, known, where);
  measured_ = std::move(measured);
  return ok_status();
}

// Roles count by what they change about that which limits the task: the time that its default
// schedule spends on memory or on arithmetic, each by its share. What was measured says so, or else
// what the model predicts of both when a role moves.
Result<Scores> MovableDecisions::score_by_bounds(const SearchTask& task) const {
  const space::Point usual = task.space->default_point();
  const std::optional<trial::BoundScores> limits = predict_bounds(task, {&usual, 1})[0];
  if (!limits) return error(Code::kNotFound, "the default schedule of a task is not legal");
  const bool learned = std::ranges::any_of(
      measured_, [](const trial::TaskSensitivity& known) { return known.memory.has_value(); });
  if (learned) return effects_by_memory(measured_, limits->memory);
  const Evaluate limited_seconds = [&](std::span<const space::Point> points) {
    std::vector<double> seconds = predict_log_seconds(task, points);
    const auto bounds = predict_bounds(task, points);
    for (size_t i = 0; i < points.size(); ++i) {
      if (!bounds[i]) continue;
      const double memory = std::log(std::max(bounds[i]->memory, kLeastShare)),
                   core = std::log(std::max(bounds[i]->core, kLeastShare));
      seconds[i] += limits->memory * memory + limits->core * core;
    }
    for (double& value : seconds) value = std::exp(value);
    return Result<std::vector<double>>(std::move(seconds));
  };
  const space::Point best = best_predicted(task, kPredictedBest).point;
  HONE_ASSIGN_OR_RETURN(const trial::RoleEffects effects,
                        role_effects(*task.space, best, limited_seconds));
  Scores scores;
  for (const auto& [role, effect] : effects) scores[role] = effect.size();
  return scores;
}

Result<Scores> MovableDecisions::score(const SearchTask& task, const compute::Dag& dag,
                                       const std::vector<std::string>& roles) const {
  if (by_ == By::kDevice) return mean_effects(measured_);
  if (by_ == By::kLearned) return effects_like(measured_, dag);
  if (by_ == By::kScores) return score_by_bounds(task);
  Scores scores;
  if (by_ == By::kRandom) {  // one order for all tasks
    for (const std::string& role : roles) {
      const uint64_t draw = hash_combine(task.seed, hash_string(role));
      scores[role] = static_cast<double>(draw >> 11);
    }
    return scores;
  }
  const Evaluate predict = [&](std::span<const space::Point> points) {
    std::vector<double> seconds = predict_log_seconds(task, points);
    for (double& value : seconds) value = std::exp(value);
    return Result<std::vector<double>>(std::move(seconds));
  };
  const space::Point best = best_predicted(task, kPredictedBest).point;
  HONE_ASSIGN_OR_RETURN(const trial::RoleEffects effects, role_effects(*task.space, best, predict));
  for (const auto& [role, effect] : effects) scores[role] = effect.size();
  return scores;
}

Result<space::Movable> MovableDecisions::choose(const SearchTask& task,
                                                const compute::Dag& dag) const {
  space::Movable movable{.powers_of_two = powers_of_two_};
  if (by_ == By::kAll) return movable;
  if (by_ == By::kNames) {
    movable.roles = names_;
    return movable;
  }
  std::vector<std::string> roles = space::open_roles(*task.space);
  if (std::ssize(roles) <= count_) return movable;
  HONE_ASSIGN_OR_RETURN(const Scores scores, score(task, dag, roles));
  // Roles of which nothing is known come last.
  std::ranges::stable_sort(roles, std::greater(), [&](const std::string& role) {
    const auto known = scores.find(role);
    return known == scores.end() ? -1.0 : known->second;
  });
  movable.roles.emplace(roles.begin(), roles.begin() + count_);
  return movable;
}

Status MovableDecisions::check_names(std::span<const space::Space* const> spaces) const {
  if (by_ != By::kNames) return ok_status();
  std::set<std::string> roles, open;
  for (const space::Space* space : spaces) {
    roles.merge(space::roles(*space));
    for (std::string& role : space::open_roles(*space)) open.insert(std::move(role));
  }
  if (open.empty()) return ok_status();  // there is nothing to decide, whatever may move
  for (const std::string& name : names_) {
    if (!roles.contains(name))
      return invalid(
          "--movable {}: no decision of these kernels has the role '{}', expected some of {}",
          text_, name, fmt::join(roles, ", "));
  }
  const bool moves =
      std::ranges::any_of(names_, [&](const std::string& name) { return open.contains(name); });
  return moves ? ok_status() : nothing_moves(open);
}

Status MovableDecisions::nothing_moves(const std::set<std::string>& roles) const {
  return invalid("--movable {} leaves nothing to move: the decisions of these kernels are {}",
                 text_, fmt::join(roles, ", "));
}

}  // namespace hone::search
