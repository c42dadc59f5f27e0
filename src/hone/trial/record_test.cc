#include "hone/trial/record.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/trial/record_numbers.h"

namespace hone::trial {
namespace {

Record sound() {
  Record r;
  r.device = "avx512-x-2c";
  r.steps = "split i 8\nvectorize j";
  r.times = {1e-3, 1.01e-3};
  r.centre = 1e-3, r.low = 1e-3, r.high = 1.01e-3;
  r.verified = r.crowned = true;
  r.duel = {1e-3, 1.5e-3};
  r.bounds = {{0.375, 0.25}, "amd_zen4"};
  return r;
}

TEST(outcome, names_round_trip) {
  for (const std::string_view name : kOutcomeNames) {
    const auto outcome = parse_outcome(name);
    ASSERT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome_name(*outcome), name);
  }
  EXPECT_FALSE(parse_outcome("fine").has_value());
}

TEST(record, what_no_store_may_take_is_refused) {
  EXPECT_TRUE(check(sound()).ok()) << check(sound()).message();
  const auto refused = [](auto change) {
    Record bad = sound();
    change(bad);
    return !check(bad).ok();
  };
  EXPECT_TRUE(refused([](Record& r) { r.device.clear(); }));
  EXPECT_TRUE(refused([](Record& r) { r.times.clear(); }));
  EXPECT_TRUE(refused([](Record& r) { r.times[1] = 0; }));
  EXPECT_TRUE(refused([](Record& r) { r.centre = 0; }));
  EXPECT_TRUE(refused([](Record& r) { r.high = INFINITY; }));
  EXPECT_TRUE(refused([](Record& r) { r.threads = 0; }));
  EXPECT_TRUE(refused([](Record& r) { r.drift = 0; }));
  EXPECT_TRUE(refused([](Record& r) { r.duel.pop_back(); })) << "half a pair";
  EXPECT_TRUE(refused([](Record& r) { r.duel[0] = NAN; }));
  EXPECT_TRUE(refused([](Record& r) { r.bounds->source.clear(); }));
  EXPECT_TRUE(refused([](Record& r) { r.bounds->scores.core = 0.7; })) << "more than all";
  const auto fail = [](Record& r) { r.outcome = Outcome::kCrash, r.centre = 0, r.times.clear(); };
  EXPECT_TRUE(refused([&](Record& r) { fail(r), r.crowned = false; })) << "verified";
  EXPECT_TRUE(refused([&](Record& r) { fail(r), r.verified = false; })) << "crowned";
  EXPECT_FALSE(refused([&](Record& r) { fail(r), r.verified = r.crowned = false; }));
}

TEST(record, its_accuracy_is_that_of_its_steps) {
  Record forged = sound();
  forged.steps += "\nwinograd(conv2d, 4)";
  EXPECT_EQ(check(forged).message(),
            "a record has the accuracy strict, but its steps need default");
  forged.accuracy = Accuracy::kDefault;
  EXPECT_TRUE(check(forged).ok());
}

TEST(record, times_that_cannot_be_measured_are_told) {
  Record record = sound();
  record.times[1] = 1e-12;
  EXPECT_EQ(check_plausible(record).message(),
            "a successful record has the time 1e-12 s, expected 1e-10 to 10000000");
  record.outcome = Outcome::kWrongAnswer;
  EXPECT_TRUE(check_plausible(record).ok()) << "nobody goes by these times";
  record = sound();
  record.centre = 1e9;
  EXPECT_FALSE(check_plausible(record).ok());
  record = sound();
  record.threads = 100'000;
  EXPECT_EQ(check(record).message(), "a record has 100000 threads, expected at most 65536");
}

TEST(record, only_a_faster_machine_makes_a_time_a_quiet_one) {
  Record record = sound();
  record.drift = 1.25;
  EXPECT_EQ(record.undisturbed_seconds(), 1e-3);
  record.drift = 0.5;
  EXPECT_EQ(record.undisturbed_seconds(), 0.5e-3);
}

}  // namespace
}  // namespace hone::trial
