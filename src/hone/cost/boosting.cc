#include "hone/cost/boosting.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hone/base/assert.h"
#include "hone/base/named.h"
#include "hone/cost/lightgbm.h"
#include "hone/cost/xgboost.h"

namespace hone::cost {
namespace {

constexpr Named<TreeLibrary> kLibraries[] = {{"xgboost", TreeLibrary::kXgboost},
                                             {"lightgbm", TreeLibrary::kLightgbm}};

// Gradients of 1/2 sum of weight * (error - centring * mean error of the group)^2, with the mean
// taken as given.
void find_gradients(const TrainingRows& rows, double centring, std::span<const float> predicted,
                    std::vector<float>& gradient) {
  const int groups = 1 + *std::max_element(rows.group.begin(), rows.group.end());
  std::vector<double> error(static_cast<size_t>(groups)), weight(static_cast<size_t>(groups));
  for (size_t i = 0; i < rows.rows(); ++i) {
    const auto g = static_cast<size_t>(rows.group[i]);
    error[g] += rows.weight[i] * (predicted[i] - rows.target[i]);
    weight[g] += rows.weight[i];
  }
  for (size_t i = 0; i < rows.rows(); ++i) {
    const auto g = static_cast<size_t>(rows.group[i]);
    const double mean = error[g] / std::max(weight[g], 1e-9);
    const double own = predicted[i] - rows.target[i];
    gradient[i] = static_cast<float>(rows.weight[i] * (own - centring * mean));
  }
}

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
                  rows.group.size() == rows.rows() && rows.weight.size() == rows.rows(),
              "every row has its features, group and weight");
  const bool xgboost = options.library == TreeLibrary::kXgboost;
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Booster> booster,
      xgboost ? make_xgboost_booster(rows, options) : make_lightgbm_booster(rows, options));
  std::vector<float> gradient(rows.rows()), hessian = rows.weight;
  for (int round = 0; round < options.rounds; ++round) {
    HONE_ASSIGN_OR_RETURN(const std::span<const float> predicted, booster->predict());
    find_gradients(rows, options.centring, predicted, gradient);
    HONE_RETURN_IF_ERROR(booster->boost(gradient, hessian));
  }
  return booster->trees();
}

}  // namespace hone::cost
