#include "hone/cost/torch/batched_matmul.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "hone/cost/torch/vectorised.h"

namespace hone::cost::torch_module {
namespace {

constexpr int64_t kWide = 8;  // columns at a time

// Many matrices of the same size somewhere in memory.
struct Matrices {
  const float* data;
  int64_t row, column;   // strides
  int64_t outer, inner;  // strides of the first two dimensions
};

Matrices view(const at::Tensor& t) {
  return {t.data_ptr<float>(), t.stride(2), t.stride(3), t.stride(0), t.stride(1)};
}
Matrices transposed(Matrices m) {
  std::swap(m.row, m.column);
  return m;
}

struct Sizes {
  int64_t outer, inner, m, k, n;
};

// to, row-major, = a x b. `packed` has room for b with its columns rounded up to kWide.
HONE_VECTORISED void multiply(const Matrices& a, const Matrices& b, const Sizes& sizes,
                              float* packed, float* to) {
  const auto [outer, inner, m, k, n] = sizes;
  const int64_t width = (n + kWide - 1) / kWide * kWide;
  for (int64_t o = 0; o < outer * inner; ++o) {
    const float* from_a = a.data + o / inner * a.outer + o % inner * a.inner;
    const float* from_b = b.data + o / inner * b.outer + o % inner * b.inner;
    for (int64_t j = 0; j < width; j += kWide) {  // panels of kWide columns, one after the other
      float* panel = packed + j * k;
      const int64_t real = std::min(kWide, n - j);
      for (int64_t l = 0; l < k; ++l) {
        for (int64_t c = 0; c < kWide; ++c)
          panel[l * kWide + c] = c < real ? from_b[l * b.row + (j + c) * b.column] : 0.0F;
      }
    }
    for (int64_t i = 0; i < m; ++i, to += n) {
      const float* row = from_a + i * a.row;
      for (int64_t j = 0; j < width; j += kWide) {
        const float* panel = packed + j * k;
        float even[kWide] = {}, odd[kWide] = {};
        int64_t l = 0;
        for (; l + 1 < k; l += 2, panel += 2 * kWide) {
          const float first = row[l * a.column], second = row[(l + 1) * a.column];
          for (int64_t c = 0; c < kWide; ++c) even[c] += first * panel[c];
          for (int64_t c = 0; c < kWide; ++c) odd[c] += second * panel[kWide + c];
        }
        if (l < k) {
          const float last = row[l * a.column];
          for (int64_t c = 0; c < kWide; ++c) even[c] += last * panel[c];
        }
        const int64_t real = std::min(kWide, n - j);
        for (int64_t c = 0; c < kWide; ++c) even[c] += odd[c];
        for (int64_t c = 0; c < real; ++c) to[j + c] = even[c];
      }
    }
  }
}

at::Tensor product(const at::Tensor& like, const Matrices& a, const Matrices& b, int64_t m,
                   int64_t k, int64_t n) {
  at::Tensor result = at::empty({like.size(0), like.size(1), m, n}, at::kFloat);
  std::vector<float> packed(static_cast<size_t>(k * ((n + kWide - 1) / kWide * kWide)));
  multiply(a, b, {like.size(0), like.size(1), m, k, n}, packed.data(), result.data_ptr<float>());
  return result;
}

class Product : public torch::autograd::Function<Product> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& a,
                            const at::Tensor& b) {
    context->save_for_backward({a, b});
    return product(a, view(a), view(b), a.size(2), a.size(3), b.size(3));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const at::Tensor &a = saved[0], &b = saved[1], &g = gradients[0];
    const int64_t m = a.size(2), k = a.size(3), n = b.size(3);
    return {product(a, view(g), transposed(view(b)), m, n, k),
            product(a, transposed(view(a)), view(g), k, m, n)};
  }
};

}  // namespace

at::Tensor batched_matmul(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() != 4 || b.dim() != 4 || a.size(0) != b.size(0) || a.size(1) != b.size(1))
    return at::matmul(a, b);
  return Product::apply(a, b);
}

}  // namespace hone::cost::torch_module
