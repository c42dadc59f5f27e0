#include "hone/search/policy_state.h"

#include <gtest/gtest.h>

#include "hone/base/file.h"

namespace hone::search {
namespace {

std::unique_ptr<Policy> policy(std::string_view text) {
  return std::move(make_policy(text)).value();
}

struct Fixture {
  TempDir folder = std::move(TempDir::create()).value();
  std::string path = folder.file("state");
  std::unique_ptr<Policy> learned = policy("mixed:recall=1");
  const std::string body = "analytic conv2d direct lanes=8 0.5 0.01\n";
  Fixture() {
    EXPECT_TRUE(learned->load(body).ok());
    EXPECT_TRUE(save_policy_state(path, *learned).ok());
  }
  [[nodiscard]] std::string text() const { return read_file(path).value(); }
  [[nodiscard]] Status load(std::string_view contents, std::string_view strategy) {
    EXPECT_TRUE(write_file_atomic(path, contents).ok());
    const std::unique_ptr<Policy> other = policy(strategy);
    const Status status = load_policy_state(path, *other);
    EXPECT_EQ(other->save().value(), status.ok() ? body : "");
    return status;
  }
};

TEST(policy_state, is_read_as_it_was_written) {
  Fixture f;
  EXPECT_TRUE(f.text().starts_with("hone policy state 1\nstrategy mixed\nhash "));
  EXPECT_TRUE(f.load(f.text(), "mixed:recall=0.5").ok());
}

TEST(policy_state, without_a_file_nothing_is_known_yet) {
  Fixture f;
  const std::unique_ptr<Policy> fresh = policy("mixed:recall=1");
  EXPECT_TRUE(load_policy_state(f.folder.file("none"), *fresh).ok());
  EXPECT_EQ(fresh->save().value(), "");
  // The state of a policy that knows nothing is written and read, too.
  ASSERT_TRUE(save_policy_state(f.path, *fresh).ok());
  EXPECT_TRUE(load_policy_state(f.path, *fresh).ok());
}

TEST(policy_state, no_damaged_file_is_read) {
  Fixture f;
  const std::string good = f.text();
  for (size_t length = 0; length < good.size(); ++length) {
    const Status status = f.load(good.substr(0, length), "mixed:recall=1");
    ASSERT_FALSE(status.ok()) << length;
    EXPECT_TRUE(status.message().starts_with(f.path + ": it is ")) << status.message();
  }
  for (size_t place = 0; place < good.size(); ++place) {
    std::string bad = good;
    bad[place] = bad[place] == '7' ? '8' : '7';
    EXPECT_FALSE(f.load(bad, "mixed:recall=1").ok()) << place;
  }
  EXPECT_FALSE(f.load(good + "\n", "mixed:recall=1").ok());
}

TEST(policy_state, of_another_strategy_is_refused) {
  Fixture f;
  const Status status = f.load(f.text(), "evolutionary:recall=1");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("another search strategy than 'evolutionary'"),
            std::string::npos);
}

TEST(policy_state, a_policy_that_learns_nothing_says_so) {
  Fixture f;
  for (const std::string_view name : {"random", "mixed", "beam"}) {
    const std::unique_ptr<Policy> none = policy(name);
    for (const Status& status :
         {load_policy_state(f.path, *none), load_policy_state(f.folder.file("none"), *none),
          save_policy_state(f.path, *none)}) {
      EXPECT_EQ(status.message(),
                fmt::format("search strategy '{}' learns nothing that could be kept, expected dqn "
                            "or one with recall as in mixed:recall=1",
                            name));
    }
  }
  EXPECT_TRUE(f.load(f.text(), "mixed:recall=1").ok()) << "the file is as it was";
}

TEST(policy_state, what_cannot_be_written_is_an_error_that_names_the_file) {
  Fixture f;
  const std::string path = f.folder.file("none/state");
  const Status saved = save_policy_state(path, *f.learned);
  EXPECT_NE(saved.message().find(path), std::string::npos) << saved.message();
  // It is told before the search.
  const Status loaded = load_policy_state(path, *f.learned);
  EXPECT_FALSE(loaded.ok());
  EXPECT_NE(loaded.message().find(path), std::string::npos) << loaded.message();
}

}  // namespace
}  // namespace hone::search
