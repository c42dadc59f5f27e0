// The artifact's own interface, called as a C program would.
#include <dlfcn.h>
#include <fenv.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "hone/artifact/loaded_library_testing.h"
#include "hone/runtime/hone_model.h"

namespace hone::artifact {
namespace {

using testing::filter_spec;
using testing::Folder;
using testing::kLength;

// The functions of a freshly linked artifact.
class Api : public testing::LoadedLibrary {
 public:
  Api() : LoadedLibrary(filter_spec(testing::read_file(HONE_TEST_KERNELS))) {
    find("hone_model_create", create);
    find("hone_model_create_with", create_with);
    find("hone_model_destroy", destroy);
    find("hone_model_num_threads", num_threads);
    find("hone_model_run", run);
    find("hone_model_input_info", input_info);
    find("hone_model_input_name", input_name);
    find("hone_model_last_error", last_error);
    find("hone_model_profile", profile);
    find("hone_model_step_seconds", step_seconds);
    find("hone_abi_version", abi_version);
  }

  decltype(&hone_model_create) create = nullptr;
  decltype(&hone_model_create_with) create_with = nullptr;
  decltype(&hone_model_destroy) destroy = nullptr;
  decltype(&hone_model_num_threads) num_threads = nullptr;
  decltype(&hone_model_run) run = nullptr;
  decltype(&hone_model_input_info) input_info = nullptr;
  decltype(&hone_model_input_name) input_name = nullptr;
  decltype(&hone_model_last_error) last_error = nullptr;
  decltype(&hone_model_profile) profile = nullptr;
  decltype(&hone_model_step_seconds) step_seconds = nullptr;
  decltype(&hone_abi_version) abi_version = nullptr;
};

TEST(c_interface, survives_null_pointers_and_wrong_numbers) {
  const Api api;
  EXPECT_EQ(api.abi_version(), HONE_ABI_VERSION);
  EXPECT_NE(api.create(nullptr, 1), 0);
  EXPECT_STREQ(api.last_error(nullptr), "the place for the model is a null pointer");
  hone_model* model = nullptr;
  EXPECT_NE(api.create(&model, -1), 0);
  EXPECT_EQ(model, nullptr);
  EXPECT_STREQ(api.last_error(nullptr), "-1 threads wanted, expected 0 (all cores) to 1024");
  ASSERT_EQ(api.create(&model, 1), 0);
  EXPECT_STREQ(api.last_error(nullptr), "");
  EXPECT_NE(api.run(nullptr, nullptr, nullptr), 0);
  EXPECT_NE(api.run(model, nullptr, nullptr), 0);
  EXPECT_STREQ(api.last_error(model), "the list of inputs is a null pointer");
  const void* inputs[] = {nullptr};
  void* outputs[] = {nullptr, nullptr};
  EXPECT_NE(api.run(model, inputs, outputs), 0);
  EXPECT_STREQ(api.last_error(model), "input 'x' is a null pointer");
  EXPECT_NE(api.input_info(model, 1, nullptr, nullptr, nullptr), 0);
  EXPECT_STREQ(api.last_error(model), "there is no input with this number");
  EXPECT_NE(api.input_info(nullptr, 0, nullptr, nullptr, nullptr), 0);
  EXPECT_EQ(api.input_info(model, 0, nullptr, nullptr, nullptr), 0);
  EXPECT_EQ(api.input_name(model, -1), nullptr);
  EXPECT_EQ(api.input_name(nullptr, 0), nullptr);
  api.destroy(model);
  api.destroy(nullptr);
}

TEST(c_interface, refuses_options_that_it_does_not_know) {
  const Api api;
  hone_model* model = nullptr;
  hone_model_options options = {};
  EXPECT_NE(api.create_with(&model, nullptr), 0);
  EXPECT_STREQ(api.last_error(nullptr), "the options are a null pointer");
  EXPECT_NE(api.create_with(&model, &options), 0);
  EXPECT_STREQ(api.last_error(nullptr),
               "the options are smaller than hone_model_options: is their size set?");
  struct Later {
    hone_model_options known;
    int64_t unknown;
  } later = {};
  later.known.size = sizeof later;
  later.known.num_threads = 1;
  later.unknown = 5;
  EXPECT_NE(api.create_with(&model, &later.known), 0);
  EXPECT_STREQ(api.last_error(nullptr), "the options are those of a later version");
  later.unknown = 0;
  ASSERT_EQ(api.create_with(&model, &later.known), 0);
  EXPECT_EQ(api.num_threads(model), 1);
  EXPECT_EQ(api.num_threads(nullptr), 0);
  api.destroy(model);
}

// A caller may set all fields one by one.
TEST(c_interface, reads_only_fields_of_the_options) {
  const Api api;
  hone_model* model = nullptr;
  hone_model_options options;
  std::memset(&options, 0xAB, sizeof options);
  options.size = sizeof options;
  options.num_threads = 1;
  options.spin_ns = 0;
  options.parallel_for = nullptr;
  options.pool = nullptr;
  options.device = 0;
  EXPECT_NE(api.create_with(&model, &options), 0);
  EXPECT_STREQ(api.last_error(nullptr), "the time limit is less than 0");
  options.time_limit_ms = 0;
  ASSERT_EQ(api.create_with(&model, &options), 0) << api.last_error(nullptr);
  api.destroy(model);
}

std::vector<float> outputs_of(const Api& api, hone_model* model) {
  const std::vector<float> x = testing::filter_input(4);
  std::vector<float> y(2 * kLength);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data(), y.data() + kLength};
  EXPECT_EQ(api.run(model, inputs, outputs), 0) << api.last_error(model);
  api.destroy(model);
  return y;
}

// A pool of the caller's: a thread per task.
struct CallersPool {
  std::atomic<int> calls{0};
  static void parallel_for(void* pool, int count, hone_model_task task, void* context) {
    static_cast<CallersPool*>(pool)->calls += 1;
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(task, context, i);
    for (std::thread& thread : threads) thread.join();
  }
};

TEST(c_interface, runs_on_the_callers_threads) {
  const Api api;
  hone_model* model = nullptr;
  ASSERT_EQ(api.create(&model, 0), 0);
  const std::vector<float> expected = outputs_of(api, model);
  for (const int threads : {0, 1, 2, 3, 7, 16}) {
    CallersPool pool;
    hone_model_options options = {};
    options.size = sizeof options;
    options.num_threads = threads;
    options.parallel_for = CallersPool::parallel_for;
    options.pool = &pool;
    ASSERT_EQ(api.create_with(&model, &options), 0) << api.last_error(nullptr);
    if (threads > 0) {
      EXPECT_EQ(api.num_threads(model), threads);
    }
    const bool several = api.num_threads(model) > 1;
    EXPECT_EQ(outputs_of(api, model), expected) << threads;
    EXPECT_EQ(pool.calls, several ? 2 : 0);
  }
}

TEST(c_interface, takes_any_spin_limit) {
  const Api api;
  std::vector<float> expected;
  for (const int64_t spin_ns : {int64_t{0}, int64_t{-1}, int64_t{1000}, INT64_MAX}) {
    hone_model* model = nullptr;
    hone_model_options options = {};
    options.size = sizeof options;
    options.spin_ns = spin_ns;
    ASSERT_EQ(api.create_with(&model, &options), 0) << api.last_error(nullptr);
    const std::vector<float> found = outputs_of(api, model);
    if (expected.empty()) expected = found;
    EXPECT_EQ(found, expected);
  }
}

// No function between create and destroy traps, whatever the data is, and the mode stays.
TEST(c_interface, the_callers_floating_point_mode_is_left_alone) {
  const Api api;
  std::vector<float> x = testing::filter_input(4);
  for (size_t i = 0; i < x.size(); i += 7) x[i] = 3e38F;        // their sums overflow
  for (size_t i = 1; i < x.size(); i += 7) x[i] = 0.1F;         // and are not exact
  for (size_t i = 2; i < x.size(); i += 49) x[i] = -HUGE_VALF;  // or invalid
  for (size_t i = 3; i < x.size(); i += 7) x[i] = 1e-40F;       // denormal
  const void* inputs[] = {x.data()};
  std::vector<std::vector<float>> results;
  fenv_t before;
  fegetenv(&before);
  for (const bool changed : {false, true}) {
    for (const int threads : {1, 2, 4}) {
      for (const bool own : {true, false}) {
        std::vector<float> y(2 * kLength);
        void* outputs[] = {y.data(), y.data() + kLength};
        CallersPool pool;
        hone_model_options options = {};
        options.size = sizeof options;
        options.num_threads = threads;
        if (!own) options.parallel_for = CallersPool::parallel_for;
        options.pool = &pool;
        if (changed) {
          fesetround(FE_UPWARD);
          feenableexcept(FE_ALL_EXCEPT);
        }
        hone_model* model = nullptr;
        const int created = api.create_with(&model, &options);
        const int profiled = api.profile(model, threads == 2 ? 1 : 0);
        const int ran = api.run(model, inputs, outputs);
        const volatile double seconds = api.step_seconds(model, 0);
        api.destroy(model);
        const int rounding = fegetround(), traps = fegetexcept(),
                  flags = fetestexcept(FE_ALL_EXCEPT);
        fesetenv(&before);
        EXPECT_EQ(created + profiled + ran, 0);
        EXPECT_GE(seconds, 0);
        EXPECT_EQ(rounding, changed ? FE_UPWARD : FE_TONEAREST);
        EXPECT_EQ(traps, changed ? FE_ALL_EXCEPT : 0);
        EXPECT_EQ(flags & FE_OVERFLOW, 0) << "what a kernel raises is not seen";
        y.resize(kLength);  // only some of the positive elements are written
        results.push_back(std::move(y));
      }
    }
  }
  for (const std::vector<float>& result : results) {
    EXPECT_EQ(std::memcmp(result.data(), results[0].data(), kLength * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace hone::artifact
