#include "hone/learn/torch/batched_matmul.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace hone::learn::torch_module {
namespace {

using torch::autograd::grad;
using torch::autograd::variable_list;

using Product = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

at::Tensor reference(const at::Tensor& a, const at::Tensor& b) { return at::matmul(a, b); }

// The product, its gradients, and the gradients of a function of those.
struct Derivatives {
  at::Tensor value;
  variable_list first, second;
};

Derivatives derivatives(Product product, const at::Tensor& a, const at::Tensor& b) {
  Derivatives result;
  result.value = product(a, b);
  const at::Tensor loss = (result.value * result.value).sum();
  result.first = grad({loss}, {a, b}, {}, /*retain_graph=*/true, /*create_graph=*/true);
  const at::Tensor sum = (result.first[0] * result.first[0]).sum() + result.first[1].exp().sum();
  result.second = grad({sum}, {a, b});
  return result;
}

TEST(batched_matmul, has_the_derivatives_of_libtorch_also_the_second_ones) {
  at::manual_seed(3);
  for (const bool turned : {false, true}) {
    at::Tensor a = (0.1 * at::randn({2, 3, 5, 7})).requires_grad_(true);
    at::Tensor b = turned ? (0.1 * at::randn({2, 3, 9, 7})).transpose(2, 3).detach()
                          : 0.1 * at::randn({2, 3, 7, 9});
    b.requires_grad_(true);
    const Derivatives own = derivatives(batched_matmul, a, b);
    const Derivatives wanted = derivatives(reference, a, b);
    EXPECT_TRUE(at::allclose(own.value, wanted.value, 1e-5, 1e-6));
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(at::allclose(own.first[i], wanted.first[i], 1e-4, 1e-6)) << i;
      EXPECT_TRUE(at::allclose(own.second[i], wanted.second[i], 1e-4, 1e-6)) << i;
      EXPECT_GT(wanted.second[i].abs().max().item<double>(), 1e-3);
    }
  }
}

}  // namespace
}  // namespace hone::learn::torch_module
