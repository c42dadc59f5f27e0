#include "hone/learn/train_trees.h"

#include "hone/base/hash.h"
#include "hone/cost/tree_samples.h"

namespace hone::learn {
namespace {

Result<std::vector<cost::TreeSample>> make_samples(std::span<const DeviceTrials> devices,
                                                   cost::FeatureSet features) {
  std::vector<cost::TreeSample> samples;
  for (size_t device = 0; device < devices.size(); ++device) {
    const auto& [dataset, target] = devices[device];
    for (const TaskTrials& task : dataset->tasks) {
      // Another device or number of threads makes another order of the same schedules.
      const uint64_t group = hash_combine(task.key, hash_combine(device, task.threads));
      for (const MeasuredSteps& trial : task.trials) {
        HONE_ASSIGN_OR_RETURN(const space::Candidate candidate,
                              space::make_candidate(*task.dag, trial.steps));
        samples.push_back(cost::make_tree_sample({&candidate, target, task.threads, group},
                                                 trial.seconds, features));
      }
    }
  }
  return samples;
}

}  // namespace

Result<cost::TrainedTrees> train_trees(std::span<const DeviceTrials> devices,
                                       cost::FeatureSet features,
                                       const cost::BoostOptions& options) {
  HONE_RETURN_IF_ERROR(cost::boosting_status(options.library));
  HONE_ASSIGN_OR_RETURN(const std::vector<cost::TreeSample> samples,
                        make_samples(devices, features));
  HONE_ASSIGN_OR_RETURN(cost::Trees trees, cost::boost(cost::training_rows(samples), options));
  const bool pairs = options.pairs > 0 && options.rounds > options.value_trees;
  return cost::TrainedTrees{
      features, std::move(trees), {{cost::kLossNote, pairs ? cost::kPairsLoss : "values"}}};
}

Result<cost::TrainedTrees> adapt_trees(cost::TrainedTrees known,
                                       std::span<const DeviceTrials> devices,
                                       cost::TreeLibrary library) {
  HONE_RETURN_IF_ERROR(cost::boosting_status(library));
  HONE_ASSIGN_OR_RETURN(const std::vector<cost::TreeSample> samples,
                        make_samples(devices, known.features));
  cost::BoostOptions options = cost::kFewTrees;
  options.library = library;
  HONE_ASSIGN_OR_RETURN(const cost::Trees more,
                        cost::boost(cost::training_rows(samples, known.trees), options));
  known.trees.append(more);
  return known;
}

}  // namespace hone::learn
