#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Case {
  Shape shape;  // images, classes, boxes
  int64_t most = 0;
  std::optional<float> overlap, score;
  bool center = false;
  Tensor boxes, scores;
};

// One box after the other against all that were selected, in the program's arithmetic: edges and
// areas are floats, what is made of them on the way is not rounded.
struct Box {
  float low[2], high[2], area;
};

Box box_of(const Case& c, int64_t image, int64_t i) {
  const float* at = c.boxes.as<float>().data() + (image * c.shape[2] + i) * 4;
  Box box{};
  const auto least = [](double a, double b) { return a < b ? a : b; };
  const auto most = [](double a, double b) { return a > b ? a : b; };
  for (const int d : {0, 1}) {
    const double a = at[d], b = at[d + 2];
    box.low[d] = static_cast<float>(c.center ? a - b * 0.5 : least(a, b));
    box.high[d] = static_cast<float>(c.center ? a + b * 0.5 : most(a, b));
  }
  box.area =
      static_cast<float>((double{box.high[0]} - box.low[0]) * (double{box.high[1]} - box.low[1]));
  return box;
}

bool overlaps(const Box& a, const Box& b, double threshold) {
  double common = 1;
  for (const int d : {0, 1}) {
    const double shared =
        std::min<double>(a.high[d], b.high[d]) - std::max<double>(a.low[d], b.low[d]);
    if (!(shared > 0)) return false;
    common *= shared;
  }
  return threshold * (double{a.area} + b.area - common) < common;
}

std::vector<int64_t> simple_loop(const Case& c) {
  std::vector<int64_t> rows;
  for (int64_t image = 0; image < c.shape[0]; ++image) {
    for (int64_t group = 0; group < c.shape[1]; ++group) {
      const float* scores = c.scores.as<float>().data() + (image * c.shape[1] + group) * c.shape[2];
      std::vector<int64_t> order(static_cast<size_t>(c.shape[2]));
      std::iota(order.begin(), order.end(), 0);
      std::erase_if(order, [&](int64_t i) { return c.score && !(scores[i] > *c.score); });
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        if (std::isnan(scores[j])) return !std::isnan(scores[i]);
        return scores[i] > scores[j];
      });
      std::vector<Box> kept;
      for (const int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) == c.most) break;
        const Box box = box_of(c, image, i);
        const auto hit = [&](const Box& k) { return overlaps(box, k, c.overlap.value_or(0)); };
        if (std::any_of(kept.begin(), kept.end(), hit)) continue;
        kept.push_back(box);
        for (const int64_t value : {image, group, i}) rows.push_back(value);
      }
    }
  }
  return rows;
}

std::vector<int64_t> run(const Case& c) {
  TestModel m(17);
  m.input("boxes", {c.shape[0], c.shape[2], 4}).input("scores", c.shape);
  m.constant("most", ints({c.most}));
  std::vector<std::string> operands = {"boxes", "scores", "most", "", ""};
  if (c.overlap) m.constant(operands[3] = "overlap", floats({1}, {*c.overlap}));
  if (c.score) m.constant(operands[4] = "score", floats({1}, {*c.score}));
  while (operands.back().empty()) operands.pop_back();
  m.node("NonMaxSuppression", operands, {"y"}, {{"center_point_box", int64_t{c.center}}});
  const Tensor found = run_optimized(m.output("y").graph(), {c.boxes, c.scores})[0];
  const auto values = found.as<int64_t>();
  return {values.begin(), values.end()};
}

enum class Kind { kUsual, kTiny, kHuge, kMixed, kSame, kClasses, kStrange, kCount };

// Edges of a box, as one likes them for the kind.
std::array<float, 4> random_box(Rng& rng, Kind kind, bool center) {
  const auto edge = [&](double from, double to) {
    return static_cast<float>(from + (to - from) * rng.uniform());
  };
  double width = 20, height = 20, shift = 0;
  switch (kind) {
    case Kind::kTiny: width = height = 0.1; break;
    case Kind::kHuge: width = height = 500; break;
    case Kind::kMixed:
      width = std::exp2(10 * rng.uniform() - 2), height = width * (0.5 + rng.uniform());
      break;
    case Kind::kClasses: shift = 301.0 * static_cast<double>(rng.below(12)); break;
    case Kind::kSame: return {10, 20, 30, 45};
    case Kind::kStrange: {
      const std::vector<float> odd = {0.F,  -0.F,       1.F,    7.F,   1e30F,  -3e38F, 3e38F,
                                      kNan, -kInfinity, 1e-40F, 1e-3F, 64.F,   128.F,  kInfinity,
                                      8.F,  -16.F,      32.F,   5.F,   -1e20F, 100.F};
      return {rng.choice(odd), rng.choice(odd), rng.choice(odd), rng.choice(odd)};
    }
    default: break;
  }
  const float y = edge(shift, shift + 300), x = edge(shift, shift + 300);
  const auto h = static_cast<float>(height * (0.5 + rng.uniform()));
  const auto w = static_cast<float>(width * (0.5 + rng.uniform()));
  if (center) return {y, x, h, w};
  if (rng.chance(0.1)) return {y + h, x, y, x + w};  // corners may be any two
  return {y, x, y + h, x + w};
}

Case random_case(Rng& rng, Kind kind, const Shape& shape) {
  Case c{.shape = shape};
  c.center = rng.chance(0.4);
  c.most = rng.chance(0.7) ? shape[2] : rng.between(1, shape[2]);
  if (rng.chance(0.9)) c.overlap = rng.choice(std::vector<float>{0.F, 0.3F, 0.5F, 0.9F, 1.F, -1.F});
  if (rng.chance(0.3)) c.score = 0.25F;
  std::vector<float> boxes, scores;
  for (int64_t i = 0; i < shape[0] * shape[2]; ++i) {
    const Kind of = rng.chance(0.02) ? Kind::kStrange : kind;
    for (const float edge : random_box(rng, of, c.center)) boxes.push_back(edge);
  }
  for (int64_t i = 0; i < num_elements(shape); ++i) {
    scores.push_back(rng.chance(0.2) ? 0.5F : static_cast<float>(rng.uniform()));
    if (rng.chance(0.01)) scores.back() = rng.choice(std::vector<float>{kNan, kInfinity, -0.F});
  }
  c.boxes = floats({shape[0], shape[2], 4}, boxes);
  c.scores = floats(shape, scores);
  return c;
}

void expect_as_simple_loop(uint64_t seed, const Shape& shape) {
  Rng rng(seed);
  for (int kind = 0; kind < static_cast<int>(Kind::kCount); ++kind) {
    const Case c = random_case(rng, static_cast<Kind>(kind), shape);
    EXPECT_EQ(run(c), simple_loop(c))
        << "seed " << seed << ", kind " << kind << ", center " << c.center << ", most " << c.most
        << ", overlap " << c.overlap.value_or(0) << ", score " << c.score.value_or(-1);
  }
}

TEST(non_max_suppression, of_few_boxes_selects_what_a_simple_loop_does) {
  for (uint64_t seed = 0; seed < 8; ++seed) expect_as_simple_loop(seed, {2, 3, 40});
}

TEST(non_max_suppression, of_many_boxes_selects_what_a_simple_loop_does) {
  for (uint64_t seed = 0; seed < 2; ++seed) expect_as_simple_loop(seed, {1, 1, 700});
  expect_as_simple_loop(2, {2, 2, 300});
}

}  // namespace
}  // namespace hone::graph
