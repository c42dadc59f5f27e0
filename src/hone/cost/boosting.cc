#include "hone/cost/boosting.h"

#include <fmt/ranges.h>

#include "hone/base/assert.h"
#include "hone/base/named.h"
#include "hone/cost/lightgbm.h"
#include "hone/cost/tree_loss.h"
#include "hone/cost/xgboost.h"

namespace hone::cost {
namespace {

constexpr Named<TreeLibrary> kLibraries[] = {{"xgboost", TreeLibrary::kXgboost},
                                             {"lightgbm", TreeLibrary::kLightgbm}};

}  // namespace

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
