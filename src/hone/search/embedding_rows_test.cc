#include "hone/search/embedding_rows.h"

#include <gtest/gtest.h>

#include "hone/search/decision_process.h"
#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

using testing::Fixture;

// Sees of a schedule how many loops its first stages have and how long these are, whatever its
// sketch, and a number that is the same for all.
class LoopModel : public testing::BlindModel, public cost::Embedder {
 public:
  static constexpr size_t kStages = 4;
  static std::vector<float> embedding(const space::Candidate& candidate) {
    std::vector<float> numbers(2 * kStages + 1, 7);
    for (size_t s = 0; s < kStages; ++s) {
      double loops = 10, lengths = 0;
      if (s < candidate.state.stages.size()) {
        for (const schedule::Loop& loop : candidate.state.stages[s].loops)
          loops += 1, lengths += std::log2(1 + static_cast<double>(loop.length));
      }
      numbers[2 * s] = static_cast<float>(loops);
      numbers[2 * s + 1] = static_cast<float>(lengths / 100);
    }
    return numbers;
  }
  [[nodiscard]] Status start_embedding() override {
    started = true;
    return ok_status();
  }
  [[nodiscard]] Result<cost::Embeddings> embed(
      std::span<const cost::Query> queries) const override {
    if (!started || refuses) return error(Code::kUnsupported, "none");
    cost::Embeddings embeddings;
    for (const cost::Query& query : queries) embeddings.push_back(embedding(*query.candidate));
    return embeddings;
  }
  bool started = false, refuses = false;
};

struct EmbeddedFixture : Fixture {
  LoopModel loops;
  [[nodiscard]] SearchTask embedded(uint64_t seed) const {
    SearchTask own = task(seed);
    own.model = &loops;
    return own;
  }
  // Returns seconds that depend on the embedding alone and are least at the `best` one.
  [[nodiscard]] double planted(const space::Point& point, const std::vector<float>& best) const {
    const std::vector<float> seen = LoopModel::embedding(space->instantiate(point).value());
    double away = 0;
    for (size_t i = 0; i < seen.size(); ++i)
      away += std::pow(static_cast<double>(seen[i] - best[i]) * (i % 2 == 1 ? 200 : 1.0), 2);
    return 1e-4 * (1 + away);
  }
};

TEST(embedding_rows, have_the_scale_of_random_decisions) {
  EmbeddedFixture f;
  Rng rng(1);
  std::vector<space::Point> samples, legal;
  for (int i = 0; i < 200; ++i) samples.push_back(f.space->sample(rng));
  for (const space::Point& sample : samples) {
    if (f.space->legal(sample)) legal.push_back(sample);
  }
  EXPECT_FALSE(EmbeddingRows::make(f.embedded(1), samples)) << "nobody started it";
  ASSERT_TRUE(f.loops.start_embedding().ok());
  const std::optional<EmbeddingRows> rows = EmbeddingRows::make(f.embedded(1), samples);
  ASSERT_TRUE(rows);
  const auto found = rows->rows(legal);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), legal.size());
  const size_t width = found->front().size();
  EXPECT_GT(width, 4U);
  EXPECT_LE(width, 1 + 2 * LoopModel::kStages) << "a number that is always the same tells nothing";
  for (size_t i = 1; i < width; ++i) {
    double mean = 0, square = 0;
    for (const std::vector<float>& row : *found) {
      ASSERT_EQ(row.size(), width);
      EXPECT_EQ(row[0], kEmbedded);
      mean += row[i], square += row[i] * row[i];
    }
    const auto count = static_cast<double>(legal.size());
    EXPECT_NEAR(mean / count, 0.5, 0.03);
    EXPECT_NEAR(square / count - std::pow(mean / count, 2), 1 / 12.0, 0.02);
  }
  f.loops.refuses = true;
  EXPECT_FALSE(rows->rows(legal));
}

TEST(embedding_rows, bayes_finds_the_optimum_that_the_embedding_shows) {
  EmbeddedFixture f;
  const std::unique_ptr<Policy> policy =
      std::move(make_policy("bayes:inputs=embedding,prior=none,pool=96,refined=4")).value();
  ASSERT_TRUE(policy->prepare(f.loops).ok());
  ASSERT_TRUE(f.loops.started);
  // The goal is a rare place: of many schedules the one with the longest loops.
  Rng rng(5);
  std::vector<float> goal;
  const auto length = [](const std::vector<float>& seen) {
    float sum = 0;
    for (size_t s = 0; s < LoopModel::kStages; ++s) sum += seen[2 * s + 1];
    return sum;
  };
  for (int i = 0; i < 500; ++i) {
    const Result<space::Candidate> candidate = f.space->instantiate(f.space->sample(rng));
    if (!candidate.ok()) continue;
    const std::vector<float> seen = LoopModel::embedding(*candidate);
    if (goal.empty() || length(seen) > length(goal)) goal = seen;
  }
  // Returns how much slower than the goal the best of 32 points is, summed over searches.
  const auto missed_by = [&](Policy& by) {
    double missed = 0;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const std::unique_ptr<Searcher> searcher = by.make_searcher(f.embedded(seed));
      double least = INFINITY;
      for (int round = 0; round < 4; ++round) {
        const std::vector<space::Point> points = searcher->propose(8);
        std::vector<double> seconds;
        for (const space::Point& point : points) seconds.push_back(f.planted(point, goal));
        searcher->observe(points, seconds);
        least = std::min(least, testing::best_of(seconds));
      }
      missed += least / 1e-4 - 1;
    }
    return missed;
  };
  const double random = missed_by(**make_policy("random"));
  EXPECT_LT(missed_by(*policy), 0.2 * random);
  // Of a task that the model cannot embed, the process sees decisions.
  f.loops.refuses = true;
  EXPECT_LT(missed_by(*policy), random);
}

TEST(embedding_rows, a_model_without_an_embedding_is_one_clear_error) {
  Fixture f;
  EXPECT_EQ(make_policy("bayes:inputs=embedding").value()->prepare(f.model).message(),
            "search strategy 'bayes': inputs=embedding: cost model 'blind' has no embedding of "
            "schedules, expected FILE.onnx, a net that hone train wrote");
  EXPECT_TRUE(make_policy("bayes").value()->prepare(f.model).ok());
  EXPECT_TRUE(make_policy("mixed").value()->prepare(f.model).ok());
  EXPECT_EQ(make_policy("bayes:inputs=loops").status().message(),
            "search strategy 'bayes': inputs: found 'loops', expected one of decisions, embedding");
}

}  // namespace
}  // namespace hone::search
