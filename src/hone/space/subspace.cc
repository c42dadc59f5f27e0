#include "hone/space/subspace.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "hone/base/assert.h"

namespace hone::space {
namespace {

constexpr int kSettling = 4;   // rounds of hold() and canonical(); one is usual
constexpr int kSamples = 200;  // draws before the base point is taken
constexpr int kAttempts = 50;  // at a child or a mutation
constexpr double kStep = 0.6;  // chance that a mutation is a step to the next option
constexpr int kMostMoves = 3;  // decisions that a mutation changes

// The options that a movable decision may have.
std::vector<int> options_of(const Decision& decision, int base, bool powers_of_two) {
  std::vector<int> options;
  for (int i = 0; i < std::ssize(decision.options); ++i) {
    const int64_t value = decision.options[static_cast<size_t>(i)];
    const bool length = decision.kind == DecisionKind::kTile && value > 0;
    if (!powers_of_two || !length || i == base || std::has_single_bit(static_cast<uint64_t>(value)))
      options.push_back(i);
  }
  return options;
}

}  // namespace

std::string_view common_role(const Decision& decision) {
  const std::string_view role = decision.role_name();
  return role.substr(role.rfind('.') + 1);  // npos + 1 is 0
}

std::set<std::string> roles(const Space& space) {
  std::set<std::string> roles;
  for (int s = 0; s < space.num_sketches(); ++s) {
    for (const Decision& decision : space.decisions(s)) roles.emplace(common_role(decision));
  }
  return roles;
}

std::vector<std::string> open_roles(const Space& space) {
  std::set<std::string> roles;
  for (int s = 0; s < space.num_sketches(); ++s) {
    for (const Decision& decision : space.decisions(s)) {
      if (decision.options.size() > 1) roles.emplace(common_role(decision));
    }
  }
  return {roles.begin(), roles.end()};
}

Subspace::Subspace(const Space& space, const Movable& movable) : space_(&space) {
  for (int s = 0; s < space.num_sketches(); ++s) {
    Part part{space.default_point(s).choices, {}, {}};
    for (const Point& base : movable.bases) {
      if (base.sketch == s) part.base = base.choices;
    }
    const std::vector<Decision>& decisions = space.decisions(s);
    HONE_ASSERT(part.base.size() == decisions.size() && space.legal({s, part.base}),
                "a base is a legal point");
    for (size_t d = 0; d < decisions.size(); ++d) {
      const bool moves = !movable.roles || movable.roles->contains(common_role(decisions[d]));
      part.options.push_back(moves ? options_of(decisions[d], part.base[d], movable.powers_of_two)
                                   : std::vector<int>{part.base[d]});
      if (part.options.back().size() > 1) part.movable.push_back(d);
    }
    parts_.push_back(std::move(part));
  }
}

bool Subspace::can_move() const {
  if (is_whole()) return !open_roles(*space_).empty();
  return std::ranges::any_of(parts_, [](const Part& part) { return !part.movable.empty(); });
}

double Subspace::size() const {
  if (is_whole()) return space_->size();
  double total = 0;
  for (const Part& part : parts_) {
    double points = 1;
    for (const std::vector<int>& options : part.options)
      points *= static_cast<double>(options.size());
    total += points;
  }
  return total;
}

std::vector<int> Subspace::options(int sketch, size_t decision) const {
  if (!is_whole()) return part(sketch).options[decision];
  std::vector<int> all(space_->decisions(sketch)[decision].options.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

int Subspace::moved(const Point& point, size_t decision, int steps) const {
  const int choice = point.choices[decision];
  if (is_whole()) {
    const auto count = std::ssize(space_->decisions(point.sketch)[decision].options);
    return std::clamp(choice + steps, 0, static_cast<int>(count) - 1);
  }
  const std::vector<int>& options = part(point.sketch).options[decision];
  const auto place = std::ranges::lower_bound(options, choice) - options.begin();
  return options[static_cast<size_t>(
      std::clamp<std::ptrdiff_t>(place + steps, 0, std::ssize(options) - 1))];
}

Point Subspace::hold(Point point) const {
  if (is_whole()) return point;
  for (size_t d = 0; d < point.choices.size(); ++d) point.choices[d] = moved(point, d, 0);
  return point;
}

bool Subspace::settle(Point& point) const {
  for (int round = 0; round < kSettling; ++round) {
    Point held = hold(point);
    if (!space_->legal(held)) return false;
    held = space_->canonical(std::move(held));
    if (held == point) return true;
    point = std::move(held);
  }
  return false;
}

Point Subspace::project(const Point& point) const {
  if (is_whole()) return space_->canonical(point);
  Point settled = point;
  if (settle(settled)) return settled;
  const Point wanted = hold(point);
  Point next = {point.sketch, part(point.sketch).base};
  for (const size_t d : part(point.sketch).movable) {
    Point trial = next;
    trial.choices[d] = wanted.choices[d];
    Point made = trial;
    if (settle(made)) next = std::move(trial);
  }
  (void)settle(next);
  return next;
}

Point Subspace::sample(Rng& rng) const {
  if (is_whole()) return space_->sample(rng);
  Point point;
  point.sketch = static_cast<int>(rng.below(space_->num_sketches()));
  const Part& own = part(point.sketch);
  for (int attempt = 0; attempt < kSamples; ++attempt) {
    point.choices = own.base;
    for (const size_t d : own.movable) point.choices[d] = rng.choice(own.options[d]);
    if (settle(point)) return point;
  }
  return project({point.sketch, own.base});
}

Point Subspace::mutate(const Point& point, Rng& rng) const {
  if (is_whole()) return space_->mutate(point, rng);
  const Part& own = part(point.sketch);
  const Point start = project(point);
  if (own.movable.empty()) return start;
  const Point from = hold(start);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Point changed = from;
    for (int64_t n = rng.between(1, kMostMoves); n > 0; --n) {
      const size_t d = rng.choice(own.movable);
      changed.choices[d] = rng.chance(kStep) ? moved(changed, d, rng.chance(0.5) ? 1 : -1)
                                             : rng.choice(own.options[d]);
    }
    if (settle(changed) && changed != start) return changed;
  }
  return sample(rng);
}

Point Subspace::crossover(const Point& a, const Point& b, Rng& rng) const {
  if (is_whole()) return space_->crossover(a, b, rng);
  const Point start = project(a);
  if (a.sketch != b.sketch) return start;
  const Point first = hold(start), second = hold(project(b));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Point child = first;
    for (const size_t d : part(a.sketch).movable) {
      if (rng.chance(0.5)) child.choices[d] = second.choices[d];
    }
    if (settle(child)) return child;
  }
  return start;
}

std::vector<Point> Subspace::neighbours(const Point& point) const {
  if (is_whole()) return space_->neighbours(point);
  const Point start = project(point), from = hold(start);
  std::vector<Point> found;
  for (const size_t d : part(point.sketch).movable) {
    for (const int step : {-1, 1}) {
      Point next = from;
      next.choices[d] = moved(from, d, step);
      if (settle(next) && next != start && std::ranges::find(found, next) == found.end())
        found.push_back(std::move(next));
    }
  }
  return found;
}

}  // namespace hone::space
