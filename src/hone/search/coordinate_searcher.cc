#include "hone/search/coordinate_searcher.h"

#include <algorithm>
#include <cmath>

namespace hone::search {
namespace {

constexpr int kStarts = 4;  // new starts in one batch

// In all decisions but one the same.
bool along_one_decision(const space::Point& a, const space::Point& b) {
  if (a.sketch != b.sketch) return false;
  int different = 0;
  for (size_t i = 0; i < a.choices.size(); ++i) different += a.choices[i] != b.choices[i];
  return different == 1;
}

}  // namespace

// A measured point of the descent that is significantly faster than the centre replaces it.
void CoordinateSearcher::choose_centre() {
  const std::vector<MeasuredPoint>& measured = guide().measured();
  if (!centre_) {
    if (measured.empty()) return;
    const space::Point& best = measured.front().point;
    centre_ = guide().part().is_whole() ? best : guide().part().project(best);
    return;
  }
  const double* known = guide().seconds_of(*centre_);
  if (known == nullptr) return;  // not measured yet
  const double limit = *known * (1 - options_.significance);
  for (const MeasuredPoint& point : measured) {
    if (point.seconds >= limit) break;
    if (!along_one_decision(point.point, *centre_)) continue;
    centre_ = point.point;
    return choose_centre();
  }
}

// All points along one decision that were not measured and may be faster by a significant amount.
std::vector<Scored> CoordinateSearcher::moves() {
  std::vector<space::Point> line;
  const space::Point from = guide().part().hold(*centre_);
  for (size_t d = 0; d < from.choices.size(); ++d) {
    for (const int option : guide().part().options(from.sketch, d)) {
      space::Point point = from;
      if (point.choices[d] == option) continue;
      point.choices[d] = option;
      if (guide().space().legal(point) && guide().proposals().fresh(point))
        line.push_back(std::move(point));
    }
  }
  std::vector<Scored> ranked = guide().rank(std::move(line));
  const double* known = guide().seconds_of(*centre_);
  if (known == nullptr || !std::isfinite(*known)) return ranked;
  const double limit = std::log(*known) + std::log1p(-options_.significance);
  std::erase_if(ranked, [&](const Scored& move) {
    return move.deviation > 0 && move.log_seconds - options_.confidence * move.deviation > limit;
  });
  return ranked;
}

// In turns what the model likes best anywhere, and a few mutations away from the best.
std::optional<Scored> CoordinateSearcher::new_start() {
  Rng& rng = guide().rng();
  const std::vector<MeasuredPoint>& measured = guide().measured();
  std::vector<space::Point> points;
  const bool kick = restarts_ % 2 == 1 && !measured.empty();
  for (int i = 0; i < options_.samples; ++i) {
    if (!kick) {
      points.push_back(guide().part().sample(rng));
      continue;
    }
    space::Point point = measured.front().point;
    for (size_t k = 0; k < options_.kicks; ++k) point = guide().part().mutate(point, rng);
    points.push_back(std::move(point));
  }
  for (Scored& scored : guide().rank(std::move(points))) {
    if (guide().proposals().fresh(scored.point)) return std::move(scored);
  }
  return std::nullopt;
}

int CoordinateSearcher::descend(Batch& batch, int count) {
  choose_centre();
  if (!centre_ || guide().observations() < options_.descent_after) return 0;
  // Where only some decisions move, what the best point becomes may not have been measured.
  const int centre = !guide().part().is_whole() && count > 0 ? batch.add(*centre_) : 0;
  return centre + batch.add_best(moves(), count - centre);
}

void CoordinateSearcher::fill(Batch& batch, int count) {
  if (guide().observations() == 0 && !centre_) {  // nothing to descend from: some good starts
    batch.add_best(guide().climbed_samples(options_.samples, static_cast<size_t>(kStarts), 4),
                   count);
    return;
  }
  int left = count - descend(batch, count);
  for (int start = 0; left > 0 && start < kStarts; ++start) {
    const std::optional<Scored> next = new_start();
    ++restarts_;
    if (!next) continue;
    left -= batch.add(next->point);
    centre_ = next->point;
    left -= descend(batch, left);
  }
}

}  // namespace hone::search
