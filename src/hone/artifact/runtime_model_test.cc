#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "hone/artifact/artifact_testing.h"
#include "hone/runtime/cpu_budget.h"
#include "hone/runtime/model.h"

namespace hone::runtime {
namespace {

using artifact::ArgumentKind;
using artifact::ArtifactSpec;

std::atomic<bool> release{false};
std::atomic<bool> entered{false};

// args: x, y of one float per tile.
int add_one(void* const* args, void*, int64_t first, int64_t last, int) {
  for (int64_t i = first; i < last; ++i)
    static_cast<float*>(args[1])[i] = static_cast<const float*>(args[0])[i] + 1;
  return 0;
}
int add_ten(void* const* args, void*, int64_t first, int64_t last, int) {
  for (int64_t i = first; i < last; ++i)
    static_cast<float*>(args[1])[i] = static_cast<const float*>(args[0])[i] + 10;
  return 0;
}
int wait_for_release(void* const*, void*, int64_t, int64_t, int) {
  entered.store(true);
  while (!release.load()) std::this_thread::yield();
  return 0;
}
int add_one_when_released(void* const* args, void* scratch, int64_t first, int64_t last,
                          int thread) {
  wait_for_release(args, scratch, first, last, thread);
  return add_one(args, scratch, first, last, thread);
}
int fail_with_9(void* const*, void*, int64_t, int64_t, int) { return 9; }
// args: an arena area of 8 floats; fails unless it is zero.
int expect_zero(void* const* args, void*, int64_t, int64_t, int) {
  for (int i = 0; i < 8; ++i)
    if (static_cast<const float*>(args[0])[i] != 0) return 1;
  return 0;
}

constexpr int64_t kTiles = 40;
using ModelPtr = std::unique_ptr<Model, void (*)(Model*)>;

// A model of one kernel, without an artifact.
class Fixture {
 public:
  explicit Fixture(hone_kernel kernel, int64_t tiles = kTiles) : kernel_(kernel) {
    ArtifactSpec spec;
    spec.inputs = {{"x", DType::kF32, {kTiles}}};
    spec.outputs = {{"y", DType::kF32, {kTiles}}};
    spec.kernel_symbols = {"kernel"};
    spec.arena_bytes = 64;
    spec.zeroed = {{0, 32}};
    if (kernel == expect_zero) {
      spec.steps = {{"step", 0, tiles, 0, 0, {{ArgumentKind::kArena, 0, 0}}}};
    } else {
      spec.steps = {
          {"step", 0, tiles, 0, 0, {{ArgumentKind::kInput, 0, 0}, {ArgumentKind::kOutput, 0, 0}}}};
    }
    plan_ = artifact::encode_plan(spec).value();
  }
  [[nodiscard]] ModelPtr create(int threads) { return create({.num_threads = threads}); }
  [[nodiscard]] ModelPtr create(const ModelOptions& options) {
    ModelPtr model(model_create({plan_.data(), plan_.size(), &kernel_, nullptr}, options, message),
                   model_destroy);
    return model;
  }
  std::string& plan() { return plan_; }
  char message[kErrorBytes] = "";

 private:
  hone_kernel kernel_;
  std::string plan_;
};

int run(Model& model, const std::vector<float>& x, std::vector<float>& y) {
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  return model_run(model, inputs, outputs);
}

TEST(model, instances_run_at_the_same_time) {
  Fixture fixture(add_one);
  std::vector<std::thread> threads;
  std::vector<ModelPtr> models;
  for (int t = 0; t < 4; ++t) models.push_back(fixture.create(2));
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&models, t] {
      std::vector<float> x(kTiles);
      std::vector<float> y(kTiles);
      for (int round = 0; round < 200; ++round) {
        for (float& value : x) value = static_cast<float>(t * 1000 + round);
        ASSERT_EQ(run(*models[static_cast<size_t>(t)], x, y), 0);
        ASSERT_EQ(y, std::vector<float>(kTiles, static_cast<float>(t * 1000 + round + 1)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(model, runs_the_steps_that_were_chosen) {
  ArtifactSpec spec;
  spec.inputs = {{"x", DType::kF32, {kTiles}}};
  spec.outputs = {{"y", DType::kF32, {kTiles}}};
  spec.kernel_symbols = {"one", "ten"};
  const std::vector<artifact::ArtifactArgument> x_to_y = {{ArgumentKind::kInput, 0, 0},
                                                          {ArgumentKind::kOutput, 0, 0}};
  const std::vector<artifact::ArtifactArgument> y_to_y = {x_to_y[1], x_to_y[1]};
  spec.steps = {{"one", 0, kTiles, 0, 0, x_to_y},
                {"ten", 1, kTiles, 0, 0, x_to_y},
                {"ten more", 1, kTiles, 0, 0, y_to_y}};
  const std::string plan = artifact::encode_plan(spec).value();
  const hone_kernel kernels[] = {add_one, add_ten};
  char message[kErrorBytes] = "";
  const ModelPtr model(
      model_create({plan.data(), plan.size(), kernels, nullptr}, {.num_threads = 2}, message),
      model_destroy);
  ASSERT_TRUE(model) << message;
  std::vector<float> x(kTiles, 1), y(kTiles);
  const auto result_of = [&](const std::vector<int32_t>& steps) {
    EXPECT_TRUE(model_choose(*model, steps.data(), static_cast<int32_t>(steps.size())));
    EXPECT_EQ(run(*model, x, y), 0);
    return y[kTiles - 1];
  };
  EXPECT_EQ(result_of({0}), 2);
  EXPECT_EQ(result_of({1}), 11);
  EXPECT_EQ(result_of({0, 2}), 12);
  EXPECT_EQ(result_of({1, 2}), 21);
  model_profile(*model, true);
  EXPECT_EQ(result_of({1, 2}), 21);
  EXPECT_GT(model_step_seconds(*model, 0) + model_step_seconds(*model, 1), 0);
  EXPECT_EQ(model_step_seconds(*model, 2), 0) << "profiles count by the place in the list";
  for (const std::vector<int32_t>& wrong :
       {std::vector<int32_t>{3}, std::vector<int32_t>{-1}, std::vector<int32_t>{0, 0, 0, 0}})
    EXPECT_FALSE(model_choose(*model, wrong.data(), static_cast<int32_t>(wrong.size())));
  EXPECT_EQ(run(*model, x, y), 0);
  EXPECT_EQ(y[0], 21) << "what was chosen before";
}

TEST(model, steps_that_join_run_together_and_each_alone_if_chosen) {
  ArtifactSpec spec;
  spec.inputs = {{"x", DType::kF32, {kTiles}}};
  spec.outputs = {{"y", DType::kF32, {kTiles}}, {"z", DType::kF32, {kTiles}}};
  spec.kernel_symbols = {"one", "ten"};
  const artifact::ArtifactArgument x = {ArgumentKind::kInput, 0, 0};
  const artifact::ArtifactArgument y = {ArgumentKind::kOutput, 0, 0};
  const artifact::ArtifactArgument z = {ArgumentKind::kOutput, 1, 0};
  spec.steps = {{"y", 0, kTiles, 0, 0, {x, y}},
                {"z", 1, kTiles, 0, 0, {x, z}},
                {"y more", 1, kTiles, 0, 0, {y, y}},
                {"z more", 0, kTiles, 0, 0, {z, z}}};
  for (artifact::ArtifactStep& step : spec.steps) step.units = step.kernel == 0 ? 3 : 50;
  spec.steps[1].joins = spec.steps[3].joins = true;
  const std::string plan = artifact::encode_plan(spec).value();
  const hone_kernel kernels[] = {add_one, add_ten};
  for (const int threads : {1, 2, 0}) {
    char message[kErrorBytes] = "";
    const ModelPtr model(model_create({plan.data(), plan.size(), kernels, nullptr},
                                      {.num_threads = threads}, message),
                         model_destroy);
    ASSERT_TRUE(model) << message;
    const std::vector<float> input(kTiles, 1);
    std::vector<float> outputs[2] = {std::vector<float>(kTiles), std::vector<float>(kTiles)};
    const auto run_both = [&] {
      const void* from[] = {input.data()};
      void* to[] = {outputs[0].data(), outputs[1].data()};
      ASSERT_EQ(model_run(*model, from, to), 0);
    };
    for (const bool profile : {false, true, false}) {
      model_profile(*model, profile);
      run_both();
      EXPECT_EQ(outputs[0], std::vector<float>(kTiles, 12));
      EXPECT_EQ(outputs[1], std::vector<float>(kTiles, 12));
    }
    // Without the steps that they joined, these stand behind each other.
    const int32_t chosen[] = {1, 3, 3};
    ASSERT_TRUE(model_choose(*model, chosen, 3));
    run_both();
    EXPECT_EQ(outputs[1], std::vector<float>(kTiles, 13));
  }
}

void serially(void*, int count, PoolTask task, void* context) {
  for (int i = 0; i < count; ++i) task(context, i);
}

TEST(model, as_many_threads_as_tiles_of_steps_that_join) {
  ArtifactSpec spec;
  spec.kernel_symbols = {"one"};
  spec.arena_bytes = 64;
  spec.steps.assign(3, {"step", 0, 1, 0, 0, {{ArgumentKind::kArena, 0, 0}}});
  const auto threads = [&] {
    const std::string plan = artifact::encode_plan(spec).value();
    const hone_kernel kernels[] = {add_one};
    char message[kErrorBytes] = "";
    const ModelPtr model(model_create({plan.data(), plan.size(), kernels, nullptr},
                                      {.num_threads = 8, .parallel_for = serially}, message),
                         model_destroy);
    return model ? model_num_threads(*model) : 0;
  };
  EXPECT_EQ(threads(), 1);
  for (artifact::ArtifactStep& step : spec.steps) step.units = 1;
  spec.steps[1].joins = spec.steps[2].joins = true;
  EXPECT_EQ(threads(), 3);
}

TEST(model, in_use_refuses_a_second_run) {
  Fixture fixture(wait_for_release, 1);
  const ModelPtr model = fixture.create(1);
  release = false;
  entered = false;
  std::vector<float> x(kTiles);
  std::vector<float> y(kTiles);
  std::thread other([&] { EXPECT_EQ(run(*model, x, y), 0); });
  while (!entered) std::this_thread::yield();
  EXPECT_NE(run(*model, x, y), 0);
  EXPECT_STREQ(model_last_error(*model), "the model is running in another thread");
  release = true;
  other.join();
  EXPECT_EQ(run(*model, x, y), 0);
  EXPECT_STREQ(model_last_error(*model), "");
}

TEST(model, runs_in_a_child_that_was_forked_during_a_run) {
  for (const int threads : {1, 3}) {
    release = entered = false;
    Fixture fixture(add_one_when_released);
    const ModelPtr model = fixture.create(threads);
    ASSERT_NE(model, nullptr);
    const std::vector<float> x(kTiles, 1);
    std::vector<float> y(kTiles);
    std::thread other([&] { EXPECT_EQ(run(*model, x, y), 0); });
    while (!entered) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) {
      // Neither the run nor the threads are there.
      release = true;
      bool right = true;
      for (int times = 0; times < 2; ++times) {
        std::vector<float> mine(kTiles);
        right = right && run(*model, x, mine) == 0 && mine == std::vector<float>(kTiles, 2);
      }
      _exit(right ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << threads << " threads";
    release = true;
    other.join();
    EXPECT_EQ(y, std::vector<float>(kTiles, 2));
  }
}

TEST(model, has_no_more_threads_than_cpus) {
  Fixture fixture(add_one);
  const int cpus = usable_cpus();
  EXPECT_EQ(model_num_threads(*fixture.create(0)), std::min<int>(cpus, kTiles));
  EXPECT_EQ(model_num_threads(*fixture.create(1)), 1);
  EXPECT_EQ(model_num_threads(*fixture.create(1024)), std::min<int>(cpus, kTiles));
  // The model is made on one CPU only, in a separate thread.
  std::thread([&] {
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    EXPECT_EQ(model_num_threads(*fixture.create(8)), 1);
    EXPECT_EQ(model_num_threads(*fixture.create(0)), 1);
  }).join();
}

TEST(model, on_its_owners_threads_has_as_many_as_told) {
  Fixture fixture(add_one);
  const ModelPtr model = fixture.create({.num_threads = 13, .parallel_for = serially});
  EXPECT_EQ(model_num_threads(*model), 13);
  std::vector<float> x(kTiles, 1);
  std::vector<float> y(kTiles);
  EXPECT_EQ(run(*model, x, y), 0);
  EXPECT_EQ(y, std::vector<float>(kTiles, 2));
}

TEST(model, reports_a_failing_kernel) {
  Fixture fixture(fail_with_9);
  const ModelPtr model = fixture.create(2);
  std::vector<float> x(kTiles);
  std::vector<float> y(kTiles);
  EXPECT_NE(run(*model, x, y), 0);
  EXPECT_STREQ(model_last_error(*model), "a kernel failed with code 9");
}

TEST(model, starts_with_zeroed_regions) {
  Fixture fixture(expect_zero, 1);
  std::vector<float> x(kTiles);
  std::vector<float> y(kTiles);
  for (int i = 0; i < 5; ++i) {
    const ModelPtr model = fixture.create(1);
    EXPECT_EQ(run(*model, x, y), 0);
  }
}

TEST(model, refuses_a_kernel_without_code) {
  Fixture fixture(nullptr);
  EXPECT_EQ(fixture.create(1), nullptr);
  EXPECT_STREQ(fixture.message, "damaged model: a kernel has no code");
}

TEST(model, refuses_bad_images) {
  Fixture fixture(add_one);
  EXPECT_EQ(fixture.create(-1), nullptr);
  EXPECT_STREQ(fixture.message, "-1 threads wanted, expected 0 (all cores) to 1024");
  EXPECT_EQ(fixture.create(5000), nullptr);
  fixture.plan()[0] = 'X';
  EXPECT_EQ(fixture.create(1), nullptr);
  EXPECT_STREQ(fixture.message, "damaged model: this is not a plan");
}

TEST(model, without_memory_says_so) {
  Fixture fixture(add_one);
  auto* header = reinterpret_cast<PlanHeader*>(fixture.plan().data());
  header->arena_bytes = int64_t{3} << 44;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit less = {std::min<rlim_t>(rlim_t{1} << 45, before.rlim_max), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  EXPECT_EQ(fixture.create(1), nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_NE(std::strstr(fixture.message, "bytes of memory"), nullptr) << fixture.message;
}

}  // namespace
}  // namespace hone::runtime
