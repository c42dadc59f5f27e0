// Measures how far the results of algorithms that add in another order are from float64, for the
// table of docs/user/tuning.md. Winograd's and Strassen's are in their own tests.
#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

TEST(rounding, of_sums_in_parts_is_less_than_of_one_sum) {
  const compute::Dag dag = compute::testing::gemm(2, 24, 8192);
  const double direct = rounding_of(dag, "");
  EXPECT_GT(direct, 0);
  EXPECT_LT(direct, 5e-6);
  for (const int length : {4096, 1024, 512}) {
    const double parts =
        rounding_of(dag, fmt::format("cache_write(matmul)\nrfactor(matmul.acc, k, {})", length));
    EXPECT_GT(parts, 0);
    EXPECT_LT(parts, 1.5e-6) << length;
  }
}

// Lanes along the sum: sixteen sums that are added up.
TEST(rounding, of_sums_in_lanes_is_less_than_of_one_sum) {
  const double lanes = rounding_of(compute::testing::gemm(2, 24, 8192),
                                   "cache_write(matmul)\nrfactor(matmul.acc, k, 16)");
  EXPECT_GT(lanes, 0);
  EXPECT_LT(lanes, 1e-6);
}

TEST(rounding, of_attention_in_tiles_of_keys_is_less_than_over_all_keys) {
  for (const auto& [keys, depth] : {std::pair{512, 64}, {2048, 16}}) {
    const compute::Dag dag = compute::testing::attention(2, 8, keys, depth);
    const double whole = rounding_of(dag, "");
    EXPECT_GT(whole, 0);
    EXPECT_LT(whole, 4e-6) << keys;
    for (const int tile : {64, 256}) {
      const double tiles = rounding_of(dag, fmt::format("online_softmax(sums, {})", tile));
      EXPECT_GT(tiles, 0);
      EXPECT_LT(tiles, 1.5e-6) << keys << " in tiles of " << tile;
    }
  }
}

// --accuracy fast.
TEST(rounding, of_weights_in_16_bits_is_that_of_the_weights) {
  const double error = rounding_of(compute::testing::gemm(2, 24, 4096),
                                   "cache_read(weight, matmul)\nnarrow(weight.cache, bf16)");
  EXPECT_GT(error, 1e-4);
  EXPECT_LT(error, 4e-3);
}

}  // namespace
}  // namespace hone::schedule
