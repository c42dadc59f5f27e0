#include "hone/search/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/cost/analytic_model.h"
#include "hone/search/prediction.h"
#include "hone/search/searcher_testing.h"
#include "hone/space/subspace.h"

namespace hone::search {
namespace {

using testing::Fixture;

// The value that a point has for the first decision of a role; 0 if there is none.
int64_t value_of(const space::Space& space, const space::Point& point, std::string_view role) {
  const std::vector<space::Decision>& decisions = space.decisions(point.sketch);
  for (size_t d = 0; d < decisions.size(); ++d) {
    if (space::common_role(decisions[d]) == role)
      return decisions[d].options[static_cast<size_t>(point.choices[d])];
  }
  return 0;
}

space::Point with(const space::Space& space, space::Point point, std::string_view role, int index) {
  const std::vector<space::Decision>& decisions = space.decisions(point.sketch);
  for (size_t d = 0; d < decisions.size(); ++d) {
    if (space::common_role(decisions[d]) == role) point.choices[d] = index;
  }
  return point;
}

// Times in which only the columns of the register tile matter: each more than one costs a half
// more.
struct ColumnsMatter : Fixture {
  int asked = 0;
  Evaluate evaluate = [this](std::span<const space::Point> points) {
    std::vector<double> seconds;
    for (const space::Point& point : points) {
      ++asked;
      const auto away = static_cast<double>(std::abs(value_of(*space, point, "column") - 1));
      seconds.push_back(point.sketch == 0 ? std::pow(1.5, away) : 1e3);
    }
    return Result<std::vector<double>>(std::move(seconds));
  };
};

TEST(sensitivity, gain_is_what_one_role_alone_brings) {
  ColumnsMatter f;
  const double usual =
      std::abs(static_cast<double>(value_of(*f.space, f.space->default_point(), "column") - 1));
  ASSERT_GT(usual, 0);
  const auto effects = role_effects(*f.space, std::nullopt, f.evaluate, {.options = 100});
  ASSERT_TRUE(effects.ok()) << effects.status().message();
  EXPECT_NEAR(effects->at("column").gain, usual * std::log(1.5), 1e-9);
  EXPECT_GT(effects->size(), 5U);
  for (const auto& [role, effect] : *effects) {
    EXPECT_EQ(effect.loss, 0) << role << ": no best point was given";
    EXPECT_EQ(effect.gain > 0, role == "column") << role;
  }
}

TEST(sensitivity, loss_is_what_the_best_point_loses_without_a_role) {
  ColumnsMatter f;
  const space::Point usual = f.space->default_point();
  space::Point best = usual;
  for (int i = 0; value_of(*f.space, best, "column") != 1; ++i)
    best = with(*f.space, usual, "column", i);
  ASSERT_TRUE(f.space->legal(best));
  const auto effects = role_effects(*f.space, best, f.evaluate, {.options = 2});
  ASSERT_TRUE(effects.ok()) << effects.status().message();
  const auto away = std::abs(static_cast<double>(value_of(*f.space, usual, "column") - 1));
  EXPECT_NEAR(effects->at("column").loss, away * std::log(1.5), 1e-9);
  EXPECT_EQ(effects->at("order").loss, 0);
}

TEST(sensitivity, what_was_not_timed_has_no_effect_that_is_known) {
  ColumnsMatter f;
  const size_t sketches = static_cast<size_t>(f.space->num_sketches());
  const Evaluate starts_only = [&](std::span<const space::Point> points) {
    std::vector<double> seconds(points.size(), points.size() == sketches ? 1 : NAN);
    return Result<std::vector<double>>(std::move(seconds));
  };
  const auto effects = role_effects(*f.space, std::nullopt, starts_only);
  ASSERT_TRUE(effects.ok());
  EXPECT_FALSE(effects->contains("column"));
  const Evaluate nothing_runs = [](std::span<const space::Point> points) {
    return Result<std::vector<double>>(std::vector<double>(points.size(), INFINITY));
  };
  EXPECT_EQ(role_effects(*f.space, std::nullopt, nothing_runs).status().code(), Code::kNotFound);
}

TEST(sensitivity, few_options_of_each_decision_are_timed) {
  ColumnsMatter f;
  ASSERT_TRUE(role_effects(*f.space, std::nullopt, f.evaluate, {.options = 100}).ok());
  const int all = std::exchange(f.asked, 0);
  ASSERT_TRUE(role_effects(*f.space, std::nullopt, f.evaluate, {.options = 3}).ok());
  EXPECT_LT(f.asked, all);
  EXPECT_LE(f.asked, f.space->num_sketches() + 3 * static_cast<int>(f.space->decisions(0).size()));
}

// The analytic model knows that a register tile matters more than the order of the terms of a sum.
TEST(sensitivity, a_cost_model_tells_roles_apart) {
  const Fixture f;
  const auto model = cost::make_analytic_model();
  SearchTask task = f.task(1);
  task.model = model.get();
  const Evaluate predict = [&](std::span<const space::Point> points) {
    std::vector<double> seconds = predict_log_seconds(task, points);
    for (double& value : seconds) value = std::exp(value);
    return Result<std::vector<double>>(std::move(seconds));
  };
  const auto effects = role_effects(*f.space, best_predicted(task).point, predict);
  ASSERT_TRUE(effects.ok()) << effects.status().message();
  double least = INFINITY, most = 0;
  for (const auto& [role, effect] : *effects) {
    RecordProperty(role, fmt::format("{:.3f}/{:.3f}", effect.gain, effect.loss));
    least = std::min(least, effect.size()), most = std::max(most, effect.size());
  }
  EXPECT_LT(least, 0.01);
  EXPECT_GT(most, 0.01);
}

}  // namespace
}  // namespace hone::search
