#include "hone/learn/torch/batched_matmul.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "hone/learn/torch/raw_gradient.h"
#include "hone/learn/torch/vectorised.h"

namespace hone::learn::torch_module {
namespace {

constexpr int64_t kWide = 8;  // columns at a time

// Many matrices of the same size somewhere in memory. T is float, or double in tests of gradients.
template <typename T>
struct Matrices {
  const T* data;
  int64_t row, column;   // strides
  int64_t outer, inner;  // strides of the first two dimensions
};

template <typename T>
Matrices<T> view(const at::Tensor& t) {
  return {t.data_ptr<T>(), t.stride(2), t.stride(3), t.stride(0), t.stride(1)};
}
template <typename T>
Matrices<T> transposed(Matrices<T> m) {
  std::swap(m.row, m.column);
  return m;
}

struct Sizes {
  int64_t outer, inner, m, k, n;
};

template <typename T>
struct WideOf;
template <>
struct WideOf<float> {
  using Type =
      float __attribute__((vector_size(kWide * sizeof(float)), aligned(sizeof(float)), may_alias));
};
template <>
struct WideOf<double> {
  using Type = double
      __attribute__((vector_size(kWide * sizeof(double)), aligned(sizeof(double)), may_alias));
};

// Some columns of b, a row after the other; what is beyond its last column is 0.
template <typename T>
[[gnu::always_inline]] inline void pack(const T* from, int64_t row, int64_t column, int64_t k,
                                        int64_t columns, T* panel) {
  for (int64_t l = 0; l < k; ++l, from += row, panel += kWide) {
    for (int64_t c = 0; c < columns; ++c) panel[c] = from[c * column];
    for (int64_t c = columns; c < kWide; ++c) panel[c] = 0;
  }
}

// kRows rows of a, `row` apart, by a panel: the first `columns` numbers of each row of `to`.
template <int kRows, typename T>
[[gnu::always_inline]] inline void multiply_rows(const T* a, int64_t row, int64_t column,
                                                 const T* panel, int64_t k, int64_t n,
                                                 int64_t columns, T* to) {
  using Wide = typename WideOf<T>::Type;
  Wide sums[kRows] = {};
  for (int64_t l = 0; l < k; ++l, a += column, panel += kWide) {
    const Wide values = *reinterpret_cast<const Wide*>(panel);
    for (int r = 0; r < kRows; ++r) sums[r] += a[r * row] * values;
  }
  for (int r = 0; r < kRows; ++r, to += n) {
    if (columns == kWide)
      *reinterpret_cast<Wide*>(to) = sums[r];
    else
      for (int64_t c = 0; c < columns; ++c) to[c] = sums[r][c];
  }
}

// to, row-major, = a x b. `panel` has room for kWide columns of b.
template <typename T>
[[gnu::always_inline]] inline void multiply_all(const Matrices<T>& a, const Matrices<T>& b,
                                                const Sizes& sizes, T* panel, T* to) {
  const auto [outer, inner, m, k, n] = sizes;
  for (int64_t o = 0; o < outer * inner; ++o, to += m * n) {
    const T* from_a = a.data + o / inner * a.outer + o % inner * a.inner;
    const T* from_b = b.data + o / inner * b.outer + o % inner * b.inner;
    for (int64_t j = 0; j < n; j += kWide) {
      const int64_t columns = std::min(kWide, n - j);
      pack(from_b + j * b.column, b.row, b.column, k, columns, panel);
      int64_t i = 0;
      for (; i + 4 <= m; i += 4)
        multiply_rows<4>(from_a + i * a.row, a.row, a.column, panel, k, n, columns, to + i * n + j);
      for (; i < m; ++i)
        multiply_rows<1>(from_a + i * a.row, a.row, a.column, panel, k, n, columns, to + i * n + j);
    }
  }
}

HONE_VECTORISED void multiply(const Matrices<float>& a, const Matrices<float>& b,
                              const Sizes& sizes, float* panel, float* to) {
  multiply_all(a, b, sizes, panel, to);
}
void multiply(const Matrices<double>& a, const Matrices<double>& b, const Sizes& sizes,
              double* panel, double* to) {
  multiply_all(a, b, sizes, panel, to);
}

template <typename T>
at::Tensor product(const at::Tensor& like, const Matrices<T>& a, const Matrices<T>& b, int64_t m,
                   int64_t k, int64_t n) {
  at::Tensor result = at::empty({like.size(0), like.size(1), m, n}, like.options());
  std::vector<T> panel(static_cast<size_t>(k * kWide));
  multiply(a, b, {like.size(0), like.size(1), m, k, n}, panel.data(), result.data_ptr<T>());
  return result;
}

template <typename T>
class Product : public torch::autograd::Function<Product<T>> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& a,
                            const at::Tensor& b) {
    context->save_for_backward({a, b});
    return product(a, view<T>(a), view<T>(b), a.size(2), a.size(3), b.size(3));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const at::Tensor &a = saved[0], &b = saved[1], &g = gradients[0];
    // A gradient that will be differentiated itself has to be made of recorded products.
    if (is_differentiated_again())
      return {batched_matmul(g, b.transpose(2, 3)), batched_matmul(a.transpose(2, 3), g)};
    const int64_t m = a.size(2), k = a.size(3), n = b.size(3);
    return {product(a, view<T>(g), transposed(view<T>(b)), m, n, k),
            product(a, transposed(view<T>(a)), view<T>(g), k, m, n)};
  }
};

}  // namespace

at::Tensor batched_matmul(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() != 4 || b.dim() != 4 || a.size(0) != b.size(0) || a.size(1) != b.size(1))
    return at::matmul(a, b);
  return a.scalar_type() == at::kDouble ? Product<double>::apply(a, b)
                                        : Product<float>::apply(a, b);
}

}  // namespace hone::learn::torch_module
