#include "hone/search/movable.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "hone/compute/dag_text.h"
#include "hone/cost/registry.h"
#include "hone/search/prediction.h"
#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

using testing::Fixture;
using Roles = std::set<std::string, std::less<>>;

trial::TaskSensitivity measured(uint64_t key, const compute::Dag& dag, trial::RoleEffects roles) {
  return {key, compute::kernel_class(dag), compute::describe(dag), 1, 0, std::move(roles)};
}

// Products of matrices, of which long ones want other columns and short ones another order; and
// rows, in which the number of parts is all that matters.
std::vector<trial::TaskSensitivity> some_measured() {
  using compute::testing::gemm;
  return {
      measured(1, gemm(1024, 512, 512),
               {{"column", {0.5, 0.1}}, {"order", {0, 0}}, {"tail", {0.1, 0}}}),
      measured(2, gemm(8, 512, 512),
               {{"column", {0, 0}}, {"order", {0.2, 0.4}}, {"tail", {0.1, 0}}}),
      measured(3, compute::testing::softmax(64, 64, 1), {{"parts", {2, 0}}, {"tail", {0.3, 0}}})};
}

Result<MovableDecisions> parse_with(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(MovableDecisions movable, MovableDecisions::parse(text));
  HONE_RETURN_IF_ERROR(movable.set_sensitivities(some_measured(), "this machine"));
  return movable;
}

// What moves of a task, of all its roles if none is fixed.
Roles moved(const MovableDecisions& movable, const compute::Dag& dag, uint64_t seed = 1) {
  Fixture f;
  f.dag = dag;
  f.space = space::Space::create(f.dag, f.target);
  const Result<space::Movable> chosen = movable.choose(f.task(seed), f.dag);
  EXPECT_TRUE(chosen.ok()) << chosen.status().message();
  Roles roles;
  for (std::string& role : space::open_roles(*f.space)) {
    if (!chosen->roles || chosen->roles->contains(role)) roles.insert(std::move(role));
  }
  return roles;
}

TEST(movable, the_roles_that_matter_most_on_the_device_move) {
  const compute::Dag dag = compute::testing::gemm(100, 64, 64);
  const Result<MovableDecisions> one = parse_with("1"), two = parse_with("2"),
                                 all = parse_with("4");
  ASSERT_TRUE(one.ok() && two.ok() && all.ok());
  // Means over the tasks that have a role: column 0.25, order 0.2, tail 1 / 6.
  EXPECT_EQ(moved(*one, dag), (Roles{"column"}));
  EXPECT_EQ(moved(*two, dag), (Roles{"column", "order"}));
  EXPECT_EQ(moved(*all, dag).size(), 4U) << "and one that nobody measured";
}

TEST(movable, a_learned_choice_follows_the_tasks_that_are_most_alike) {
  const Result<MovableDecisions> learned = parse_with("learned:1");
  ASSERT_TRUE(learned.ok());
  EXPECT_EQ(moved(*learned, compute::testing::gemm(1000, 512, 512)), (Roles{"column"}));
  EXPECT_EQ(moved(*learned, compute::testing::gemm(8, 500, 512)), (Roles{"order"}));
}

TEST(movable, random_roles_depend_on_the_seed_and_are_the_same_in_all_tasks) {
  const Result<MovableDecisions> random = MovableDecisions::parse("random:3");
  ASSERT_TRUE(random.ok());
  EXPECT_FALSE(random->needs_sensitivities());
  const compute::Dag dag = compute::testing::gemm(100, 64, 64);
  std::set<Roles> seen;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Roles roles = moved(*random, dag, seed);
    EXPECT_EQ(roles.size(), 3U);
    EXPECT_EQ(roles, moved(*random, compute::testing::gemm(120, 80, 96), seed));
    seen.insert(roles);
  }
  EXPECT_GT(seen.size(), 4U);
}

TEST(movable, a_predicted_choice_asks_the_model) {
  const Result<MovableDecisions> predicted = MovableDecisions::parse("predicted:4");
  ASSERT_TRUE(predicted.ok());
  EXPECT_FALSE(predicted->needs_sensitivities());
  EXPECT_EQ(moved(*predicted, compute::testing::gemm(100, 64, 64)).size(), 4U);
}

// A product with one row streams its weights; one of many rows is arithmetic.
const compute::Dag& streaming() {
  static const compute::Dag dag = compute::testing::gemm(1, 4096, 4096);
  return dag;
}
const compute::Dag& arithmetic() {
  static const compute::Dag dag = compute::testing::gemm(512, 512, 512);
  return dag;
}

// A task on a processor with caches, and a model that knows them.
struct Limited : Fixture {
  explicit Limited(const compute::Dag& of) {
    target = target::find("x86-64-avx512").value();
    dag = of;
    space = space::Space::create(dag, target);
  }
  [[nodiscard]] double memory() const {
    const space::Point usual = space->default_point();
    return predict_bounds(search_task(), {&usual, 1})[0]->memory;
  }
  [[nodiscard]] Roles chosen(const MovableDecisions& movable) const {
    const Result<space::Movable> found = movable.choose(search_task(), dag);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return *found->roles;
  }
  [[nodiscard]] SearchTask search_task() const {
    SearchTask own = task(1);
    own.model = analytic.get();
    return own;
  }
  std::unique_ptr<cost::CostModel> analytic = cost::make_model("analytic").value();
};

TEST(movable, scores_choose_by_what_limits_the_task) {
  const Limited memory(streaming()), core(arithmetic());
  EXPECT_GT(memory.memory(), 0.6);
  EXPECT_LT(core.memory(), 0.5);
  const Result<MovableDecisions> scores = MovableDecisions::parse("scores:3");
  ASSERT_TRUE(scores.ok());
  EXPECT_FALSE(scores->needs_sensitivities());
  EXPECT_TRUE(scores->reads_sensitivities());
  const Roles first = memory.chosen(*scores), second = core.chosen(*scores);
  EXPECT_EQ(first.size(), 3U);
  EXPECT_EQ(second.size(), 3U);
  EXPECT_NE(first, second) << fmt::format("{}", fmt::join(first, " "));
}

TEST(movable, scores_follow_measured_tasks_that_are_limited_alike) {
  using compute::testing::softmax;
  std::vector<trial::TaskSensitivity> tasks = {
      measured(1, softmax(64, 64, 1), {{"column", {0.5, 0}}, {"order", {0.1, 0}}}),
      measured(2, softmax(32, 64, 1), {{"column", {0, 0}}, {"order", {0, 0.4}}})};
  tasks[0].memory = 0.1, tasks[1].memory = 0.9;
  EXPECT_NEAR(effects_by_memory(tasks, 0.1)["column"], (0.25 + 4 * 0.5) / 5, 1e-6);
  EXPECT_NEAR(effects_by_memory(tasks, 0.9)["column"], 0.25 / 5, 1e-6);
  Result<MovableDecisions> scores = MovableDecisions::parse("scores:1");
  ASSERT_TRUE(scores.ok());
  const Limited memory(streaming()), core(arithmetic());
  const Roles predicted = core.chosen(*scores);
  ASSERT_TRUE(scores->set_sensitivities(tasks, "this machine").ok());
  EXPECT_EQ(memory.chosen(*scores), (Roles{"order"}));
  EXPECT_EQ(core.chosen(*scores), (Roles{"column"}));
  // Nobody measured a share of memory, or nothing at all.
  for (const auto& known : {some_measured(), std::vector<trial::TaskSensitivity>()}) {
    ASSERT_TRUE(scores->set_sensitivities(known, "this machine").ok());
    EXPECT_EQ(core.chosen(*scores), predicted);
  }
}

TEST(movable, named_roles_and_powers_of_two) {
  const compute::Dag dag = compute::testing::gemm(100, 64, 64);
  const Result<MovableDecisions> named = MovableDecisions::parse("roles:order+column+none_such");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(moved(*named, dag), (Roles{"column", "order"}));
  const Result<MovableDecisions> all = MovableDecisions::parse("all"),
                                 powers = MovableDecisions::parse("all", true);
  ASSERT_TRUE(all.ok() && powers.ok());
  EXPECT_FALSE(all->restricts());
  EXPECT_TRUE(powers->restricts());
  const Fixture f;
  const Result<space::Movable> chosen = powers->choose(f.task(1), f.dag);
  ASSERT_TRUE(chosen.ok());
  EXPECT_LT(space::Subspace(*f.space, *chosen).size(), f.space->size());
}

TEST(movable, a_bad_choice_is_one_clear_error) {
  for (const char* text : {"", "some", "0", "100", "-1", "7.5", "random:0", "learned:x", "scores:x",
                           "roles:", "roles:a++b", "all:3", "roles"})
    EXPECT_EQ(MovableDecisions::parse(text).status().code(), Code::kInvalid) << text;
  EXPECT_EQ(
      parse_with("5").status().message(),
      "--movable 5: found 5 roles, expected at most the 4 that were measured on this machine");
  Result<MovableDecisions> learned = MovableDecisions::parse("learned");
  ASSERT_TRUE(learned.ok());
  EXPECT_EQ(
      learned->set_sensitivities({}, "avx2-2c with 2 threads").message(),
      "--movable learned needs to know how much the roles of decisions matter, and nothing is "
      "stored of avx2-2c with 2 threads: measure it with hone sensitivity");
}

TEST(movable, roles_that_are_named_are_those_of_decisions) {
  const Fixture f;
  const space::Space* const space = &*f.space;
  const auto check = [&](const std::string& text) {
    return MovableDecisions::parse(text).value().check_names({&space, 1}).message();
  };
  const std::set<std::string> known = space::roles(*space);
  const std::string role = space::open_roles(*space)[0];
  EXPECT_EQ(check("roles:" + role), "");
  EXPECT_EQ(check(fmt::format("roles:{}", fmt::join(known, "+"))), "");
  EXPECT_EQ(check("7"), "");
  EXPECT_EQ(check(fmt::format("roles:{}+colunm", role)),
            fmt::format("--movable roles:{}+colunm: no decision of these kernels has the role "
                        "'colunm', expected some of {}",
                        role, fmt::join(known, ", ")));
}

}  // namespace
}  // namespace hone::search
