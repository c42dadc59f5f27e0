#include "hone/cost/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>

#include "hone/base/file.h"
#include "hone/cost/analytic_model.h"
#include "hone/cost/gbdt_model.h"
#include "hone/cost/pretrained.h"

namespace hone::cost {
namespace {

using SharedTrees = std::shared_ptr<const TrainedTrees>;

ModelWithCard with_card(const SharedTrees& trained, Use use) {
  const double trust = use == Use::kSearch ? trust_in_search(*trained) : 1;
  std::map<std::string, std::string> card = trained->card;
  card["trees"] = std::to_string(trained->trees.size());  // in a file it is no note
  return {make_gbdt_model(trained, trust), std::move(card)};
}

// Returns the trees of a model that ships with Hone, which a process parses once.
Result<SharedTrees> shipped_trees(const Pretrained& shipped) {
  static std::mutex mutex;
  static std::map<std::string_view, SharedTrees> parsed;
  const std::lock_guard lock(mutex);
  SharedTrees& trees = parsed[shipped.name];
  if (trees == nullptr) {
    HONE_ASSIGN_OR_RETURN(TrainedTrees trained, parse_shipped(shipped.text, shipped.name));
    trees = std::make_shared<const TrainedTrees>(std::move(trained));
  }
  return trees;
}

}  // namespace

Result<ModelWithCard> make_trained_model(std::string_view text, std::string_view name, Use use) {
  HONE_ASSIGN_OR_RETURN(TrainedTrees trained, parse_trained(text, name));
  return with_card(std::make_shared<const TrainedTrees>(std::move(trained)), use);
}

Result<std::unique_ptr<CostModel>> make_model(std::string_view name, Use use) {
  HONE_ASSIGN_OR_RETURN(ModelWithCard made, make_model_with_card(name, use));
  return std::move(made.model);
}

Result<ModelWithCard> make_model_with_card(std::string_view name, Use use) {
  if (name == "analytic") return ModelWithCard{make_analytic_model()};
  // No trees of GPUs ship with Hone: it is the analytic model until it has learned.
  if (name == model_name(FeatureSet::kGpu))
    return ModelWithCard{make_gbdt_model({.features = FeatureSet::kGpu, .trees = {}})};
  for (const Pretrained& shipped : pretrained_models()) {
    if (name != shipped.name) continue;
    HONE_ASSIGN_OR_RETURN(const SharedTrees trees, shipped_trees(shipped));
    return with_card(trees, use);
  }
  if (is_model_file(name)) {
    HONE_ASSIGN_OR_RETURN(const std::string text, read_file(std::string(name)));
    return make_trained_model(text, name, use);
  }
  return invalid("unknown cost model '{}', expected one of {} or a file FILE.model or FILE.onnx",
                 name, fmt::join(model_names(), ", "));
}

Status check_knows(const CostModel& model, std::string_view name, const target::Target& target) {
  const target::Kind kind = target.kind();
  if (model.knows(kind)) return ok_status();
  const bool gpu = kind == target::Kind::kGpu;
  return error(Code::kUnsupported, "cost model '{}' knows {} only, expected {} for device {}", name,
               gpu ? "CPUs" : "GPUs", gpu ? "gpu or analytic" : "one of CPUs", target.name);
}

std::string_view model_kind(std::string_view name) {
  for (const Pretrained& shipped : pretrained_models()) {
    if (name == shipped.name) return model_name(shipped.features);
  }
  return name;
}

std::string default_model(const target::Target& target) {
  if (target.kind() == target::Kind::kGpu) return std::string(model_name(FeatureSet::kGpu));
  const target::Cpu& cpu = target.cpu();
  const bool known = cpu.triple.starts_with("x86_64") && cpu.vector_bytes >= 32;
  if (!known) return "analytic";
  const std::string usual(model_name(FeatureSet::kCombined)), own = usual + "-" + cpu.model;
  const std::span<const Pretrained> shipped = pretrained_models();
  const bool learned = std::any_of(shipped.begin(), shipped.end(),
                                   [&](const Pretrained& model) { return model.name == own; });
  return learned ? own : usual;
}

bool is_model_file(std::string_view name) {
  return name.ends_with(".model") || name.find('/') != std::string_view::npos;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names = {"analytic", std::string(model_name(FeatureSet::kGpu))};
  for (const Pretrained& shipped : pretrained_models()) names.emplace_back(shipped.name);
  return names;
}

}  // namespace hone::cost
