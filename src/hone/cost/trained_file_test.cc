// The files of trained trees, those that ship with Hone among them.
#include <gtest/gtest.h>

#include "hone/cost/fingerprint.h"
#include "hone/cost/gbdt_model.h"
#include "hone/cost/pretrained.h"

namespace hone::cost {
namespace {

std::string message(std::string_view text) {
  const Result<TrainedTrees> trained = parse_trained(text, "a.model");
  return trained.ok() ? "parsed" : std::string(trained.status().message());
}

// With another text in place of the first `from`.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

TEST(trained_file, says_what_was_expected) {
  const std::string good = format({FeatureSet::kStatements, Trees()});
  EXPECT_EQ(message(good), "parsed");
  EXPECT_EQ(message("hone static score 1\n"),
            "a.model: a score of machine code (hone train --cost static), expected trees");
  EXPECT_EQ(message("{}\n"), "a.model: no cost model, expected the first line 'hone cost model 2'");
  EXPECT_EQ(message(replaced(good, "kind gbdt", "kind tree")),
            "a.model: found 'kind tree', expected kind gbdt, combined or gpu");
  const size_t count = candidate_feature_names(FeatureSet::kStatements).size();
  const std::string features =
      fmt::format("features {} of version {}", count, kCandidateFeatureVersion);
  EXPECT_EQ(message(replaced(good, features, "features 12 of version 0")),
            fmt::format("a.model: found 'features 12 of version 0', expected '{}': train it anew "
                        "(hone train)",
                        features));
  EXPECT_EQ(message(good + "0.5\n"), "a.model: 1 trees, but the header says 'trees 0'");
  EXPECT_EQ(message(good + "x\n"), "a.model: tree 1: 'x', expected a number");
}

TEST(trained_file, of_before_there_were_fingerprints_is_refused) {
  EXPECT_EQ(message("hone cost model\nkind gbdt\nfeatures 252 of version 3\ntrees 0\n"),
            "a.model: found 'hone cost model', expected 'hone cost model 2': train it anew (hone "
            "train)");
}

TEST(trained_file, of_another_measure_is_refused) {
  const std::string good = format({FeatureSet::kCombined, Trees()});
  const std::string numbers = fingerprint("measure");
  const std::string other = "1" + numbers.substr(numbers.find(' '));
  const std::string refused = message(replaced(good, "measure " + numbers, "measure " + other));
  EXPECT_TRUE(
      refused.starts_with("a.model: trained with other features or another analytic "
                          "measure than this program has (measure of matmul on avx512: "
                          "found 1, expected "))
      << refused;
  EXPECT_TRUE(refused.ends_with(": train it anew (hone train)")) << refused;
  EXPECT_EQ(message(replaced(good, "measure " + numbers, "measure 1 2")),
            "a.model: its fingerprint of measure is '1 2', expected 12 numbers");
  EXPECT_EQ(message(replaced(good, "fingerprint measure", "fingerprint pleasure")),
            fmt::format("a.model: found 'fingerprint pleasure {}', expected 'fingerprint measure ' "
                        "and its numbers",
                        numbers));
}

TEST(trained_file, keeps_its_card) {
  TrainedTrees trained = {FeatureSet::kCombined, Trees()};
  trained.card = {{"devices", "a/1, b"}, {"excluded_models", ""}, {"models", "two\nlines"}};
  const Result<TrainedTrees> back = parse_trained(format(trained), "a.model");
  ASSERT_TRUE(back.ok()) << back.status().message();
  const std::map<std::string, std::string> expected = {{"devices", "a/1, b"},
                                                       {"models", "two lines"}};
  EXPECT_EQ(back->card, expected);
}

TEST(trained_file, a_cut_one_is_refused_wherever_it_ends) {
  TrainedTrees trained = {FeatureSet::kStatements, Trees(), {{"tasks", "5"}}};
  for (int i = 0; i < 3; ++i)
    trained.trees.add(std::vector<TreeNode>{{4, 2.5F, 2}, {-1, 0.25F}, {-1, -1}});
  const std::string whole = format(trained);
  ASSERT_EQ(message(whole), "parsed");
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string refused = message(whole.substr(0, size));
    ASSERT_TRUE(refused.starts_with("a.model: ")) << size << ": " << refused;
  }
}

TEST(pretrained, know_features_and_measure_as_they_are) {
  for (const Pretrained& shipped : pretrained_models()) {
    const Result<TrainedTrees> trained = parse_trained(shipped.text, shipped.name);
    ASSERT_TRUE(trained.ok()) << trained.status().message()
                              << "\nThe trees that ship with Hone were trained before the analytic "
                                 "measure or the features changed: run "
                                 "scripts/train_cost_models.sh";
    EXPECT_EQ(trained->features, shipped.features) << shipped.name;
    const Result<TrainedTrees> read = parse_shipped(shipped.text, shipped.name);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(read->trees == trained->trees && read->card == trained->card) << shipped.name;
    for (const char* name : {"booster", "devices", "schedules", "tasks"})
      EXPECT_TRUE(trained->card.contains(name)) << shipped.name << ": " << name;
  }
}

}  // namespace
}  // namespace hone::cost
