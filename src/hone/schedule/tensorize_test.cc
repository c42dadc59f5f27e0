#include "hone/schedule/tensorize.h"

#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using namespace compute::testing;

// Four warps of a block have 16 x 16 sums each; 32 terms at a time are copied to shared memory.
constexpr std::string_view kProduct = R"(
matrix_product(matmul, [m], [n], 32)
split(bias, m, [2, 16], whole)
split(bias, n, [2, 16], whole)
reorder(bias, [m.0, n.0, m.1, n.1, m.2, n.2])
fuse(bias, [m.0, n.0])
parallel(bias, m.0@n.0)
bind(bias, m.1, warp)
bind(bias, n.1, warp)
compute_at(matmul, bias, m.0@n.0)
scope(matmul, fragment)
split(matmul, rows, [2, 16], whole)
split(matmul, columns, [2, 16], whole)
split(matmul, terms, [32])
layout(matmul, [rows/16, columns/16, rows%16, columns%16])
reorder(matmul, [rows.0, columns.0, terms.0, rows.1, columns.1, rows.2, columns.2, terms.1])
bind(matmul, rows.1, warp)
bind(matmul, columns.1, warp)
tensorize(matmul, rows.2, columns.2, terms.1)
compute_at(data.left, matmul, terms.0)
scope(data.left, shared)
layout(data.left, [rows, terms+8])
fuse(data.left, [rows, terms])
split(data.left, rows@terms, [128])
reorder(data.left, [rows@terms.1, rows@terms.0])
bind(data.left, rows@terms.1, thread)
compute_at(weight.right, matmul, terms.0)
scope(weight.right, shared)
layout(weight.right, [terms, columns+8])
fuse(weight.right, [terms, columns])
split(weight.right, terms@columns, [128])
reorder(weight.right, [terms@columns.1, terms@columns.0])
bind(weight.right, terms@columns.1, thread)
)";

TEST(tensorize, products_of_any_extents) {
  for (const int64_t m : {1, 17, 64}) {
    for (const int64_t n : {1, 33, 32}) {
      for (const int64_t k : {1, 31, 64}) {
        SCOPED_TRACE(fmt::format("{} x {} x {}", m, n, k));
        expect_threads(half_gemm(m, n, k), kProduct);
      }
    }
  }
  expect_threads(half_gemm(33, 17, 40, {.type = DType::kBF16}), kProduct);
  expect_threads(half_gemm(33, 17, 40, {.transposed_data = true, .transposed_weight = true}),
                 kProduct);
}

TEST(tensorize, the_innermost_loops_become_a_matrix_statement) {
  const Result<ir::Program> program = lower_threads(half_gemm(64, 64, 64), kProduct);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string text = ir::print(*program);
  for (const char* part :
       {"alloc fragment matmul: f32[2, 2, 16, 16]", "alloc shared data.left: f16[32, 40]",
        "warp rows.1 in 0..2",
        "matrix matmul[rows.1 : 1, columns.1 : 1, 0 : 16, 0 : 16] += "
        "data.left[rows.1 * 16 : 16, 0 : 32] * weight.right[0 : 32, columns.1 * 16 : 16]"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(tensorize, says_what_is_wrong) {
  const std::string product = "matrix_product(matmul, [m], [n], 16)\n";
  const std::pair<std::string, const char*> cases[] = {
      {"matrix_product(matmul, [m], [m], 16)", "axis m is named twice"},
      {"matrix_product(matmul, [], [n], 16)", "has no rows or no columns"},
      {"matrix_product(matmul, [m], [x], 16)", "matmul has no axis x"},
      {"matrix_product(matmul, [n], [m], 0)", "terms in multiples of 0"},
      {"matrix_product(bias, [m], [n], 16)", "bias is no sum of products"},
      {"split(matmul, m, [4])\nmatrix_product(matmul, [m], [n], 16)", "is scheduled already"},
      {product + "tensorize(matmul, rows, columns, k)", "matmul has no loop k"},
      {product + "tensorize(matmul, rows, terms, columns)", "loop terms is a reduction"},
      {product + "tensorize(matmul, rows, columns, terms, tf32)", "are not rounded to tf32"},
      {product + "tensorize(bias, m, n, n)", "bias is no sum of products"},
  };
  for (const auto& [steps, message] : cases) {
    const std::string why = refusal(half_gemm(32, 32, 32), steps);
    EXPECT_NE(why.find(message), std::string::npos) << steps << "\n" << why;
  }
  const auto why =
      lower_threads(half_gemm(32, 32, 32), product + "tensorize(matmul, rows, columns, terms)");
  EXPECT_NE(why.status().message().find("not into a fragment of warps"), std::string::npos)
      << why.status().message();
  EXPECT_NE(refusal(gemm(32, 32, 32),
                    "cache_write(matmul)\n"
                    "matrix_product(matmul.acc, [m], [n], 8)\n"
                    "tensorize(matmul.acc, rows, columns, terms)")
                .find("rounded to tf32, which the step does not say"),
            std::string::npos);
}

// A convolution is a product of which rows and terms have several digits.
TEST(tensorize, a_sum_of_windows_is_a_product) {
  ConvShape shape;
  shape.h = 5, shape.w = 6, shape.ic = 3, shape.oc = 5;
  expect_same(conv2d(shape), "matrix_product(conv2d, [oh, ow], [oc], 8)\n");
  expect_same(conv2d(shape), "matrix_product(conv2d, [ow], [oc], 1)\n");
  expect_same(product_of_two(3, 5, 7, 9),
              "cache_write(matmul)\nmatrix_product(matmul.acc, [m], [n], 4)\n");
}

// Rows of two axes are cut into tiles as one: they end in the middle of a row of an image.
TEST(tensorize, tiles_of_rows_run_over_several_axes) {
  std::string steps(kProduct);
  steps = "reorder(bias, [b, m, n])\nfuse(bias, [b, m])\n" + steps;
  for (size_t at = 0; (at = steps.find("bias, m, [", at)) != std::string::npos;)
    steps.replace(at, 8, "bias, b@m,");
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"[m], [n]", "[b, m], [n]"},
        {"[m.0, n.0, m.1, n.1, m.2, n.2]", "[b@m.0, n.0, b@m.1, n.1, b@m.2, n.2]"},
        {"[m.0, n.0]", "[b@m.0, n.0]"},
        {"bind(bias, m.1, warp)", "bind(bias, b@m.1, warp)"}}) {
    const size_t at = steps.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    steps.replace(at, from.size(), to);
  }
  for (size_t at = 0; (at = steps.find(" m.0@n.0", at)) != std::string::npos; at += 9)
    steps.replace(at, 8, " b@m.0@n.0");
  for (const auto& [batch, m] : {std::pair(3, 17), {5, 13}, {2, 32}, {1, 40}}) {
    SCOPED_TRACE(steps);
    expect_threads(half_gemm(m, 24, 20, {.batch = batch}), steps);
  }
}

}  // namespace
}  // namespace hone::schedule
