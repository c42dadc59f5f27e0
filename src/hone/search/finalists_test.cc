#include "hone/search/finalists.h"

#include <gtest/gtest.h>

namespace hone::search {
namespace {

Candidate candidate(uint64_t id, int64_t tiles, int64_t weight_bytes) {
  Candidate candidate;
  candidate.job.id = id;
  candidate.job.executable.entries.resize(1);
  candidate.job.executable.entries[0].num_tiles = tiles;
  candidate.job.arguments.push_back({.role = ir::Role::kPacked, .bytes = weight_bytes});
  return candidate;
}

std::vector<uint64_t> ids_of(const Finalists& finalists) {
  std::vector<uint64_t> ids;
  for (const Finalist& finalist : finalists.all()) ids.push_back(finalist.candidate.job.id);
  return ids;
}

using Ids = std::vector<uint64_t>;

TEST(finalists, are_the_three_fastest_in_order) {
  Finalists finalists(1, measure::Weights::kWarm);
  const double seconds[] = {5, 3, 4, 1, 2};
  for (uint64_t i = 0; i < std::size(seconds); ++i)
    finalists.insert(candidate(i, static_cast<int64_t>(i), 10 / static_cast<int64_t>(i + 1)),
                     seconds[i]);
  EXPECT_EQ(ids_of(finalists), (Ids{3, 4, 1}));
}

TEST(finalists, of_equal_ones_the_first_comes_first) {
  Finalists finalists(1, measure::Weights::kWarm);
  for (uint64_t i = 0; i < 4; ++i) finalists.insert(candidate(i, 1, 1), 1);
  EXPECT_EQ(ids_of(finalists), (Ids{0, 1, 2}));
}

TEST(finalists, keep_one_more_with_another_split_over_the_threads) {
  for (const int threads : {1, 2}) {
    Finalists finalists(threads, measure::Weights::kWarm);
    for (uint64_t i = 0; i < 4; ++i) finalists.insert(candidate(i, 8, 1), 1 + 0.1 * i);
    finalists.insert(candidate(7, 4, 1), 2);
    finalists.insert(candidate(8, 2, 1), 3);
    EXPECT_EQ(ids_of(finalists), (threads > 1 ? Ids{0, 1, 2, 7} : Ids{0, 1, 2}));
    EXPECT_EQ(finalists.has_other_split(finalists.all().back()), threads > 1);
    // One of another split among the fastest is enough.
    finalists.insert(candidate(9, 4, 1), 1.05);
    EXPECT_EQ(ids_of(finalists), (Ids{0, 9, 1}));
  }
}

TEST(finalists, keep_one_more_with_half_the_weights_if_they_were_near) {
  for (const measure::Weights weights : {measure::Weights::kShared, measure::Weights::kWarm}) {
    const bool shared = weights == measure::Weights::kShared;
    Finalists finalists(1, weights);
    for (uint64_t i = 0; i < 4; ++i) finalists.insert(candidate(i, 1, 100), 1 + 0.1 * i);
    finalists.insert(candidate(7, 1, 51), 2);
    finalists.insert(candidate(8, 1, 50), 3);
    EXPECT_EQ(ids_of(finalists), (shared ? Ids{0, 1, 2, 8} : Ids{0, 1, 2}));
    EXPECT_EQ(finalists.has_fewer_weights(finalists.all().back()), shared);
  }
}

TEST(finalists, the_last_one_is_not_removed) {
  Finalists finalists(1, measure::Weights::kWarm);
  finalists.insert(candidate(1, 1, 1), 1);
  EXPECT_FALSE(finalists.remove(1));
  finalists.insert(candidate(2, 1, 1), 2);
  EXPECT_FALSE(finalists.remove(3));
  const std::optional<Finalist> removed = finalists.remove(1);
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->candidate.job.id, 1U);
  EXPECT_EQ(ids_of(finalists), (Ids{2}));
}

}  // namespace
}  // namespace hone::search
