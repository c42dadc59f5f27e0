// The plan of a model for a device, and its check.
#include <gtest/gtest.h>

#include "hone/artifact/device_testing.h"
#include "hone/runtime/plan.h"

namespace hone::artifact {
namespace {

using runtime::DeviceKind;
using runtime::plan_check;
using runtime::plan_string;
using runtime::plan_table;
using runtime::PlanArgument;
using runtime::PlanHeader;
using runtime::PlanKernel;
using runtime::PlanModule;

const char* check(const std::string& bytes) { return plan_check(bytes.data(), bytes.size()); }

const PlanHeader& header_of(const std::string& bytes) {
  return *reinterpret_cast<const PlanHeader*>(bytes.data());
}

TEST(device_plan, is_checked_whole) {
  const Result<std::string> good = encode_plan(testing::device_spec(DeviceKind::kCuda, true, ""));
  ASSERT_TRUE(good.ok()) << good.status().message();
  const PlanHeader& header = header_of(*good);
  EXPECT_EQ(header.device, DeviceKind::kCuda);
  ASSERT_EQ(header.num_modules, 2U) << "the code of one executable is there once";
  const PlanKernel* kernels = plan_table<PlanKernel>(header, header.kernels);
  EXPECT_STREQ(plan_string(header, kernels[0].name), "scale");
  EXPECT_EQ(kernels[0].module, 0);
  EXPECT_EQ(kernels[0].threads, testing::kThreads);
  EXPECT_EQ(kernels[1].module, -1) << "test_pad runs on the host";
  EXPECT_EQ(kernels[2].module, 1);

  // Only the step of the host, the second one, works on copies.
  const PlanArgument* arguments = plan_table<PlanArgument>(header, header.arguments);
  const runtime::PlanStep* steps = plan_table<runtime::PlanStep>(header, header.steps);
  EXPECT_EQ(arguments[steps[0].first_argument].bytes, 0);
  EXPECT_EQ(arguments[steps[1].first_argument].bytes, 4000);
  EXPECT_EQ(arguments[steps[1].first_argument].written, 0);
  EXPECT_EQ(arguments[steps[1].first_argument + 1].bytes, 4008);
  EXPECT_EQ(arguments[steps[1].first_argument + 1].written, 1);

  const auto expect_refused = [&](auto change, const char* expected) {
    std::string bytes = *good;
    auto& plan = *reinterpret_cast<PlanHeader*>(bytes.data());
    change(plan);
    EXPECT_STREQ(check(bytes), expected);
  };
  const auto kernel = [](PlanHeader& plan) -> PlanKernel& {
    return const_cast<PlanKernel*>(plan_table<PlanKernel>(plan, plan.kernels))[0];
  };
  const auto argument = [](PlanHeader& plan) -> PlanArgument& {
    return const_cast<PlanArgument*>(plan_table<PlanArgument>(plan, plan.arguments))[0];
  };
  const char* bad_device = "the device of the plan is out of range";
  const char* bad_kernel = "a kernel of the plan is out of range";
  const char* bad_argument = "an argument of the plan is out of range";
  expect_refused([](PlanHeader& p) { p.device = static_cast<DeviceKind>(3); }, bad_device);
  expect_refused([](PlanHeader& p) { p.device = DeviceKind::kNone; }, bad_device);
  expect_refused([](PlanHeader& p) { p.device_name = p.total_bytes; }, bad_device);
  expect_refused([&](PlanHeader& p) { kernel(p).module = 2; }, bad_kernel);
  expect_refused([&](PlanHeader& p) { kernel(p).module = -2; }, bad_kernel);
  expect_refused([&](PlanHeader& p) { kernel(p).threads = 0; }, bad_kernel);
  expect_refused([&](PlanHeader& p) { kernel(p).shared_bytes = -1; }, bad_kernel);
  expect_refused([&](PlanHeader& p) { argument(p).bytes = 4001; }, bad_argument);
  expect_refused([&](PlanHeader& p) { argument(p).written = 2; }, bad_argument);
  expect_refused([](PlanHeader& p) { p.num_modules = 1 << 20; },
                 "a table of the plan is out of range");
  const auto module = [](PlanHeader& plan) -> PlanModule& {
    return const_cast<PlanModule*>(plan_table<PlanModule>(plan, plan.modules))[0];
  };
  expect_refused([&](PlanHeader& p) { module(p).bytes = p.total_bytes; },
                 "code of the plan is out of range");
  expect_refused([&](PlanHeader& p) { module(p).code += 8; }, "this is no code for devices");
}

TEST(device_plan, steps_of_the_device_have_few_arguments) {
  ArtifactSpec spec = testing::device_spec(DeviceKind::kCuda, true, "");
  const auto add_arguments = [&](ArtifactStep& step) {
    while (step.arguments.size() <= runtime::kMaxDeviceArguments)
      step.arguments.push_back(step.arguments[0]);
  };
  add_arguments(spec.steps[1]);
  Result<std::string> plan = encode_plan(spec);
  ASSERT_TRUE(plan.ok()) << "the step is the host's: " << plan.status().message();
  const PlanHeader& header = header_of(*plan);
  const_cast<runtime::PlanStep*>(plan_table<runtime::PlanStep>(header, header.steps))[1].kernel = 0;
  EXPECT_STREQ(check(*plan), "a step of the plan is out of range");
  add_arguments(spec.steps[0]);
  plan = encode_plan(spec);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().message(),
            "step scale has 129 arguments, on a device at most 128 are possible");
}

TEST(device_plan, needs_the_bytes_that_steps_of_the_host_touch) {
  ArtifactSpec spec = testing::device_spec(DeviceKind::kOpenCl, true, "");
  spec.steps[1].arguments[0].bytes = -1;
  const Result<std::string> plan = encode_plan(spec);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.status().message().find("step pad runs on the host, beside a device"),
            std::string::npos)
      << plan.status().message();
}

TEST(device_plan, check_survives_random_damage) {
  constexpr uint64_t kSeed = 8;
  const Result<std::string> plan = encode_plan(testing::device_spec(DeviceKind::kOpenCl, true, ""));
  ASSERT_TRUE(plan.ok());
  EXPECT_GT(testing::count_refused_damages(*plan, kSeed, plan_check), 5000) << "seed " << kSeed;
}

}  // namespace
}  // namespace hone::artifact
