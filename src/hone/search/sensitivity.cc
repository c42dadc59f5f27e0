#include "hone/search/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "hone/base/assert.h"
#include "hone/space/subspace.h"

namespace hone::search {
namespace {

using trial::RoleEffects;

// A point that differs from another in one role.
struct Variation {
  std::string role;
  bool from_default = true;  // else it is the best one with the role as the default has it
  space::Point point;
};

// So many indices of a decision's options, evenly spread, the first and the last among them.
std::vector<int> spread(const space::Decision& decision, size_t most) {
  std::vector<int> chosen;
  const size_t options = decision.options.size(),
               count = std::min(std::max<size_t>(most, 2), options);
  for (size_t i = 0; i < count; ++i)
    chosen.push_back(static_cast<int>(count < 2 ? 0 : i * (options - 1) / (count - 1)));
  return chosen;
}

class Study {
 public:
  Study(const space::Space& space, const Evaluate& evaluate, const EffectOptions& options)
      : space_(space), evaluate_(evaluate), options_(options) {}
  Result<RoleEffects> run(const std::optional<space::Point>& best);

 private:
  [[nodiscard]] Status find_start(const std::optional<space::Point>& best);
  [[nodiscard]] bool is_open(const space::Point& point, size_t d) const {
    return space_.decisions(point.sketch)[d].options.size() > 1;
  }
  void vary_default();
  void vary_best();
  // A point of which nothing is to be timed shows that the role changes nothing there.
  void add(std::string role, bool from_default, const space::Point& from, space::Point to);

  const space::Space& space_;
  const Evaluate& evaluate_;
  const EffectOptions& options_;
  space::Point usual_;                // the fastest default point
  std::optional<space::Point> best_;  // if it is faster than that
  double usual_seconds_ = INFINITY, best_seconds_ = INFINITY;
  std::vector<Variation> variations_;
  RoleEffects effects_;
};

Status Study::find_start(const std::optional<space::Point>& best) {
  std::vector<space::Point> starts = space_.default_points();
  if (best) starts.push_back(*best);
  HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds, evaluate_(starts));
  HONE_ASSERT(seconds.size() == starts.size(), "one time per point");
  for (size_t i = 0; i < starts.size(); ++i) {
    const bool is_best = best && i + 1 == starts.size();
    if (!is_best && seconds[i] < usual_seconds_) usual_ = starts[i], usual_seconds_ = seconds[i];
    if (is_best && seconds[i] < usual_seconds_) best_ = best, best_seconds_ = seconds[i];
  }
  if (std::isfinite(usual_seconds_)) return ok_status();
  return error(Code::kNotFound, "no default schedule of the task runs");
}

void Study::add(std::string role, bool from_default, const space::Point& from, space::Point to) {
  if (!space_.legal(to)) return;
  to = space_.canonical(std::move(to));
  if (to == space_.canonical(from))
    effects_.try_emplace(std::move(role));
  else
    variations_.push_back({std::move(role), from_default, std::move(to)});
}

void Study::vary_default() {
  const std::vector<space::Decision>& decisions = space_.decisions(usual_.sketch);
  for (size_t d = 0; d < usual_.choices.size(); ++d) {
    if (!is_open(usual_, d)) continue;
    for (const int option : spread(decisions[d], options_.options)) {
      if (option == usual_.choices[d]) continue;
      space::Point point = usual_;
      point.choices[d] = option;
      add(std::string(space::common_role(decisions[d])), true, usual_, std::move(point));
    }
  }
}

void Study::vary_best() {
  if (!best_) return;
  const std::vector<space::Decision>& decisions = space_.decisions(best_->sketch);
  const space::Point usual = space_.default_point(best_->sketch);
  std::map<std::string, space::Point, std::less<>> without;  // by role
  for (size_t d = 0; d < decisions.size(); ++d) {
    if (!is_open(*best_, d)) continue;
    const auto [point, added] =
        without.try_emplace(std::string(space::common_role(decisions[d])), *best_);
    point->second.choices[d] = usual.choices[d];
  }
  for (auto& [role, point] : without) add(role, false, *best_, std::move(point));
}

Result<RoleEffects> Study::run(const std::optional<space::Point>& best) {
  HONE_RETURN_IF_ERROR(find_start(best));
  vary_default();
  vary_best();
  std::vector<space::Point> points;
  for (const Variation& variation : variations_) points.push_back(variation.point);
  HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds, evaluate_(points));
  HONE_ASSERT(seconds.size() == points.size(), "one time per point");
  for (size_t i = 0; i < points.size(); ++i) {
    if (std::isnan(seconds[i])) continue;
    trial::RoleEffect& effect = effects_[variations_[i].role];
    if (!std::isfinite(seconds[i])) continue;
    if (variations_[i].from_default)
      effect.gain = std::max(effect.gain, std::log(usual_seconds_ / seconds[i]));
    else
      effect.loss = std::max(effect.loss, std::log(seconds[i] / best_seconds_));
  }
  return std::move(effects_);
}

}  // namespace

Result<RoleEffects> role_effects(const space::Space& space, const std::optional<space::Point>& best,
                                 const Evaluate& evaluate, const EffectOptions& options) {
  return Study(space, evaluate, options).run(best);
}

}  // namespace hone::search
