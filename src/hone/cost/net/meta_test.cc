#include "hone/cost/net/meta.h"

#include <gtest/gtest.h>

namespace hone::cost::net {
namespace {

std::string refused(std::string_view name, std::string_view options) {
  return parse_meta(name, "", options).status().message();
}

TEST(meta, options_replace_those_of_a_recipe_and_are_read_back) {
  const Result<MetaTraining> meta =
      parse_meta("fomaml", "steps=3,shots=4,last=1", "steps=5,rate=0.125,outer=1e-4");
  ASSERT_TRUE(meta.ok()) << meta.status().message();
  EXPECT_EQ(meta->kind, Meta::kFomaml);
  EXPECT_EQ(meta->steps, 5);
  EXPECT_EQ(meta->shots, 4);
  EXPECT_EQ(meta->rate, 0.125);
  EXPECT_EQ(meta->outer, 1e-4);
  EXPECT_TRUE(meta->last);
  EXPECT_EQ(meta->queries, MetaTraining().queries);
  const std::string text = format_options(*meta);
  EXPECT_EQ(format_options(parse_meta("maml", "", text).value()), text);
  for (const FamilyOption& option : meta_options())
    EXPECT_NE(text.find(std::string(option.name) + "="), std::string::npos) << option.name;
  EXPECT_FALSE(parse_meta("none", "", "")->wanted());
}

TEST(meta, every_option_does_something) {
  for (const FamilyOption& option : meta_options()) {
    const double value = option.name == "last" ? 1 : option.highest;
    const Result<MetaTraining> meta =
        parse_meta("maml", "", fmt::format("{}={}", option.name, value));
    ASSERT_TRUE(meta.ok()) << meta.status().message();
    EXPECT_NE(format_options(*meta), format_options({})) << option.name;
  }
}

TEST(meta, what_is_out_of_range_is_named) {
  EXPECT_EQ(refused("mamal", ""),
            "unknown meta-learning 'mamal', expected one of none, maml, fomaml, reptile");
  EXPECT_EQ(refused("none", "steps=2"), "options 'steps=2', but there is no meta-learning");
  EXPECT_NE(refused("maml", "steps=0").find("steps: "), std::string::npos);
  EXPECT_EQ(refused("maml", "shots=1.5"), "shots: '1.5', expected a whole number");
  EXPECT_NE(refused("maml", "rate=-1").find("rate: "), std::string::npos);
  EXPECT_NE(refused("maml", "hops=1").find("hops"), std::string::npos);
}

TEST(meta, too_few_tasks_or_schedules_are_counted) {
  MetaTraining meta = parse_meta("maml", "", "shots=3,queries=2").value();
  const std::vector<int64_t> sizes = {4, 5, 9, 2};
  EXPECT_TRUE(check_tasks(meta, sizes, "tasks", true).ok());
  EXPECT_EQ(check_tasks(meta, {sizes.data(), 2}, "tasks", true).message(),
            "1 of 2 tasks have the 5 schedules that shots=3 and queries=2 take, the largest has 5: "
            "expected 2 such tasks or more");
  EXPECT_EQ(check_tasks(meta, {}, "tasks held out", true).message(),
            "0 of 0 tasks held out have the 5 schedules that shots=3 and queries=2 take, the "
            "largest has 0: expected 2 such tasks or more");
  meta.ways = 3;
  EXPECT_FALSE(check_tasks(meta, sizes, "tasks", true).ok());
  meta.ways = 1, meta.shots = 1;
  EXPECT_TRUE(check_tasks(meta, sizes, "tasks", false).ok());
  EXPECT_EQ(check_tasks(meta, sizes, "tasks", true).message(),
            "shots=1, queries=2: the loss compares schedules of a task, expected 2 or more");
}

}  // namespace
}  // namespace hone::cost::net
