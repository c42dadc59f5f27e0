// Machine code of the search space (space_code_testing.h) for Dags as in compute/dag_testing.h.
// graph/task_code_test.cc has those that the compiler makes of operators; fuzz/fuzz_kernels.cc goes
// on with random models.
#include <gtest/gtest.h>

#include <algorithm>

#include "hone/backend/cpu/inner_loop_testing.h"
#include "hone/backend/cpu/space_code_testing.h"
#include "hone/compute/dag_testing.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

using namespace compute::testing;

// Returns a convolution with e[0] x e[1] results if the stride is 1.
compute::Dag convolution(const Extents& e, int64_t kernel, int64_t kernel_w, int64_t stride = 1) {
  return conv2d({.h = e[0] + kernel - 3,
                 .w = e[1] + kernel_w - 3,
                 .ic = e[2],
                 .oc = e[3],
                 .kernel = kernel,
                 .stride = stride,
                 .kernel_w = kernel_w});
}

TEST(space_code, products) {
  check_family({3,
                20'000,
                [](const Extents& e) { return gemm(e[0], e[1], e[2]); },
                {"direct.0 mask", "direct.0 peel", "direct.0 rest peel"}});
}
// Rows 2 KiB apart, which share sets of a cache: their panels are copied.
TEST(space_code, products_of_rows_that_lie_apart) {
  check_family({2,
                300,
                [](const Extents& e) { return gemm(std::max<int64_t>(e[0], 4), e[1], 512); },
                {"direct.0 mask", "direct.0 peel", "direct.1 mask", "direct.1 peel",
                 "im2col.0 mask", "im2col.0 peel"}});
  // With lines of an image besides, a block of them at a time or all at once.
  check_family({2,
                100,
                [](const Extents& e) {
                  return conv2d({.h = 3,
                                 .w = std::max<int64_t>(e[0], 4),
                                 .ic = 512,
                                 .oc = e[1],
                                 .kernel = 1,
                                 .pad = 0,
                                 .border = 0});
                },
                {"im2col.0 mask", "im2col.0 peel"},
                true,
                false,
                {"compute_at(data.col", "parallel(data.col"}});
}
// Blocks of the sum, panels of a computed operand (all of it, or what a block needs), and blocks of
// columns, outside of all others.
TEST(space_code, products_in_blocks) {
  check_family({2,
                1'000,
                [](const Extents& e) { return gemm(e[0], e[1], 1031); },
                {},
                true,
                false,
                {"rfactor(matmul.acc, k, ", "m.1, ["},
                true});
  for (const int64_t batch : {1, 3}) {
    check_family({2,
                  1'000,
                  [&](const Extents& e) { return product_of_two(batch, e[0], e[1], 1033); },
                  {},
                  true,
                  false,
                  {"rfactor(matmul.acc, k, ", "cache_read(right", "compute_at(right.cache",
                   "parallel(right.cache"},
                  true});
  }
  check_family(
      {2,
       500,
       [](const Extents& e) {
         return conv2d(
             {.h = 2 + e[0] % 5, .w = 7, .ic = 131, .oc = e[1], .border = 0, .residual = true});
       },
       {},
       true,
       false,
       {"rfactor(conv2d, ic, "},
       true});
}
// Large enough for Strassen's algorithm.
TEST(space_code, products_of_halves) {
  check_family(
      {3,
       20'000,
       [](const Extents& e) { return gemm(32 + e[0] % 18, 128 + e[1] % 3 * 32, 128 + e[2] % 18); },
       {"direct.0 mask", "strassen.0 mask", "strassen.0 peel"}});
}
// Lanes along rows, packed or as they lie.
TEST(space_code, products_of_few_columns) {
  for (const bool transposed : {false, true}) {
    check_family({3,
                  5'000,
                  [&](const Extents& e) {
                    return few_columns(16 + e[0], std::max<int64_t>(1, e[1] % 9), e[2], transposed);
                  },
                  {},
                  true,
                  false,
                  {"layout(matmul.acc, [n, m/", "layout(matmul.acc, [m/",
                   transposed ? "prefetch(matmul.acc, rows" : "layout(weight.cache, [m/"}});
  }
}
TEST(space_code, sums_in_parts) {
  check_family(
      {1, 224, [](const Extents& e) { return gemm(1, e[0], 8192); }, {"direct.0", "direct.1"}});
  // Parts of which the last one is shorter, with lanes along rows.
  check_family({1,
                33,
                [](const Extents& e) { return few_columns(16 + e[0], 2, 16'381, true); },
                {},
                true,
                false,
                {"rfactor(matmul.acc, k, ", "layout(matmul.acc.rf.acc, [ko"}});
}
TEST(space_code, convolutions) {
  check_family(
      {4,
       20'000,
       [](const Extents& e) { return convolution(e, 3, 3); },
       {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel",
        "winograd_4.0 mask", "winograd_4.0 peel", "winograd_6.0 mask", "winograd_6.0 peel"}});
}
// Groups whose channels fill a part of a vector lie side by side in one, or each in its own.
TEST(space_code, convolutions_of_groups) {
  const auto make = [](const Extents& e) {
    const int64_t channels = int64_t{1} << (1 + (e[2] % 3));
    return grouped_conv2d(e[0], e[1], 4 * (1 + (e[3] % 2)), e[2] % 9 + 1, channels, 1 + (e[3] % 2));
  };
  check_family({4,
                5'000,
                make,
                {},
                true,
                false,
                {"fuse(grouped_conv2d, [g, oc])", "fuse(relu, [n, g", "reorder(relu, [n, oh.0, g, ",
                 "reorder(relu, [n, oh.0, g.0, "}});
  // Channels that fill no part of a vector.
  check_family({4,
                5'000,
                [](const Extents& e) {
                  return grouped_conv2d(e[0], e[1], e[2] % 5 + 2, e[3] % 7 + 2, 5, 1);
                },
                {}});
}
TEST(space_code, convolutions_along_a_row) {
  check_family({4,
                10'000,
                [](const Extents& e) { return convolution(e, 1, 3); },
                {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel",
                 "winograd_4.0 mask", "winograd_4.0 peel"}});
}
TEST(space_code, convolutions_along_a_column) {
  check_family({4,
                10'000,
                [](const Extents& e) { return convolution(e, 3, 1); },
                {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel",
                 "winograd_4.0 mask", "winograd_4.0 peel"}});
}
TEST(space_code, convolutions_of_5x5) {
  check_family({4,
                5'000,
                [](const Extents& e) { return convolution(e, 5, 5); },
                {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel",
                 "winograd_4.0 mask", "winograd_4.0 peel"}});
}
// These have a row of seven taps (inception_v3), and the windows of first layers (resnet's,
// alexnet's).
TEST(space_code, convolutions_of_larger_windows) {
  check_family({4,
                5'000,
                [](const Extents& e) { return convolution(e, 1, 7); },
                {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel"}});
  for (const auto& [kernel, stride] : {std::pair<int64_t, int64_t>{7, 2}, {11, 4}}) {
    check_family({3,
                  2'000,
                  [&](const Extents& e) {
                    return convolution({stride * std::min<int64_t>(e[0], 31),
                                        stride * std::min<int64_t>(e[1], 33), 1 + e[2] % 3, e[2]},
                                       kernel, kernel, stride);
                  },
                  {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel"}});
  }
}
TEST(space_code, strided_convolutions) {
  check_family({4,
                10'000,
                [](const Extents& e) { return convolution(e, 3, 3, 2); },
                {"direct.0 mask", "direct.0 peel", "im2col.0 mask", "im2col.0 peel",
                 "winograd_2.0 mask", "winograd_2.0 peel", "winograd_3.0 mask", "winograd_3.0 peel",
                 "winograd_4.0 mask", "winograd_4.0 peel"}});
}
TEST(space_code, depthwise_convolutions) {
  check_family({3,
                10'000,
                [](const Extents& e) { return depthwise(e[0], e[1], e[2], 1); },
                {"direct.0 mask", "direct.0 peel"}});
  check_family({3,
                10'000,
                [](const Extents& e) { return depthwise(e[0], e[1], e[2], 2); },
                {"direct.0 mask", "direct.0 peel"}});
}
TEST(space_code, depthwise_and_pointwise) {
  check_family({4,
                5'000,
                [](const Extents& e) { return separable(e[0], e[1], e[2], e[3]); },
                {"direct.0 peel"}});
}
TEST(space_code, attention) {
  check_family({4,
                10'000,
                [](const Extents& e) {
                  return compute::testing::attention(std::min<int64_t>(e[0], 3), e[1], e[2], e[3]);
                },
                {"direct.0 peel"},
                false,
                false,
                {"cache_read(key", "cache_read(value", "m.2"}});
}
TEST(space_code, attention_in_tiles_of_keys) {
  check_family({2,
                100,
                [](const Extents& e) { return compute::testing::attention(2, e[0], 512, e[1]); },
                {"direct.0 peel peel", "direct.1 peel peel", "direct.1 mask mask"},
                false});
  // The last tile is shorter, by any number of keys.
  check_family({3,
                1'000,
                [](const Extents& e) {
                  return compute::testing::attention(1, std::min<int64_t>(e[0], 33), 512 + e[1],
                                                     std::min<int64_t>(e[2], 17));
                },
                {"direct.0 peel peel", "direct.1 peel peel", "direct.2 peel peel"},
                false,
                false,
                {"online_softmax(sums, 384)", "online_softmax(sums, 512)", "cache_read(key",
                 "cache_read(value", "t, m.0"}});
  // So many that their scores stay in no cache, and those that a query sees.
  for (const int64_t keys : {4'096, 4'099}) {
    for (const std::optional<int64_t> offset : {std::optional<int64_t>(), {4'000}, {4'096}}) {
      check_family({1,
                    7,
                    [&](const Extents& e) {
                      return compute::testing::attention(1, std::min<int64_t>(e[0], 7), keys, 2,
                                                         offset);
                    },
                    {"direct.0 peel peel"},
                    false});
    }
  }
}
// Panels of keys and values, queries of a tile in several blocks: beside each other and each alone.
TEST(space_code, attention_of_panels_and_blocks) {
  check_family({2,
                100,
                [](const Extents& e) { return compute::testing::attention(2, e[0], 512, e[1]); },
                {},
                false,
                false,
                {"cache_read(key", "cache_read(value", "m.2", "t, m.0"}});
}
TEST(space_code, elements) {
  check_family(
      {2, 50'000, [](const Extents& e) { return sum_of_two(e[0], 61 * e[1]); }, {"direct.0"}});
}
TEST(space_code, elements_of_few_long_rows) {
  check_family({1,
                224,
                [](const Extents& e) { return sum_of_two(1, 911 * e[0]); },
                {"direct.0"},
                true,
                false,
                {"vectorize(add, column.2)"}});
}
// Into a border; in tiles of whole vectors, whose last ones in parallel loops are tested.
TEST(space_code, transposes) {
  check_family({3,
                20'000,
                [](const Extents& e) { return transpose(e[0], e[1], e[2], 1); },
                {"direct.0"},
                true,
                false,
                {"unroll(transpose", ", test)", "vectorize(transpose, c.1)",
                 "vectorize(transpose, w.1)", "[w.0, ", "[c.0, "}});
}
TEST(space_code, scans) {
  check_family({2, 10'000, [](const Extents& e) { return running_sum(e[0], e[1]); }, {"direct.0"}});
  check_family(
      {3, 10'000, [](const Extents& e) { return running_sum(e[0], e[1], e[2]); }, {"direct.0"}});
}
// A vector is loaded, summed up by four shifts and stored; its total is broadcast.
TEST(space_code, scans_sum_up_the_lanes_of_a_vector) {
  const char* const device = "x86-64-avx512";
  const compute::Dag dag = running_sum(8, 1024);
  const Result<space::Space> space = space::Space::create(dag, *target::find(device));
  ASSERT_TRUE(space.ok()) << space.status().message();
  const Result<ir::Program> program = schedule::lower(dag, space->steps(space->default_point()));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const InnerLoop loop = inner_loop_of(*program, device);
  EXPECT_TRUE(loop.is_loop);
  EXPECT_EQ(loop.mix.load, 1);
  EXPECT_EQ(loop.mix.store, 1);
  EXPECT_LE(loop.mix.shuffle, 5);
  EXPECT_LE(loop.mix.all, 24);
  EXPECT_EQ(loop.spills, 0);
}
TEST(space_code, places_of_extremes) {
  check_family({3,
                10'000,
                [](const Extents& e) { return arg_max(e[0], e[1], e[2]); },
                {"direct.0 mask", "direct.0 peel"},
                false,
                false,
                {"], test)"}});
}
// Weights of 64 KiB and more, on few rows and positions.
TEST(space_code, products_with_weights_in_16_bits) {
  check_family({2,
                20'000,
                [](const Extents& e) {
                  const int64_t n = e[1];
                  return gemm(std::min<int64_t>(e[0], 3), n, 16'384 / n + 1);
                },
                {"direct_bf16.0 mask", "direct_bf16.0 peel"},
                true,
                true});
}
TEST(space_code, convolutions_with_weights_in_16_bits) {
  check_family({1,
                20'000,
                [](const Extents& e) {
                  const int64_t channels = e[0];
                  return convolution({5, 6, 1'821 / channels + 1, channels}, 3, 3);
                },
                {"direct_bf16.0 mask", "direct_bf16.0 peel", "winograd_2_bf16.0 mask",
                 "winograd_2_bf16.0 peel", "winograd_4_bf16.0 peel"},
                true,
                true});
}
TEST(space_code, pools_and_rows) {
  check_family({3,
                10'000,
                [](const Extents& e) { return max_pool(e[0], e[1], e[2]); },
                {"direct.0", "direct.0 mask", "direct.0 peel"},
                false});
  check_family({3,
                10'000,
                [](const Extents& e) { return global_pool(e[0], e[1], e[2]); },
                {"direct.0", "direct.1"}});
  check_family({3,
                10'000,
                [](const Extents& e) { return softmax(e[0], e[1], e[2]); },
                {"direct.0", "direct.0 test"},
                false,
                false,
                {"vectorize(softmax, i.1)", "vectorize(softmax, n)"}});
}
TEST(space_code, rows_several_at_once) {
  check_family({2,
                10'000,
                [](const Extents& e) { return softmax(e[0], e[1], 1); },
                {"direct.0"},
                false,
                false,
                {"split(softmax, o, [2], test)", "split(softmax, o, [4], test)"}});
  check_family({2,
                10'000,
                [](const Extents& e) { return normalized_rows(e[0], e[1]); },
                {"direct.0"},
                false,
                false,
                {"split(normalize, o, [2], test)", "split(normalize, o, [4], test)"}});
}

// The maximum and the sum of a block of columns are neither stored nor loaded in the loop over
// their elements, which stores the exponentials alone.
TEST(space_code, columns_are_summed_in_registers) {
  const char* const device = "x86-64-avx512";
  const compute::Dag dag = softmax(1, 21, 128);
  const Result<space::Space> space = space::Space::create(dag, *target::find(device));
  ASSERT_TRUE(space.ok()) << space.status().message();
  const schedule::Steps steps = space->steps(space->default_point());
  const Result<ir::Program> program = schedule::lower(dag, steps);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const InnerLoop loop = inner_loop_of(*program, device);
  EXPECT_TRUE(loop.is_loop);
  EXPECT_GE(loop.mix.fma, 10) << "the exponentials";
  EXPECT_EQ(loop.mix.store, 2) << schedule::to_string(steps);
  EXPECT_EQ(loop.spills, 0);
}

// Compile time grows with the number of instructions. No point of a large task is refused, and its
// machine code is as bounded as the input of LLVM's passes.
TEST(space_code, of_large_tasks_is_bounded) {
  const int64_t most = 4 * CompileOptions().max_instructions;  // bytes
  const compute::Dag dags[] = {gemm(512, 512, 512),
                               conv2d({.h = 56, .w = 56, .ic = 64, .oc = 64, .residual = true}),
                               conv2d({.h = 14, .w = 14, .ic = 256, .oc = 256})};
  for (const char* name : {"x86-64-avx2", "x86-64-avx512"}) {
    const target::Target target = *target::find(name);
    Rng rng(3);
    for (const compute::Dag& dag : dags) {
      const Result<space::Space> space = space::Space::create(dag, target);
      ASSERT_TRUE(space.ok()) << space.status().message();
      std::vector<space::Point> points = space->default_points();
      for (int i = 0; i < 2; ++i) points.push_back(space->sample(rng));
      for (const space::Point& point : points) {
        const schedule::Steps steps = space->steps(point);
        const Result<ir::Program> program = schedule::lower(dag, steps);
        ASSERT_TRUE(program.ok()) << program.status().message();
        const auto code = compile(*program, target.cpu());
        ASSERT_TRUE(code.ok()) << code.status().message() << "\n" << schedule::to_string(steps);
        EXPECT_LE(code->text_bytes, most) << schedule::to_string(steps);
      }
    }
  }
}

// Rests of keys and of queries have code of their own.
TEST(space_code, of_attention_with_rests_is_bounded) {
  for (const char* name : {"x86-64-avx2", "x86-64-avx512"}) {
    const target::Target target = *target::find(name);
    Rng rng(3);
    for (const auto& [queries, keys] : {std::pair{2048, 2053}, {2053, 2053}, {77, 4099}}) {
      for (const std::optional<int64_t> offset : {std::optional<int64_t>(), {4'096}}) {
        const compute::Dag dag = compute::testing::attention(2, queries, keys, 64, offset);
        const Result<space::Space> space = space::Space::create(dag, target);
        ASSERT_TRUE(space.ok()) << space.status().message();
        std::vector<space::Point> points = space->default_points();
        for (int i = 0; i < 4; ++i) points.push_back(space->sample(rng));
        for (const space::Point& point : points) {
          ASSERT_TRUE(space->legal(point));
          const schedule::Steps steps = space->steps(point);
          const Result<ir::Program> program = schedule::lower(dag, steps);
          ASSERT_TRUE(program.ok()) << program.status().message();
          const auto code = compile(*program, target.cpu());
          EXPECT_TRUE(code.ok()) << code.status().message() << "\n" << schedule::to_string(steps);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hone::backend::cpu
