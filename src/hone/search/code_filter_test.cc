#include "hone/search/code_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "hone/search/tune_tasks_testing.h"

namespace hone::search {
namespace {

std::vector<Candidate> batch_of(std::initializer_list<double> predicted) {
  std::vector<Candidate> batch;
  for (const double seconds : predicted) {
    batch.emplace_back();
    batch.back().predicted_seconds = seconds;
  }
  return batch;
}

std::vector<double> predictions(const std::vector<Candidate>& candidates) {
  std::vector<double> seconds;
  for (const Candidate& candidate : candidates) seconds.push_back(candidate.predicted_seconds);
  return seconds;
}

TEST(code_filter, leaves_out_what_seems_much_slower_than_the_best) {
  CodeFilter filter(nullptr, {.factor = 2, .share = 0.2});
  std::vector<Candidate> batch = batch_of({1, 5, 0, 2, 2.5});  // of the third nothing is known
  EXPECT_EQ(predictions(filter.take_out(batch, 1)), (std::vector<double>{5, 2.5}));
  EXPECT_EQ(predictions(batch), (std::vector<double>{1, 0, 2}));
  EXPECT_EQ(filter.counts().left_out, 2);
}

TEST(code_filter, never_starves) {
  CodeFilter filter(nullptr, {.factor = 2, .share = 0.3});
  std::vector<Candidate> batch = batch_of({9, 4, 8, 3, 7});
  EXPECT_EQ(predictions(filter.take_out(batch, 1)), (std::vector<double>{9, 8, 7}));
  EXPECT_EQ(predictions(batch), (std::vector<double>{4, 3}));
  batch = batch_of({9, 8});
  batch[0].trusted = true;  // it counts as one that is measured
  EXPECT_EQ(predictions(filter.take_out(batch, 1)), (std::vector<double>{8}));
  batch = batch_of({9, 8});
  EXPECT_TRUE(filter.take_out(batch, 0).empty());  // of the best nothing is known
  batch[0].status = error(Code::kUnsupported, "no code");
  EXPECT_TRUE(filter.take_out(batch, 1).empty());  // one is measured, the other cannot be
}

TEST(code_filter, options_are_parsed_strictly) {
  EXPECT_DOUBLE_EQ(parse_filter_limits("").value().factor, 2);
  EXPECT_DOUBLE_EQ(parse_filter_limits("share=0.5").value().share, 0.5);
  for (const char* wrong : {"share=0", "factor=0.5", "faktor=2", "factor"})
    EXPECT_FALSE(parse_filter_limits(wrong).ok()) << wrong;
}

// Says of machine code what the runner of these tests will measure.
struct KnownSeconds final : CodeScore {
  Result<double> seconds(const cost::Query&, const ir::Program&,
                         const backend::Executable& code) const override {
    measure::Job job;
    job.executable = code;
    return TuneFixture::code_seconds(job);
  }
};

struct Filtered {
  TuneResult result;
  size_t slow = 0;  // codes that were measured although they take kFactor times the best before
};
constexpr double kFactor = 2;
Filtered tune_with(const FilterLimits& limits) {
  TuneFixture f;
  f.tasks.erase(f.tasks.begin());
  CodeFilter filter(std::make_unique<KnownSeconds>(), limits);
  f.options.context.filter = &filter;
  f.options.batch = 4;
  f.options.max_trials = kTrials;
  std::set<uint64_t> slow;
  double best = INFINITY;
  measure::NullRunner runner{[&](const measure::Job& job) -> Result<double> {
    f.clock.advance(0.05);
    const double seconds = TuneFixture::code_seconds(job);
    if (seconds > kFactor * best) slow.insert(hash_string(job.executable.code.str()));
    best = std::min(best, seconds);
    return seconds;
  }};
  f.options.runner = &runner;
  Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return {*std::move(result), slow.size()};
}

TEST(code_filter, a_search_measures_what_is_worth_it_and_goes_on) {
  const Filtered all = tune_with({.factor = 1e6, .share = 0.1});
  const Filtered some = tune_with({.factor = kFactor, .share = 0.1});
  EXPECT_EQ(all.result.filtered.left_out, 0);
  EXPECT_GE(all.result.filtered.predicted, kTrials);
  EXPECT_GT(some.result.filtered.left_out, 0);
  EXPECT_GE(some.result.filtered.predicted, some.result.filtered.left_out + some.result.trials);
  EXPECT_EQ(some.result.trials, kTrials);  // what is left out is no trial
  EXPECT_LT(some.slow, all.slow);
}

}  // namespace
}  // namespace hone::search
