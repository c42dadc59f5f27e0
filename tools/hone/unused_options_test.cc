#include "unused_options.h"

#include <gtest/gtest.h>

namespace hone::tool {
namespace {

struct Fixture {
  CLI::App app;
  std::string rate = "1", library, seed = "1";
  bool resume = false;

  Fixture() {
    app.add_option("--lr", rate)->group("Neural")->capture_default_str();
    app.add_option("--booster", library)->group("Trees");
    app.add_flag("--resume", resume)->group("Neural");
    app.add_option("--seed", seed);
  }
  // What nets alone use, where trees are fitted.
  Status check(std::vector<std::string> arguments) {
    app.parse(std::move(arguments));
    return check_unused(app, options_of_group(app, "Neural"), "training nets", "it fits trees");
  }
};

TEST(unused_options, are_those_of_a_group) {
  const Fixture f;
  EXPECT_EQ(options_of_group(f.app, "Neural"), (std::vector<std::string>{"--lr", "--resume"}));
  EXPECT_EQ(options_of_group(f.app, "Trees"), (std::vector<std::string>{"--booster"}));
  EXPECT_TRUE(options_of_group(f.app, "Other").empty());
}

TEST(unused_options, are_named_with_what_they_are_for) {
  EXPECT_EQ(Fixture().check({"--resume"}).message(),
            "--resume: for training nets, but it fits trees");
  // Also with the value that it has anyway.
  EXPECT_EQ(Fixture().check({"--resume", "--lr=1"}).message(),
            "--lr, --resume: for training nets, but it fits trees");
  EXPECT_EQ(Fixture().check({"--lr=2"}).code(), Code::kInvalid);
}

TEST(unused_options, that_were_not_given_are_no_error) {
  EXPECT_TRUE(Fixture().check({}).ok());
  EXPECT_TRUE(Fixture().check({"--seed=2", "--booster=b"}).ok());
}

}  // namespace
}  // namespace hone::tool
