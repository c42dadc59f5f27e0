// Filters: what passes a test goes side by side, by packing of lanes where the device can.
#include <gtest/gtest.h>

#include <algorithm>

#include "hone/backend/cpu/inner_loop_testing.h"
#include "hone/backend/cpu/test_support.h"

namespace hone::backend::cpu {
namespace {

using ir::constant;
using ir::Expr;
using ir::Stmt;
using ir::variable;

// y = the elements of x above 0 in their order, then zeros; z = their places, then their number.
// `feeds_back`: only what is above the element that passed last, which is no filter.
ir::Program positive(DType type, DType place, int64_t extent, bool feeds_back = false) {
  const auto x = ir::make_buffer("x", type, {extent});
  const auto y = ir::make_buffer("y", type, {extent});
  const auto z = ir::make_buffer("z", place, {extent + 1});
  const auto found = ir::make_buffer("found", type, {extent}, ir::Scope::kThread);
  const auto places = ir::make_buffer("places", place, {extent}, ir::Scope::kThread);
  const auto n = ir::make_buffer("n", DType::kI64, {}, ir::Scope::kStack);
  const auto i = ir::make_var("i"), o = ir::make_var("o");
  const Expr element = ir::load(x, {variable(i)}), count = ir::load(n, {}), to = variable(o);
  const Expr zero = ir::cast(type, constant(0)), none = ir::cast(place, constant(0));
  Expr passes = ir::less(zero, element);
  if (feeds_back) {
    const Expr last = ir::load(found, {ir::max(count - 1, constant(0))});
    passes = ir::select(ir::less(constant(0), count), ir::less(last, element), passes);
  }
  const Stmt filter =
      loop(i, extent, kVector,
           {ir::make_if(passes, {ir::make_store(found, {count}, element),
                                 ir::make_store(places, {count}, ir::cast(place, variable(i))),
                                 ir::make_store(n, {}, count + 1)})});
  const Expr exists = ir::less(to, count);
  const Stmt write =
      loop(o, extent, kSerial,
           {ir::make_store(y, {to}, ir::select(exists, ir::load(found, {to}), zero)),
            ir::make_store(z, {to}, ir::select(exists, ir::load(places, {to}), none))});
  Stmt body = ir::make_block({ir::make_store(n, {}, constant(0)), filter, write,
                              ir::make_store(z, {constant(extent)}, ir::cast(place, count))});
  for (const auto& buffer : {found, places, n}) body = ir::make_alloc(buffer, {body});
  return program_of({{x, ir::Role::kInput}, {y, ir::Role::kOutput}, {z, ir::Role::kOutput}}, body);
}

TEST(filter, gives_what_a_plain_loop_gives) {
  for (const DType type : {DType::kF32, DType::kI32, DType::kF64, DType::kI64}) {
    for (const DType place : {DType::kI32, DType::kI64}) {
      for (const int64_t extent : {1, 2, 5, 16, 37, 128, 200})
        EXPECT_EQ(compare_with_interpreter(positive(type, place, extent), 4, 0), "") << extent;
    }
  }
}

TEST(filter, of_small_or_dependent_elements_is_a_plain_loop) {
  EXPECT_EQ(compare_with_interpreter(positive(DType::kI8, DType::kI32, 40), 5, 0), "");
  EXPECT_EQ(compare_with_interpreter(positive(DType::kF32, DType::kI32, 40, true), 6, 0), "");
}

TEST(filter, packs_lanes_where_the_device_can) {
  const auto has = [](const char* instruction, const ir::Program& program, const char* device) {
    const InnerLoop loop = inner_loop_of(program, device);
    return std::any_of(loop.text.begin(), loop.text.end(), [&](const std::string& line) {
      return line.find(instruction) != std::string::npos;
    });
  };
  EXPECT_TRUE(has("compress", positive(DType::kF32, DType::kI32, 1024), "x86-64-avx512"));
  EXPECT_TRUE(has("vperm", positive(DType::kF32, DType::kI32, 1024), "x86-64-avx2"));
  EXPECT_TRUE(has("vperm", positive(DType::kF32, DType::kI64, 1024), "x86-64-avx2"));
  EXPECT_FALSE(has("compress", positive(DType::kF32, DType::kI32, 1024, true), "x86-64-avx512"));
  EXPECT_FALSE(has("vperm", positive(DType::kF32, DType::kI32, 1024, true), "x86-64-avx2"));
}

}  // namespace
}  // namespace hone::backend::cpu
