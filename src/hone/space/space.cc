#include "hone/space/space.h"

#include <algorithm>
#include <climits>
#include <span>

#include "hone/base/hash.h"
#include "hone/space/finished_sketch.h"
#include "hone/space/likeness.h"

namespace hone::space {

using schedule::Steps;

uint64_t hash(const Point& point) {
  uint64_t h = static_cast<uint64_t>(point.sketch);
  for (const int choice : point.choices) h = hash_combine(h, static_cast<uint64_t>(choice));
  return h;
}

namespace {

constexpr int64_t kFewPoints = 256;  // of a sketch: locate() looks at all of them

}  // namespace

const std::vector<Decision>& Space::decisions(int sketch) const {
  return sketches_[sketch]->decisions;
}

std::string Space::algorithm(int sketch) const { return sketches_[sketch]->algorithm; }

bool Space::is_for_threads(int sketch) const { return sketches_[sketch]->for_threads; }

double Space::size() const {
  double total = 0;
  for (const auto& sketch : sketches_) {
    double points = 1;
    for (const Decision& decision : sketch->decisions)
      points *= static_cast<double>(decision.options.size());
    total += points;
  }
  return total;
}

Point Space::default_point(int sketch) const {
  return {sketch, sketches_[sketch]->default_choices()};
}

std::vector<Point> Space::default_points() const {
  std::vector<Point> points;
  for (int sketch = 0; sketch < num_sketches(); ++sketch) points.push_back(default_point(sketch));
  return points;
}

Point Space::sample(Rng& rng) const {
  Point point;
  point.sketch = static_cast<int>(rng.below(num_sketches()));
  const Sketch& sketch = *sketches_[point.sketch];
  point.choices.resize(sketch.decisions.size());
  for (int attempt = 0; attempt < 200; ++attempt) {
    for (size_t i = 0; i < sketch.decisions.size(); ++i) {
      point.choices[i] =
          static_cast<int>(rng.below(static_cast<int64_t>(sketch.decisions[i].options.size())));
    }
    if (!sketch.legal(point.choices)) continue;
    sketch.canonicalise(point.choices);
    return point;
  }
  return canonical(default_point(point.sketch));
}

Point Space::canonical(Point point) const {
  sketches_[point.sketch]->canonicalise(point.choices);
  return point;
}

Point Space::mutate(const Point& point, Rng& rng) const {
  const Sketch& sketch = *sketches_[point.sketch];
  std::vector<int> movable;
  for (size_t i = 0; i < sketch.decisions.size(); ++i) {
    if (sketch.decisions[i].options.size() > 1) movable.push_back(static_cast<int>(i));
  }
  if (movable.empty()) return point;
  const Point start = canonical(point);
  for (int attempt = 0; attempt < 50; ++attempt) {
    Point changed = point;
    for (int64_t n = rng.between(1, 3); n > 0; --n) {
      const int i = rng.choice(movable);
      const int64_t options = static_cast<int64_t>(sketch.decisions[i].options.size());
      if (rng.chance(0.6)) {
        const int64_t moved = changed.choices[i] + (rng.chance(0.5) ? 1 : -1);
        changed.choices[i] = static_cast<int>(std::clamp<int64_t>(moved, 0, options - 1));
      } else {
        changed.choices[i] = static_cast<int>(rng.below(options));
      }
    }
    if (!sketch.legal(changed.choices)) continue;
    sketch.canonicalise(changed.choices);
    if (changed != start) return changed;
  }
  return sample(rng);
}

Point Space::crossover(const Point& a, const Point& b, Rng& rng) const {
  if (a.sketch != b.sketch) return a;
  for (int attempt = 0; attempt < 20; ++attempt) {
    Point child = a;
    for (size_t i = 0; i < child.choices.size(); ++i) {
      if (rng.chance(0.5)) child.choices[i] = b.choices[i];
    }
    if (sketches_[a.sketch]->legal(child.choices)) return canonical(std::move(child));
  }
  return a;
}

std::vector<Point> Space::neighbours(const Point& point) const {
  const Sketch& sketch = *sketches_[point.sketch];
  const Point start = canonical(point);
  std::vector<Point> found;
  for (size_t i = 0; i < point.choices.size(); ++i) {
    for (const int step : {-1, 1}) {
      Point next = point;
      next.choices[i] += step;
      if (next.choices[i] < 0 ||
          next.choices[i] >= static_cast<int>(sketch.decisions[i].options.size()))
        continue;
      if (!sketch.legal(next.choices)) continue;
      sketch.canonicalise(next.choices);
      if (next != start && std::find(found.begin(), found.end(), next) == found.end())
        found.push_back(std::move(next));
    }
  }
  return found;
}

std::vector<float> Space::encode(const Point& point) const {
  const Sketch& sketch = *sketches_[point.sketch];
  std::vector<float> numbers;
  for (size_t i = 0; i < point.choices.size(); ++i) {
    const float last =
        static_cast<float>(std::max<size_t>(sketch.decisions[i].options.size() - 1, 1));
    numbers.push_back(static_cast<float>(point.choices[i]) / last);
  }
  return numbers;
}

Steps Space::Sketch::steps(const std::vector<int>& choices) const {
  Steps steps;
  steps.reserve(usual_steps + 8);  // some points need a few more
  steps.insert(steps.end(), structure.begin(), structure.end());
  append_steps(choices, steps);
  return steps;
}

Result<Candidate> Space::Sketch::instantiate(const std::vector<int>& choices,
                                             const std::shared_ptr<const compute::Dag>& dag) const {
  Candidate candidate{state, {}, steps(choices), dag};
  for (const schedule::Step& step : std::span(candidate.steps).subspan(structure.size())) {
    if (Status status = schedule::apply_in_place(step, candidate.state); !status.ok())
      return invalid("{}: {}", schedule::to_string(step), status.message());
  }
  HONE_ASSIGN_OR_RETURN(candidate.bounds, schedule::infer_bounds(candidate.state));
  return candidate;
}

Steps Space::steps(const Point& point) const {
  return sketches_[point.sketch]->steps(point.choices);
}

Result<Candidate> Space::instantiate(const Point& point) const {
  return sketches_[point.sketch]->instantiate(point.choices, dag_);
}

Result<Candidate> default_candidate(const compute::Dag& dag, const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const Space space, Space::create(dag, target));
  return space.instantiate(space.default_point());
}

Result<Candidate> make_candidate(const compute::Dag& dag, const schedule::Steps& steps) {
  HONE_ASSIGN_OR_RETURN(schedule::State state, schedule::replay(dag, steps));
  HONE_ASSIGN_OR_RETURN(schedule::Bounds bounds, schedule::infer_bounds(state));
  return Candidate{std::move(state), std::move(bounds), steps,
                   std::make_shared<const compute::Dag>(dag)};
}

bool Space::legal(const Point& point) const {
  return sketches_[point.sketch]->legal(point.choices);
}

std::optional<Point> Space::locate(const Steps& steps) const {
  std::optional<Point> best;
  int best_score = INT_MIN;
  Likeness likeness(steps);
  for (int s = 0; s < num_sketches(); ++s) {
    const Sketch& sketch = *sketches_[s];
    const int structure = likeness.of(sketch.structure);
    const auto score = [&](const std::vector<int>& choices) {
      Steps own;
      sketch.append_steps(choices, own);
      return structure + likeness.of(own);
    };
    int64_t points = 1;
    for (const Decision& decision : sketch.decisions)
      points = std::min(points * std::ssize(decision.options), kFewPoints + 1);
    // By single decisions upwards: over all points, or over legal ones only.
    const auto climb = [&](bool legal_only) {
      Point point = default_point(s);
      int current = score(point.choices);
      const auto climb_to = [&](std::vector<int> trial) {
        const int value = score(trial);
        if (value <= current || (legal_only && !sketch.legal(trial))) return false;
        current = value;
        point.choices = std::move(trial);
        return true;
      };
      if (points <= kFewPoints) {  // all of them: decisions that matter only together hide a point
        for (int64_t p = 0; p < points; ++p) {
          std::vector<int> trial;
          int64_t rest = p;
          for (const Decision& decision : sketch.decisions) {
            trial.push_back(static_cast<int>(rest % std::ssize(decision.options)));
            rest /= std::ssize(decision.options);
          }
          climb_to(std::move(trial));
        }
      }
      for (bool improved = points > kFewPoints; improved;) {
        improved = false;
        for (size_t i = 0; i < point.choices.size(); ++i) {
          for (size_t o = 0; o < sketch.decisions[i].options.size(); ++o) {
            std::vector<int> trial = point.choices;
            trial[i] = static_cast<int>(o);
            improved |= climb_to(std::move(trial));
          }
        }
      }
      if (!sketch.legal(point.choices) || current <= best_score) return;
      best_score = current;
      best = std::move(point);
    };
    climb(false);
    climb(true);
  }
  return best;
}

}  // namespace hone::space
