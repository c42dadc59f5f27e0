// backend/cpu/inner_loop_testing.h - returns the inner loop of a program, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "hone/backend/cpu/inner_loop.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {

// Compiles a program of one phase for a device. Any error fails the test.
inline InnerLoop inner_loop_of(const ir::Program& program, const std::string& device) {
  const target::Target target = *target::find(device);
  const auto code = compile(program, target.cpu());
  EXPECT_TRUE(code.ok()) << code.status().message();
  if (!code.ok()) return {};
  const auto loops = inner_loops(code->object, code->phases, target.cpu());
  EXPECT_TRUE(loops.ok()) << loops.status().message();
  if (!loops.ok() || loops->size() != 1) return {};
  return loops->front();
}

}  // namespace hone::backend::cpu
