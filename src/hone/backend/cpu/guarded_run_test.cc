#include <gtest/gtest.h>

#include "hone/backend/cpu/guarded_run_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

const ir::BufferPtr kX = ir::make_buffer("x", DType::kF32, {37});
const ir::BufferPtr kY = ir::make_buffer("y", DType::kF32, {37});

// to[i + store_at] = from[i + load_at] + 1 for the 37 elements, in parallel.
ir::Program shifted(const ir::BufferPtr& to, int64_t store_at, const ir::BufferPtr& from,
                    int64_t load_at) {
  const auto i = ir::make_var("i");
  return program_of(
      {{kX, ir::Role::kInput}, {kY, ir::Role::kOutput}},
      loop(i, 37, ir::ForKind::kParallel,
           {ir::make_store(to, {ir::variable(i) + store_at},
                           ir::load(from, {ir::variable(i) + load_at}) + ir::constant_float(1))}));
}

std::string run(const ir::Program& program, int64_t alignment, std::vector<Tensor>& args) {
  args = {Tensor(DType::kF32, {37}), Tensor(DType::kF32, {37})};
  for (int64_t i = 0; i < 37; ++i) args[0].set(i, static_cast<double>(i));
  const auto code = compile(program, target::host().cpu(), {.argument_alignment = alignment});
  EXPECT_TRUE(code.ok()) << code.status().message();
  return run_guarded(program, *code, args, {.alignment = alignment}).message();
}

// Expects the error of a wrong program to contain this part.
void expect_error(const ir::Program& program, int64_t alignment, const std::string& part) {
  std::vector<Tensor> args;
  const std::string message = run(program, alignment, args);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(guarded_run, a_right_kernel_gives_its_results) {
  for (const int64_t alignment : {4, 64}) {
    std::vector<Tensor> args;
    ASSERT_EQ(run(shifted(kY, 0, kX, 0), alignment, args), "");
    for (int64_t i = 0; i < 37; ++i) EXPECT_EQ(args[1].at(i), static_cast<double>(i + 1));
  }
}

TEST(guarded_run, any_number_of_threads_has_scratch_memory) {
  const ir::BufferPtr twice = ir::make_buffer("twice", DType::kF32, {3000}, ir::Scope::kThread);
  const auto i = ir::make_var("i");
  const ir::Program program = program_of(
      {{kX, ir::Role::kInput}, {kY, ir::Role::kOutput}},
      loop(i, 37, ir::ForKind::kParallel,
           {ir::make_alloc(
               twice,
               {ir::make_store(twice, {ir::variable(i) * 81}, ir::load(kX, {ir::variable(i)}) * 2),
                ir::make_store(kY, {ir::variable(i)}, ir::load(twice, {ir::variable(i) * 81}))})}));
  const auto code = compile(program, target::host().cpu());
  ASSERT_TRUE(code.ok()) << code.status().message();
  for (const int threads : {1, 3, 7, 64}) {
    std::vector<Tensor> args = {Tensor(DType::kF32, {37}), Tensor(DType::kF32, {37})};
    for (int64_t k = 0; k < 37; ++k) args[0].set(k, static_cast<double>(k));
    ASSERT_EQ(run_guarded(program, *code, args, {.threads = threads}).message(), "");
    for (int64_t k = 0; k < 37; ++k) EXPECT_EQ(args[1].at(k), static_cast<double>(2 * k));
  }
}

TEST(guarded_run, a_load_outside_of_a_buffer_is_named) {
  expect_error(shifted(kY, 0, kX, 1), 4, "0 bytes behind the end of x");
  expect_error(shifted(kY, 0, kX, -1), 64, "4 bytes before x");
}

TEST(guarded_run, a_load_short_of_the_page_behind_shows_if_it_is_used) {
  std::vector<Tensor> args;
  ASSERT_EQ(run(shifted(kY, 0, kX, 1), 64, args), "");
  EXPECT_GT(args[1].at(36), 1e38);
}

TEST(guarded_run, a_store_outside_of_a_buffer_is_named) {
  expect_error(shifted(kY, 1, kX, 0), 4, "something was written next to y");
  expect_error(shifted(kY, -1, kX, 0), 64, "4 bytes before y");
}

TEST(guarded_run, an_input_cannot_be_written) {
  expect_error(shifted(kX, 0, kY, 0), 64, "by a store at byte 0 of read-only x");
}

TEST(guarded_run, tiles_that_need_each_other_are_found) {
  const auto i = ir::make_var("i");
  const ir::Expr before = ir::load(kY, {ir::max(ir::variable(i) - 1, ir::constant(0))});
  const ir::Program program = program_of(
      {{kX, ir::Role::kInput}, {kY, ir::Role::kOutput}},
      loop(i, 37, ir::ForKind::kParallel,
           {ir::make_store(kY, {ir::variable(i)},
                           ir::select(ir::less(ir::variable(i), ir::constant(1)),
                                      ir::constant_float(0), before + ir::constant_float(1)))}));
  expect_error(program, 64, "y differs from the first run");
}

}  // namespace
}  // namespace hone::backend::cpu
