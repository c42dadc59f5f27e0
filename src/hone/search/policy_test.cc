#include "hone/search/policy.h"

#include <gtest/gtest.h>

#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

std::string error_of(std::string_view text) {
  const auto policy = make_policy(text);
  return policy.ok() ? "" : policy.status().message();
}

TEST(policy, every_strategy_takes_its_options_as_its_help_shows_them) {
  for (const std::string& name : strategy_names()) {
    std::string text;
    for (const std::string& line : strategy_options(name))
      text += (text.empty() ? ":" : ",") + line.substr(0, line.find(": "));
    EXPECT_EQ(text.empty(), name == "random");
    const auto policy = make_policy(name + text);
    ASSERT_TRUE(policy.ok()) << policy.status().message();
    EXPECT_EQ((*policy)->name(), name);
    // Those are the defaults.
    const testing::Fixture f;
    EXPECT_EQ(f.run(name + text, 3, 24), f.run(name, 3, 24)) << name;
  }
}

TEST(policy, an_option_changes_what_is_proposed) {
  const testing::Fixture f;
  for (const std::string text :
       {"mixed:samples=16", "evolutionary:first_population=16", "annealing:chains=2",
        "coordinate:samples=4", "beam:width=1,random_completion=0", "bayes:acquisition=ei",
        "bayes:acquisition=thompson", "bayes:batch=penalty", "bayes:first=24", "es:generations=2",
        "ppo:chains=2", "dqn:candidates=8"}) {
    const std::string name = text.substr(0, text.find(':'));
    EXPECT_NE(f.run(text, 3, 32), f.run(name, 3, 32)) << text;
  }
}

TEST(policy, the_least_of_every_option_still_proposes_points) {
  const testing::Fixture f;
  for (
      const std::string_view text :
      {"mixed:samples=1,starts=0,climb=0,descent_after=0,least_share=0,hopeless=1,memory=0",
       "evolutionary:first_population=1,population=2,generations=1,crossover=0,descent_share=0",
       "evolutionary:descent_after=0,descent_share=1,crossover=1",
       "annealing:chains=1,steps=1,temperature=0,cooling=0,coldest=0,elite_share=1",
       "coordinate:significance=0,confidence=0,samples=1,kicks=0",
       "beam:width=1,incumbents=1,random_completion=1",
       "bayes:acquisition=thompson,batch=penalty,prior=none,kappa=0,pool=1,refined=0,first=1",
       "bayes:acquisition=ei,batch=penalty,pool=2",
       "es:population=2,generations=1,rate=0,sigma=0.001,sigma_rate=0,least_sigma=0.001",
       "ppo:chains=1,steps=1,rate=0,gamma=0,lambda=0,clip=0,entropy=0,epochs=1,hidden=1,top=0,knee=1",
       "dqn:candidates=2,walks=1,phi1=0,phi2=0,phi3=0,gamma=0,memory=1,minibatch=1,learn_every=1"})
    EXPECT_EQ(f.run(text, 1, 40).size(), 40U) << text;
}

TEST(policy, every_strategy_takes_what_may_move) {
  for (const std::string& name : strategy_names()) {
    const auto policy = make_policy(name + ":movable=random:3,powers_of_two=1");
    ASSERT_TRUE(policy.ok()) << policy.status().message();
    EXPECT_TRUE((*policy)->movable().restricts());
    EXPECT_EQ((*policy)->movable().text(), "random:3");
    EXPECT_FALSE((*make_policy(name))->movable().restricts());
  }
  EXPECT_TRUE(make_policy("beam:movable=learned,width=3").ok());
  EXPECT_EQ(error_of("beam:movable=roles"),
            "search strategy 'beam': movable: unknown choice 'roles', expected all, a number of "
            "roles, random:N, learned:N, predicted:N, scores:N or roles:NAME+NAME");
  EXPECT_EQ(error_of("beam:powers_of_two=yes"),
            "search strategy 'beam': powers_of_two: found 'yes', expected 0 or 1");
  EXPECT_EQ(error_of("beam:movable=3,movable=4"),
            "search strategy 'beam': option 'movable' is there twice");
}

TEST(policy, unknown_strategies_are_an_error_that_lists_the_known_ones) {
  EXPECT_EQ(error_of("astrology"),
            "unknown search strategy 'astrology', expected one of mixed, evolutionary, annealing, "
            "coordinate, beam, bayes, es, ppo, dqn, random");
  EXPECT_NE(error_of(""), "");
  EXPECT_NE(error_of(":samples=3"), "");
}

TEST(policy, what_is_no_option_is_refused_by_its_strategy_and_name) {
  EXPECT_EQ(error_of("beam:breadth=3"),
            "search strategy 'beam': unknown option 'breadth', expected one of: width, incumbents, "
            "random_completion");
  EXPECT_EQ(
      error_of("bayes:acquisition=hope"),
      "search strategy 'bayes': acquisition: found 'hope', expected one of ucb, ei, thompson");
  EXPECT_EQ(error_of("random:samples=3"), "search strategy 'random': it has no options");
  for (const std::string text : {"beam:", "beam:width=0", "beam:width=1.5", "beam:width=3,width=4",
                                 "annealing:cooling=2", "mixed:samples", "mixed:samples=-1"}) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(text.substr(0, text.find(':'))), std::string::npos) << text << error;
  }
}

}  // namespace
}  // namespace hone::search
