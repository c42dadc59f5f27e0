#include "hone/backend/gpu/matrix_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "hone/backend/gpu/warp_lanes.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/pass_testing.h"
#include "hone/ir/printer.h"
#include "hone/ir/simplify.h"
#include "hone/ir/verifier.h"

// The layouts of matrix instructions against the tables of the PTX ISA, and products by an
// emulation of the instructions that follows these tables.

namespace hone::backend::gpu {
namespace {

struct At {
  int64_t row, column;
  bool operator==(const At&) const = default;
};
At at(const MatrixPlace& place) {
  const ir::Ranges none;
  return {ir::simplify(place.row, none)->int_value, ir::simplify(place.column, none)->int_value};
}
ir::Expr lane_of(int lane) { return ir::constant(lane); }

// ---- the tables: "Matrix Fragments for mma.m16n8k16 with floating point type", "... mma.m16n8k8"
At ptx_a(DType type, int lane, int i) {
  const int group = lane >> 2, thread = lane % 4;
  if (type == DType::kF32)
    return {i == 0 || i == 2 ? group : group + 8, i < 2 ? thread : thread + 4};
  return {i < 2 || (i >= 4 && i < 6) ? group : group + 8, thread * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
At ptx_b(DType type, int lane, int i) {
  const int group = lane >> 2, thread = lane % 4;
  if (type == DType::kF32) return {i == 0 ? thread : thread + 4, group};
  return {thread * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
}
At ptx_d(int lane, int i) { return {(lane >> 2) + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)}; }

constexpr DType kTypes[] = {DType::kF32, DType::kF16};
int numbers_of_a(DType type) { return type == DType::kF32 ? 4 : 8; }
int numbers_of_b(DType type) { return type == DType::kF32 ? 2 : 4; }

TEST(matrix_layout, is_that_of_the_tables) {
  for (int lane = 0; lane < 32; ++lane) {
    for (const DType type : kTypes) {
      for (int i = 0; i < numbers_of_a(type); ++i)
        EXPECT_EQ(at(a_place(type, i, lane_of(lane))), ptx_a(type, lane, i)) << lane << " " << i;
      for (int i = 0; i < numbers_of_b(type); ++i)
        EXPECT_EQ(at(b_place(type, i, lane_of(lane))), ptx_b(type, lane, i)) << lane << " " << i;
    }
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(at(d_place(i, lane_of(lane))), ptx_d(lane, i)) << lane << " " << i;
  }
}

TEST(matrix_layout, lanes_own_each_element_of_a_fragment_once) {
  constexpr int kRows = 32, kColumns = 24;
  std::array<int, kRows* kColumns> owners = {};
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < kRows / 8; ++r) {
      for (int c = 0; c < kColumns / 4; ++c) {
        const At place =
            at({row_of(ir::constant(r), lane_of(lane)), column_of(ir::constant(c), lane_of(lane))});
        ++owners.at(static_cast<size_t>(place.row * kColumns + place.column));
      }
    }
  }
  for (const int n : owners) EXPECT_EQ(n, 1);
}

// ldmatrix: lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i; register i of a lane
// has two elements of that matrix, as PTX's figure of ldmatrix shows.
TEST(matrix_layout, addresses_give_lanes_the_operands) {
  for (const bool is_a : {true, false}) {
    for (const bool by_column : {false, true}) {
      const bool transposed = is_a == by_column;
      for (int lane = 0; lane < 32; ++lane) {
        for (int number = 0; number < 8; ++number) {
          const int matrix = number / 2, element = number % 2;
          const int row = transposed ? lane % 4 * 2 + element : lane / 4;
          const int next = transposed ? lane / 4 : lane % 4 * 2 + element;
          At found = at(address_place(by_column, lane_of(matrix * 8 + row)));
          (by_column ? found.row : found.column) += next;
          At expected =
              is_a ? ptx_a(DType::kF16, lane, number) : ptx_b(DType::kF16, lane, number % 4);
          if (!is_a && number >= 4) expected.column += 8;
          EXPECT_EQ(found, expected) << is_a << by_column << " " << lane << " " << number;
        }
      }
    }
  }
}

// What the instruction makes of the registers of all lanes: its matrices are those of the tables.
using Registers = std::array<std::vector<double>, 32>;
void emulate(DType type, const Registers& a, const Registers& b, Registers& d) {
  const auto depth = static_cast<size_t>(type == DType::kF32 ? 8 : 16);
  std::vector<double> left(16 * depth), right(depth * 8);
  for (int lane = 0; lane < 32; ++lane) {
    const auto l = static_cast<size_t>(lane);
    for (int i = 0; i < numbers_of_a(type); ++i) {
      const At p = ptx_a(type, lane, i);
      left[static_cast<size_t>(p.row) * depth + static_cast<size_t>(p.column)] =
          a.at(l)[static_cast<size_t>(i)];
    }
    for (int i = 0; i < numbers_of_b(type); ++i) {
      const At p = ptx_b(type, lane, i);
      right[static_cast<size_t>(p.row * 8 + p.column)] = b.at(l)[static_cast<size_t>(i)];
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const At p = ptx_d(lane, i);
      for (size_t k = 0; k < depth; ++k)
        d.at(static_cast<size_t>(lane))[static_cast<size_t>(i)] +=
            left[static_cast<size_t>(p.row) * depth + k] *
            right[k * 8 + static_cast<size_t>(p.column)];
    }
  }
}

// A product of 16 x k x 8 with operands that lanes take by the functions of the layout.
void expect_product(DType type, const std::function<At(int number, int lane)>& a_at,
                    const std::function<At(int number, int lane)>& b_at) {
  const int64_t depth = matrix_depth(type);
  const auto left = [&](const At& p) { return static_cast<double>(p.row * 7 + p.column * 3 % 11); };
  const auto right = [&](const At& p) { return static_cast<double>(p.row * p.row - p.column * 5); };
  Registers a, b, d;
  for (int lane = 0; lane < 32; ++lane) {
    const auto l = static_cast<size_t>(lane);
    for (int i = 0; i < numbers_of_a(type); ++i) a.at(l).push_back(left(a_at(i, lane)));
    for (int i = 0; i < numbers_of_b(type); ++i) b.at(l).push_back(right(b_at(i, lane)));
    d.at(l).assign(4, 1.0);
  }
  emulate(type, a, b, d);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const At p = at(d_place(i, lane_of(lane)));
      double expected = 1;
      for (int64_t k = 0; k < depth; ++k) expected += left({p.row, k}) * right({k, p.column});
      EXPECT_EQ(d.at(static_cast<size_t>(lane))[static_cast<size_t>(i)], expected)
          << lane << " " << i;
    }
  }
}

TEST(matrix_layout, products_of_memory_and_of_fragments) {
  for (const DType type : kTypes) {
    expect_product(
        type, [&](int i, int lane) { return at(a_place(type, i, lane_of(lane))); },
        [&](int i, int lane) { return at(b_place(type, i, lane_of(lane))); });
    expect_product(
        type,
        [&](int i, int lane) {
          const OwnPlace own = a_of_fragment(type, i);
          return at({row_of(ir::constant(own.row), lane_of(lane)),
                     column_of(ir::constant(own.column), lane_of(lane))});
        },
        [&](int i, int lane) { return at(b_of_fragment(type, i, lane_of(lane))); });
  }
}

// ---- what warps do together, by lanes ----

const char* const kTogether = R"(program together {
  input X: f32[64, 48]
  output Y: f32[64, 48]
  output Z: f32[64]
  phase {
    parallel b in 0..2 {
      alloc fragment d: f32[2, 2, 16, 24] {
        alloc fragment r: f32[2, 16] {
          warp w in 0..2 {
            for i in 0..16 {
              r[w, i] = X[b * 32 + w * 16 + i, 3]
              for h in 0..2 {
                for j in 0..16 { d[w, h, i, j] = X[b * 32 + w * 16 + i, h * 24 + j] }
                for j in 0..8 { d[w, h, i, j + 16] = 2.0 }
              }
            }
          }
          warp w in 0..2 {
            for t in 0..2 {
              for j in 0..24 {
                for i in 0..8 {
                  if b * 32 + w * 16 + t * 8 + i < 61 {
                    Y[b * 32 + w * 16 + t * 8 + i, j] = d[w, 0, t * 8 + i, j] * r[w, t * 8 + i]
                  }
                }
              }
            }
            for i in 0..16 { Z[b * 32 + w * 16 + i] = r[w, i] }
            for i in 0..16 {
              vectorized v in 0..24 { Y[b * 32 + w * 16 + i, v + 24] = d[w, 1, i, v] }
            }
          }
        }
      }
    }
  }
}
)";

TEST(warp_lanes, lanes_compute_what_the_warp_does) {
  const ir::Program program = ir::testing::parsed(kTogether);
  ir::Program spread = program;
  const Result<ir::Stmt> made = spread_over_lanes(program.phases[0].body);
  ASSERT_TRUE(made.ok()) << made.status().message();
  spread.phases[0].body = *made;
  const Status verified = ir::verify(spread);
  ASSERT_TRUE(verified.ok()) << verified.message() << ir::print(spread);
  std::vector<Tensor> expected = ir::random_arguments(program, 1);
  std::vector<Tensor> found = ir::random_arguments(program, 1);  // a copy would share its memory
  ASSERT_TRUE(ir::run(program, expected).ok());
  const Status ran = ir::run(spread, found, {.check_races = true});
  ASSERT_TRUE(ran.ok()) << ran.message() << ir::print(spread);
  for (size_t p = 1; p < found.size(); ++p) {
    for (int64_t i = 0; i < found[p].size(); ++i) {
      // What the program does not write is not a number.
      if (std::isnan(expected[p].at(i)) && std::isnan(found[p].at(i))) continue;
      ASSERT_EQ(found[p].at(i), expected[p].at(i)) << p << " " << i << ir::print(spread);
    }
  }
  EXPECT_NE(ir::print(spread).find("alloc fragment d: f32[2, 32, 2, 2, 6]"), std::string::npos);
}

// Returns the error for statements of two warps, with the fragments d and r.
std::string error_of(const std::string& statements) {
  const ir::Program program = ir::testing::parsed(
      "program p {\n  input X: f32[64, 64]\n  output Y: f32[64, 64]\n  phase {\n"
      "alloc fragment d: f32[2, 16, 16] { alloc fragment r: f32[2, 16] { alloc fragment e: "
      "f32[2, 12] {\n"
      "warp w in 0..2 {" +
      statements + "} } } } } }\n");
  EXPECT_TRUE(ir::verify(program).ok()) << ir::verify(program).message();
  return spread_over_lanes(program.phases[0].body).status().message();
}

TEST(warp_lanes, what_has_no_code_is_an_error) {
  EXPECT_EQ(error_of("for i in 0..16 { d[w, i, 3] = d[w, i, 4] }"),
            "there is no code for the index 4 of d, which is not that of a loop over elements of a "
            "warp");
  EXPECT_EQ(error_of("for i in 0..16 { d[w, i, i] = 0.0 }"),
            "there is no code for the loop i over elements of a warp, which is none over whole "
            "tiles of rows or columns");
  EXPECT_EQ(error_of("for i in 2..8 { r[w, i] = 0.0 }"),
            "there is no code for the loop i over elements of a warp, which is none over whole "
            "tiles of rows or columns");
  EXPECT_EQ(error_of("for i in 0..12 { e[w, i] = 0.0 }"),
            "there is no code for e, whose rows or columns in a warp are no multiple of 8");
  EXPECT_EQ(error_of("for i in 0..16 { for j in 0..16 { r[w, i] = r[w, i] * d[w, i, j] } }"),
            "there is no code for the store of r in the loop j, which is no sum, maximum or "
            "minimum of rows");
  EXPECT_EQ(error_of("for i in 0..8 { Y[w, i] = X[w, i]  Y[w, i + 8] = Y[w, i] }"),
            "there is no code for loops in which a warp stores memory and accesses it elsewhere");
  EXPECT_EQ(error_of("matrix d[w : 1, 0 : 16, 0 : 16] += X[0 : 16, 0 : 12] * X[0 : 12, 0 : 16]"),
            "there is no code for a matrix statement of 16 x 16 x 12, which is no multiple of 16 x "
            "8 x 8");
}

}  // namespace
}  // namespace hone::backend::gpu
