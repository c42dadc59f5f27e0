#include "hone/search/trial_log.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hone::search {
namespace {

Candidate candidate(int choice, uint64_t program, uint64_t code) {
  Candidate candidate{.point = space::Point{0, {choice}}};
  candidate.program_hash = program;
  candidate.code = code;
  return candidate;
}

std::vector<uint64_t> codes_of(const std::vector<Candidate>& candidates) {
  std::vector<uint64_t> codes;
  for (const Candidate& candidate : candidates) codes.push_back(candidate.code);
  return codes;
}

TEST(trial_log, hands_out_each_machine_code_once) {
  TrialLog log;
  std::vector<Candidate> first = {candidate(0, 10, 100), candidate(1, 11, 100),
                                  candidate(2, 12, 200)};
  EXPECT_TRUE(log.hand_out(first).points.empty());
  EXPECT_EQ(codes_of(first), (std::vector<uint64_t>{100, 200}));
  EXPECT_EQ(first[0].job.id, 1U);
  EXPECT_EQ(first[1].job.id, 2U);

  // On its way: its time is not known yet, so nothing can be told.
  std::vector<Candidate> second = {candidate(3, 13, 100), candidate(4, 14, 300)};
  EXPECT_TRUE(log.hand_out(second).points.empty());
  EXPECT_EQ(codes_of(second), (std::vector<uint64_t>{300}));

  // Back: whoever leads to the same code learns its time.
  log.add_trial(first[0], 0.5);
  std::vector<Candidate> third = {candidate(5, 15, 100), candidate(6, 16, 100)};
  const TrialLog::Known known = log.hand_out(third);
  EXPECT_TRUE(third.empty());
  ASSERT_EQ(known.points.size(), 2U);
  EXPECT_EQ(known.points[1].choices[0], 6);
  EXPECT_EQ(known.seconds, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(log.next_id(), 4U);
}

TEST(trial_log, knows_the_seconds_of_a_program_once_its_code_was_measured) {
  TrialLog log;
  EXPECT_TRUE(log.add_program(10));
  EXPECT_FALSE(log.add_program(10));
  EXPECT_EQ(log.seconds_of_program(10), std::nullopt);
  std::vector<Candidate> batch = {candidate(0, 10, 100)};
  EXPECT_TRUE(log.hand_out(batch).points.empty());
  EXPECT_EQ(log.seconds_of_program(10), std::nullopt);
  log.add_trial(batch[0], 0.5);
  EXPECT_EQ(log.seconds_of_program(10), 0.5);
  log.add_failure(100);
  EXPECT_EQ(log.seconds_of_program(10), INFINITY);
  EXPECT_EQ(log.seconds_of_program(11), std::nullopt);
}

// A candidate without machine code is handed on to be recorded, and is no trial.
TEST(trial_log, counts_what_has_machine_code) {
  TrialLog log;
  Candidate broken = candidate(0, 10, 0);
  broken.status = invalid("no code");
  std::vector<Candidate> batch = {broken, broken, candidate(1, 11, 100)};
  EXPECT_TRUE(log.hand_out(batch).points.empty());
  ASSERT_EQ(batch.size(), 3U);
  for (const Candidate& each : batch) log.add_trial(each, each.runs() ? 1 : INFINITY);
  EXPECT_EQ(log.trials(), 1);
}

}  // namespace
}  // namespace hone::search
