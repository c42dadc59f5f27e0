// measure/test_job.h - jobs with the kernels of test_kernels.cc, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "hone/base/file_testing.h"
#include "hone/measure/job.h"

namespace hone::measure {

inline constexpr int64_t kTestTiles = 4, kTestFloats = kTestTiles * 256;

inline const std::string& test_object() {
  static const std::string bytes = [] {
    std::ifstream file(test_file(HONE_TEST_KERNELS), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return bytes;
}

// Makes operands: the input is 1, 2, 3, ..., the output must be twice that, and the constant is
// ones.
inline std::shared_ptr<const Operands> test_operands(int64_t constant_floats = kTestFloats,
                                                     bool sparse = false) {
  std::vector<float> in(kTestFloats), ones(static_cast<size_t>(constant_floats), 1.0F);
  Expected expected{.operand = 1};
  for (int64_t i = 0; i < kTestFloats; ++i) {
    in[static_cast<size_t>(i)] = static_cast<float>(i + 1);
    if (sparse && i % 7 != 0 && i != kTestFloats - 1) continue;
    if (sparse) expected.places.push_back(i);
    expected.values.push_back(2.0 * static_cast<double>(i + 1));
  }
  const OperandSpec specs[] = {{ir::Role::kInput, kTestFloats * 4, in.data()},
                               {ir::Role::kOutput, kTestFloats * 4, nullptr},
                               {ir::Role::kConstant, constant_floats * 4, ones.data()}};
  auto operands = Operands::create(specs, std::vector{expected});
  EXPECT_TRUE(operands.ok()) << operands.status().message();
  return *operands;
}

inline Job test_job(const std::string& kernel, const std::shared_ptr<const Operands>& operands,
                    uint64_t id = 1) {
  Job job;
  job.id = id;
  job.executable.code = test_object();
  job.executable.entries = {{kernel, kTestTiles, false}};
  job.executable.scratch_bytes = 1024;
  job.arguments = {{ir::Role::kInput, kTestFloats * 4, 0},
                   {ir::Role::kOutput, kTestFloats * 4, 1},
                   {ir::Role::kConstant, operands->layout().entries[2].bytes, 2},
                   {ir::Role::kPacked, 1024, -1}};
  job.operands = operands;
  job.tolerance = 1e-6;
  job.timing.max_seconds = 0.02;
  job.timeout_seconds = 5;
  return job;
}

}  // namespace hone::measure
