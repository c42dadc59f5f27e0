#include "hone/measure/core_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hone/target/topology.h"

namespace hone::measure {
namespace {

constexpr CoreState kApart{1.1, 80e-9}, kOneCore{2.0, 50e-9}, kFar{1.0, 380e-9};

// The states that one look after the other sees; the last one stays. Each look takes a millisecond.
class Script {
 public:
  Script(ManualClock& clock, std::vector<CoreState> states)
      : clock_(clock), states_(std::move(states)) {}
  CoreState operator()() {
    clock_.advance(1e-3);
    const CoreState state = states_[std::min(looks_, states_.size() - 1)];
    ++looks_;
    return state;
  }
  [[nodiscard]] size_t looks() const { return looks_; }

 private:
  ManualClock& clock_;
  std::vector<CoreState> states_;
  size_t looks_ = 0;
};

TEST(core_watch, waits_until_each_thread_has_a_core) {
  ManualClock clock;
  Script script(clock, {kOneCore, kOneCore, kApart});
  CoreWatch watch(std::ref(script), clock, {.patience = 10});
  const double waited = watch.wait(1e9);
  EXPECT_EQ(waited, watch.waited());
  EXPECT_EQ(script.looks(), 3);
  EXPECT_GT(watch.waited(), 0.05);
  EXPECT_LT(watch.waited(), 0.5);
}

TEST(core_watch, waits_for_cores_as_near_as_they_were) {
  ManualClock clock;
  Script script(clock, {kApart, kFar, kFar, kOneCore, kApart});
  CoreWatch watch(std::ref(script), clock, {.patience = 10});
  watch.wait(1e9);
  EXPECT_EQ(script.looks(), 1);
  EXPECT_EQ(watch.waited(), 0);
  watch.wait(1e9);
  EXPECT_EQ(script.looks(), 5);
}

// Cores that are never nearer are as near as can be; threads of one core are none.
TEST(core_watch, knows_nothing_of_distance_before_it_has_seen_any) {
  ManualClock clock;
  Script script(clock, {kOneCore, kFar, kFar});
  CoreWatch watch(std::ref(script), clock, {.patience = 10});
  watch.wait(1e9);
  EXPECT_EQ(script.looks(), 2);
}

TEST(core_watch, says_how_cores_changed) {
  ManualClock clock;
  Script script(clock, {kOneCore, kFar, kFar, kApart, kApart, kFar, kOneCore});
  CoreWatch watch(std::ref(script), clock, {});
  using enum CoreChange;
  for (const CoreChange expected : {kWorse, kNone, kNone, kNearer, kNone, kWorse, kWorse})
    EXPECT_EQ(watch.look(), expected) << script.looks();
  EXPECT_EQ(CoreWatch(1, {}).look(), kNone);
}

TEST(core_watch, waits_in_vain_only_once) {
  ManualClock clock;
  Script script(clock, {kOneCore});
  CoreWatch watch(std::ref(script), clock, {.patience = 2});
  watch.wait(1e9);
  EXPECT_NEAR(watch.waited(), 2, 0.1);
  const size_t looks = script.looks();
  watch.wait(1e9);
  watch.wait(1e9);
  EXPECT_EQ(script.looks(), looks);
}

TEST(core_watch, ends_at_the_deadline_and_when_interrupted) {
  ManualClock clock;
  Script script(clock, {kOneCore});
  std::atomic<bool> interrupted = false;
  CoreWatch watch(std::ref(script), clock, {.patience = 100, .interrupted = &interrupted});
  watch.wait(clock.now_seconds() + 1);
  EXPECT_NEAR(watch.waited(), 1, 0.1);
  interrupted = true;
  const size_t looks = script.looks();
  watch.wait(1e9);
  EXPECT_EQ(script.looks(), looks + 1);
}

TEST(core_state, cores_are_good_as_near_as_ever_seen) {
  double nearest = 0;
  EXPECT_FALSE(are_good(kOneCore, nearest));
  EXPECT_EQ(nearest, 0) << "no cores, no distance";
  EXPECT_TRUE(are_good(kFar, nearest));
  EXPECT_EQ(nearest, kFar.exchange);
  EXPECT_TRUE(are_good(kApart, nearest));
  EXPECT_EQ(nearest, kApart.exchange);
  EXPECT_FALSE(are_good(kFar, nearest));
  EXPECT_TRUE(are_good(CoreState(), nearest)) << "of one thread";
  EXPECT_EQ(nearest, kApart.exchange);
}

TEST(core_state, of_this_machine_has_finite_figures) {
  const std::vector<int> cpus = target::cpus_of_cores();
  ASSERT_FALSE(cpus.empty());
  const CoreState alone = look_at_cores(std::span(cpus).first(1));
  EXPECT_EQ(alone.slowdown, 1);
  EXPECT_EQ(alone.exchange, 0);
  if (cpus.size() < 2) return;
  const CoreState both = look_at_cores(std::span(cpus).first(2));
  EXPECT_GT(both.slowdown, 0.1);
  EXPECT_GT(both.exchange, 1e-9);
  EXPECT_TRUE(std::isfinite(both.slowdown) && std::isfinite(both.exchange));
}

TEST(core_watch, of_one_thread_or_more_than_cores_never_waits) {
  for (const int threads : {1, 1 << 20}) {
    CoreWatch watch(threads, {.patience = 100});
    watch.wait(1e18);
    EXPECT_EQ(watch.waited(), 0) << threads;
  }
}

}  // namespace
}  // namespace hone::measure
