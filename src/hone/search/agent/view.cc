#include "hone/search/agent/view.h"

#include <algorithm>
#include <cmath>

#include "hone/base/hash.h"
#include "hone/cost/bound_scores.h"

namespace hone::search {
namespace {

constexpr size_t kKinds = static_cast<size_t>(space::DecisionKind::kPacking) + 1;
constexpr size_t kBuckets = 16;  // roles of decisions share them by their hash

// Numbers of any size as numbers about 1: sizes and times keep their order.
float squeezed(float x) {
  return std::isfinite(x) ? std::clamp(std::asinh(x) / 4, -3.0F, 3.0F) : 0.0F;
}

}  // namespace

cost::FeatureSet state_features(target::Kind kind) {
  return kind == target::Kind::kGpu ? cost::FeatureSet::kGpu : cost::FeatureSet::kCombined;
}

int state_size(target::Kind kind) {
  return static_cast<int>(cost::candidate_feature_names(state_features(kind)).size());
}

int move_size() { return static_cast<int>(2 * kKinds + kBuckets + 2); }

Sight look_at(const SearchTask& task, const space::Point& point) {
  Sight sight;
  const Result<space::Candidate> candidate = task.space->instantiate(point);
  HONE_ASSERT(candidate.ok(), "agents look at legal points only");
  const cost::Query query{&*candidate, task.target, task.threads, task.key};
  cost::CandidateFeatures seen =
      cost::candidate_features(query, state_features(task.target->kind()));
  sight.state = std::move(seen.row);
  std::ranges::transform(sight.state, sight.state.begin(), squeezed);
  const auto predicted = cost::predicted_bounds(*task.model, {&query, 1});
  sight.bounds = predicted.ok() && *predicted ? (**predicted)[0] : seen.bounds;
  return sight;
}

std::vector<float> describe_move(const space::Space& space, const space::Point& from,
                                 const space::Point& to) {
  HONE_ASSERT(from.sketch == to.sketch, "a move stays in its sketch");
  std::vector<float> numbers(static_cast<size_t>(move_size()));
  const std::vector<space::Decision>& decisions = space.decisions(from.sketch);
  const std::vector<float> before = space.encode(from), after = space.encode(to);
  float& place = numbers[2 * kKinds + kBuckets];
  float& extent = numbers[2 * kKinds + kBuckets + 1];
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (from.choices[i] == to.choices[i]) continue;
    const float change = after[i] - before[i];
    const auto kind = static_cast<size_t>(decisions[i].kind);
    HONE_ASSERT(kind < kKinds, "no kind of decisions comes after kPacking");
    numbers[kind] += change;
    numbers[kKinds + kind] += change > 0 ? 1.0F : -1.0F;
    numbers[2 * kKinds + hash_string(decisions[i].role_name()) % kBuckets] += change;
    place = before[i];
    extent = std::log2(static_cast<float>(decisions[i].extent) + 1) / 8;
  }
  return numbers;
}

}  // namespace hone::search
