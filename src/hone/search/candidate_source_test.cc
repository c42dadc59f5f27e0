#include "hone/search/candidate_source.h"

#include <gtest/gtest.h>

#include <set>

#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

// Proposes points from a list, and hears what was measured.
class ListSearcher final : public Searcher {
 public:
  explicit ListSearcher(std::vector<space::Point> points) : points_(std::move(points)) {}
  [[nodiscard]] std::string_view name() const override { return "list"; }
  [[nodiscard]] std::vector<space::Point> propose(int n) override {
    const size_t count = std::min(points_.size() - next_, static_cast<size_t>(n));
    const auto first = points_.begin() + static_cast<std::ptrdiff_t>(next_);
    next_ += count;
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }
  void observe(std::span<const space::Point>, std::span<const double>) override {}

 private:
  std::vector<space::Point> points_;
  size_t next_ = 0;
};

struct Fixture : testing::Fixture {
  std::vector<space::Point> points = distinct(12);

  std::vector<space::Point> distinct(size_t count) {
    Rng rng(1);
    std::vector<space::Point> found;
    std::set<std::string> seen;
    while (found.size() < count) {
      space::Point point = space->sample(rng);
      if (seen.insert(schedule::to_string(space->steps(point))).second)
        found.push_back(std::move(point));
    }
    return found;
  }
  [[nodiscard]] schedule::Steps steps(size_t i) const { return space->steps(points[i]); }
  CandidateSource source(std::vector<space::Point> listed) {
    return {task(1), std::make_unique<ListSearcher>(std::move(listed))};
  }
  // The places in `points` of what is proposed; -1: it is none of them.
  std::vector<int> propose(
      CandidateSource& source, int n,
      const CandidateSource::Accept& accept = [](Candidate&) { return true; }) {
    std::vector<int> places;
    for (const Candidate& candidate : source.propose(n, accept)) {
      int place = -1;
      for (size_t i = 0; i < points.size(); ++i) {
        if (candidate.steps == steps(i)) place = static_cast<int>(i);
      }
      places.push_back(place);
    }
    return places;
  }
};

using Places = std::vector<int>;

TEST(candidate_source, suggestions_come_before_the_searchers_points_and_nothing_comes_twice) {
  Fixture f;
  CandidateSource source = f.source({f.points[0], f.points[1], f.points[2], f.points[3]});
  source.suggest(f.steps(2));
  source.suggest(f.steps(5), f.points[5]);
  source.suggest(f.steps(2));
  EXPECT_EQ(f.propose(source, 3), (Places{2, 5, 0}));
  EXPECT_FALSE(source.exhausted());
  source.suggest(f.steps(5));
  EXPECT_EQ(f.propose(source, 8), (Places{1, 3}));
  EXPECT_FALSE(source.exhausted());
  EXPECT_EQ(f.propose(source, 8), Places{});
  EXPECT_TRUE(source.exhausted());
}

TEST(candidate_source, finds_the_point_of_suggested_steps) {
  Fixture f;
  CandidateSource source = f.source({});
  source.suggest(f.steps(4));
  const std::vector<Candidate> found = source.propose(1, [](Candidate&) { return true; });
  ASSERT_EQ(found.size(), 1U);
  ASSERT_TRUE(found[0].point);
  EXPECT_EQ(f.space->steps(*found[0].point), f.steps(4));
}

// A refused candidate makes place for others, but it is not offered again.
TEST(candidate_source, a_batch_is_filled_in_spite_of_what_is_refused) {
  Fixture f;
  CandidateSource source = f.source(f.points);
  int asked = 0;
  const auto every_second = [&](Candidate&) { return ++asked % 2 == 0; };
  EXPECT_EQ(f.propose(source, 4, every_second), (Places{1, 3, 5, 7}));
  EXPECT_EQ(f.propose(source, 4), (Places{8, 9, 10, 11}));
}

TEST(candidate_source, of_similar_tasks_the_last_three_count) {
  Fixture f;
  CandidateSource source = f.source({});
  for (const size_t i : {0U, 1U, 2U, 3U, 1U}) {
    source.add_example({space::to_portable(*f.space, f.points[i]), f.steps(i)});
  }
  EXPECT_EQ(f.propose(source, 8), (Places{2, 3, 1}));
}

TEST(candidate_source, of_what_other_tasks_had_each_algorithm_comes_first_once) {
  Fixture f;
  std::vector<Transferred> transferred;
  std::set<std::string> algorithms;
  for (size_t i = 0; i < f.points.size(); ++i) {
    transferred.push_back({.point = f.points[i], .steps = f.steps(i)});
    algorithms.insert(schedule::algorithm_of(f.steps(i)));
  }
  ASSERT_GT(algorithms.size(), 1U);
  ASSERT_LT(algorithms.size(), 6U);
  CandidateSource source = f.source({});
  source.suggest_transferred(transferred);
  const Places places = f.propose(source, 12);
  ASSERT_EQ(places.size(), 6U) << "no more, however many there were";
  std::set<std::string> first;
  for (size_t i = 0; i < algorithms.size(); ++i)
    first.insert(schedule::algorithm_of(f.steps(static_cast<size_t>(places[i]))));
  EXPECT_EQ(first, algorithms);
  for (size_t i = algorithms.size() + 1; i < places.size(); ++i)
    EXPECT_LT(places[i - 1], places[i]) << "the others in the order given";
}

}  // namespace
}  // namespace hone::search
