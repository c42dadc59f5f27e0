#include <gtest/gtest.h>

#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

TEST(gemm, equals_its_definition_for_all_attributes) {
  Rng rng(41);
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const bool weight_is_constant : {false, true}) {
        const Tensor a = random_tensor(trans_a ? Shape{5, 3} : Shape{3, 5}, rng);
        const Tensor b = random_tensor(trans_b ? Shape{4, 5} : Shape{5, 4}, rng);
        const Tensor c = random_tensor({4}, rng);
        TestModel model;
        model.input("a", a.shape()).constant("c", c);
        if (weight_is_constant) model.constant("b", b);
        if (!weight_is_constant) model.input("b", b.shape());
        model.node("Gemm", {"a", "b", "c"}, {"y"},
                   {{"alpha", 0.5f},
                    {"beta", 2.0f},
                    {"transA", int64_t{trans_a}},
                    {"transB", int64_t{trans_b}}});
        Tensor expected(DType::kF32, {3, 4});
        for (int64_t m = 0; m < 3; ++m) {
          for (int64_t n = 0; n < 4; ++n) {
            double sum = 0;
            for (int64_t k = 0; k < 5; ++k) {
              sum += a.at(trans_a ? k * 3 + m : m * 5 + k) * b.at(trans_b ? n * 5 + k : k * 4 + n);
            }
            expected.set(m * 4 + n, 0.5 * sum + 2 * c.at(n));
          }
        }
        std::vector<Tensor> inputs = {a};
        if (!weight_is_constant) inputs.push_back(b);
        EXPECT_LT(relative_error(run_optimized(model.output("y").graph(), inputs)[0], expected),
                  1e-5);
      }
    }
  }
}

TEST(gemm, c_may_be_a_scalar_a_column_or_a_matrix) {
  Rng rng(42);
  const Tensor a = random_tensor({2, 3}, rng), b = random_tensor({3, 4}, rng);
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{4}, Shape{2, 1}, Shape{2, 4}}) {
    const Tensor c = random_tensor(shape, rng);
    TestModel model;
    model.input("a", {2, 3})
        .constant("b", b)
        .constant("c", c)
        .node("Gemm", {"a", "b", "c"}, {"y"})
        .output("y");
    TestModel parts;
    parts.input("a", {2, 3}).constant("b", b).constant("c", c).node("MatMul", {"a", "b"}, {"p"});
    parts.node("Add", {"p", "c"}, {"y"}).output("y");
    EXPECT_LT(
        relative_error(run_optimized(model.graph(), {a})[0], run_plainly(parts.graph(), {a})[0]),
        1e-5);
  }
}

struct Case {
  Shape a, b, y;
};

TEST(gemm, a_sum_over_nothing_is_the_bias) {
  TestModel model;
  model.input("a", {2, 0}).input("b", {0, 3}).input("c", {3});
  model.node("Gemm", {"a", "b", "c"}, {"y"}, {{"beta", 2.0F}}).output("y");
  const Tensor none(DType::kF32, {2, 0}), other(DType::kF32, {0, 3});
  const auto results = run_optimized(model.graph(), {none, other, floats({3}, {1, 2, 3})});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(relative_error(results[0], floats({2, 3}, {2, 4, 6, 2, 4, 6})), 0);
}

TEST(matmul, broadcasts_batches_and_takes_vectors) {
  Rng rng(43);
  const std::vector<Case> cases = {
      {{3, 5}, {5, 4}, {3, 4}},
      {{2, 3, 5}, {5, 4}, {2, 3, 4}},
      {{2, 3, 5}, {2, 5, 4}, {2, 3, 4}},
      {{3, 5}, {2, 5, 4}, {2, 3, 4}},
      {{2, 1, 3, 5}, {6, 5, 4}, {2, 6, 3, 4}},
      {{5}, {5, 4}, {4}},
      {{3, 5}, {5}, {3}},
      {{2, 3, 5}, {5}, {2, 3}},
      {{5}, {5}, {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(to_string(c.a) + to_string(c.b));
    const Tensor a = random_tensor(c.a, rng), b = random_tensor(c.b, rng);
    TestModel model;
    model.input("a", c.a).input("b", c.b).node("MatMul", {"a", "b"}, {"y"}).output("y");
    const Tensor y = run_optimized(model.graph(), {a, b})[0];
    ASSERT_EQ(y.shape(), c.y);
    // Operands are treated as matrices: rows M of a, columns N of b, batches broadcast from the
    // right.
    const Shape am = c.a.size() == 1 ? Shape{1, c.a[0]} : c.a,
                bm = c.b.size() == 1 ? Shape{c.b[0], 1} : c.b;
    const int64_t M = am[am.size() - 2], K = am.back(), N = bm.back();
    const int64_t batches = y.size() / (M * N);
    const int64_t a_batches = a.size() / (M * K), b_batches = b.size() / (K * N);
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t batch = i / (M * N), m = i / N % M, n = i % N;
      // The cases have a batch of a that is the outer and one of b that is the inner dimension.
      const int64_t in_a = a_batches == batches ? batch
                           : a_batches == 1     ? 0
                                                : batch / (batches / a_batches);
      const int64_t in_b = b_batches == batches ? batch : b_batches == 1 ? 0 : batch % b_batches;
      double sum = 0;
      for (int64_t k = 0; k < K; ++k)
        sum += a.at((in_a * M + m) * K + k) * b.at((in_b * K + k) * N + n);
      EXPECT_NEAR(y.at(i), sum, 1e-5);
    }
  }
}

TEST(matmul, a_constant_operand_is_a_weight) {
  Rng rng(44);
  TestModel model;
  model.input("a", {2, 5})
      .constant("b", random_tensor({5, 4}, rng))
      .constant("c", random_tensor({4}, rng));
  model.node("MatMul", {"a", "b"}, {"p"}).node("Add", {"p", "c"}, {"y"}).output("y");
  Graph graph = model.graph();
  const Tensor a = random_tensor({2, 5}, rng);
  EXPECT_LT(relative_error(run_optimized(graph, {a})[0], run_plainly(graph, {a})[0]), 1e-6);
}

}  // namespace
}  // namespace hone::graph
