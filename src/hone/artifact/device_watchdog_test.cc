// Models on devices with a time limit. A device that hangs is lost to its process, so each test of
// one runs in a process of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "hone/artifact/device_library_testing.h"
#include "hone/base/file_testing.h"
#include "hone/model.h"
#include "hone/runtime/device/device_testing.h"

namespace hone::artifact {
namespace {

using namespace testing;  // NOLINT: the model and what it computes

constexpr const char* kOpenClHangs = R"(
kernel void hangs(BUFFER(p), BUFFER(w), BUFFER(y), long first_tile) {
  for (volatile int forever = 1; forever != 0;) {}
  F(y)[INDEX] = F(p)[INDEX] + F(w)[0];
}
)";

std::string ptx_hangs() {
  return ptx_kernel("hangs", 3,
                    "again:\n  ld.volatile.u32 %r, [%p1];\n  setp.ne.u32 %out, %r, 7;\n"
                    "  @%out bra again;\n");
}

// The model of device_testing.h with a step before the last that never ends; the last one is there
// several times.
ArtifactSpec hanging_spec(DeviceKind kind, size_t last_steps) {
  ArtifactSpec spec = device_spec(kind, false, "");
  const bool cuda = kind == DeviceKind::kCuda;
  const std::string opencl = std::string(kOpenClHead) + kOpenClRest + kOpenClHangs;
  spec.executables[1] =
      gpu_executable(kind, cuda ? ptx_rest() + ptx_hangs() : opencl, {"pad", "filter", "hangs"});
  spec.kernel_symbols.emplace_back("hangs");
  ArtifactStep hangs = spec.steps[2];
  hangs.name = "waits for ever";
  hangs.kernel = 3;
  spec.steps.insert(spec.steps.begin() + 2, hangs);
  while (spec.steps.size() < 3 + last_steps) spec.steps.push_back(spec.steps.back());
  return spec;
}

hone_model_options with_limit(int milliseconds) {
  hone_model_options options = {};
  options.size = sizeof options;
  options.num_threads = 1;
  options.time_limit_ms = milliseconds;
  return options;
}

// For the processes of the tests: ends them with a message.
void require(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "wrong: %s\n", what.c_str());
  _exit(1);
}

// PoCL compiles in the first run.
int limit_ms(DeviceKind kind) { return kind == DeviceKind::kOpenCl ? 3000 : 1000; }

// Calls run() until it fails, which must be by the time limit, then again, and makes a model anew.
template <typename Run>
[[noreturn]] void lose_device(const ArtifactSpec& spec, const Run& run) {
  alarm(100);  // instead of hanging for ever
  const Library library(spec);
  hone_model* model = nullptr;
  const int limit = limit_ms(spec.device);
  const hone_model_options options = with_limit(limit);
  require(library.create_with(&model, &options) == 0, library.last_error(nullptr));
  const std::string lost = fmt::format(
      "{} is lost to this process: what ran there did not end within {} s, and may run until the "
      "process ends",
      library.device(model), limit / 1000);
  const auto start = std::chrono::steady_clock::now();
  require(run(library, model) == HONE_TIME_IS_OVER, library.last_error(model));
  const std::string first = library.last_error(model);
  require(first == "step 'waits for ever' (kernel hangs) did not end: " + lost, first);
  require(std::chrono::steady_clock::now() - start < std::chrono::seconds(60), "it took too long");
  require(run(library, model) == HONE_TIME_IS_OVER, "the second run");
  require(library.last_error(model) == lost, library.last_error(model));
  const std::string again = library.create_error(options);
  require(again.ends_with("is lost to this process: a kernel did not end there"), again);
  library.destroy(model);
  _exit(0);  // at a normal end the driver would wait for the kernel
}

class Watchdog : public ::testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const std::string missing = no_device(GetParam());
    if (!missing.empty()) GTEST_SKIP() << "no device: " << missing;
  }
};

INSTANTIATE_TEST_SUITE_P(kinds, Watchdog, ::testing::Values(DeviceKind::kOpenCl, DeviceKind::kCuda),
                         [](const auto& param) {
                           return std::string(param.param == DeviceKind::kCuda ? "cuda" : "opencl");
                         });

int run_from_host(const Library& library, hone_model* model) {
  const std::vector<float> x = filter_input(0);
  static std::vector<float> y(kLength);  // it stays, as the interface asks
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  return library.run(model, inputs, outputs);
}

TEST_P(Watchdog, gives_up_a_kernel_that_hangs) {
  EXPECT_EXIT(lose_device(hanging_spec(GetParam(), 1), run_from_host), ::testing::ExitedWithCode(0),
              "");
}

// More launches than fit into the queue of a driver, whose calls then do not return.
TEST_P(Watchdog, gives_up_a_kernel_before_many_others) {
  EXPECT_EXIT(lose_device(hanging_spec(GetParam(), 1500), run_from_host),
              ::testing::ExitedWithCode(0), "");
}

TEST_P(Watchdog, lets_runs_be_that_are_in_time) {
  const Library library(device_spec(GetParam(), false, ""));
  hone_model* model = nullptr;
  const hone_model_options options = with_limit(100'000);
  ASSERT_EQ(library.create_with(&model, &options), 0) << library.last_error(nullptr);
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(library.profile(model, i == 4 ? 1 : 0), 0);
    const std::vector<float> x = filter_input(static_cast<float>(i));
    std::vector<float> y(kLength);
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data()};
    ASSERT_EQ(library.run(model, inputs, outputs), 0) << library.last_error(model);
    EXPECT_EQ(y, device_output(x));
    EXPECT_EQ(library.step_seconds(model, 1) > 0, i >= 4);
  }
  library.destroy(model);
  EXPECT_EQ(library.create_error(with_limit(-1)), "the time limit is less than 0");
}

TEST_P(Watchdog, is_an_option_of_a_model_that_is_loaded) {
  const auto run_model = [] {
    alarm(100);
    const Folder folder;
    const std::string path = folder.file("model.so");
    require(write_shared_library(hanging_spec(GetParam(), 1), path).ok(), "no library");
    const auto load = [&] {
      return Model::load(path, {.num_threads = 1, .time_limit = 1e-3 * limit_ms(GetParam())});
    };
    {
      Result<Model> model = load();
      require(model.ok(), model.status().message());
      const Result<std::vector<Tensor>> outputs =
          model->run(std::vector<Tensor>{Tensor(DType::kF32, {1, kLength})});
      require(outputs.status().code() == Code::kTimeout, outputs.status().message());
      require(outputs.status().message().starts_with("cannot run " + path + ": step 'waits for"),
              outputs.status().message());
    }
    // The library was closed with its model, but its device stays lost.
    const std::string again = load().status().message();
    require(again.ends_with("is lost to this process: a kernel did not end there"), again);
    _exit(0);
  };
  EXPECT_EXIT(run_model(), ::testing::ExitedWithCode(0), "");
}

// The call returns before the work is done; the next one finds that it is late.
TEST(WatchdogOfCuda, finds_a_run_late_in_a_stream_of_the_caller) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string missing = no_device(DeviceKind::kCuda);
  if (!missing.empty()) GTEST_SKIP() << "no device: " << missing;
  const auto lose = [] {
    std::string message;
    const auto device = runtime::testing::open_device(DeviceKind::kCuda, message);
    require(device != nullptr, message);
    const runtime::testing::Buffer x(*device, 4096), y(*device, 4096);
    const std::vector<float> values = filter_input(0);
    require(runtime::testing::put(*device, x, values), "no input");
    int calls = 0;
    lose_device(hanging_spec(DeviceKind::kCuda, 1), [&](const Library& library, hone_model* model) {
      const void* in[] = {reinterpret_cast<void*>(x.get().handle)};
      void* out[] = {reinterpret_cast<void*>(y.get().handle)};
      if (calls++ == 0) {
        require(library.run_device(model, in, out, nullptr) == 0, library.last_error(model));
        std::this_thread::sleep_for(std::chrono::milliseconds(limit_ms(DeviceKind::kCuda) + 100));
      }
      return library.run_device(model, in, out, nullptr);
    });
  };
  EXPECT_EXIT(lose(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hone::artifact
