#include "hone/cost/decision_history.h"

#include <algorithm>

#include "hone/space/portable_point.h"

namespace hone::cost {
namespace {

bool is_of_blocks(std::string_view role) {
  return role == "column_blocks" || role == "panels" || role == "sum_blocks";
}

}  // namespace

DecisionHistory::DecisionHistory(const space::Space& space) : space_(space) {
  for (int sketch = 0; sketch < space.num_sketches(); ++sketch) {
    const std::vector<space::Decision>& decisions = space.decisions(sketch);
    const space::Point usual = space.default_point(sketch);
    usual_.emplace_back();
    for (size_t i = 0; i < decisions.size(); ++i) {
      if (space::came_later(decisions[i])) usual_.back().emplace_back(i, usual.choices[i]);
    }
  }
}

space::Point DecisionHistory::as_usual(space::Point point) const {
  const auto& usual = usual_[static_cast<size_t>(point.sketch)];
  if (usual.empty()) return point;
  for (const auto& [decision, choice] : usual) point.choices[decision] = choice;
  return space_.legal(point) ? space_.canonical(std::move(point)) : point;
}

bool DecisionHistory::has_blocks(const space::Point& point) const {
  const std::vector<space::Decision>& decisions = space_.decisions(point.sketch);
  return std::ranges::any_of(usual_[static_cast<size_t>(point.sketch)], [&](const auto& usual) {
    return is_of_blocks(decisions[usual.first].role_name()) && point.choices[usual.first] != 0;
  });
}

}  // namespace hone::cost
