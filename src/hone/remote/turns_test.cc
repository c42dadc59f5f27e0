#include "hone/remote/turns.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "hone/measure/null_runner.h"

namespace hone::remote {
namespace {

using Made = Result<std::unique_ptr<measure::Runner>>;

Made make_null() {
  return Made(std::make_unique<measure::NullRunner>([](const measure::Job&) { return 2e-3; }));
}

// Work that the thread waits in until it is let go, so that the rest is put behind it.
class Gate {
 public:
  Turns::Work work() {
    return [this](const Result<measure::Runner*>&) { opened_.get_future().wait(); };
  }
  void open() { opened_.set_value(); }

 private:
  std::promise<void> opened_;
};

TEST(turns, owners_take_turns_and_keep_their_order) {
  const int gate_owner = 0, a = 0, b = 0;
  std::string order;
  std::promise<void> done;
  Gate gate;
  Turns turns(make_null, nullptr);
  turns.add(&gate_owner, gate.work());
  const auto note = [&](char c) {
    return [&order, c](const Result<measure::Runner*>&) { order += c; };
  };
  for (const char c : {'1', '2', '3'}) turns.add(&a, note(c));
  for (const char c : {'x', 'y'}) turns.add(&b, note(c));
  EXPECT_EQ(turns.waiting(&a), 3U);
  turns.add(&a, [&](const Result<measure::Runner*>&) { done.set_value(); });
  gate.open();
  done.get_future().wait();
  EXPECT_EQ(order, "1x2y3");
}

TEST(turns, work_that_was_dropped_is_not_done) {
  const int gate_owner = 0, a = 0, b = 0;
  bool dropped_ran = false;
  std::promise<void> done;
  Gate gate;
  Turns turns(make_null, nullptr);
  turns.add(&gate_owner, gate.work());
  turns.add(&a, [&](const Result<measure::Runner*>&) { dropped_ran = true; });
  turns.drop(&a);
  turns.add(&b, [&](const Result<measure::Runner*>&) { done.set_value(); });
  gate.open();
  done.get_future().wait();
  EXPECT_FALSE(dropped_ran);
}

TEST(turns, a_runner_that_cannot_be_made_is_tried_again) {
  int attempts = 0;
  Turns turns(
      [&]() -> Made { return ++attempts == 1 ? Made(error(Code::kIo, "no worker")) : make_null(); },
      nullptr);
  const auto measured = [&] {
    std::promise<measure::Measurement> done;
    turns.add(&done, [&](const Result<measure::Runner*>& runner) {
      done.set_value(measure_one(runner, {.id = 5}));
    });
    return done.get_future().get();
  };
  const measure::Measurement first = measured();
  EXPECT_EQ(first.outcome, trial::Outcome::kLoad);
  EXPECT_EQ(first.message, "the server cannot measure: no worker");
  const measure::Measurement second = measured();
  EXPECT_EQ(second.id, 5U);
  EXPECT_EQ(second.timing.centre, 2e-3);
}

}  // namespace
}  // namespace hone::remote
