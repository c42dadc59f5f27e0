#include "hone/search/recall.h"

#include <cmath>

#include "hone/search/prediction.h"

namespace hone::search {
namespace {

constexpr double kMostError = 3;  // logarithms of seconds: what is more is an accident

}  // namespace

void Recall::observe(const SearchTask& task, std::span<const space::Point> points,
                     std::span<const double> seconds) {
  const std::vector<double> predicted = predict_log_seconds(task, points);
  std::vector<double> errors(points.size(), INFINITY);
  Level& level = levels_[task.key];
  for (size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(seconds[i]) || !std::isfinite(predicted[i])) continue;
    errors[i] =
        std::clamp(std::log(std::max(seconds[i], 1e-12)) - predicted[i], -kMostError, kMostError);
    level.sum += errors[i];
    ++level.count;
  }
  for (size_t i = 0; i < points.size(); ++i) {
    if (std::isfinite(errors[i]))
      memory_.learn(task, points[i], errors[i] - level.sum / level.count);
  }
  ++revision_;
}

Status Recall::load(std::string_view state) {
  HONE_ASSIGN_OR_RETURN(memory_, EffectMemory::parse(state));
  ++revision_;
  return ok_status();
}

}  // namespace hone::search
