#include "hone/cost/boosting.h"

#include <fmt/ranges.h>

#include "hone/base/assert.h"
#include "hone/base/named.h"
#include "hone/base/option_fields.h"
#include "hone/cost/lightgbm.h"
#include "hone/cost/tree_loss.h"
#include "hone/cost/xgboost.h"

namespace hone::cost {
namespace {

constexpr Named<TreeLibrary> kLibraries[] = {{"xgboost", TreeLibrary::kXgboost},
                                             {"lightgbm", TreeLibrary::kLightgbm}};

constexpr OptionField<BoostOptions> kBoostOptions[] = {
    {"trees", "number of trees", 1, 100000, &BoostOptions::rounds},
    {"levels", "most levels of a tree", 1, 16, &BoostOptions::depth},
    {"leaves", "most leaves of a tree; 0: as many as its levels allow", 0, 4096,
     &BoostOptions::leaves},
    {"rate", "learning rate", 1e-4, 1, &BoostOptions::learning_rate},
    {"features", "share of the features that a tree may use", 0.01, 1,
     &BoostOptions::feature_share},
    {"pairs", "pairs per schedule to whose order trees are fitted; 0: trees are fitted to values",
     0, 1000, &BoostOptions::pairs},
    {"value_trees", "number of trees before those that are fitted to values", 0, 100000,
     &BoostOptions::value_trees},
    {"leaf_weight", "least weight of a leaf", 0, 1e6, &BoostOptions::min_leaf_weight},
    {"gain", "least gain of a split", 0, 1e6, &BoostOptions::min_gain},
};

}  // namespace

Result<BoostOptions> parse_boost_options(std::string_view text, BoostOptions options) {
  HONE_ASSIGN_OR_RETURN(options, parse_fields<BoostOptions>(text, kBoostOptions, options));
  if (options.leaves == 1) return invalid("leaves: found 1, expected 0, or 2 and more");
  return options;
}

std::vector<std::string> boost_option_help() {
  return fields_help<BoostOptions>(kBoostOptions, {});
}

Result<TreeLibrary> parse_tree_library(std::string_view name) {
  if (const std::optional<TreeLibrary> library = find_named(kLibraries, name)) return *library;
  return invalid("found '{}', expected {}", name, fmt::join(tree_library_names(), " or "));
}

std::vector<std::string> tree_library_names() { return names_of(kLibraries); }

Status boosting_status(TreeLibrary library) {
  return library == TreeLibrary::kXgboost ? xgboost_status() : lightgbm_status();
}

Result<Trees> boost(const TrainingRows& rows, const BoostOptions& options) {
  if (rows.rows() == 0) return invalid("there is nothing to train a cost model on");
  HONE_ASSERT(rows.features.size() == rows.rows() * static_cast<size_t>(rows.width) &&
                  rows.group.size() == rows.rows() && rows.weight.size() == rows.rows() &&
                  rows.known.size() == rows.rows(),
              "every row has its features, what is known, group and weight");
  const bool xgboost = options.library == TreeLibrary::kXgboost;
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Booster> booster,
      xgboost ? make_xgboost_booster(rows, options) : make_lightgbm_booster(rows, options));
  const TreeLoss loss(rows, options);
  std::vector<float> gradient(rows.rows()), hessian(rows.rows());
  for (int round = 0; round < options.rounds; ++round) {
    HONE_ASSIGN_OR_RETURN(const std::span<const float> predicted, booster->predict());
    loss.find(predicted, round, gradient, hessian);
    HONE_RETURN_IF_ERROR(booster->boost(gradient, hessian));
  }
  return booster->trees();
}

}  // namespace hone::cost
