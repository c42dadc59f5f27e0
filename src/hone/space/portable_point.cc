#include "hone/space/portable_point.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_set>

#include "hone/base/options.h"
#include "hone/trial/accuracy.h"

namespace hone::space {
namespace {

enum class Mode : uint8_t { kKeep, kDivide, kScale };

double distance(int64_t a, int64_t b) {
  return std::abs(std::log2((static_cast<double>(a) + 0.5) / (static_cast<double>(b) + 0.5)));
}

// Index of the option nearest to `wanted` in ratio, among those that divide `extent` if it is not
// 0; -1 if there is none within a factor of two.
int nearest_divisor(const Decision& decision, int64_t wanted, int64_t extent) {
  int best = -1;
  for (size_t i = 0; i < decision.options.size(); ++i) {
    const int64_t option = decision.options[i];
    if (option <= 0 || extent % option != 0 || distance(option, wanted) > 1.05) continue;
    if (best < 0 ||
        distance(option, wanted) < distance(decision.options[static_cast<size_t>(best)], wanted))
      best = static_cast<int>(i);
  }
  return best;
}

int nearest_ratio(const Decision& decision, int64_t wanted) {
  int best = 0;
  for (size_t i = 1; i < decision.options.size(); ++i) {
    if (distance(decision.options[i], wanted) <
        distance(decision.options[static_cast<size_t>(best)], wanted))
      best = static_cast<int>(i);
  }
  return best;
}

int map_choice(const PortableChoice& choice, const Decision& decision, Mode mode) {
  const bool tile = choice.extent > 0 && decision.extent > 0 && choice.value > 0;
  if (!tile) {  // names of orders and axes; widths
    const auto same = std::find(decision.options.begin(), decision.options.end(), choice.value);
    if (same != decision.options.end()) return static_cast<int>(same - decision.options.begin());
    return nearest_ratio(decision, choice.value);
  }
  int64_t wanted = choice.value;
  if (mode == Mode::kScale) {
    if (choice.value >= choice.extent) {
      wanted = decision.extent;  // the whole axis in one tile
    } else if (decision.scales) {
      wanted = std::max<int64_t>(
          1, (choice.value * decision.extent + choice.extent / 2) / choice.extent);
    }
  }
  if (mode != Mode::kKeep && choice.extent % choice.value == 0) {
    const int divisor = nearest_divisor(decision, wanted, decision.extent);
    if (divisor >= 0) return divisor;
  }
  return nearest_ratio(decision, wanted);
}

std::string_view stage_of(const Decision& decision) {
  return std::string_view(decision.name).substr(0, decision.role - 1);
}

// Per decision, the choice that speaks of it, or null.
std::vector<const PortableChoice*> match(const PortablePoint& point,
                                         const std::vector<Decision>& decisions) {
  std::vector<const PortableChoice*> found(decisions.size(), nullptr);
  std::vector<bool> taken(point.choices.size(), false);
  for (const bool by_stage : {true, false}) {
    for (size_t d = 0; d < decisions.size(); ++d) {
      for (size_t c = 0; c < point.choices.size() && !found[d]; ++c) {
        const PortableChoice& choice = point.choices[c];
        if (taken[c] || choice.role != decisions[d].role_name()) continue;
        if (by_stage && choice.stage != stage_of(decisions[d])) continue;
        found[d] = &choice;
        taken[c] = true;
      }
    }
  }
  return found;
}

std::ptrdiff_t spoken_of(const std::vector<const PortableChoice*>& choices) {
  return std::count_if(choices.begin(), choices.end(), [](const auto* c) { return c != nullptr; });
}

// The legal point fewest steps away, along decisions one index at a time; the point itself if it is
// legal.
std::optional<Point> nearest_legal(const Space& space, const Point& start) {
  constexpr size_t kMost = 4000;  // points looked at: three or four steps of a dozen decisions
  std::deque<Point> queue = {start};
  std::unordered_set<uint64_t> seen = {hash(start)};
  const std::vector<Decision>& decisions = space.decisions(start.sketch);
  while (!queue.empty()) {
    Point point = std::move(queue.front());
    queue.pop_front();
    if (space.legal(point)) return point;
    for (size_t i = 0; i < point.choices.size() && seen.size() < kMost; ++i) {
      for (const int step : {-1, 1}) {
        Point next = point;
        next.choices[i] += step;
        if (next.choices[i] < 0 || next.choices[i] >= std::ssize(decisions[i].options)) continue;
        if (seen.insert(hash(next)).second) queue.push_back(std::move(next));
      }
    }
  }
  return std::nullopt;
}

}  // namespace

bool came_later(const Decision& decision) {
  constexpr std::string_view kRoles[] = {"column_blocks", "panels",       "sum_blocks",
                                         "column_tail",   "rows_at_once", "exchange"};
  return std::ranges::find(kRoles, decision.role_name()) != std::end(kRoles);
}

PortablePoint to_portable(const Space& space, const Point& point) {
  PortablePoint portable{space.algorithm(point.sketch), {}};
  const std::vector<Decision>& decisions = space.decisions(point.sketch);
  for (size_t i = 0; i < decisions.size(); ++i) {
    portable.choices.push_back(
        {std::string(stage_of(decisions[i])), std::string(decisions[i].role_name()),
         decisions[i].options[static_cast<size_t>(point.choices[i])], decisions[i].extent});
  }
  return portable;
}

std::string to_string(const PortablePoint& point) {
  std::string text = point.algorithm;
  for (const PortableChoice& choice : point.choices) {
    text += fmt::format(" {}:{}={}", choice.stage, choice.role, choice.value);
    if (choice.extent > 0) text += fmt::format("/{}", choice.extent);
  }
  return text;
}

Result<PortablePoint> parse_portable_point(std::string_view text) {
  constexpr int64_t kMost = int64_t{1} << 40;
  PortablePoint point;
  for (bool first = true; first || !text.empty(); first = false) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (first) {
      const bool sums = word.starts_with("direct") || word.starts_with("im2col");
      if (!sums && !trial::rounds_more(word))
        return invalid("point: found '{}', expected an algorithm", word);
      point.algorithm = word;
      continue;
    }
    const size_t colon = word.find(':'), equals = word.find('=');
    if (colon == std::string_view::npos || equals == std::string_view::npos || equals < colon)
      return invalid("point: found '{}', expected STAGE:ROLE=VALUE", word);
    PortableChoice choice{std::string(word.substr(0, colon)),
                          std::string(word.substr(colon + 1, equals - colon - 1)), 0, 0};
    std::string_view value = word.substr(equals + 1);
    if (const size_t slash = value.find('/'); slash != std::string_view::npos) {
      const Result<int64_t> extent = parse_int(value.substr(slash + 1), 1, kMost);
      if (!extent.ok()) return invalid("point: '{}': {}", word, extent.status().message());
      choice.extent = *extent;
      value = value.substr(0, slash);
    }
    const Result<int64_t> number = parse_int(value, 0, kMost);
    if (!number.ok()) return invalid("point: '{}': {}", word, number.status().message());
    choice.value = *number;
    point.choices.push_back(std::move(choice));
  }
  return point;
}

std::optional<PortablePoint> known_point(std::string_view text) {
  Result<PortablePoint> point = parse_portable_point(text);
  if (!point.ok()) return std::nullopt;
  return *std::move(point);
}

std::vector<Point> adapt(const PortablePoint& point, const Space& space) {
  // Of the sketches of its algorithm, those that most of its choices speak of.
  std::vector<std::vector<const PortableChoice*>> matches;
  std::ptrdiff_t most = 0;
  for (int sketch = 0; sketch < space.num_sketches(); ++sketch) {
    matches.emplace_back();
    if (space.algorithm(sketch) != point.algorithm) continue;
    matches.back() = match(point, space.decisions(sketch));
    most = std::max(most, spoken_of(matches.back()));
  }
  std::vector<Point> points;
  for (int sketch = 0; sketch < space.num_sketches(); ++sketch) {
    const std::vector<const PortableChoice*>& choices = matches[static_cast<size_t>(sketch)];
    if (space.algorithm(sketch) != point.algorithm || spoken_of(choices) < most) continue;
    const std::vector<Decision>& decisions = space.decisions(sketch);
    const Point usual = space.default_point(sketch);
    Point older = usual;
    for (size_t d = 0; d < decisions.size(); ++d) {
      if (!choices[d] && came_later(decisions[d])) older.choices[d] = 0;
    }
    for (const Mode mode : {Mode::kKeep, Mode::kDivide, Mode::kScale}) {
      for (Point wanted : {older, usual}) {
        for (size_t d = 0; d < decisions.size(); ++d) {
          if (choices[d]) wanted.choices[d] = map_choice(*choices[d], decisions[d], mode);
        }
        std::optional<Point> legal = nearest_legal(space, wanted);
        if (legal && std::count(points.begin(), points.end(), *legal) == 0)
          points.push_back(*std::move(legal));
      }
    }
  }
  return points;
}

std::vector<Point> adapt(const std::optional<PortablePoint>& point, const schedule::Steps& steps,
                         const Space& space) {
  if (point) return adapt(*point, space);
  const std::optional<Point> nearest = space.locate(steps);
  if (!nearest || !space.legal(*nearest)) return {};
  return {*nearest};
}

std::optional<Point> exact_point(const std::optional<PortablePoint>& point,
                                 const schedule::Steps& steps, const Space& space) {
  for (Point& similar : adapt(point, steps, space)) {
    if (space.steps(similar) == steps) return std::move(similar);
    if (!point) continue;
    // Of decisions that came later the point says nothing; the first options are what was before.
    const std::vector<const PortableChoice*> spoken =
        match(*point, space.decisions(similar.sketch));
    for (size_t d = 0; d < spoken.size(); ++d) similar.choices[d] *= spoken[d] == nullptr ? 0 : 1;
    if (space.steps(similar) == steps) return std::move(similar);
  }
  return std::nullopt;
}

}  // namespace hone::space
