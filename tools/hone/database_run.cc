#include "database_run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "hone/device.h"
#include "hone/stored_kernels.h"

#include "interrupt.h"

namespace hone::tool {
namespace {

// A longer time without a measurement is a pause between runs.
constexpr int64_t kPauseSeconds = 60;

using GroupKey = std::tuple<std::string, int, std::string>;  // device, threads, version

void add_part(const TrialInfo& trial, PartTimes& times) {
  if (trial.outcome == "ok")
    times.seconds[trial.steps] = trial.seconds;
  else
    ++times.failed;
}

struct Group {
  TuningRun run;
  std::map<uint64_t, size_t> kernels;  // index in run.kernels
  std::map<std::string, FailureSummary> failures;
  std::set<std::string> models;
  int64_t last_time = 0, pauses = 0;

  void add(const TrialInfo& trial) {
    if (run.trials == 0) {
      run.device = trial.device;
      run.threads = trial.threads;
      run.began = last_time = trial.unix_time;
    }
    if (trial.unix_time - last_time > kPauseSeconds) pauses += trial.unix_time - last_time;
    last_time = std::max(last_time, trial.unix_time);
    run.seconds = static_cast<double>(last_time - run.began - pauses);
    const auto [entry, fresh] = kernels.try_emplace(trial.task, run.kernels.size());
    if (fresh) {
      run.kernels.emplace_back();
      run.kernels.back().task.key = trial.task;
    }
    if (!trial.part.empty()) {
      add_part(trial, run.kernels[entry->second].parts[trial.part]);
      return;
    }
    run.kernels[entry->second].history.add(trial, run.seconds, ++run.trials);
    if (!trial.model.empty()) models.insert(trial.model);
    if (trial.outcome == "ok") return;
    FailureSummary& alike = failures[trial.outcome];
    alike.outcome = trial.outcome;
    if (++alike.count == 1) alike.first = trial.message;
  }
};

std::string describe(const GroupKey& key, const Group& group) {
  return fmt::format("{} trials on {} with {} threads (schedules of version {})", group.run.trials,
                     std::get<0>(key), std::get<1>(key), std::get<2>(key));
}

// The name by which a device is compiled for; none for another machine than this one.
std::optional<std::string> name_of_device(const std::string& key) {
  for (const std::string& name : device_names()) {
    const Result<Device> device = find_device(name);
    if (device.ok() && device->key == key) return name;
  }
  return std::nullopt;
}

// What the kernels compute, and the programs of their best schedules.
Status add_tasks(const std::string& db, TuningRun& run) {
  CompileOptions options;
  options.records.db = db;
  options.records.use_shipped = false;
  options.target.threads = run.threads;
  options.advanced.cost = "analytic";
  options.interrupted = &listen_for_interrupt();
  const std::optional<std::string> device = name_of_device(run.device);
  if (device) options.target.device = *device;
  std::stable_sort(run.kernels.begin(), run.kernels.end(), [](const auto& a, const auto& b) {
    return a.history.best_seconds() > b.history.best_seconds();
  });
  std::vector<StoredKernelQuery> queries;
  for (const RunKernel& kernel : run.kernels)
    queries.push_back({kernel.task.key, kernel.history.best_steps()});
  HONE_ASSIGN_OR_RETURN(std::vector<StoredKernel> found,
                        stored_kernels(queries, options, device ? kMostTextBytes : 0));
  int64_t unknown = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    unknown += found[i].problem.empty() ? 0 : 1;
    run.kernels[i].task = std::move(found[i].task);
    run.kernels[i].programs = std::move(found[i].programs);
    run.kernels[i].task.seconds = run.kernels[i].history.best_seconds();
    if (!device) run.kernels[i].task.matrix.clear();
  }
  if (!device)
    run.notes.push_back(
        "The device is not this machine, nor one that hone knows by name: there "
        "are no loop programs and no limits.");
  if (unknown > 0)
    run.notes.push_back(
        fmt::format("Of {} kernels the loop program is not known, as the database "
                    "has no text of the task that this version reads, or no "
                    "schedule that applies to it.",
                    unknown));
  return ok_status();
}

}  // namespace

Result<TuningRun> database_run(const std::string& db, const TrialFilter& filter) {
  HONE_ASSIGN_OR_RETURN(Database database, Database::open(db));
  std::map<GroupKey, Group> groups;
  TrialFilter all = filter;
  all.parts = true;
  HONE_RETURN_IF_ERROR(database.for_each(all, [&](TrialInfo&& trial) {
    groups[{trial.device, trial.threads, trial.version}].add(trial);
    return ok_status();
  }));
  const auto most = std::max_element(
      groups.begin(), groups.end(),
      [](const auto& a, const auto& b) { return a.second.run.trials < b.second.run.trials; });
  if (most == groups.end())
    return error(Code::kNotFound, "{}: the database has no trial to report", database_name(db));
  Group& group = most->second;
  TuningRun run = std::move(group.run);
  run.of_database = true;
  run.name = database_name(db);
  if (group.models.size() == 1) run.model = *group.models.begin();
  for (auto& [outcome, alike] : group.failures) run.failures.push_back(std::move(alike));
  HONE_RETURN_IF_ERROR(add_tasks(db, run));
  for (const auto& [key, other] : groups) {
    if (&other != &group)
      run.notes.push_back(
          fmt::format("Not shown: {}; --device and --threads choose.", describe(key, other)));
  }
  if (group.models.size() > 1)
    run.notes.push_back(
        fmt::format("The trials are of {} models; --model chooses one.", group.models.size()));
  return run;
}

Limits limits_of_run(const std::string& db, const TuningRun& run) {
  const std::optional<std::string> device = name_of_device(run.device);
  if (!device)
    return Limits::unknown("The limits of the device are not known, as it is not this machine.");
  Result<Limits> limits = Limits::load(db, *device, run.threads);
  if (limits.ok()) return *std::move(limits);
  return Limits::unknown(
      fmt::format("The limits of the device cannot be read: {}.", limits.status().message()));
}

}  // namespace hone::tool
