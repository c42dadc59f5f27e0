// The part of a space in which only some decisions move.
#include "hone/space/subspace.h"

#include <algorithm>
#include <bit>

#include "hone/compute/dag_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

using Roles = std::set<std::string, std::less<>>;

std::vector<Space> some_spaces() {
  const std::vector<compute::Dag> dags = {gemm(33, 72, 48),
                                          few_columns(40, 3, 200, true),
                                          conv2d({.h = 14, .w = 14, .ic = 32}),
                                          conv2d({.ic = 16, .oc = 24, .stride = 2}),
                                          grouped_conv2d(9, 9, 4, 8, 8, 1),
                                          depthwise(14, 14, 24, 1),
                                          max_pool(9, 9, 20),
                                          global_pool(7, 7, 40),
                                          softmax(12, 50, 3),
                                          normalized_rows(20, 96),
                                          attention(2, 24, 40, 16),
                                          separable(12, 12, 16, 24),
                                          running_sum(9, 130),
                                          gather_rows(20, 48, 9),
                                          arg_max(12, 60, 3),
                                          transpose(12, 9, 16, 1),
                                          sum_of_two(24, 100)};
  std::vector<Space> spaces;
  for (const compute::Dag& dag : dags) {
    for (const target::Target& target : {with_small_caches(narrow()), narrow(64), matrix_gpu()}) {
      Result<Space> space = Space::create(dag, target);
      EXPECT_TRUE(space.ok()) << compute::describe(dag) << ": " << space.status().message();
      if (space.ok()) spaces.push_back(*std::move(space));
    }
  }
  return spaces;
}

// About half of the roles.
Roles some_roles(const Space& space, Rng& rng) {
  Roles roles;
  for (std::string& role : open_roles(space)) {
    if (rng.chance(0.5)) roles.insert(std::move(role));
  }
  return roles;
}

// Some points of the whole space.
std::vector<Point> some_points(const Space& space, Rng& rng, int count) {
  std::vector<Point> points = space.default_points();
  for (int i = 0; i < count; ++i) points.push_back(space.sample(rng));
  return points;
}

// All points that a space makes of points of a wider one.
std::vector<Point> moves_from(const Subspace& space, const std::vector<Point>& from, Rng& rng) {
  std::vector<Point> made;
  for (const Point& point : from) {
    made.push_back(space.sample(rng));
    made.push_back(space.project(point));
    for (int i = 0; i < 4; ++i) made.push_back(space.mutate(point, rng));
    made.push_back(space.mutate(made.back(), rng));
    made.push_back(space.crossover(point, rng.choice(from), rng));
    for (Point& next : space.neighbours(point)) made.push_back(std::move(next));
  }
  return made;
}

TEST(subspace, whatever_moves_keeps_fixed_decisions) {
  Rng rng(5);
  for (const Space& space : some_spaces()) {
    const Roles roles = some_roles(space, rng);
    const std::vector<Point> all = some_points(space, rng, 5);
    Movable movable{roles};
    for (const Point& point : all) {  // sketches that were sampled are fixed otherwise
      const bool known = std::ranges::any_of(
          movable.bases, [&](const Point& base) { return base.sketch == point.sketch; });
      if (!known && point != space.default_point(point.sketch)) movable.bases.push_back(point);
    }
    const Subspace part(space, movable);
    std::vector<Point> bases = space.default_points();
    for (const Point& base : movable.bases) bases[static_cast<size_t>(base.sketch)] = base;
    for (const Point& point : moves_from(part, all, rng)) {
      ASSERT_TRUE(space.legal(point));
      ASSERT_EQ(part.project(point), point);
      // With the fixed decisions as the base has them it is the same point.
      Point fixed = point;
      for (size_t d = 0; d < fixed.choices.size(); ++d) {
        if (!roles.contains(common_role(space.decisions(point.sketch)[d])))
          fixed.choices[d] = bases[static_cast<size_t>(point.sketch)].choices[d];
      }
      ASSERT_TRUE(space.legal(fixed));
      ASSERT_EQ(space.canonical(fixed), point) << schedule::to_string(space.steps(point));
    }
  }
}

TEST(subspace, tiles_have_lengths_that_are_powers_of_two) {
  Rng rng(6);
  int tiles = 0;
  for (const Space& space : some_spaces()) {
    const Subspace part(space, {.powers_of_two = true});
    EXPECT_LE(part.size(), space.size());
    for (const Point& point : moves_from(part, some_points(space, rng, 2), rng)) {
      ASSERT_EQ(part.project(point), point);
      const Point held = part.hold(point), usual = space.default_point(point.sketch);
      ASSERT_EQ(space.canonical(held), point);
      for (size_t d = 0; d < held.choices.size(); ++d) {
        const Decision& decision = space.decisions(point.sketch)[d];
        if (decision.kind != DecisionKind::kTile || held.choices[d] == usual.choices[d]) continue;
        const int64_t length = decision.options[static_cast<size_t>(held.choices[d])];
        ASSERT_TRUE(length <= 0 || std::has_single_bit(static_cast<uint64_t>(length)))
            << decision.name << "=" << length;
        ++tiles;
      }
    }
  }
  EXPECT_GT(tiles, 1000);
}

TEST(subspace, in_which_all_may_move_is_the_whole_space) {
  for (const Space& space : some_spaces()) {
    const Subspace whole(space), part(space, {});
    EXPECT_TRUE(whole.is_whole());
    EXPECT_EQ(part.size(), space.size());
    EXPECT_EQ(part.can_move(), whole.can_move());
    Rng one(3), two(3);
    Point a = space.sample(one), b = whole.sample(two);
    for (int i = 0; i < 6; ++i) {
      ASSERT_EQ(a, b);
      ASSERT_EQ(part.project(a), a);
      ASSERT_EQ(whole.neighbours(a), space.neighbours(a));
      // Those of the same choices before they are made canonical.
      ASSERT_EQ(part.neighbours(a), space.neighbours(a));
      a = space.mutate(a, one), b = whole.mutate(b, two);
    }
  }
}

TEST(subspace, in_which_nothing_moves_has_the_base_points) {
  Rng rng(7);
  for (const Space& space : some_spaces()) {
    const Subspace part(space, {.roles = Roles()});
    EXPECT_FALSE(part.can_move());
    EXPECT_EQ(part.size(), space.num_sketches());
    for (const Point& point : some_points(space, rng, 2)) {
      const Point usual = space.canonical(space.default_point(point.sketch));
      EXPECT_EQ(part.project(point), usual);
      EXPECT_EQ(part.mutate(point, rng), usual);
      EXPECT_TRUE(part.neighbours(point).empty());
    }
  }
}

TEST(subspace, roles_are_those_of_other_tasks) {
  const Result<Space> one = Space::create(gemm(33, 72, 48), matrix_gpu()),
                      other = Space::create(gemm(64, 40, 96), matrix_gpu());
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(open_roles(*one), open_roles(*other));
  EXPECT_TRUE(std::ranges::none_of(open_roles(*one), [](const std::string& role) {
    return role.empty() || role.find('.') != std::string::npos;
  }));
}

}  // namespace
}  // namespace hone::space
