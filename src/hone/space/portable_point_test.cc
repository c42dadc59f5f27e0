#include "hone/space/portable_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hone/compute/dag_testing.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

Space space_of(const compute::Dag& dag) {
  Result<Space> space = Space::create(dag, narrow(32));
  HONE_ASSERT(space.ok(), space.status().message().c_str());
  return *std::move(space);
}

int64_t value_of(const Space& space, const Point& point, std::string_view role) {
  for (const PortableChoice& choice : to_portable(space, point).choices) {
    if (choice.role == role) return choice.value;
  }
  return -1;
}

int option(const Decision& decision, int64_t value) {
  const auto at = std::find(decision.options.begin(), decision.options.end(), value);
  HONE_ASSERT(at != decision.options.end(), "an option of that value");
  return static_cast<int>(at - decision.options.begin());
}

compute::Dag conv(int64_t size, int64_t channels, bool residual = false) {
  return conv2d({.h = size, .w = size, .ic = channels, .oc = channels, .residual = residual});
}

TEST(portable_point, its_text_says_all_of_it) {
  const auto space = Space::create(conv(28, 64), narrow(32), trial::Accuracy::kFast);
  ASSERT_TRUE(space.ok()) << space.status().message();
  std::set<std::string> algorithms;
  Rng rng(3);
  for (int i = 0; i < 40; ++i) {
    const PortablePoint portable = to_portable(*space, space->sample(rng));
    const Result<PortablePoint> parsed = parse_portable_point(to_string(portable));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(*parsed, portable) << to_string(portable);
    algorithms.insert(portable.algorithm);
  }
  EXPECT_TRUE(algorithms.contains("direct")) << "sums are as the model has them";
  EXPECT_TRUE(algorithms.contains("direct_bf16")) << "constants of 16 bits";
}

TEST(portable_point, malformed_texts_are_errors) {
  for (const char* text : {"", "0: 1 2 3", "direct relu", "direct relu:lanes", "direct relu=4",
                           "direct relu:lanes=x", "direct relu:column=7/0", "direct  relu:lanes=8"})
    EXPECT_FALSE(parse_portable_point(text).ok()) << text;
}

TEST(portable_point, in_its_own_space_it_is_the_same_point) {
  const Space space = space_of(conv(28, 32));
  Rng rng(5);
  for (int i = 0; i < 40; ++i) {
    const Point point = space.sample(rng);
    const std::vector<Point> found = adapt(to_portable(space, point), space);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0], point);
  }
}

TEST(portable_point, is_found_by_its_exact_steps_known_or_not) {
  const Space space = space_of(conv(28, 32));
  Rng rng(7);
  const Point point = space.sample(rng);
  const schedule::Steps steps = space.steps(point);
  EXPECT_EQ(exact_point(to_portable(space, point), steps, space), point);
  const std::optional<Point> searched = exact_point(std::nullopt, steps, space);
  ASSERT_TRUE(searched.has_value());
  EXPECT_EQ(space.steps(*searched), steps);
  schedule::Steps others = steps;
  others.pop_back();
  EXPECT_FALSE(exact_point(to_portable(space, point), others, space).has_value());
}

// One row by weights that no cache holds.
TEST(portable_point, of_before_a_decision_was_there_is_found_by_its_steps) {
  target::Target target = narrow(32);
  target.cpu().caches = {{1, 32 << 10, 64, 1, 64}, {2, 256 << 10, 64, 1, 32}};
  const Result<Space> space = Space::create(gemm(1, 256, 512), target);
  ASSERT_TRUE(space.ok());
  Point point = space->default_point();
  EXPECT_EQ(value_of(*space, point, "ahead"), 8) << "hints, as the weights come from memory";
  PortablePoint before = to_portable(*space, point);
  for (size_t d = 0; d < point.choices.size(); ++d) {
    if (before.choices[d].role == "ahead") point.choices[d] = 0;
  }
  std::erase_if(before.choices, [](const PortableChoice& c) { return c.role == "ahead"; });
  EXPECT_EQ(exact_point(before, space->steps(point), *space), point);
  const Result<Space> near = Space::create(gemm(1, 64, 512), target);
  ASSERT_TRUE(near.ok());
  EXPECT_EQ(value_of(*near, near->default_point(), "ahead"), 0);
}

TEST(portable_point, cache_blocks_grow_with_the_axis_and_register_tiles_do_not) {
  const Space from = space_of(conv(28, 32)), to = space_of(conv(56, 32));
  Point point = from.default_point();
  const std::vector<Decision>& decisions = from.decisions(0);
  for (size_t d = 0; d < decisions.size(); ++d) {
    if (decisions[d].name == "relu.block") point.choices[d] = option(decisions[d], 14);
    if (decisions[d].name == "relu.column") point.choices[d] = option(decisions[d], 4);
  }
  ASSERT_EQ(value_of(from, point, "block"), 14);
  const std::vector<Point> points = adapt(to_portable(from, point), to);
  ASSERT_GE(points.size(), 2U);
  EXPECT_EQ(value_of(to, points[0], "block"), 14);
  EXPECT_EQ(value_of(to, points.back(), "block"), 28);
  for (const Point& p : points) EXPECT_EQ(value_of(to, p, "column"), 4);
}

TEST(portable_point, tiles_that_divide_their_axis_divide_the_new_one) {
  const Space from = space_of(conv(28, 8)), to = space_of(conv(24, 8));
  Point point = from.default_point();
  const std::vector<Decision>& decisions = from.decisions(0);
  for (size_t d = 0; d < decisions.size(); ++d) {
    if (decisions[d].name == "relu.column") point.choices[d] = option(decisions[d], 7);
    if (decisions[d].name == "relu.vectors") point.choices[d] = 0;
  }
  const std::vector<Point> points = adapt(to_portable(from, point), to);
  ASSERT_GE(points.size(), 2U);
  EXPECT_EQ(value_of(to, points[0], "column"), 7);
  EXPECT_EQ(24 % value_of(to, points[1], "column"), 0);
}

TEST(portable_point, every_point_found_is_legal_in_spaces_of_near_classes_too) {
  const Space from = space_of(conv(20, 24));
  const std::vector<Space> spaces = {space_of(conv(7, 12)), space_of(conv(33, 40, true)),
                                     space_of(conv(3, 8))};
  Rng rng(9);
  for (int i = 0; i < 60; ++i) {
    const PortablePoint portable = to_portable(from, from.sample(rng));
    for (const Space& to : spaces) {
      for (const Point& point : adapt(portable, to)) {
        EXPECT_TRUE(to.legal(point));
        EXPECT_TRUE(to.instantiate(point).ok());
        EXPECT_EQ(to.algorithm(point.sketch), portable.algorithm);
      }
    }
  }
}

TEST(portable_point, an_algorithm_that_does_not_apply_has_no_counterpart) {
  const Space from = space_of(conv(28, 32));
  const Space strided = space_of(conv2d({.h = 28, .w = 28, .ic = 32, .oc = 32, .stride = 3}));
  ASSERT_GT(from.num_sketches(), 1);
  EXPECT_TRUE(adapt(to_portable(from, from.default_point(1)), strided).empty());
  EXPECT_FALSE(adapt(to_portable(from, from.default_point(0)), strided).empty());
}

TEST(portable_point, wide_lanes_become_what_the_device_has) {
  target::Target wide = narrow(32);
  wide.cpu().vector_bytes = 64;
  wide.cpu().vector_registers = 32;
  const Result<Space> from = Space::create(conv(28, 64), wide);
  ASSERT_TRUE(from.ok());
  const Space to = space_of(conv(28, 64));
  const std::vector<Point> points = adapt(to_portable(*from, from->default_point()), to);
  ASSERT_FALSE(points.empty());
  EXPECT_EQ(value_of(to, points[0], "lanes"), 8);
}

}  // namespace
}  // namespace hone::space
