#include "tuning_run.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include "hone/base/hash.h"

#include "size_report.h"

namespace hone::tool {
namespace {

// More points than pixels are of no use in a plot.
constexpr size_t kMostCurvePoints = 1000;
constexpr size_t kMostKernelPoints = 400;
constexpr size_t kLeastKernelPoints = 20;
constexpr size_t kMostPoints = 40'000;  // of all kernels
constexpr size_t kMostKernelDecisions = 12;
constexpr size_t kLeastKernelDecisions = 4;
constexpr size_t kMostDecisions = 6'000;  // of all kernels

// So many digits that a plot and a table lose nothing.
double rounded(double value) { return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr); }

Json to_json(const std::vector<HistoryPoint>& points) {
  Json at = Json::array(), trial = Json::array(), seconds = Json::array();
  for (const HistoryPoint& point : points) {
    at.push_back(rounded(point.at));
    trial.push_back(point.number);
    seconds.push_back(rounded(point.seconds));
  }
  return {{"at", std::move(at)}, {"trial", std::move(trial)}, {"seconds", std::move(seconds)}};
}

Json to_json(std::span<const DecisionEffect> effects) {
  Json list = Json::array();
  for (const DecisionEffect& effect : effects) {
    list.push_back({{"name", effect.name},
                    {"values", effect.values},
                    {"best", effect.best},
                    {"explained", rounded(effect.explained)},
                    {"other", rounded(effect.other)}});
  }
  return list;
}

Json to_json(const std::map<std::string, PartTimes>& parts) {
  Json list = Json::array();
  for (const auto& [part, times] : parts) {
    list.push_back({{"part", part},
                    {"schedules", times.seconds.size()},
                    {"failed", times.failed},
                    {"seconds", rounded(times.least())},
                    {"largest", rounded(times.most())}});
  }
  return list;
}

const std::string& steps_of(const RunKernel& kernel) {
  return kernel.task.steps.empty() ? kernel.history.best_steps() : kernel.task.steps;
}

double seconds_of(const RunKernel& kernel) {
  if (kernel.task.known_seconds() > 0) return kernel.task.known_seconds();
  return kernel.history.best_seconds();
}

// The decisions of one role in all kernels, each by its share of the model's time.
struct Role {
  double weight = 0, explained = 0, log_other = 0;
  int kernels = 0;
};

Json roles_json(const std::vector<RunKernel>& kernels) {
  std::map<std::string, Role> roles;
  for (const RunKernel& kernel : kernels) {
    const double weight = kernel.task.multiplicity * seconds_of(kernel);
    if (!(weight > 0)) continue;
    std::map<std::string, DecisionEffect> strongest;
    for (DecisionEffect& effect : kernel.history.decisions()) {
      std::string role = effect.name.substr(effect.name.rfind(':') + 1);
      strongest.try_emplace(std::move(role), std::move(effect));  // the first explains most
    }
    for (const auto& [name, effect] : strongest) {
      Role& role = roles[name];
      role.weight += weight;
      role.explained += weight * effect.explained;
      role.log_other += weight * std::log(effect.other);
      ++role.kernels;
    }
  }
  std::vector<std::pair<std::string, Role>> order(roles.begin(), roles.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second.explained / a.second.weight > b.second.explained / b.second.weight;
  });
  Json list = Json::array();
  for (const auto& [name, role] : order) {
    list.push_back({{"role", name},
                    {"explained", rounded(role.explained / role.weight)},
                    {"other", rounded(std::exp(role.log_other / role.weight))},
                    {"kernels", role.kernels}});
  }
  return list;
}

Json to_json(const Roofline& roofline, int threads) {
  Json levels = Json::array(), matrix = Json::array();
  for (const RooflineLevel& level : roofline.levels) {
    levels.push_back(
        {{"name", level.level == 0 ? std::string("memory") : fmt::format("L{}", level.level)},
         {"bandwidth", rounded(level.bandwidth(threads, roofline.cores))}});
  }
  for (const MatrixRate& rate : roofline.matrix)
    matrix.push_back({{"type", rate.type}, {"flops", rate.flops}});
  return {{"flops", rounded(roofline.flops.of(threads, roofline.cores))},
          {"levels", std::move(levels)},
          {"matrix", std::move(matrix)}};
}

// How much of each kernel is in the report.
struct Shares {
  size_t points, decisions;
  explicit Shares(size_t kernels)
      : points(std::clamp(kMostPoints / std::max<size_t>(1, kernels), kLeastKernelPoints,
                          kMostKernelPoints)),
        decisions(std::clamp(kMostDecisions / std::max<size_t>(1, kernels), kLeastKernelDecisions,
                             kMostKernelDecisions)) {}
};

Json to_json(const RunKernel& kernel, const Limits& limits, const Shares& shares) {
  const TaskSummary& task = kernel.task;
  const Limit limit = limits.of(task);
  const KernelHistory& history = kernel.history;
  const double first = history.improvements().empty() ? 0 : history.improvements()[0].seconds;
  const std::vector<DecisionEffect> decisions = history.decisions();
  return {{"key", hash_hex(task.key)},
          {"name", task.name},
          {"kernel", task.kernel_class.empty() ? history.kernel_class() : task.kernel_class},
          {"times", task.multiplicity},
          {"flops", rounded(task.flops)},
          {"least_flops", rounded(task.least_flops)},
          {"bytes", rounded(task.bytes)},
          {"limit_seconds", rounded(limit.seconds > 0 ? limit.seconds : kernel.bound_seconds)},
          {"limit", limit.what},
          {"source", task.source},
          {"from", task.from},
          {"seconds", rounded(seconds_of(kernel))},
          {"measured", task.seconds > 0 || history.best_seconds() > 0},
          {"before_seconds", rounded(task.untuned_seconds > 0 ? task.untuned_seconds : first)},
          {"algorithm", history.best_algorithm()},
          {"trials", std::max<int64_t>(task.trials, history.trials())},
          {"failed", history.failed()},
          {"points", to_json(history.points(shares.points))},
          {"decisions",
           to_json(std::span(decisions).first(std::min(decisions.size(), shares.decisions)))},
          {"sizes", sizes_json(task)},
          {"parts", to_json(kernel.parts)},
          {"steps", steps_of(kernel)},
          {"program", kernel.programs.program},
          {"untuned_steps", kernel.programs.untuned_steps},
          {"untuned_program", kernel.programs.untuned_program}};
}

Json to_json(const std::optional<TuneSeconds>& spent) {
  if (!spent) return nullptr;
  Json json = Json::object();
  for (const auto& [name, seconds] : parts_of(*spent)) json[name] = rounded(seconds);
  json["overlapped"] = rounded(spent->overlapped);
  return json;
}

// Returns which kernels keep their programs: the first in the order of their share.
std::vector<bool> with_programs(const std::vector<RunKernel>& kernels) {
  std::vector<size_t> order(kernels.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return kernels[a].task.multiplicity * seconds_of(kernels[a]) >
           kernels[b].task.multiplicity * seconds_of(kernels[b]);
  });
  std::vector<bool> kept(kernels.size(), false);
  int64_t room = kMostTextBytes;
  for (const RunKernel& kernel : kernels)
    room -= std::ssize(steps_of(kernel)) + std::ssize(kernel.programs.untuned_steps);
  room = std::max(room, kLeastProgramBytes);
  for (const size_t i : order) {
    const TaskPrograms& programs = kernels[i].programs;
    room -= std::ssize(programs.program) + std::ssize(programs.untuned_program);
    if (room < 0) break;
    kept[i] = true;
  }
  return kept;
}

}  // namespace

double PartTimes::least() const {
  double found = 0;
  for (const auto& [steps, one] : seconds) found = found > 0 ? std::min(found, one) : one;
  return found;
}

double PartTimes::most() const {
  double found = 0;
  for (const auto& [steps, one] : seconds) found = std::max(found, one);
  return found;
}

std::vector<std::pair<const char*, double>> parts_of(const TuneSeconds& spent) {
  return {{"measuring", spent.measuring}, {"compiling", spent.compiling},
          {"choosing", spent.choosing},   {"packing", spent.packing},
          {"checking", spent.checking},   {"waiting", spent.waiting},
          {"other", spent.other}};
}

Json to_json(const TuningRun& run, const Limits& limits) {
  Json failures = Json::array(), kernels = Json::array();
  for (const FailureSummary& alike : run.failures) {
    failures.push_back(
        {{"outcome", alike.outcome}, {"count", alike.count}, {"first", alike.first}});
  }
  std::vector<CurveKernel> in_curve;
  for (const RunKernel& kernel : run.kernels)
    in_curve.push_back({&kernel.history, static_cast<double>(kernel.task.multiplicity)});
  const Shares shares(run.kernels.size());
  const std::vector<bool> kept = with_programs(run.kernels);
  for (size_t i = 0; i < run.kernels.size(); ++i) {
    Json kernel = to_json(run.kernels[i], limits, shares);
    if (!kept[i]) kernel["program"] = kernel["untuned_program"] = "";
    kernels.push_back(std::move(kernel));
  }
  return {{"format", kRunFormat},
          {"version", kRunVersion},
          {"of_database", run.of_database},
          {"name", run.name},
          {"model", run.model},
          {"device", run.device},
          {"threads", run.threads},
          {"began", run.began},
          {"seconds", rounded(run.seconds)},
          {"budget", rounded(run.budget)},
          {"trials", run.trials},
          {"running", run.running},
          {"interrupted", run.interrupted},
          {"model_seconds", rounded(run.model_seconds)},
          {"untuned_model_seconds", rounded(run.untuned_model_seconds)},
          {"kept_untuned", run.kept_untuned},
          {"not_compared", run.not_compared},
          {"spent", to_json(run.spent)},
          {"failures", std::move(failures)},
          {"roofline", run.roofline ? to_json(*run.roofline, run.threads) : Json()},
          {"limits_unknown", limits.why_unknown()},
          {"notes", run.notes},
          {"curve", to_json(thinned(model_curve(in_curve), kMostCurvePoints))},
          {"roles", roles_json(run.kernels)},
          {"kernels", std::move(kernels)}};
}

}  // namespace hone::tool
