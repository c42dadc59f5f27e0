#include "hone/graph/memory_plan.h"

#include <gtest/gtest.h>

#include "hone/base/rng.h"

namespace hone::graph {
namespace {

Buffer buffer(int64_t elements, int64_t border = 0) {
  return {.shape = {elements + 2 * border}, .border = {border, border}};
}

// A list of calls that use arena buffers, without any Dag.
TaskList task_list(std::vector<Buffer> buffers, const std::vector<std::vector<int>>& uses) {
  TaskList tasks;
  tasks.buffers = std::move(buffers);
  for (const std::vector<int>& used : uses) {
    TaskCall call;
    for (const int b : used) call.arguments.push_back({Argument::Kind::kArena, b});
    tasks.calls.push_back(std::move(call));
  }
  return tasks;
}

TEST(memory_plan, buffers_that_do_not_meet_share_memory) {
  const TaskList tasks =
      task_list({buffer(64), buffer(64), buffer(64)}, {{0}, {0, 1}, {1, 2}, {2}});
  const MemoryPlan plan = plan_memory(tasks);
  EXPECT_TRUE(verify(plan, tasks).ok()) << verify(plan, tasks).message();
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_EQ(plan.arena_bytes, 2 * 64 * 4);
}

TEST(memory_plan, a_border_is_shared_with_its_like_alone) {
  // 0 and 2 are alike and take turns; 4 has the same size but another border.
  const TaskList tasks =
      task_list({buffer(62, 1), buffer(64), buffer(62, 1), buffer(64), buffer(60, 2)},
                {{0}, {0, 1}, {1, 2}, {2, 3}, {3, 4}, {4}});
  const MemoryPlan plan = plan_memory(tasks);
  EXPECT_TRUE(verify(plan, tasks).ok()) << verify(plan, tasks).message();
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_NE(plan.offsets[0], plan.offsets[4]);
  EXPECT_EQ(plan.offsets[1], plan.offsets[3]);
  EXPECT_EQ(plan.zeroed.size(), 2u);
}

TEST(memory_plan, unused_buffers_take_no_room) {
  const TaskList tasks = task_list({buffer(64), buffer(640)}, {{0}});
  const MemoryPlan plan = plan_memory(tasks);
  EXPECT_EQ(plan.offsets[1], -1);
  EXPECT_EQ(plan.arena_bytes, 64 * 4);
}

// A loop of the calls 1 and 2: it reads buffer 0 from outside, carries 1, and copies 3 to it.
TaskList list_with_loop() {
  TaskList tasks = task_list({buffer(64), buffer(64), buffer(64), buffer(64), buffer(64)},
                             {{0, 1}, {0, 1, 2}, {2, 3}, {1, 4}});
  TaskLoop loop{.name = "loop", .first_call = 1, .end_call = 3, .begin = 0, .end = 1, .most = 4};
  loop.kept = {0, 1};
  loop.copies = {{3, 1, 256}};
  tasks.loops = {loop};
  tasks.boundaries = {1, 3};
  return tasks;
}

TEST(memory_plan, what_a_loop_keeps_lives_to_its_end) {
  const TaskList tasks = list_with_loop();
  const MemoryPlan plan = plan_memory(tasks);
  ASSERT_TRUE(verify(plan, tasks).ok()) << verify(plan, tasks).message();
  // Steps: call 0, the begin, calls 1 and 2, the end, call 3.
  EXPECT_EQ(plan.time_steps, (std::vector<int>{0, 2, 3, 5}));
  using Life = std::pair<int, int>;
  EXPECT_EQ(plan.lives[0], Life(0, 4));
  EXPECT_EQ(plan.lives[1], Life(0, 5));
  EXPECT_EQ(plan.lives[2], Life(2, 3));
  EXPECT_EQ(plan.lives[3], Life(3, 4));
  EXPECT_EQ(plan.lives[4], Life(5, 5));
  EXPECT_NE(plan.offsets[0], plan.offsets[3]);
}

TEST(memory_plan, numbers_that_a_call_reads_live_to_it_and_through_loops_around_it) {
  TaskList tasks = list_with_loop();
  tasks.buffers.push_back(buffer(64));
  tasks.calls[0].arguments.push_back({Argument::Kind::kArena, 5});
  tasks.calls[1].sizes = {5};
  const MemoryPlan plan = plan_memory(tasks);
  ASSERT_TRUE(verify(plan, tasks).ok()) << verify(plan, tasks).message();
  using Life = std::pair<int, int>;
  EXPECT_EQ(plan.lives[5], Life(0, 4));
  tasks.calls[3].sizes = {5};
  EXPECT_EQ(plan_memory(tasks).lives[5], Life(0, 5));
}

TEST(memory_plan, numbers_that_a_call_reads_are_not_written_over) {
  TaskList tasks = task_list({buffer(64), buffer(64)}, {{0}, {0, 1}});
  const std::vector<InPlace> pairs = {{1, 0, 1}};
  EXPECT_EQ(plan_memory(tasks, pairs).arena_bytes, 64 * 4);
  tasks.calls[1].sizes = {0};
  EXPECT_EQ(plan_memory(tasks, pairs).arena_bytes, 2 * 64 * 4);
}

TEST(memory_plan, a_body_does_not_work_in_the_place_of_what_it_reads_again) {
  const TaskList tasks = list_with_loop();
  // Buffer 0 is read last by call 1, but in each turn; buffer 2 is made anew in each turn.
  const std::vector<InPlace> pairs = {{1, 0, 2}, {2, 2, 3}};
  const MemoryPlan plan = plan_memory(tasks, pairs);
  ASSERT_TRUE(verify(plan, tasks, pairs).ok()) << verify(plan, tasks, pairs).message();
  EXPECT_NE(plan.offsets[0], plan.offsets[2]);
  EXPECT_EQ(plan.offsets[2], plan.offsets[3]);
}

TEST(memory_plan, verify_finds_each_kind_of_overlap) {
  const TaskList tasks = task_list({buffer(64), buffer(62, 1), buffer(64)}, {{0}, {0, 1}, {1, 2}});
  const MemoryPlan good = plan_memory(tasks);
  ASSERT_TRUE(verify(good, tasks).ok());
  MemoryPlan plan = good;
  plan.offsets[0] = plan.offsets[1];
  EXPECT_NE(verify(plan, tasks).message().find("live at the same time"), std::string::npos);
  plan = good;
  plan.lives[0] = {-1, -1}, plan.lives[1] = {1, 1}, plan.lives[2] = {2, 2};
  plan.offsets[2] = plan.offsets[1];
  EXPECT_NE(verify(plan, tasks).message().find("border"), std::string::npos);
  plan = good;
  plan.zeroed.clear();
  EXPECT_NE(verify(plan, tasks).message().find("not zeroed"), std::string::npos);
  plan = good;
  plan.offsets[0] += 4;
  EXPECT_NE(verify(plan, tasks).message().find("aligned"), std::string::npos);
  plan = good;
  plan.arena_bytes -= 64;
  EXPECT_NE(verify(plan, tasks).message().find("leaves the arena"), std::string::npos);
}

TEST(memory_plan, a_result_takes_the_place_of_an_operand_that_nobody_needs_any_more) {
  // A residual block: 0 is the input of the block and added to the last result.
  const TaskList tasks = task_list({buffer(64), buffer(64), buffer(64), buffer(64), buffer(62, 1)},
                                   {{0}, {0, 1}, {1, 0, 2}, {2, 3}, {3, 4}});
  const InPlace pairs[] = {{2, 0, 2}, {3, 2, 3}, {4, 3, 4}};
  EXPECT_EQ(plan_memory(tasks).arena_bytes, 4 * 64 * 4);
  const MemoryPlan plan = plan_memory(tasks, pairs);
  EXPECT_TRUE(verify(plan, tasks, pairs).ok()) << verify(plan, tasks, pairs).message();
  EXPECT_EQ(plan.offsets[2], plan.offsets[0]);
  EXPECT_EQ(plan.offsets[3], plan.offsets[0]);
  EXPECT_NE(plan.offsets[4], plan.offsets[3]) << "another border";
  EXPECT_EQ(plan.arena_bytes, 3 * 64 * 4);
  EXPECT_NE(verify(plan, tasks).message().find("live at the same time"), std::string::npos);
}

TEST(memory_plan, bordered_buffers_too) {
  const TaskList tasks = task_list({buffer(62, 1), buffer(62, 1)}, {{0}, {0, 1}, {1}});
  const InPlace pairs[] = {{1, 0, 1}};
  const MemoryPlan plan = plan_memory(tasks, pairs);
  EXPECT_TRUE(verify(plan, tasks, pairs).ok()) << verify(plan, tasks, pairs).message();
  EXPECT_EQ(plan.arena_bytes, 64 * 4);
}

TEST(memory_plan, an_operand_that_is_needed_again_stays) {
  const InPlace pairs[] = {{1, 0, 1}};
  const auto bytes = [&](const TaskList& tasks) { return plan_memory(tasks, pairs).arena_bytes; };
  EXPECT_EQ(bytes(task_list({buffer(64), buffer(64)}, {{0}, {0, 1}, {0, 1}})), 2 * 64 * 4);
  EXPECT_EQ(bytes(task_list({buffer(64), buffer(64)}, {{0}, {0, 0, 1}})), 2 * 64 * 4)
      << "it is another operand as well";
  EXPECT_EQ(bytes(task_list({buffer(64), buffer(64)}, {{1}, {0, 1}})), 2 * 64 * 4)
      << "a part of the result is there before";
  EXPECT_EQ(bytes(task_list({buffer(64), buffer(64)}, {{0}, {0, 1}})), 64 * 4);
}

TEST(memory_plan, no_live_buffers_overlap_in_random_task_lists) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const int64_t count = rng.between(1, 40), calls = rng.between(1, 60);
    std::vector<Buffer> buffers;
    for (int64_t i = 0; i < count; ++i)
      buffers.push_back(buffer(rng.between(1, 5) * 16, rng.chance(0.3) ? rng.between(1, 2) : 0));
    std::vector<std::vector<int>> uses(static_cast<size_t>(calls));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = rng.below(calls),
                    last = rng.between(first, std::min(calls - 1, first + 4));
      uses[static_cast<size_t>(first)].push_back(static_cast<int>(i));
      uses[static_cast<size_t>(last)].push_back(static_cast<int>(i));
    }
    const TaskList tasks = task_list(buffers, uses);
    const MemoryPlan plan = plan_memory(tasks);
    EXPECT_TRUE(verify(plan, tasks).ok()) << verify(plan, tasks).message();
    std::vector<InPlace> pairs;
    for (int64_t i = 0; i < 30; ++i) {
      pairs.push_back({static_cast<int>(rng.below(calls)), static_cast<int>(rng.below(count)),
                       static_cast<int>(rng.below(count))});
      if (pairs.back().input == pairs.back().output) pairs.pop_back();
    }
    const MemoryPlan in_place = plan_memory(tasks, pairs);
    EXPECT_TRUE(verify(in_place, tasks, pairs).ok()) << verify(in_place, tasks, pairs).message();
    EXPECT_LE(in_place.arena_bytes, plan.arena_bytes);
    // Never worse than no sharing at all, never better than what is live at one time.
    int64_t sum = 0;
    for (const Buffer& b : buffers) sum += (b.bytes() + 63) / 64 * 64;
    EXPECT_LE(plan.arena_bytes, sum);
    for (int64_t call = 0; call < calls; ++call) {
      int64_t live = 0;
      for (size_t i = 0; i < buffers.size(); ++i) {
        if (plan.lives[i].first <= call && call <= plan.lives[i].second) live += buffers[i].bytes();
      }
      EXPECT_GE(plan.arena_bytes, live);
    }
  }
}

}  // namespace
}  // namespace hone::graph
