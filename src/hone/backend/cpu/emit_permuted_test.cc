// Loads at any place of a row of few registers: permutations instead of gathers.
#include <gtest/gtest.h>

#include <algorithm>

#include "hone/backend/cpu/inner_loop_testing.h"
#include "hone/backend/cpu/test_support.h"

namespace hone::backend::cpu {
namespace {

using ir::Expr;
using ir::variable;

// y[i] = row[at[i] % size] for each extent of y, where the row is a copy of x on the stack.
ir::Program pick(DType type, int64_t size, const std::vector<int64_t>& extents) {
  const auto x = ir::make_buffer("x", type, {size});
  const auto row = ir::make_buffer("row", type, {size}, ir::Scope::kStack);
  const auto j = ir::make_var("j");
  std::vector<ir::Param> params = {{x, ir::Role::kInput}};
  std::vector<ir::Stmt> loops = {
      loop(j, size, kVector, {ir::make_store(row, {variable(j)}, ir::load(x, {variable(j)}))})};
  for (const int64_t extent : extents) {
    const auto at = ir::make_buffer("at", DType::kI32, {extent});
    const auto y = ir::make_buffer("y", type, {extent});
    const auto i = ir::make_var("i");
    const Expr place = ir::floormod(ir::cast(DType::kI64, ir::load(at, {variable(i)})), size);
    params.push_back({at, ir::Role::kInput});
    params.push_back({y, ir::Role::kOutput});
    loops.push_back(
        loop(i, extent, kVector, {ir::make_store(y, {variable(i)}, ir::load(row, {place}))}));
  }
  return program_of(params, ir::make_alloc(row, loops));
}

TEST(load_permuted, gives_the_elements) {
  for (const DType type : {DType::kF32, DType::kI32, DType::kF64, DType::kI64, DType::kI8}) {
    for (const int64_t size : {1, 3, 4, 8, 13, 16, 24, 32, 33, 64})
      EXPECT_EQ(compare_with_interpreter(pick(type, size, {1, 7, 16, 40}), 8, 0), "") << size;
  }
}

TEST(load_permuted, takes_no_gather) {
  const auto has = [](const ir::Program& program, const char* device, const char* what) {
    const InnerLoop loop = inner_loop_of(program, device);
    return std::any_of(loop.text.begin(), loop.text.end(), [&](const std::string& line) {
      return line.find(what) != std::string::npos;
    });
  };
  for (const char* device : {"x86-64-avx512", "x86-64-avx2"}) {
    EXPECT_TRUE(has(pick(DType::kF32, 32, {4096}), device, "vperm")) << device;
    EXPECT_FALSE(has(pick(DType::kF32, 32, {4096}), device, "gather")) << device;
  }
  EXPECT_TRUE(has(pick(DType::kF32, 33, {4096}), "x86-64-avx512", "gather"));
}

// y[g * size + i] = x[g * size + k], summed over k: each group of `size` lanes reads an element.
ir::Program broadcast_in_groups(DType type, int64_t groups, int64_t size) {
  const auto x = ir::make_buffer("x", type, {groups * size});
  const auto y = ir::make_buffer("y", type, {groups * size});
  const auto block = ir::make_var("block"), lane = ir::make_var("lane"), k = ir::make_var("k");
  constexpr int64_t kLanes = 16;
  const Expr group = variable(block) * (kLanes / size) + ir::floordiv(variable(lane), size);
  const Expr at = variable(block) * kLanes + variable(lane);
  return program_of(
      {{x, ir::Role::kInput}, {y, ir::Role::kOutput}},
      loop(block, groups * size / kLanes, kSerial,
           {loop(lane, kLanes, kVector, {ir::make_store(y, {at}, ir::cast(type, ir::constant(0)))}),
            loop(k, size, kSerial,
                 {loop(lane, kLanes, kVector,
                       {ir::make_store(
                           y, {at},
                           ir::load(y, {at}) + ir::load(x, {group * size + variable(k)}))})})}));
}

TEST(load_permuted, takes_elements_of_one_vector_of_memory) {
  for (const DType type : {DType::kF32, DType::kI32, DType::kF64, DType::kI8}) {
    for (const int64_t size : {1, 2, 4, 8, 16})
      EXPECT_EQ(compare_with_interpreter(broadcast_in_groups(type, 96 / size, size), 8, 0), "")
          << size;
  }
  for (const char* device : {"x86-64-avx512", "x86-64-avx2"}) {
    const InnerLoop inner = inner_loop_of(broadcast_in_groups(DType::kF32, 24, 4), device);
    const auto has = [&](const char* what) {
      return std::any_of(inner.text.begin(), inner.text.end(), [&](const std::string& line) {
        return line.find(what) != std::string::npos;
      });
    };
    EXPECT_TRUE(has("perm")) << device;
    EXPECT_FALSE(has("gather")) << device;
  }
}

}  // namespace
}  // namespace hone::backend::cpu
