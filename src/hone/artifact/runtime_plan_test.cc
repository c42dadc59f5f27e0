#include <gtest/gtest.h>

#include <cstring>

#include "hone/artifact/artifact_testing.h"
#include "hone/runtime/plan.h"
#include "hone/runtime/pool.h"

namespace hone::runtime {
namespace {

std::string good_plan() {
  artifact::ArtifactSpec spec = artifact::testing::filter_spec("");
#if defined(__x86_64__)
  spec.features = {"avx2", "fma"};
#endif
  Result<std::string> plan = artifact::encode_plan(spec);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.value();
}

const char* check(const std::string& bytes) { return plan_check(bytes.data(), bytes.size()); }

const PlanHeader& header_of(const std::string& bytes) {
  return *reinterpret_cast<const PlanHeader*>(bytes.data());
}

TEST(plan, holds_what_was_written) {
  const std::string bytes = good_plan();
  EXPECT_EQ(check(bytes), nullptr);
  const PlanHeader& plan = header_of(bytes);
  ASSERT_EQ(plan.num_inputs, 1U);
  ASSERT_EQ(plan.num_outputs, 2U);
  EXPECT_STREQ(plan_string(plan, plan_input(plan, 0).name), "x");
  EXPECT_EQ(plan_input(plan, 0).bytes, 4000);
  EXPECT_EQ(plan_input(plan, 0).actual_shape, -1);
  EXPECT_STREQ(plan_string(plan, plan_output(plan, 1).name), "positive");
  EXPECT_EQ(plan_output(plan, 1).actual_shape, 0);
  ASSERT_EQ(plan.num_steps, 3U);
  const PlanStep& step = plan_table<PlanStep>(plan, plan.steps)[1];
  EXPECT_STREQ(plan_string(plan, step.name), "filter");
  EXPECT_EQ(step.num_tiles, artifact::testing::kNumTiles);
  ASSERT_EQ(step.num_arguments, 3U);
  const PlanArgument& argument =
      plan_table<PlanArgument>(plan, plan.arguments)[step.first_argument];
  EXPECT_EQ(argument.kind, ArgumentKind::kArena);
  EXPECT_EQ(argument.offset, 64);
  EXPECT_EQ(plan.weight_bytes, 64);
}

TEST(plan, cut_anywhere_is_refused) {
  const std::string bytes = good_plan();
  for (size_t size = 0; size < bytes.size(); ++size) {
    // Exactly `size` bytes of memory, so that a sanitizer sees a read behind them; the header must
    // be there, as every artifact has one.
    if (size < sizeof(PlanHeader)) continue;
    const std::vector<uint64_t> copy = [&] {
      std::vector<uint64_t> words((size + 7) / 8);
      std::memcpy(words.data(), bytes.data(), size);
      return words;
    }();
    EXPECT_STREQ(plan_check(copy.data(), size), "the plan is cut off") << size;
  }
}

TEST(plan, of_another_version_is_refused) {
  std::string bytes = good_plan();
  reinterpret_cast<PlanHeader*>(bytes.data())->version = kPlanVersion + 1;
  EXPECT_STREQ(check(bytes), "the plan has a version that this runtime does not know");
  bytes = good_plan();
  bytes[0] = 'X';
  EXPECT_STREQ(check(bytes), "this is not a plan");
}

TEST(plan, fields_out_of_range_are_refused) {
  const auto expect_refused = [](auto change, const char* expected) {
    std::string bytes = good_plan();
    auto& plan = *reinterpret_cast<PlanHeader*>(bytes.data());
    change(plan);
    ASSERT_NE(check(bytes), nullptr) << expected;
    EXPECT_STREQ(check(bytes), expected);
  };
  const auto step = [](PlanHeader& plan) -> PlanStep& {
    return const_cast<PlanStep&>(*plan_table<PlanStep>(plan, plan.steps));
  };
  const char* bad_table = "a table of the plan is out of range";
  const char* bad_step = "a step of the plan is out of range";
  expect_refused([](PlanHeader& p) { p.arena_bytes = -1; }, "the plan has a negative size");
  const char* too_large = "the plan needs more memory than any machine has";
  constexpr int64_t kMost = int64_t{1} << 46;
  expect_refused([](PlanHeader& p) { p.arena_bytes = kMost + 1; }, too_large);
  expect_refused([](PlanHeader& p) { p.scratch_bytes = INT64_MAX; }, too_large);
  expect_refused([](PlanHeader& p) { p.arena_bytes = p.weight_bytes = kMost / 2; }, too_large);
  expect_refused(
      [](PlanHeader& p) {
        const_cast<PlanTensor*>(plan_table<PlanTensor>(p, p.tensors))[1].bytes = INT64_MAX;
      },
      too_large);
  expect_refused([&](PlanHeader& p) { step(p).num_tiles = kMost + 1; }, bad_step);
  expect_refused([](PlanHeader& p) { p.steps = p.total_bytes; }, bad_table);
  expect_refused([](PlanHeader& p) { p.steps += 4; }, bad_table);
  expect_refused([](PlanHeader& p) { p.num_steps = 0xffffffff; }, bad_table);
  expect_refused([](PlanHeader& p) { p.features = ~uint64_t{7}; }, bad_table);
  expect_refused([&](PlanHeader& p) { step(p).kernel = 3; }, bad_step);
  expect_refused([&](PlanHeader& p) { step(p).num_tiles = -1; }, bad_step);
  expect_refused([&](PlanHeader& p) { step(p).first_argument = p.num_arguments; }, bad_step);
  expect_refused([&](PlanHeader& p) { step(p).name = p.total_bytes; }, bad_step);
  expect_refused([](PlanHeader& p) { p.arena_bytes = 8; },
                 "an argument of the plan is out of range");
}

TEST(plan, steps_that_run_together_share_the_work) {
  const auto plan = [](auto change) {
    artifact::ArtifactSpec spec = artifact::testing::filter_spec("");
    change(spec.steps);
    return artifact::encode_plan(spec);
  };
  const auto together = [](std::vector<artifact::ArtifactStep>& steps) {
    steps[1].units = 40;
    steps[2].joins = true;
    steps[2].units = 2;
  };
  const Result<std::string> good = plan(together);
  ASSERT_TRUE(good.ok()) << good.status().message();
  const PlanStep* written = plan_table<PlanStep>(header_of(*good), header_of(*good).steps);
  EXPECT_EQ(written[1].joins, 0U);
  EXPECT_EQ(written[1].units, 40);
  EXPECT_EQ(written[2].joins, 1U);
  EXPECT_EQ(written[2].units, 2);

  const auto expect_refused = [&](auto change) {
    const Result<std::string> bad = plan([&](auto& steps) {
      together(steps);
      change(steps);
    });
    ASSERT_FALSE(bad.ok());
    EXPECT_NE(bad.status().message().find("run together do not fit together"), std::string::npos)
        << bad.status().message();
  };
  using Steps = std::vector<artifact::ArtifactStep>;
  expect_refused([](Steps& steps) { steps[0].joins = true; });  // there is none before
  expect_refused([](Steps& steps) { steps[1].units = 0; });
  expect_refused([](Steps& steps) { steps[2].units = 0; });
  expect_refused([](Steps& steps) { steps[2].units = -1; });
  expect_refused([](Steps& steps) { steps[0].units = 1; });  // it runs alone
  expect_refused([](Steps& steps) { steps[1].units = kMaxJoinedUnits; });
  std::string bytes = *good;
  const PlanHeader& header = header_of(bytes);
  const_cast<PlanStep*>(plan_table<PlanStep>(header, header.steps))[2].joins = 2;
  EXPECT_STREQ(check(bytes), "the steps of the plan that run together do not fit together");
}

// A loop of all three steps with one of the second inside, and a copy in the arena.
std::string plan_with_loops() {
  artifact::ArtifactSpec spec = artifact::testing::filter_spec("");
  PlanLoop outer = {.most = 5, .condition = 8, .limit = 0, .turn = 16, .turns = 24};
  outer.end_step = 3;
  outer.num_copies = 1;
  outer.num_nested = 1;
  PlanLoop inner = {.most = 2, .condition = -1, .limit = -1, .turn = -1, .turns = -1};
  inner.first_step = 1;
  inner.end_step = 2;
  spec.loops = {{"outer", "too many", outer}, {"inner", "", inner}};
  spec.copies = {{0, 64, 8, 8}};
  Result<std::string> plan = artifact::encode_plan(spec);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? plan.value() : "";
}

TEST(plan, holds_loops) {
  const std::string bytes = plan_with_loops();
  const PlanHeader& plan = header_of(bytes);
  ASSERT_EQ(plan.num_loops, 2U);
  const PlanLoop* loops = plan_table<PlanLoop>(plan, plan.loops);
  EXPECT_STREQ(plan_string(plan, loops[0].name), "outer");
  EXPECT_STREQ(plan_string(plan, loops[0].beyond), "too many");
  EXPECT_EQ(loops[0].may_want_more, 1U);
  EXPECT_EQ(loops[1].may_want_more, 0U);
}

TEST(plan, loops_out_of_range_are_refused) {
  const auto expect_refused = [](auto change, const char* expected) {
    std::string bytes = plan_with_loops();
    auto& plan = *reinterpret_cast<PlanHeader*>(bytes.data());
    change(const_cast<PlanLoop*>(plan_table<PlanLoop>(plan, plan.loops)),
           const_cast<PlanCopy&>(*plan_table<PlanCopy>(plan, plan.copies)));
    ASSERT_NE(check(bytes), nullptr) << expected;
    EXPECT_STREQ(check(bytes), expected);
  };
  const char* range = "a loop of the plan is out of range";
  const char* nest = "the loops of the plan do not fit together";
  expect_refused([](PlanLoop* l, PlanCopy&) { l[0].condition = 1 << 20; }, range);
  expect_refused([](PlanLoop* l, PlanCopy&) { l[0].turns = -2; }, range);
  expect_refused([](PlanLoop* l, PlanCopy&) { l[0].end_step = 4; }, range);
  expect_refused([](PlanLoop* l, PlanCopy&) { l[0].most = -1; }, range);
  expect_refused([](PlanLoop* l, PlanCopy&) { l[0].most = INT64_MAX; }, range);
  expect_refused([](PlanLoop* l, PlanCopy&) { l[0].num_copies = 2; }, range);
  expect_refused(
      [](PlanLoop* l, PlanCopy&) {
        l[0].rank = 1;
        l[0].shapes = 1 << 20;
      },
      range);
  expect_refused([](PlanLoop* l, PlanCopy&) { l[0].rank = kMostShownRank + 1; }, range);
  expect_refused([](PlanLoop*, PlanCopy& c) { c.bytes = 1 << 20; }, range);
  expect_refused([](PlanLoop*, PlanCopy& c) { c.stride = 1 << 12; }, range);
  expect_refused([](PlanLoop*, PlanCopy& c) { c.stride = -(1 << 12); }, range);
  expect_refused([](PlanLoop* l, PlanCopy&) { l[0].num_nested = 2; }, nest);
  expect_refused([](PlanLoop* l, PlanCopy&) { l[0].num_nested = 0; }, nest);
  expect_refused([](PlanLoop* l, PlanCopy&) { l[0].first_step = 2; }, nest);
}

// A copy of 8 bytes from 0 goes to 64, 72, ..., 96.
TEST(plan, copies_that_overlap_are_refused) {
  const auto problem_of = [](const std::vector<PlanCopy>& copies) {
    artifact::ArtifactSpec spec = artifact::testing::filter_spec("");
    PlanLoop loop = {.most = 5, .condition = -1, .limit = -1, .turn = -1, .turns = -1};
    loop.end_step = 3;
    loop.num_copies = static_cast<uint32_t>(copies.size());
    spec.loops = {{"loop", "", loop}};
    spec.copies = copies;
    const Result<std::string> plan = artifact::encode_plan(spec);
    return plan.ok() ? "" : plan.status().message();
  };
  const std::string overlap = "the model cannot be written: copies of a loop of the plan overlap";
  const std::string range = "the model cannot be written: a loop of the plan is out of range";
  const PlanCopy good = {0, 64, 8, 8};
  EXPECT_EQ(problem_of({good}), "");
  EXPECT_EQ(problem_of({good, {0, 8, 8, 0}}), "");                  // two of one place
  EXPECT_EQ(problem_of({good, {0, 56, 8, 0}, {4, 40, 8, 0}}), "");  // places read may overlap
  EXPECT_EQ(problem_of({{0, 4, 8, 0}}), overlap);
  EXPECT_EQ(problem_of({{72, 64, 8, 8}}), overlap);       // the second turn's
  EXPECT_EQ(problem_of({{72, 96, 8, -8}}), overlap);      // the fourth turn's
  EXPECT_EQ(problem_of({good, {8, 96, 8, 0}}), overlap);  // to where another one goes
  EXPECT_EQ(problem_of({good, {96, 8, 8, 0}}), overlap);  // from there
  EXPECT_EQ(problem_of({{0, 64, 8, 4}}), range);          // over that of the turn before
}

// Whatever the bytes are, the check neither crashes nor reads behind the block.
TEST(plan, check_survives_random_damage) {
  constexpr uint64_t kSeed = 7;
  EXPECT_GT(artifact::testing::count_refused_damages(good_plan(), kSeed, plan_check), 10'000)
      << "seed " << kSeed;
  EXPECT_GT(artifact::testing::count_refused_damages(plan_with_loops(), kSeed, plan_check), 10'000)
      << "seed " << kSeed;
}

}  // namespace
}  // namespace hone::runtime
