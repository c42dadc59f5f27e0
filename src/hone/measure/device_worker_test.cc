// The worker with a device: OpenCL on the CPU by PoCL, and CUDA where there is a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "hone/backend/device_code.h"
#include "hone/base/child_processes_testing.h"
#include "hone/measure/device_candidate.h"
#include "hone/measure/runner_testing.h"
#include "hone/runtime/device/device.h"

namespace hone::measure {
namespace {

using runtime::CodeFormat;
using runtime::DeviceKind;
using trial::Outcome;

constexpr const char* kPocl = "Portable Computing Language";
constexpr int kThreads = 256;  // a block computes as many elements

// Kernels of one element a thread. PARAMS are those of test_job().
constexpr const char* kSource = R"(
#define KERNEL(name) kernel void name(global char* p0, ulong o0, global char* p1, ulong o1,    \
                                      global char* p2, ulong o2, global char* p3, ulong o3,    \
                                      long first_tile)
#define IN ((global float*)(p0 + o0))
#define OUT ((global float*)(p1 + o1))
#define PACKED ((global const float*)(p3 + o3))
#define I ((first_tile + get_group_id(0)) * get_local_size(0) + get_local_id(0))
KERNEL(twice) { OUT[I] = 2 * IN[I]; }
KERNEL(thrice) { OUT[I] = 3 * IN[I]; }
KERNEL(forgets_the_last) { if (I != 1023) OUT[I] = 2 * IN[I]; }
KERNEL(writes_behind) { OUT[I] = 2 * IN[I]; if (I == 0) OUT[1024] = 0; }
KERNEL(writes_before) { OUT[I] = 2 * IN[I]; if (I == 0) OUT[-1] = 0; }
KERNEL(changes_its_input) { const float x = IN[I]; OUT[I] = 2 * x; IN[I] = x + 1; }
KERNEL(times_packed) { OUT[I] = IN[I] * PACKED[I % 256]; }
KERNEL(far_away) { *(volatile global float*)(p1 + (1L << 46)) = 0; OUT[I] = 2 * IN[I]; }
KERNEL(hangs) { for (volatile int forever = 1; forever != 0;) {} OUT[I] = 2 * IN[I]; }
KERNEL(slow) {
  float x = IN[I];
  for (volatile int n = 0; n < 2000; ++n) {}
  OUT[I] = 2 * x;
}
KERNEL(large) {
  local float block[1 << 22];
  block[get_local_id(0)] = IN[I];
  barrier(CLK_LOCAL_MEM_FENCE);
  OUT[I] = 2 * block[get_local_id(0) ^ (first_tile > 1 ? 1 : 0)];
}
)";

constexpr const char* kPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 in, .param .u64 out, .param .u64 constant, .param .u64 packed,
                      .param .u64 first) {
  .reg .b32 %r<3>;
  .reg .b64 %d<8>;
  .reg .f32 %f<3>;
  ld.param.u64 %d1, [in];
  ld.param.u64 %d2, [out];
  ld.param.u64 %d3, [first];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  cvt.u64.u32 %d4, %r1;
  add.s64 %d4, %d4, %d3;
  shl.b64 %d4, %d4, 8;
  cvt.u64.u32 %d5, %r2;
  add.s64 %d4, %d4, %d5;
  shl.b64 %d4, %d4, 2;
  add.s64 %d6, %d1, %d4;
  add.s64 %d7, %d2, %d4;
  ld.global.f32 %f1, [%d6];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%d7], %f2;
  ret;
}
.visible .entry writes_to_null(.param .u64 in, .param .u64 out, .param .u64 constant,
                               .param .u64 packed, .param .u64 first) {
  .reg .b64 %d<2>;
  .reg .f32 %f<2>;
  mov.u64 %d1, 0;
  mov.f32 %f1, 0f00000000;
  st.global.f32 [%d1], %f1;
  ret;
}
.visible .entry hangs(.param .u64 in, .param .u64 out, .param .u64 constant, .param .u64 packed,
                      .param .u64 first) {
  .reg .b64 %d<2>;
  .reg .b32 %r<2>;
  .reg .pred %p<2>;
  ld.param.u64 %d1, [in];
again:
  ld.volatile.global.u32 %r1, [%d1];
  setp.ne.u32 %p1, %r1, 7;
  @%p1 bra again;
  ret;
}
)";

std::unique_ptr<Runner> pocl() {
  return local({.device = {.kind = DeviceKind::kOpenCl, .name = kPocl}});
}

Job device_job(const std::string& kernel, const std::shared_ptr<const Operands>& operands,
               uint64_t id = 1, CodeFormat format = CodeFormat::kOpenClSource,
               const char* source = kSource) {
  Job job = test_job(kernel, operands, id);
  const backend::DeviceCode code = {.format = format, .capability = 80, .data = source};
  job.executable = {};
  job.executable.kind = target::Kind::kGpu;
  job.executable.code = backend::encode_device_code({&code, 1});
  job.executable.entries = {{kernel, kTestTiles, false, kThreads, 0}};
  job.timeout_seconds = 60;  // PoCL compiles when a kernel first runs
  return job;
}

std::vector<Measurement> measure_all(Runner& runner, std::vector<Job> batch) {
  EXPECT_TRUE(runner.submit(std::move(batch)).ok());
  const auto all = runner.collect();
  EXPECT_TRUE(all.ok()) << all.status().message();
  return all.ok() ? *all : std::vector<Measurement>();
}

TEST(device_worker, runs_verifies_and_times_a_kernel) {
  const auto runner = pocl();
  ASSERT_NE(runner, nullptr);
  const auto operands = test_operands();
  for (const Weights weights : {Weights::kWarm, Weights::kShared, Weights::kMemory}) {
    Job job = device_job("twice", operands, 42);
    job.weights = weights;
    job.own_cache_bytes = 1 << 20;
    const Measurement m = measure_one(*runner, job);
    EXPECT_EQ(m.id, 42U);
    ASSERT_EQ(m.outcome, Outcome::kOk) << m.message;
    EXPECT_TRUE(m.verified);
    EXPECT_EQ(m.error, 0);
    EXPECT_GT(m.timing.centre, 0);
    EXPECT_GE(m.timing.samples.size(), 1U);
  }
}

TEST(device_worker, measures_the_devices_time_and_stops_early_if_slow) {
  const auto runner = pocl();
  ASSERT_NE(runner, nullptr);
  const auto operands = test_operands();
  const Measurement fast = measure_one(*runner, device_job("twice", operands));
  const Measurement slow = measure_one(*runner, device_job("slow", operands));
  ASSERT_EQ(slow.outcome, Outcome::kOk) << slow.message;
  EXPECT_GT(slow.timing.centre, 3 * fast.timing.centre);
  Job job = device_job("slow", operands);
  job.timing.best = slow.timing.centre / 100;
  const Measurement stopped = measure_one(*runner, job);
  EXPECT_TRUE(stopped.timing.stopped_early);
  EXPECT_LE(stopped.timing.runs, 2);
}

TEST(device_worker, a_duel_times_both_in_turns) {
  const auto runner = pocl();
  ASSERT_NE(runner, nullptr);
  const auto operands = test_operands();
  Job fast = device_job("twice", operands);
  fast.rival = std::make_shared<Job>(device_job("slow", operands));
  for (const bool swapped : {false, true}) {
    fast.swap_memory = swapped;
    const Measurement won = measure_one(*runner, fast);
    ASSERT_EQ(won.outcome, Outcome::kOk) << won.message;
    EXPECT_EQ(judge(won.duel), trial::Verdict::kFaster);
    EXPECT_EQ(won.timing.samples, won.duel.challenger);
  }
  // A rival's right answer does not hide a wrong one.
  Job wrong = device_job("thrice", operands);
  wrong.rival = std::make_shared<Job>(device_job("twice", operands));
  EXPECT_EQ(measure_one(*runner, wrong).outcome, Outcome::kWrongAnswer);
}

TEST(device_worker, constants_are_prepared_on_the_host) {
  const auto runner = pocl();
  ASSERT_NE(runner, nullptr);
  Job job = device_job("times_packed", test_operands());
  job.executable.prepare_code = test_object();
  job.executable.entries.insert(job.executable.entries.begin(), {"pack", 1, true});
  const Measurement m = measure_one(*runner, job);
  EXPECT_EQ(m.outcome, Outcome::kOk) << m.message;
  EXPECT_TRUE(m.verified);
  job.executable.prepare_code = {};
  EXPECT_EQ(measure_one(*runner, job).message,
            "there is no code for the host that prepares constants");
}

TEST(device_worker, wrong_answers_are_found) {
  const auto runner = pocl();
  ASSERT_NE(runner, nullptr);
  const auto operands = test_operands();
  for (const char* kernel : {"thrice", "forgets_the_last", "writes_behind", "writes_before"}) {
    const Measurement m = measure_one(*runner, device_job(kernel, operands));
    EXPECT_EQ(m.outcome, Outcome::kWrongAnswer) << kernel << ": " << m.message;
    EXPECT_FALSE(m.verified);
    EXPECT_EQ(measure_one(*runner, device_job("twice", operands)).outcome, Outcome::kOk) << kernel;
  }
  EXPECT_EQ(measure_one(*runner, device_job("writes_behind", operands)).message,
            "something was written outside a buffer");
}

TEST(device_worker, a_changed_input_is_uploaded_again) {
  const auto runner = pocl();
  ASSERT_NE(runner, nullptr);
  const auto operands = test_operands();
  EXPECT_EQ(measure_one(*runner, device_job("changes_its_input", operands)).outcome,
            Outcome::kWrongAnswer);
  const Measurement next = measure_one(*runner, device_job("twice", operands));
  EXPECT_EQ(next.outcome, Outcome::kOk) << next.message;
}

TEST(device_worker, says_what_cannot_be_loaded) {
  const auto runner = pocl();
  ASSERT_NE(runner, nullptr);
  const auto operands = test_operands();
  const auto outcome_of = [&](Job job, const char* message) {
    const Measurement m = measure_one(*runner, std::move(job));
    EXPECT_NE(m.message.find(message), std::string::npos) << m.message;
    return m.outcome;
  };
  const std::string broken = std::string(kSource) + "kernel void broken() { undeclared(); ";
  EXPECT_EQ(outcome_of(device_job("broken", operands, 1, CodeFormat::kOpenClSource, broken.c_str()),
                       "cannot be built"),
            Outcome::kCompile);
  Job wide = device_job("twice", operands);
  wide.executable.entries[0].threads = 1 << 20;
  EXPECT_EQ(outcome_of(wide, "blocks of 1048576 threads"), Outcome::kLoad);
  EXPECT_EQ(outcome_of(device_job("large", operands), "local memory"), Outcome::kLoad);
  EXPECT_EQ(outcome_of(device_job("nothing", operands), "no kernel nothing"), Outcome::kLoad);
  EXPECT_EQ(outcome_of(device_job("twice", operands, 1, CodeFormat::kPtx, kPtx), "does not run"),
            Outcome::kLoad);
  Job no_operand = device_job("twice", operands);
  no_operand.arguments[0].operand = 17;
  EXPECT_EQ(outcome_of(no_operand, "operand 17"), Outcome::kLoad);
  Job garbage = device_job("twice", operands);
  garbage.executable.code = std::string("garbage");
  EXPECT_EQ(outcome_of(garbage, "cut off"), Outcome::kLoad);
  Job huge = device_job("twice", operands);
  huge.arguments[3].bytes = int64_t{1} << 50;
  EXPECT_EQ(outcome_of(huge, ""), Outcome::kLoad);
  EXPECT_EQ(measure_one(*runner, device_job("twice", operands)).outcome, Outcome::kOk);
}

TEST(device_worker, a_crash_or_a_hang_costs_one_candidate) {
  const auto runner = pocl();
  ASSERT_NE(runner, nullptr);
  const auto operands = test_operands();
  Job hang = device_job("hangs", operands, 4);
  hang.timeout_seconds = 3;
  const auto all = measure_all(
      *runner, {device_job("twice", operands, 1), device_job("far_away", operands, 2),
                device_job("twice", operands, 3), hang, device_job("twice", operands, 5)});
  ASSERT_EQ(all.size(), 5U);
  const Outcome expected[] = {Outcome::kOk, Outcome::kCrash, Outcome::kOk, Outcome::kTimeout,
                              Outcome::kOk};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(all[i].outcome, expected[i]) << all[i].message;
  EXPECT_EQ(children_of(getpid()).size(), 1U);
}

TEST(device_worker, needs_a_device_for_code_of_a_gpu) {
  const auto runner = local();
  const Measurement m = measure_one(*runner, device_job("twice", test_operands()));
  EXPECT_EQ(m.outcome, Outcome::kLoad);
  EXPECT_EQ(m.message, "the worker has no device for this code");
  const auto none = make_local_runner({.device = {DeviceKind::kOpenCl, "no such device"}});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("named 'no such device'"), std::string::npos)
      << none.status().message();
}

// With the fake driver, the graphs that were launched are counted.
TEST(cuda_bench, times_runs_that_were_recorded) {
  char message[runtime::kDeviceErrorBytes];
  if (runtime::device_count(DeviceKind::kCuda, message) == 0)
    GTEST_SKIP() << "no device: " << message;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(driver, nullptr);
  const auto launches = reinterpret_cast<int (*)()>(dlsym(driver, "fake_graph_launches"));
  auto bench = DeviceBench::open(DeviceKind::kCuda, "");
  ASSERT_TRUE(bench.ok()) << bench.status().message();
  Job job = device_job("twice", test_operands(), 1, CodeFormat::kPtx, kPtx);
  for (Argument& argument : job.arguments)
    argument = {.role = ir::Role::kWorkspace, .bytes = 4096, .operand = -1};
  job.tolerance = 0;
  const Measurement warm = (*bench)->run(job, nullptr, nullptr);
  ASSERT_EQ(warm.outcome, Outcome::kOk) << warm.message;
  EXPECT_GT(warm.timing.centre, 0);
  ASSERT_GE(warm.timing.samples.size(), 5U);
  const auto least = static_cast<int>(warm.timing.samples.size());
  EXPECT_GE(launches == nullptr ? least : launches(), least);
  const int before = launches == nullptr ? 0 : launches();
  job.weights = Weights::kMemory;
  job.own_cache_bytes = 1 << 20;
  const Measurement cold = (*bench)->run(job, nullptr, nullptr);
  ASSERT_EQ(cold.outcome, Outcome::kOk) << cold.message;
  EXPECT_EQ(launches == nullptr ? 0 : launches(), before) << "its runs are not in a row";
}

TEST(device_worker, a_lost_gpu_costs_one_candidate) {
  char message[runtime::kDeviceErrorBytes];
  if (runtime::device_count(DeviceKind::kCuda, message) == 0)
    GTEST_SKIP() << "no device: " << message;
  const auto runner = local({.device = {.kind = DeviceKind::kCuda}});
  ASSERT_NE(runner, nullptr);
  const auto operands = test_operands();
  const auto job = [&](const char* kernel, uint64_t id) {
    Job made = device_job(kernel, operands, id, CodeFormat::kPtx, kPtx);
    made.timeout_seconds = 10;
    return made;
  };
  Job hang = job("hangs", 4), cold = job("twice", 6);
  hang.timeout_seconds = 3;
  cold.weights = Weights::kMemory, cold.own_cache_bytes = 64 << 20;
  const auto all = measure_all(*runner, {job("twice", 1), job("writes_to_null", 2), job("twice", 3),
                                         hang, job("twice", 5), cold});
  ASSERT_EQ(all.size(), 6U);
  const Outcome expected[] = {Outcome::kOk,      Outcome::kCrash, Outcome::kOk,
                              Outcome::kTimeout, Outcome::kOk,    Outcome::kOk};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(all[i].outcome, expected[i]) << all[i].message;
  EXPECT_NE(all[1].message.find("cannot use the device any more"), std::string::npos)
      << all[1].message;
  EXPECT_LT(all[0].timing.centre, 1e-4);
}

}  // namespace
}  // namespace hone::measure
