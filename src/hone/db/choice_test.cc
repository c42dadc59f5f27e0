// Tests of what a network uses instead of the fastest schedules.
#include <gtest/gtest.h>

#include "hone/db/schema.h"
#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

constexpr uint64_t kNetwork = 0x8000000000000007ULL, kOther = 8;

trial::Record with_steps(uint64_t task, double seconds, const std::string& steps) {
  trial::Record r = sample_record(task, seconds);
  r.steps = steps;
  return r;
}

// A store with three schedules of a task, "a" the fastest, and one of another task.
struct Fixture {
  TestFolder folder;
  std::string path = folder.file("a.db");
  std::unique_ptr<Store> store = open_store(path).value();
  std::vector<int64_t> ids =
      store
          ->add(std::vector{with_steps(1, 1e-3, "a"), with_steps(1, 2e-3, "b"),
                            with_steps(1, 3e-3, "c"), with_steps(2, 1e-3, "a")})
          .value();
  void choose(uint64_t network, std::vector<Choice> choices) {
    const Status status = store->choose(network, choices);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // "task:best>chosen" of each.
  std::string chosen(uint64_t network) {
    std::string text;
    const auto found = store->chosen(network);
    EXPECT_TRUE(found.ok()) << found.status().message();
    for (const Chosen& choice : *found)
      text += fmt::format("{}:{}>{} ", choice.record.task, choice.best, choice.record.steps);
    return text;
  }
};

TEST(choice, belongs_to_a_network_and_a_task) {
  Fixture f;
  EXPECT_EQ(f.chosen(kNetwork), "");
  f.choose(kNetwork, {{f.ids[0], f.ids[1]}});
  EXPECT_EQ(f.chosen(kNetwork), "1:a>b ");
  EXPECT_EQ(f.chosen(kOther), "");
  EXPECT_EQ(open_store(f.path, {.read_only = true}).value()->chosen(kNetwork)->size(), 1U);
}

TEST(choice, the_last_one_counts_and_the_fastest_needs_none) {
  Fixture f;
  f.choose(kNetwork, {{f.ids[0], f.ids[1]}});
  f.choose(kOther, {{f.ids[0], f.ids[1]}});
  f.choose(kNetwork, {{f.ids[0], f.ids[2]}});
  EXPECT_EQ(f.chosen(kNetwork), "1:a>c ");
  // The same schedule, measured once more.
  const int64_t again = f.store->add(std::vector{with_steps(1, 9e-4, "a")}).value()[0];
  f.choose(kNetwork, {{again, f.ids[1]}});
  EXPECT_EQ(f.chosen(kNetwork), "1:a>b ");
  f.choose(kNetwork, {{f.ids[3], f.ids[3]}});
  EXPECT_EQ(f.chosen(kNetwork), "1:a>b ") << "another task's schedule of that name";
  f.choose(kNetwork, {{f.ids[0], f.ids[0]}});
  EXPECT_EQ(f.chosen(kNetwork), "");
  EXPECT_EQ(f.chosen(kOther), "1:a>b ");
  // No circles: of two schedules one is instead of the other.
  f.choose(kOther, {{f.ids[1], f.ids[0]}});
  EXPECT_EQ(f.chosen(kOther), "1:b>a ");
}

TEST(choice, goes_with_what_was_chosen) {
  Fixture f;
  f.choose(kNetwork, {{f.ids[0], f.ids[1]}});
  f.choose(kOther, {{f.ids[0], f.ids[2]}});
  ASSERT_TRUE(f.store->set_verified(f.ids[1], trial::Outcome::kWrongAnswer, "no").ok());
  EXPECT_EQ(f.chosen(kNetwork), "") << "it is wrong";
  ASSERT_TRUE(f.store->remove(std::vector{f.ids[2]}).ok());
  EXPECT_EQ(f.chosen(kOther), "");
  ASSERT_TRUE(f.store->verify()->empty());
  ASSERT_TRUE(f.store->remove(f.ids).ok()) << "what others are compared with, too";
}

TEST(choice, all_of_a_call_or_none) {
  Fixture f;
  EXPECT_FALSE(
      f.store->choose(kNetwork, std::vector<Choice>{{f.ids[0], f.ids[1]}, {f.ids[3], 99}}).ok());
  EXPECT_EQ(f.chosen(kNetwork), "");
  f.choose(kNetwork, {{f.ids[0], f.ids[1]}, {f.ids[3], f.ids[3]}});
  EXPECT_EQ(f.chosen(kNetwork), "1:a>b ");
}

// This is a database of the last release that stored no choices.
TEST(choice, version_7_has_none_until_it_is_brought_up_to_date) {
  Fixture f;
  f.store.reset();
  std::string sql =
      "DROP INDEX trial_part; ALTER TABLE trial DROP COLUMN part; DROP TABLE sensitivity; DROP TABLE "
      "choice; PRAGMA user_version = 7";
  const CodeFigures none;
  for_each_figure(none, [&](const std::string& name, int64_t) {
    sql = fmt::format("ALTER TABLE trial DROP COLUMN {}; {}", name, sql);
  });
  run_sql(f.path, sql);
  f.store = open_store(f.path, {.read_only = true}).value();
  EXPECT_EQ(f.chosen(kNetwork), "");
  f.store = open_store(f.path).value();
  f.choose(kNetwork, {{f.ids[0], f.ids[1]}});
  EXPECT_EQ(f.chosen(kNetwork), "1:a>b ");
}

}  // namespace
}  // namespace hone::db
