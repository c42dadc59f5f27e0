#include "hone/search/schedule_sampler.h"

#include <gtest/gtest.h>

#include "hone/search/prediction.h"
#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

using testing::Fixture;

TEST(schedule_sampler, begins_with_the_default_points_and_repeats_no_schedule) {
  const Fixture f;
  std::unordered_set<uint64_t> taken, seen;
  FastestPoints fastest;
  Rng rng(1);
  for (int round = 0; round < 3; ++round) {
    const std::vector<space::Point> points = sample_schedules(f.task(1), fastest, taken, 16, rng);
    EXPECT_EQ(points.size(), 16U);
    if (round == 0) {
      EXPECT_EQ(points[0], f.space->default_point());
      for (int s = 0; s < f.space->num_sketches(); ++s)
        EXPECT_EQ(points[static_cast<size_t>(s)], f.space->default_point(s));
    }
    for (const space::Point& point : points) {
      EXPECT_TRUE(seen.insert(schedule::hash(f.space->steps(point))).second);
      EXPECT_TRUE(f.space->legal(point));
      fastest.add(point, f.seconds(point));
    }
  }
  EXPECT_EQ(taken, seen);
}

TEST(schedule_sampler, covers_good_schedules_better_than_chance) {
  const Fixture f;
  std::unordered_set<uint64_t> taken;
  FastestPoints fastest;
  Rng rng(3);
  std::vector<double> first, last;
  for (int round = 0; round < 8; ++round) {
    for (const space::Point& point : sample_schedules(f.task(1), fastest, taken, 16, rng)) {
      const double seconds = f.seconds(point);
      fastest.add(point, seconds);
      if (round == 0) first.push_back(seconds);
      if (round == 7) last.push_back(seconds);
    }
  }
  std::sort(first.begin(), first.end());
  std::sort(last.begin(), last.end());
  EXPECT_LT(last[last.size() / 2], first[first.size() / 2]);
  // But it still looks around: at random ones, too.
  EXPECT_GT(last.back(), 1.2 * last.front());
}

TEST(schedule_sampler, is_deterministic_and_ends_when_the_space_does) {
  const target::Target target;
  const compute::Dag dag = compute::testing::gemm(4, 16, 8);
  const Result<space::Space> space = space::Space::create(dag, target);
  ASSERT_TRUE(space.ok());
  ASSERT_LT(space->size(), kSmallSpace);
  std::vector<space::Point> points = all_points(*space);
  points.push_back(space->default_point());  // as it is; another point may stand for it
  std::unordered_set<uint64_t> all;
  for (const space::Point& point : points) all.insert(schedule::hash(space->steps(point)));
  testing::BlindModel model;
  const SearchTask task = {&*space, &target, &model, 1, 7, 1};
  std::vector<std::vector<space::Point>> drawn[2];
  for (auto& list : drawn) {
    std::unordered_set<uint64_t> taken;
    Rng rng(5);
    while (taken.size() < all.size()) {
      const size_t left = std::min<size_t>(all.size() - taken.size(), 32);
      list.push_back(sample_schedules(task, {}, taken, 32, rng));
      ASSERT_EQ(list.back().size(), left) << "a batch is full as long as there are others";
    }
    EXPECT_EQ(taken, all);
    EXPECT_TRUE(sample_schedules(task, {}, taken, 32, rng).empty());
  }
  EXPECT_EQ(drawn[0], drawn[1]);
}

TEST(schedule_sampler, all_points_are_found_each_once) {
  const target::Target target;
  for (const compute::Dag& dag :
       {compute::testing::gemm(4, 16, 8), compute::testing::transpose(3, 32, 32, 0)}) {
    const space::Space space = space::Space::create(dag, target).value();
    std::unordered_set<uint64_t> all;
    for (const space::Point& point : all_points(space)) {
      EXPECT_TRUE(space.legal(point));
      EXPECT_EQ(point, space.canonical(point));
      EXPECT_TRUE(all.insert(hash(point)).second);
    }
    Rng rng(3);
    for (int i = 0; i < 2000; ++i) EXPECT_TRUE(all.contains(hash(space.sample(rng))));
  }
}

TEST(schedule_sampler, keeps_the_fastest_in_order) {
  const Fixture f;
  FastestPoints fastest;
  Rng rng(1);
  for (int i = 0; i < 100; ++i) fastest.add(f.space->sample(rng), 100 - i);
  ASSERT_FALSE(fastest.entries().empty());
  EXPECT_EQ(fastest.entries().front().seconds, 1);
  EXPECT_TRUE(std::is_sorted(fastest.entries().begin(), fastest.entries().end(),
                             [](auto& a, auto& b) { return a.seconds < b.seconds; }));
}

}  // namespace
}  // namespace hone::search
