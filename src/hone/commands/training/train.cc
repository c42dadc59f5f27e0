#include "hone/train.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hone/base/assert.h"
#include "hone/base/file.h"
#include "hone/base/options.h"
#include "hone/commands/training/model_card.h"
#include "hone/commands/training/train_from.h"
#include "hone/commands/training/train_net.h"
#include "hone/commands/training/train_static.h"
#include "hone/cost/gbdt_model.h"
#include "hone/db/registry.h"
#include "hone/learn/task_list.h"
#include "hone/learn/train_trees.h"

namespace hone {
namespace {

// Reads trees to start from, with a card that says so.
Result<cost::TrainedTrees> read_trees(const TrainOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(options.from));
  HONE_ASSIGN_OR_RETURN(cost::TrainedTrees known, start_trees(text, options.from));
  const std::string_view kind = cost::model_name(known.features);
  if (!options.cost.empty() && options.cost != kind) {
    return invalid("--cost: {} has trees of kind {}, not {}: expected {}, or no --cost",
                   options.from, kind, options.cost, kind);
  }
  return known;
}

// Returns the part of a device's data that is trained on.
Result<MeasuredData> chosen(MeasuredData data, const TrainData& options) {
  if (!options.split_file.empty()) {
    HONE_ASSIGN_OR_RETURN(learn::SplitData parts, parts_of(data, options.split_file));
    data.dataset = std::move(parts.train);
    data.validation = std::move(parts.validation);
  }
  if (!options.only.empty()) {
    // What is not among them was not measured yet, so that nothing is chosen by it either.
    if (data.validation) learn::append(data.dataset, *data.validation);
    data.validation.reset();
    data.dataset = learn::tasks_among(data.dataset, options.only);
  }
  const std::set<std::string> excluded(options.exclude_models.begin(),
                                       options.exclude_models.end());
  data.dataset = learn::without_models(data.dataset, excluded);
  if (data.validation) data.validation = learn::without_models(*data.validation, excluded);
  if (data.dataset.tasks.empty())
    return invalid("{}: no trials on device {} to train on", db::store_name(options.db),
                   data.device.text());
  return data;
}

Result<std::vector<MeasuredData>> load(const TrainOptions& options) {
  std::vector<MeasuredData> all;
  std::set<std::string> models;
  std::vector<std::string> devices;
  MeasuredStore store(options.data.db);
  for (const std::string& device : options.data.devices) {
    HONE_ASSIGN_OR_RETURN(const MeasuredDevice measured, parse_measured_device("--device", device));
    for (const MeasuredData& other : all) {
      if (measured.overlaps(other.device))
        return invalid("--device: {} and {} have the same schedules", other.device.text(),
                       measured.text());
    }
    HONE_ASSIGN_OR_RETURN(MeasuredData data, store.load(device));
    models.merge(data.dataset.models());
    devices.push_back(measured.text());
    HONE_ASSIGN_OR_RETURN(data, chosen(std::move(data), options.data));
    all.push_back(std::move(data));
  }
  const std::string names = fmt::format("{}", fmt::join(devices, ", "));
  HONE_RETURN_IF_ERROR(
      check_networks("--exclude-model", options.data.exclude_models, models, names));
  HONE_RETURN_IF_ERROR(check_networks("--hold-out", options.net.validation_models, models, names));
  return all;
}

Status check_name(const std::string& output, const char* ending) {
  if (output.ends_with(ending)) return ok_status();
  return invalid("--output {}: --cost would not take it for a file, expected a name ending in {}",
                 output, ending);
}

Result<TrainSummary> train_trees(const std::string& output, const TrainOptions& options) {
  HONE_ASSIGN_OR_RETURN(cost::FeatureSet features,
                        tree_features(options.cost.empty() ? "combined" : options.cost));
  cost::BoostOptions boosting;
  HONE_ASSIGN_OR_RETURN(boosting.library, parse_booster(options.booster));
  std::optional<cost::TrainedTrees> known;
  if (!options.from.empty()) {
    if (!options.options.empty()) {
      return invalid(
          "--options: for fitting trees anew, but --from {} adds a few that correct them",
          options.from);
    }
    HONE_ASSIGN_OR_RETURN(known, read_trees(options));
  }
  HONE_ASSIGN_OR_RETURN(
      boosting, of_option("--options", cost::parse_boost_options(options.options, boosting)));
  HONE_RETURN_IF_ERROR(cost::boosting_status(boosting.library));
  HONE_RETURN_IF_ERROR(check_name(output, ".model"));
  HONE_ASSIGN_OR_RETURN(std::vector<MeasuredData> data, load(options));
  if (known) features = known->features;
  if (options.cost.empty() && !known && data[0].target.kind() == target::Kind::kGpu)
    features = cost::FeatureSet::kGpu;
  for (const MeasuredData& device : data) {
    HONE_RETURN_IF_ERROR(check_kind(device.target, cost::device_kind(features),
                                    fmt::format("--cost {}", cost::model_name(features))));
  }
  if (options.data.tasks > 0) {
    std::vector<learn::Dataset*> all;
    for (MeasuredData& device : data) all.push_back(&device.dataset);
    HONE_RETURN_IF_ERROR(learn::keep_tasks(all, options.data.tasks, options.seed));
  }
  std::vector<learn::DeviceTrials> devices;
  TrainedOn trained_on;
  for (const MeasuredData& device : data) {
    devices.push_back({&device.dataset, &device.target});
    trained_on.add(device.device, device.dataset);
  }
  HONE_ASSIGN_OR_RETURN(cost::TrainedTrees trained,
                        known ? learn::adapt_trees(*std::move(known), devices, boosting.library)
                              : learn::train_trees(devices, features, boosting));
  trained.card.merge(
      tree_notes(trained_on, options.data.exclude_models, boosting.library, options.seed));
  if (!options.options.empty()) trained.card["options"] = options.options;
  HONE_RETURN_IF_ERROR(write_file_atomic(output, cost::format(trained)));
  return TrainSummary{.kind = std::string(cost::model_name(trained.features)),
                      .schedules = trained_on.schedules,
                      .tasks = std::ssize(trained_on.tasks),
                      .trees = static_cast<int64_t>(trained.trees.size()),
                      .epochs = {}};
}

Result<TrainSummary> train_score(const std::string& output, const TrainOptions& options) {
  for (const auto& [text, option] :
       {std::pair(&options.from, "--from"), std::pair(&options.booster, "--booster")}) {
    if (!text->empty())
      return invalid("{} {}: --cost static fits a few coefficients and has none", option, *text);
  }
  HONE_ASSIGN_OR_RETURN(const cost::StaticOptions used,
                        of_option("--options", cost::parse_static_options(options.options)));
  HONE_RETURN_IF_ERROR(check_name(output, ".model"));
  HONE_ASSIGN_OR_RETURN(std::vector<MeasuredData> data, load(options));
  for (const MeasuredData& device : data)
    HONE_RETURN_IF_ERROR(check_kind(device.target, target::Kind::kCpu, "--cost static"));
  if (options.data.tasks > 0) {
    std::vector<learn::Dataset*> all;
    for (MeasuredData& device : data) all.push_back(&device.dataset);
    HONE_RETURN_IF_ERROR(learn::keep_tasks(all, options.data.tasks, options.seed));
  }
  return train_static(output, data, used, options);
}

}  // namespace

const TrainEpoch& TrainSummary::best() const {
  const auto found = std::find_if(epochs.rbegin(), epochs.rend(),
                                  [](const TrainEpoch& epoch) { return epoch.best; });
  HONE_ASSERT(found != epochs.rend(), "a net was trained");
  return *found;
}

Result<TrainSummary> train(const std::string& output, const TrainOptions& options) {
  if (options.data.devices.empty()) return invalid("--device: none, expected one or more");
  if (options.cost == "static") return train_score(output, options);
  const bool from_trees = options.from.ends_with(".model");
  const bool names_net = cost::net::find_family(options.cost).ok();
  if (from_trees && names_net) {
    return invalid("--cost: {} has trees, expected gbdt, combined or gpu, or no --cost, not {}",
                   options.from, options.cost);
  }
  if (!names_net && (options.from.empty() || from_trees)) return train_trees(output, options);
  if (options.from.empty() && !options.net.adapt.empty())
    return invalid("--adapt {}: needs a net to start from, expected --from", options.net.adapt);
  HONE_RETURN_IF_ERROR(check_name(output, ".onnx"));
  const std::string state = train_state_file(output);
  if (!options.net.resume && file_exists(state))
    return invalid("{}: left by an interrupted training; go on with --resume, or remove it", state);
  HONE_ASSIGN_OR_RETURN(const std::vector<MeasuredData> data, load(options));
  for (const MeasuredData& device : data)
    HONE_RETURN_IF_ERROR(check_kind(device.target, target::Kind::kCpu, "a neural net"));
  return train_net(output, data, options);
}

std::string train_state_file(const std::string& output) { return output + ".state"; }

TrainChoices train_choices() {
  TrainChoices choices{.nets = {},
                       .tree_options = cost::boost_option_help(),
                       .static_options = cost::static_option_help(),
                       .boosters = cost::tree_library_names(),
                       .losses = cost::net::loss_names(),
                       .adapt = adapt_names(),
                       .places = cost::net::train_place_names(),
                       .meta = cost::net::meta_names(),
                       .meta_options = {}};
  for (const cost::net::FamilyOption& option : cost::net::meta_options())
    choices.meta_options.push_back(
        {std::string(option.name), option.value, std::string(option.help)});
  for (const cost::net::Family* family : cost::net::families()) {
    choices.nets.push_back({std::string(family->name), std::string(family->help), {}});
    for (const cost::net::FamilyOption& option : family->options)
      choices.nets.back().options.push_back(
          {std::string(option.name), option.value, std::string(option.help)});
  }
  return choices;
}

}  // namespace hone
