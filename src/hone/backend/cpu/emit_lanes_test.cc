// Tests what vector code does beyond a plain loop: square blocks transposed in registers, functions
// computed ahead of their loop, borders read from memory that holds their constant.
#include <gtest/gtest.h>

#include <algorithm>

#include "hone/backend/cpu/inner_loop_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/ir/parser.h"

namespace hone::backend::cpu {
namespace {

using ir::constant;
using ir::constant_float;
using ir::Expr;
using ir::ForKind;
using ir::Op;
using ir::variable;

// y[j, i] = 2 x[i, j] in tiles of n x n: the rows unrolled, the lanes along x's.
ir::Program turned(DType type, int64_t rows, int64_t columns, int64_t n) {
  const auto x = ir::make_buffer("x", type, {rows, columns});
  const auto y = ir::make_buffer("y", type, {columns, rows});
  const auto io = ir::make_var("io"), jo = ir::make_var("jo"), i = ir::make_var("i"),
             j = ir::make_var("j");
  const Expr row = variable(io) * constant(n) + variable(i);
  const Expr column = variable(jo) * constant(n) + variable(j);
  const Expr element = ir::load(x, {row, column});
  return program_of(
      {{x, ir::Role::kInput}, {y, ir::Role::kOutput}},
      loop(io, rows / n, kSerial,
           {loop(jo, columns / n, kSerial,
                 {loop(i, n, ForKind::kUnrolled,
                       {loop(j, n, kVector,
                             {ir::make_store(y, {column, row}, element + element)})})})}));
}

TEST(emit_transposed, gives_what_stores_lane_by_lane_give) {
  for (const DType type : {DType::kF32, DType::kI32, DType::kF64, DType::kF16}) {
    for (const int64_t n : {4, 8, 16})
      EXPECT_EQ(compare_with_interpreter(turned(type, 2 * n, 3 * n, n), 3, 0), "") << n;
  }
}

TEST(emit_transposed, stores_whole_vectors) {
  const struct {
    const char* device;
    int n, shuffles;
  } cases[] = {{"x86-64-avx512", 16, 64}, {"x86-64-avx2", 8, 24}};
  for (const auto& c : cases) {
    const InnerLoop loop = inner_loop_of(turned(DType::kF32, 64, 64, c.n), c.device);
    EXPECT_EQ(loop.mix.store - loop.spills / 2, c.n) << c.device;
    EXPECT_LE(loop.mix.shuffle, c.shuffles) << c.device;
    EXPECT_GE(loop.mix.shuffle, c.shuffles / 2) << c.device;
  }
}

// y[i, :] = x[i, :] / sqrt(v[i]^2 + 1) where rows are long enough to be loops.
ir::Program scaled_rows(int64_t rows) {
  const int64_t length = 400;
  const auto x = ir::make_buffer("x", DType::kF32, {rows, length});
  const auto v = ir::make_buffer("v", DType::kF32, {rows});
  const auto y = ir::make_buffer("y", DType::kF32, {rows, length});
  const auto i = ir::make_var("i"), j = ir::make_var("j");
  const Expr of_row = ir::load(v, {variable(i)});
  const Expr scale = constant_float(1) / ir::make(Op::kSqrt, {of_row * of_row + constant_float(1)});
  return program_of(
      {{x, ir::Role::kInput}, {v, ir::Role::kInput}, {y, ir::Role::kOutput}},
      loop(i, rows, kSerial,
           {loop(j, length, kVector,
                 {ir::make_store(y, {variable(i), variable(j)},
                                 ir::load(x, {variable(i), variable(j)}) * scale)})}));
}

TEST(emit_vectorized, computes_the_rows_root_once) {
  EXPECT_EQ(compare_with_interpreter(scaled_rows(3), 5), "");
  const InnerLoop loop = inner_loop_of(scaled_rows(1), "x86-64-avx512");
  EXPECT_TRUE(loop.is_loop);
  for (const std::string& line : loop.text) {
    EXPECT_EQ(line.find("sqrt"), std::string::npos) << line;
    EXPECT_EQ(line.find("div"), std::string::npos) << line;
  }
}

// y[i, :first + i * step] = 2 x, and z[i] += the sum of x^2 there: extents that only run time
// knows.
ir::Program ragged(int64_t rows, int64_t first, int64_t step, bool sums) {
  const int64_t length = first + rows * step;
  const auto x = ir::make_buffer("x", DType::kF32, {rows, length});
  const auto y = ir::make_buffer("y", DType::kF32, {rows, length});
  const auto z = ir::make_buffer("z", DType::kF32, {rows});
  const auto i = ir::make_var("i"), j = ir::make_var("j");
  const std::vector<Expr> at = {variable(i), variable(j)};
  const Expr element = ir::load(x, at), sum = ir::load(z, {variable(i)});
  const ir::Stmt store = sums ? ir::make_store(z, {variable(i)}, sum + element * element)
                              : ir::make_store(y, at, element + element);
  return program_of(
      {{x, ir::Role::kInput}, {sums ? z : y, ir::Role::kOutput}},
      loop(i, rows, kSerial,
           {ir::make_store(sums ? z : y,
                           sums ? std::vector{variable(i)} : std::vector{variable(i), constant(0)},
                           constant_float(0)),
            ir::make_for(j, constant(0), variable(i) * constant(step) + constant(first), kVector,
                         {store})}));
}

TEST(emit_whole_vectors, gives_what_a_plain_loop_gives) {
  // The first rows may be empty; steps are many vectors, one, or none that fits a vector.
  for (const bool sums : {false, true}) {
    for (const int64_t first : {0, 16, 48}) {
      for (const int64_t step : {1, 4, 16, 32, 64, 128})
        EXPECT_EQ(compare_with_interpreter(ragged(5, first, step, sums), 8), "")
            << first << " " << step << " " << sums;
    }
  }
}

TEST(emit_whole_vectors, works_in_vectors_where_all_are_whole) {
  const auto bits = [](int64_t first, int64_t step, const char* device) {
    return inner_loop_of(ragged(5, first, step, false), device).vector_bits;
  };
  EXPECT_EQ(bits(0, 16, "x86-64-avx512"), 512);
  EXPECT_EQ(bits(48, 32, "x86-64-avx512"), 512);
  EXPECT_EQ(bits(0, 8, "x86-64-avx2"), 256);
  EXPECT_EQ(bits(0, 8, "x86-64-avx512"), 128);  // half a vector more each time: one by one
  EXPECT_EQ(bits(4, 16, "x86-64-avx512"), 128);
  EXPECT_EQ(bits(4, 16, "x86-64-avx2"), 128);
}

// The number of registers divides every extent, so that no sum waits for the one before.
TEST(emit_whole_vectors, sums_up_in_several_registers) {
  const auto sums = [](int64_t step) {
    return inner_loop_of(ragged(5, 0, step, true), "x86-64-avx512").mix.fma;
  };
  EXPECT_EQ(sums(16), 1);
  EXPECT_EQ(sums(32), 2);
  EXPECT_EQ(sums(64), 4);
  EXPECT_EQ(sums(48), 1);
}

// Elements of an array of registers have no address: the lane must be known.
TEST(emit_whole_vectors, leaves_registers_to_the_plain_loop) {
  const auto x = ir::make_buffer("x", DType::kF32, {3, 32});
  const auto y = ir::make_buffer("y", DType::kF32, {3});
  const auto kept = ir::make_buffer("kept", DType::kF32, {32}, ir::Scope::kRegister);
  const auto i = ir::make_var("i"), j = ir::make_var("j"), j0 = ir::make_var("j0");
  const ir::Program program = program_of(
      {{x, ir::Role::kInput}, {y, ir::Role::kOutput}},
      loop(i, 3, kSerial,
           {ir::make_alloc(
               kept,
               {loop(j0, 32, kVector,
                     {ir::make_store(kept, {variable(j0)},
                                     ir::load(x, {variable(i), variable(j0)}))}),
                ir::make_for(j, constant(0), variable(i) * constant(16), kVector,
                             {ir::make_store(kept, {variable(j)}, constant_float(2))}),
                ir::make_store(y, {variable(i)},
                               ir::load(kept, {constant(0)}) + ir::load(kept, {constant(31)}))})}));
  EXPECT_EQ(compare_with_interpreter(program, 9), "");
}

// In place, x[0] changes what the next iterations divide by.
TEST(emit_vectorized, what_the_loop_writes_is_not_computed_ahead) {
  const int64_t length = 400;
  const auto x = ir::make_buffer("x", DType::kF32, {length});
  const auto y = ir::make_buffer("y", DType::kF32, {length});
  const auto z = ir::make_buffer("z", DType::kF32, {1});
  const auto j = ir::make_var("j");
  const Expr at = variable(j);
  const ir::Program program = program_of(
      {{x, ir::Role::kInput}, {y, ir::Role::kOutput}, {z, ir::Role::kOutput}},
      loop(j, length, kVector,
           {ir::make_store(z, {constant(0)}, ir::load(x, {at})),
            ir::make_store(y, {at},
                           constant_float(1) / (constant_float(4) + ir::load(z, {constant(0)})))}));
  EXPECT_EQ(compare_with_interpreter(program, 6), "");
}

// The largest of three neighbours, with borders that hold another number.
ir::Program window(double border) {
  const int64_t rows = 9, length = 40;
  const auto x = ir::make_buffer("x", DType::kF32, {rows, length});
  const auto y = ir::make_buffer("y", DType::kF32, {rows, length});
  const auto i = ir::make_var("i"), k = ir::make_var("k"), j = ir::make_var("j"),
             j0 = ir::make_var("j0");
  const Expr from = variable(i) + variable(k) - constant(1);
  const Expr inside =
      ir::logical_and(ir::less_equal(constant(0), from), ir::less(from, constant(rows)));
  const Expr element = ir::select(inside, ir::load(x, {from, variable(j)}), constant_float(border));
  const Expr sum = ir::load(y, {variable(i), variable(j)});
  return program_of(
      {{x, ir::Role::kInput}, {y, ir::Role::kOutput}},
      loop(i, rows, kSerial,
           {loop(j0, length, kVector,
                 {ir::make_store(y, {variable(i), variable(j0)}, constant_float(-8))}),
            loop(k, 3, kSerial,
                 {loop(j, length, kVector,
                       {ir::make_store(y, {variable(i), variable(j)}, ir::max(sum, element))})})}));
}

TEST(select_of_a_load, reads_the_border_from_memory) {
  for (const double border : {0.0, -0.5, 3.0, -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(compare_with_interpreter(window(border), 7, 0), "") << border;
    for (const std::string& line : inner_loop_of(window(border), "x86-64-avx512").text) {
      EXPECT_EQ(line.find("blend"), std::string::npos) << line;
      EXPECT_EQ(line.find("kmov"), std::string::npos) << line;
    }
  }
}

// place[i] = the last r of a column's rows whose element is greater than the one before.
ir::Program last_rise(int64_t rows) {
  const Result<ir::Program> program = ir::parse_program(fmt::format(
      R"(program last_rise {{
  input x: f32[{0}, 64]
  output y: i32[64]
  phase {{
    alloc register place: i32[64] {{
      unrolled u in 0..4 {{ vectorized v in 0..16 {{ place[u * 16 + v] = 0:i32 }} }}
      for r in 1..{0} {{
        unrolled u in 0..4 {{
          vectorized v in 0..16 {{
            place[u * 16 + v] = select(x[r - 1, u * 16 + v] < x[r, u * 16 + v], i32(r), place[u * 16 + v])
          }}
        }}
      }}
      unrolled u in 0..4 {{ vectorized v in 0..16 {{ y[u * 16 + v] = place[u * 16 + v] }} }}
    }}
  }}
}})",
      rows));
  EXPECT_TRUE(program.ok()) << program.status().message();
  return program.ok() ? *program : ir::Program();
}

// A loop's number that lanes choose is counted in a vector of its own.
TEST(emit_lanes, numbers_of_a_loop_are_not_broadcast_for_each_vector) {
  EXPECT_EQ(compare_with_interpreter(last_rise(7), 3, 0), "");
  for (const char* device : {"x86-64-avx512", "x86-64-avx2"}) {
    const InnerLoop loop = inner_loop_of(last_rise(50), device);
    EXPECT_TRUE(loop.is_loop);
    EXPECT_EQ(loop.mix.broadcast, 0) << device;
  }
}

}  // namespace
}  // namespace hone::backend::cpu
