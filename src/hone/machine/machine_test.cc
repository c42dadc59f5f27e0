#include "hone/machine/machine.h"

#include <gtest/gtest.h>

#include <thread>

#include "hone/machine/local.h"
#include "hone/machine/null.h"

namespace hone::machine {
namespace {

TEST(Machine, host_is_the_machine_and_other_names_are_descriptions) {
  target::Target target = target::host();
  target.cpu().cores = 1;
  target.cpu().caches[0].bytes = 1 << 14;
  const LocalMachine machine(target);
  EXPECT_EQ(target::device_key(machine.find("host").value()), target::device_key(target));
  EXPECT_NE(target::device_key(target), target::device_key(target::host()));
  EXPECT_EQ(machine.find("aarch64-neon").value().name, "aarch64-neon");
  EXPECT_EQ(machine.find("nothing").status().code(), Code::kNotFound);
  for (const char* device : {"host", "host-avx2", "x86-64-avx2", "x86-64-avx512", "aarch64-neon"}) {
    const std::string name = device;
    const target::Target found = machine.find(name).value();
    EXPECT_EQ(machine.runs(found), name.starts_with("host")) << name;
    EXPECT_EQ(machine.find_measurable(name).ok(), machine.runs(found)) << name;
    EXPECT_TRUE(found.cpu().cores == 1 || !name.starts_with("host")) << name;
  }
}

TEST(Machine, a_gpu_runs_what_is_for_it_and_nothing_else) {
  const target::Target pocl = local().find("opencl-pocl").value();
  EXPECT_EQ(pocl.gpu().sms, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_TRUE(local().runs(pocl));
  EXPECT_TRUE(local().find_measurable("opencl-pocl").ok());
  EXPECT_EQ(host_cores(pocl), target::host().cpu().cores);
  target::Target other = pocl;
  other.gpu().sms += 1;
  EXPECT_FALSE(local().runs(other));
  const NullMachine gpu(other, [](const measure::Job&) { return 2e-3; });
  EXPECT_TRUE(gpu.runs(other));
  EXPECT_FALSE(gpu.runs(pocl));
  EXPECT_FALSE(gpu.runs(target::host()));
  EXPECT_EQ(gpu.find("host").value().gpu().sms, other.gpu().sms);
  EXPECT_TRUE(gpu.find_measurable("host").ok());
  EXPECT_EQ(gpu.find_measurable("opencl-pocl").status().message(),
            "device opencl-pocl cannot be measured here, only compiled for: this machine has no "
            "GPU");
}

TEST(Machine, a_gpu_that_is_not_here_is_compiled_for_only) {
  const target::Target found = local().find("cuda-sm_120").value();
  const Status status = local().find_measurable("cuda-sm_120").status();
  EXPECT_EQ(status.ok(), local().runs(found));
  if (local().runs(found)) GTEST_SKIP() << "it is here";
  EXPECT_TRUE(status.message().starts_with(
      "device cuda-sm_120 cannot be measured here, only compiled for: "))
      << status.message();
}

TEST(Machine, the_runner_of_a_gpu_has_measured_a_kernel_there) {
  const target::Target pocl = local().find("opencl-pocl").value();
  const auto runner = local().make_runner({}, pocl);
  EXPECT_TRUE(runner.ok()) << runner.status().message();
}

TEST(Machine, code_for_more_instructions_than_a_machine_has_does_not_run_there) {
  target::Target small = target::host();
  ASSERT_FALSE(small.cpu().features.empty());
  std::erase_if(small.cpu().features, [](const std::string& feature) { return feature[0] == '+'; });
  const LocalMachine machine(small);
  EXPECT_TRUE(machine.runs(small));
  EXPECT_FALSE(machine.runs(target::host()));
}

TEST(Machine, the_local_machine_is_the_host_and_measures_it) {
  EXPECT_EQ(target::device_key(local().target()), target::device_key(target::host()));
  const auto sample = local().conditions().load()();
  ASSERT_TRUE(sample.has_value());
  EXPECT_GT(sample->cpu.total, 0);
  EXPECT_FALSE(local().conditions().core_look(1));  // one thread always has a core
}

TEST(Machine, a_null_machine_says_what_a_function_says_and_runs_no_model) {
  const NullMachine machine(target::host(), [](const measure::Job&) { return 2e-3; });
  const auto runner = machine.make_runner({}, machine.target()).value();
  std::vector<measure::Job> batch(2);
  ASSERT_TRUE(runner->submit(std::move(batch)).ok());
  const std::vector<measure::Measurement> answers = runner->collect().value();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[1].timing.centre, 2e-3);
  EXPECT_EQ(machine.models().time_in_turns({"a.so"}, 1, 1).status().code(), Code::kUnsupported);
  EXPECT_EQ(machine.models().load({}, 1).status().code(), Code::kUnsupported);
  EXPECT_EQ(machine.conditions().roofline(machine.target(), {}).status().code(),
            Code::kUnsupported);
  EXPECT_FALSE(machine.conditions().load()().has_value());
  EXPECT_TRUE(machine.conditions().stays_in_cache(1));
}

}  // namespace
}  // namespace hone::machine
