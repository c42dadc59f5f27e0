#include "hone/evaluate.h"

#include <algorithm>

#include "hone/commands/inspect.h"
#include "hone/commands/training/training_data.h"
#include "hone/cost/gbdt_model.h"
#include "hone/cost/own_model.h"
#include "hone/learn/adapted_scores.h"
#include "hone/learn/evaluate.h"
#include "hone/learn/replay.h"
#include "hone/learn/task_list.h"
#include "hone/learn/train_trees.h"
#include "hone/session/cost_models.h"

namespace hone {
namespace {

// What is judged: a model as it is, one that is trained for each part, or none.
struct Judged {
  std::string name;
  bool trains = false;
  cost::ModelWithCard known = {};  // one that is judged as it is
  cost::FeatureSet features{};     // of trees that are trained
  cost::BoostOptions boosting;
};

// Returns why a library that fits trees would have nothing to do, or ok.
Status check_booster(const EvaluateOptions& options, const std::string& name, bool trees) {
  if (options.booster.empty()) return ok_status();
  std::string found = fmt::format("--cost {} is judged as it is", name);
  if (trees) found += " without --split or --split-file";
  if (!options.replay.empty()) found = "--replay trains nothing";
  return invalid("--booster: for fitting trees, but {}", found);
}

// The caller's own model is judged as it is.
Result<Judged> own_model(const EvaluateOptions& options, learn::Split split, OwnCostModel& own,
                         FirstFailure& failure) {
  if (!options.cost.empty() || !options.replay.empty() || split != learn::Split::kNone)
    return invalid(
        "a cost model of the caller's own is judged as it is, expected no cost, replay or split");
  HONE_ASSIGN_OR_RETURN(const target::Target target, measured_target(options.device));
  Judged judged{.name = "own", .boosting = {}};
  HONE_ASSIGN_OR_RETURN(judged.known.model, cost::make_own_model(own, target.kind(), failure));
  return judged;
}

Result<Judged> choose_model(const EvaluateOptions& options, learn::Split split) {
  Judged judged{.name = options.cost.empty() ? "analytic" : options.cost, .boosting = {}};
  const bool by_file = !options.split_file.empty();
  if (judged.name == cost::kAutoModel) {
    HONE_ASSIGN_OR_RETURN(const target::Target target, measured_target(options.device));
    judged.name = cost::default_model(target);
  }
  // What is trained anew is of a kind, not of a processor.
  if (by_file || split != learn::Split::kNone) judged.name = cost::model_kind(judged.name);
  const bool trees = tree_features(judged.name).ok();
  const bool learns = by_file ? trees : split != learn::Split::kNone && judged.name != "analytic";
  judged.trains = learns && options.replay.empty();
  HONE_ASSIGN_OR_RETURN(judged.boosting.library, parse_booster(options.booster));
  if (judged.trains) {
    if (!trees) {
      return invalid(
          "cost model '{}' cannot be trained here, expected gbdt, combined or gpu (a trained file is "
          "judged as it is, without --split)",
          judged.name);
    }
    HONE_ASSIGN_OR_RETURN(judged.features, tree_features(judged.name));
    return judged;
  }
  HONE_RETURN_IF_ERROR(check_booster(options, judged.name, trees));
  if (options.replay.empty() || !options.cost.empty()) {
    HONE_ASSIGN_OR_RETURN(judged.known,
                          make_cost_model_with_card(
                              {.cost = judged.name, .db = options.db, .use = cost::Use::kRank}));
  }
  return judged;
}

// Judges by the times that another device took for the same schedules, or this one when they were
// measured again, instead of a model or as what corrects one.
Result<Evaluation> evaluate_replay(const EvaluateOptions& options, MeasuredStore& store,
                                   const MeasuredData& data, const learn::Judging& judging,
                                   const cost::CostModel* model) {
  HONE_ASSIGN_OR_RETURN(const MeasuredDevice other,
                        parse_measured_device("--replay", options.replay));
  const bool apart = !options.replay_db.empty();
  if (!apart && other.overlaps(data.device)) {
    return invalid("--replay: {} is judged by its own times, expected another device than {}",
                   other.text(), data.device.text());
  }
  learn::Dataset judged = data.dataset;
  if (!options.split_file.empty()) {
    HONE_ASSIGN_OR_RETURN(learn::SplitData parts, parts_of(data, options.split_file));
    judged = std::move(parts.test);
  }
  MeasuredStore others(options.replay_db);
  HONE_ASSIGN_OR_RETURN(const learn::Dataset measured, (apart ? others : store).load(other));
  target::Target target;
  std::optional<learn::Translation> translation;
  if (model != nullptr) {
    HONE_ASSIGN_OR_RETURN(target, measured_target(options.replay));
    translation = {model, &target, other.threads};
  }
  const learn::Replay replay = learn::make_replay(judged, measured, other.threads > 0, translation);
  if (replay.coverage.tasks == 0) {
    return invalid("--replay: no task has {} schedules that were measured on {} and on {}",
                   kMinTrialsToJudge, data.device.text(), other.text());
  }
  HONE_ASSIGN_OR_RETURN(Evaluation evaluation,
                        learn::evaluate(replay.dataset, data.target, *replay.model, judging));
  evaluation.replay = replay.coverage;
  evaluation.replay->device = other.text();
  return evaluation;
}

// Judges a model that is as it is, or that is trained on what is not judged.
Result<Evaluation> evaluate_model(const EvaluateOptions& options, const MeasuredData& data,
                                  learn::Split split, const learn::Judging& judging,
                                  Judged& judged) {
  const auto make = [&](const learn::Dataset& rest) -> Result<std::unique_ptr<cost::CostModel>> {
    if (judged.known.model) return std::move(judged.known.model);
    if (!judged.trains) return cost::make_model(judged.name);  // "analytic": others have one part
    const learn::DeviceTrials trials = {&rest, &data.target};
    HONE_ASSIGN_OR_RETURN(cost::TrainedTrees trees,
                          learn::train_trees({&trials, 1}, judged.features, judged.boosting));
    return cost::make_gbdt_model(std::move(trees));
  };
  if (options.split_file.empty())
    return learn::cross_evaluate(data.dataset, data.target, split, make, judging);
  HONE_ASSIGN_OR_RETURN(const learn::SplitData parts, parts_of(data, options.split_file));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost::CostModel> model, make(parts.train));
  return learn::evaluate(parts.test, data.target, *model, judging);
}

Status check_adapting(const EvaluateOptions& options, const Judged& judged) {
  for (const int count : options.adapt_samples) {
    if (count < 0) return invalid("--adapt-samples: {}, expected 0 or more", count);
  }
  if (options.adapt_samples.empty()) {
    if (options.adapt != "none")
      return invalid("--adapt {}: for learning from schedules, but there is no --adapt-samples",
                     options.adapt);
    return ok_status();
  }
  const char* found = judged.trains            ? "a model is trained for each part"
                      : options.replay.empty() ? nullptr
                                               : "--replay learns nothing";
  if (found != nullptr)
    return invalid("--adapt-samples: for a model that is judged as it is, but {}", found);
  return ok_status();
}

// Judges fresh models, each by a task from some of whose schedules it has learnt.
Result<std::vector<AdaptedScore>> evaluate_adapted(const EvaluateOptions& options,
                                                   const MeasuredData& data, const Judged& judged) {
  if (options.adapt_samples.empty()) return std::vector<AdaptedScore>();
  std::vector<int> samples = options.adapt_samples;
  std::sort(samples.begin(), samples.end());
  samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
  learn::Dataset dataset = data.dataset;
  if (!options.split_file.empty()) {
    HONE_ASSIGN_OR_RETURN(learn::SplitData parts, parts_of(data, options.split_file));
    dataset = std::move(parts.test);
  }
  // A net is judged alone: what it cannot judge is refused, not left to another model.
  const cost::Use use = judged.name.ends_with(".onnx") ? cost::Use::kRank : cost::Use::kSearch;
  const auto make = [&] {
    return make_cost_model(
        {.cost = judged.name, .db = options.db, .adapt = options.adapt, .use = use});
  };
  Result<std::vector<AdaptedScore>> scores =
      learn::adapted_scores(dataset, data.target, samples, make);
  if (!scores.ok()) return invalid("--adapt-samples: {}", scores.status().message());
  return scores;
}

Result<Evaluation> evaluate_with(const EvaluateOptions& options, OwnCostModel* own) {
  HONE_ASSIGN_OR_RETURN(const learn::Split split, learn::parse_split(options.split));
  for (const int count : options.schedules) {
    if (count < 2) return invalid("--schedules: {}, expected 2 or more", count);
  }
  FirstFailure failure;
  HONE_ASSIGN_OR_RETURN(Judged judged, own != nullptr ? own_model(options, split, *own, failure)
                                                      : choose_model(options, split));
  HONE_RETURN_IF_ERROR(check_adapting(options, judged));
  MeasuredStore store(options.db);
  HONE_ASSIGN_OR_RETURN(MeasuredData data, store.load(options.device));
  if (judged.known.model)
    HONE_RETURN_IF_ERROR(cost::check_knows(*judged.known.model, judged.name, data.target));
  if (judged.trains)
    HONE_RETURN_IF_ERROR(check_kind(data.target, cost::device_kind(judged.features),
                                    fmt::format("--cost {}", judged.name)));
  learn::Judging judging = {
      .networks = {}, .schedules = options.schedules, .on_task = options.on_task};
  std::set<std::string> files;
  for (const std::string& file : options.networks) {
    HONE_ASSIGN_OR_RETURN(TaskCounts counts,
                          count_tasks(file, {.model = {.linked_data = options.linked_data},
                                             .target = {.device = data.target.name},
                                             .records = {.use_db = false}}));
    judging.networks[counts.model] = std::move(counts.tasks);
    files.merge(counts.files);
  }
  if (!options.except.empty()) data.dataset = learn::tasks_except(data.dataset, options.except);
  Result<Evaluation> evaluation =
      options.replay.empty()
          ? evaluate_model(options, data, split, judging, judged)
          : evaluate_replay(options, store, data, judging, judged.known.model.get());
  HONE_RETURN_IF_ERROR(failure.status());
  if (!evaluation.ok()) return evaluation;
  if (options.replay.empty()) evaluation->card = judged.known.card;
  evaluation->files = std::move(files);
  HONE_ASSIGN_OR_RETURN(evaluation->adapted, evaluate_adapted(options, data, judged));
  return evaluation;
}

}  // namespace

Result<Evaluation> evaluate(const EvaluateOptions& options) {
  return evaluate_with(options, nullptr);
}

Result<Evaluation> evaluate(const EvaluateOptions& options, OwnCostModel& model) {
  return evaluate_with(options, &model);
}

}  // namespace hone
