#include "hone/schedule/winograd.h"

#include <cmath>

#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

// y = A' [ (G g) . (B' d) ] for one dimension, in double.
std::vector<double> filtered(const WinogradMatrices& m, const std::vector<double>& data,
                             const std::vector<double>& weights) {
  const auto row = [](const std::vector<double>& matrix, int64_t i, const std::vector<double>& x) {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j)
      sum += matrix[static_cast<size_t>(i) * x.size() + j] * x[j];
    return sum;
  };
  std::vector<double> products, y;
  for (int64_t i = 0; i < m.points; ++i)
    products.push_back(row(m.data, i, data) * row(m.weights, i, weights));
  for (int64_t i = 0; i < m.outputs; ++i) y.push_back(row(m.inverse, i, products));
  return y;
}

TEST(winograd, matrices_compute_the_filter_exactly) {
  Rng rng(1);
  for (int64_t taps = 1; taps <= 7; ++taps) {
    for (int64_t outputs = 1; outputs + taps - 1 <= kMaxWinogradPoints; ++outputs) {
      const WinogradMatrices m = winograd_matrices(outputs, taps);
      std::vector<double> data, weights;
      for (int64_t i = 0; i < m.points; ++i) data.push_back(rng.uniform() - 0.5);
      for (int64_t i = 0; i < taps; ++i) weights.push_back(rng.uniform() - 0.5);
      const std::vector<double> y = filtered(m, data, weights);
      for (int64_t i = 0; i < outputs; ++i) {
        double expected = 0;
        for (int64_t k = 0; k < taps; ++k)
          expected += data[static_cast<size_t>(i + k)] * weights[static_cast<size_t>(k)];
        EXPECT_NEAR(y[static_cast<size_t>(i)], expected, 1e-12) << outputs << ", " << taps;
      }
    }
  }
}

TEST(winograd, f43_is_the_published_one) {
  const WinogradMatrices m = winograd_matrices(4, 3);
  EXPECT_EQ(std::vector<double>(m.data.begin(), m.data.begin() + 6),
            (std::vector<double>{4, 0, -5, 0, 1, 0}));
  EXPECT_EQ(m.weights[0], 0.25);
  EXPECT_EQ(std::vector<double>(m.inverse.end() - 6, m.inverse.end()),
            (std::vector<double>{0, 1, -1, 8, -8, 1}));
}

// Every stage at root: only the rewrite is under test.
TEST(winograd, keeps_the_meaning_of_convolutions_of_any_size) {
  for (const int64_t size : {1, 2, 5, 7, 13}) {
    for (const int64_t outputs : {2, 3, 4}) {
      const compute::Dag dag =
          compute::testing::conv2d({.h = size, .w = size + 3, .ic = 3, .oc = 5});
      SCOPED_TRACE(fmt::format("{} x {}, F({}, 3)", size, size + 3, outputs));
      expect_same(dag, fmt::format("winograd(conv2d, {})", outputs), 1e-4);
    }
  }
}

TEST(winograd, declines_what_is_no_such_convolution) {
  const auto why = [](const compute::Dag& dag, const std::string& stage, int64_t outputs) {
    return check(Winograd{stage, outputs}, initial_state(dag)).message();
  };
  const compute::Dag conv = compute::testing::conv2d({.h = 8, .w = 8, .ic = 4, .oc = 4});
  EXPECT_EQ(why(conv, "conv", 4), "no stage conv");
  EXPECT_EQ(why(conv, "conv2d", 1),
            "tiles of 1 results of 3 taps, expected 2 or more and 8 points at most");
  EXPECT_EQ(why(conv, "conv2d", 7),
            "tiles of 7 results of 3 taps, expected 2 or more and 8 points at most");
  const compute::Dag strided =
      compute::testing::conv2d({.h = 8, .w = 8, .ic = 4, .oc = 4, .stride = 2});
  EXPECT_EQ(why(strided, "conv2d", 2),
            "conv2d is no convolution of stride 1 over constant weights");
  EXPECT_EQ(why(compute::testing::depthwise(8, 8, 4, 1), "depthwise", 2),
            "depthwise is no convolution of stride 1 over constant weights");
  EXPECT_EQ(why(compute::testing::gemm(8, 8, 8), "matmul", 2),
            "matmul is no convolution of stride 1 over constant weights");
}

}  // namespace
}  // namespace hone::schedule
