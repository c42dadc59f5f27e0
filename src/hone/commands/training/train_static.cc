#include "hone/commands/training/train_static.h"

#include <cmath>
#include <set>

#include "hone/base/cancel.h"
#include "hone/base/file.h"
#include "hone/commands/training/model_card.h"
#include "hone/session/static_model.h"

namespace hone {
namespace {

// The fit has few coefficients: these many schedules of a task, spread over its times, suffice.
constexpr size_t kMostOfATask = 48;

// Every n-th schedule of a task, in the order of their times.
std::vector<const learn::MeasuredSteps*> spread(const learn::TaskTrials& task) {
  std::vector<const learn::MeasuredSteps*> sorted;
  for (const learn::MeasuredSteps& trial : task.trials) sorted.push_back(&trial);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
  if (sorted.size() <= kMostOfATask) return sorted;
  std::vector<const learn::MeasuredSteps*> chosen;
  for (size_t i = 0; i < kMostOfATask; ++i)
    chosen.push_back(sorted[i * (sorted.size() - 1) / (kMostOfATask - 1)]);
  return chosen;
}

Status check_data(std::span<const MeasuredData> data) {
  std::set<uint64_t> tasks;
  const std::string set = cost::instruction_set(data[0].target.cpu());
  for (const MeasuredData& device : data) {
    const std::string other = cost::instruction_set(device.target.cpu());
    if (other != set) {
      return invalid(
          "--device: {} has {}, {} has {}, expected one instruction set for --cost static",
          data[0].device.text(), set, device.device.text(), other);
    }
    tasks.merge(device.dataset.keys());
  }
  if (tasks.size() >= 2) return ok_status();
  return invalid(
      "--cost static: the data has {} task, expected two or more to tell coefficients apart",
      tasks.size());
}

}  // namespace

Result<TrainSummary> train_static(const std::string& output, std::span<const MeasuredData> data,
                                  const cost::StaticOptions& used, const TrainOptions& options) {
  HONE_RETURN_IF_ERROR(check_data(data));
  std::vector<cost::StaticSample> samples;
  std::set<uint64_t> tasks;
  int64_t left_out = 0;
  for (const MeasuredData& device : data) {
    for (const learn::TaskTrials& task : device.dataset.tasks) {
      for (const learn::MeasuredSteps* trial : spread(task)) {
        if (options.interrupted != nullptr && *options.interrupted)
          return error(Code::kCancelled, "interrupted: {} is not written", output);
        HONE_ASSIGN_OR_RETURN(const space::Candidate candidate,
                              space::make_candidate(*task.dag, trial->steps));
        const cost::Query query{&candidate, &device.target, task.threads, task.key};
        Result<std::vector<double>> features = static_features(query);
        if (!features.ok()) {
          ++left_out;
          continue;
        }
        samples.push_back({*std::move(features), trial->seconds, device.target.cpu().ghz});
        tasks.insert(task.key);
      }
    }
  }
  if (tasks.size() < 2)
    return invalid(
        "--cost static: the code of {} schedules could not be counted, and what is left "
        "has {} task, expected two or more",
        left_out, tasks.size());
  cost::StaticScore score{
      cost::instruction_set(data[0].target.cpu()), cost::fit_static(samples, used), {}};
  for (const MeasuredData& device : data) score.card["devices"] += device.device.text() + " ";
  if (!options.options.empty()) score.card["options"] = options.options;
  score.card["schedules"] = std::to_string(samples.size());
  score.card["tasks"] = std::to_string(tasks.size());
  HONE_RETURN_IF_ERROR(write_file_atomic(output, cost::format(score)));
  return TrainSummary{.kind = "static",
                      .schedules = std::ssize(samples),
                      .tasks = std::ssize(tasks),
                      .weights = std::ssize(score.coefficients),
                      .epochs = {}};
}

}  // namespace hone
