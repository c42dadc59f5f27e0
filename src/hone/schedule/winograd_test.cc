#include "hone/schedule/winograd.h"

#include "hone/base/rng.h"
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
  for (const int64_t stride : {1, 2, 3}) {
    for (int64_t taps = stride; taps <= 7; ++taps) {
      for (int64_t outputs = 1; outputs + (taps - 1) / stride <= kMaxWinogradPoints; ++outputs) {
        const WinogradMatrices m = winograd_matrices(outputs, taps, stride);
        std::vector<double> data, weights;
        for (int64_t i = 0; i < m.points; ++i) data.push_back(rng.uniform() - 0.5);
        for (int64_t i = 0; i < taps; ++i) weights.push_back(rng.uniform() - 0.5);
        const std::vector<double> y = filtered(m, data, weights);
        for (int64_t i = 0; i < outputs; ++i) {
          double expected = 0;
          for (int64_t k = 0; k < taps; ++k)
            expected += data[static_cast<size_t>(i * stride + k)] * weights[static_cast<size_t>(k)];
          EXPECT_NEAR(y[static_cast<size_t>(i)], expected, 1e-12)
              << outputs << ", " << taps << ", stride " << stride;
        }
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
    for (const int64_t outputs : {2, 3, 4, 6}) {
      for (const auto& [kernel, kernel_w] : {std::pair{3, 3}, {1, 3}, {3, 1}}) {
        for (const int64_t stride : {1, 2}) {
          const compute::Dag dag = compute::testing::conv2d({.h = size,
                                                             .w = size + 3,
                                                             .ic = 3,
                                                             .oc = 5,
                                                             .kernel = kernel,
                                                             .stride = stride,
                                                             .kernel_w = kernel_w});
          SCOPED_TRACE(fmt::format("{} x {}, {}x{}, stride {}, F({}, 3)", size, size + 3, kernel,
                                   kernel_w, stride, outputs));
          expect_same(dag, fmt::format("winograd(conv2d, {})", outputs), 1e-4);
        }
      }
    }
  }
}

// Windows of resnet's, alexnet's and inception's layers.
TEST(winograd, keeps_the_meaning_of_other_windows) {
  struct Case {
    int64_t kernel, kernel_w, stride;
  };
  for (const Case& c : {Case{5, 5, 1}, Case{5, 5, 2}, Case{7, 7, 2}, Case{11, 11, 4}, Case{1, 7, 1},
                        Case{7, 1, 1}}) {
    const int64_t taps = std::max(c.kernel, c.kernel_w);
    for (int64_t outputs = 2; outputs + (taps - 1) / c.stride <= kMaxWinogradPoints; ++outputs) {
      const compute::Dag dag = compute::testing::conv2d({.h = 19,
                                                         .w = 22,
                                                         .ic = 3,
                                                         .oc = 2,
                                                         .kernel = c.kernel,
                                                         .stride = c.stride,
                                                         .pad = 2,
                                                         .kernel_w = c.kernel_w});
      SCOPED_TRACE(fmt::format("{}x{}, stride {}, F({})", c.kernel, c.kernel_w, c.stride, outputs));
      expect_same(dag, fmt::format("winograd(conv2d, {})", outputs), 1e-3);
    }
  }
}

double rounding(int64_t kernel, int64_t kernel_w, const std::string& steps, int64_t stride = 1) {
  return rounding_of(compute::testing::conv2d({.h = 8 * stride,
                                               .w = 9 * stride,
                                               .ic = 256,
                                               .oc = 4,
                                               .kernel = kernel,
                                               .stride = stride,
                                               .pad = 2,
                                               .border = 0,
                                               .kernel_w = kernel_w}),
                     steps);
}

// docs/studies/convolutions.md, "Winograd", and trial::Accuracy: 2e-5 at most.
TEST(winograd, rounds_as_is_documented) {
  struct Case {
    int64_t kernel, kernel_w, outputs;
    double most;
    int64_t stride = 1;
  };
  for (const Case& c :
       {Case{3, 3, 2, 2e-6}, Case{3, 3, 4, 2e-5}, Case{3, 3, 6, 2e-5}, Case{5, 5, 2, 2e-5},
        Case{5, 5, 4, 2e-5}, Case{1, 3, 2, 4e-6}, Case{1, 3, 4, 4e-6}, Case{3, 1, 6, 4e-6},
        Case{3, 3, 2, 2e-6, 2}, Case{3, 3, 3, 4e-6, 2}, Case{3, 3, 4, 4e-6, 2},
        Case{5, 5, 4, 2e-5, 2}, Case{1, 7, 2, 4e-6}, Case{7, 1, 2, 4e-6}, Case{7, 7, 2, 2e-5, 2},
        Case{7, 7, 4, 2e-5, 2}, Case{11, 11, 2, 2e-5, 4}, Case{11, 11, 4, 2e-5, 4},
        Case{11, 11, 6, 2e-5, 4}}) {
    SCOPED_TRACE(fmt::format("{}x{}, F({}), stride {}", c.kernel, c.kernel_w, c.outputs, c.stride));
    const double error =
        rounding(c.kernel, c.kernel_w, fmt::format("winograd(conv2d, {})", c.outputs), c.stride);
    EXPECT_GT(error, 0);
    EXPECT_LT(error, c.most);
  }
  EXPECT_LT(rounding(3, 3, ""), 2e-6) << "the direct sums";
}

TEST(winograd, declines_what_is_no_such_convolution) {
  const auto why = [](const compute::Dag& dag, const std::string& stage, int64_t outputs) {
    return check(Winograd{stage, outputs}, initial_state(dag)).message();
  };
  const compute::Dag conv = compute::testing::conv2d({.h = 8, .w = 8, .ic = 4, .oc = 4});
  EXPECT_EQ(why(conv, "conv", 4), "no stage conv");
  EXPECT_EQ(
      why(conv, "conv2d", 1),
      "tiles of 1 results of 3 taps with stride 1, expected 2 or more and 8 points at most of "
      "a phase");
  EXPECT_EQ(
      why(conv, "conv2d", 7),
      "tiles of 7 results of 3 taps with stride 1, expected 2 or more and 8 points at most of "
      "a phase");
  const compute::Dag strided =
      compute::testing::conv2d({.h = 8, .w = 8, .ic = 4, .oc = 4, .stride = 3});
  const std::string none =
      " is no convolution over constant weights with more taps than its stride";
  EXPECT_EQ(why(strided, "conv2d", 2), "conv2d" + none);
  EXPECT_EQ(why(compute::testing::depthwise(8, 8, 4, 1), "depthwise", 2), "depthwise" + none);
  EXPECT_EQ(why(compute::testing::gemm(8, 8, 8), "matmul", 2), "matmul" + none);
}

}  // namespace
}  // namespace hone::schedule
