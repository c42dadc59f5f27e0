#include "hone/cost/net/evaluate.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "hone/base/assert.h"
#include "hone/base/rng.h"

namespace hone::cost::net {
namespace {

struct Array {
  Dims dims;  // with the real batch
  std::vector<double> values;
};

int64_t product(const Dims& dims, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i) count *= dims[i];
  return count;
}

Array make(Dims dims) {
  const auto size = static_cast<size_t>(product(dims, 0, dims.size()));
  return {std::move(dims), std::vector<double>(size)};
}

// Where an array of `from`, broadcast to `to`, has what belongs at `place`.
int64_t source_place(const Dims& to, int64_t place, const Dims& from) {
  int64_t result = 0, stride = 1;
  for (size_t i = 1; i <= from.size(); ++i) {
    const int64_t size = to[to.size() - i], own = from[from.size() - i];
    if (own > 1) result += (place % size) * stride;
    place /= size;
    stride *= own;
  }
  return result;
}

double apply(Op op, double x, double y) {
  switch (op) {
    case Op::kAdd: return x + y;
    case Op::kSub: return x - y;
    case Op::kMul: return x * y;
    case Op::kDiv: return x / y;
    case Op::kGreater: return x > y ? 1 : 0;
    default: HONE_ASSERT(false, "not an operator of two values"); return 0;
  }
}

Array binary(const Node& node, const Dims& dims, const Array& a, const Array& b) {
  Array result = make(dims);
  for (int64_t i = 0; i < std::ssize(result.values); ++i)
    result.values[i] = apply(node.op, a.values[source_place(dims, i, a.dims)],
                             b.values[source_place(dims, i, b.dims)]);
  return result;
}

double apply(const Node& node, double x) {
  switch (node.op) {
    case Op::kRelu: return std::max(x, 0.0);
    case Op::kSigmoid: return 1 / (1 + std::exp(-x));
    case Op::kTanh: return std::tanh(x);
    case Op::kExp: return std::exp(x);
    case Op::kClip: return std::clamp(x, node.numbers[0], node.numbers[1]);
    case Op::kReshape:
    case Op::kDropout: return x;
    default: HONE_ASSERT(false, "not an operator of one value"); return 0;
  }
}

Array unary(const Node& node, const Dims& dims, const Array& a) {
  Array result = make(dims);
  for (size_t i = 0; i < a.values.size(); ++i) result.values[i] = apply(node, a.values[i]);
  return result;
}

Array matmul(const Dims& dims, const Array& a, const Array& b) {
  Array result = make(dims);
  const size_t outer = dims.size() - 2;
  const int64_t rows = dims[outer], columns = dims[outer + 1], inner = a.dims.back();
  const Dims batch(dims.begin(), dims.end() - 2);
  const Dims a_batch(a.dims.begin(), a.dims.end() - 2), b_batch(b.dims.begin(), b.dims.end() - 2);
  for (int64_t n = 0; n < product(batch, 0, batch.size()); ++n) {
    const double* x = &a.values[source_place(batch, n, a_batch) * rows * inner];
    const double* y = &b.values[source_place(batch, n, b_batch) * inner * columns];
    double* out = &result.values[n * rows * columns];
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < inner; ++k)
        for (int64_t j = 0; j < columns; ++j)
          out[i * columns + j] += x[i * inner + k] * y[k * columns + j];
  }
  return result;
}

// f(row, width) for each row of the last axis.
void for_rows(Array& array, const std::function<void(double*, int64_t)>& f) {
  const int64_t width = array.dims.back();
  for (size_t i = 0; i < array.values.size(); i += static_cast<size_t>(width))
    f(&array.values[i], width);
}

void softmax(double* row, int64_t width) {
  const double highest = *std::max_element(row, row + width);
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += row[i] = std::exp(row[i] - highest);
  for (int64_t i = 0; i < width; ++i) row[i] /= sum;
}

Array layer_norm(const Node& node, const std::vector<const Array*>& inputs) {
  Array result = *inputs[0];
  for_rows(result, [&](double* row, int64_t width) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < width; ++i) mean += row[i] / static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) square += (row[i] - mean) * (row[i] - mean);
    const double scale = 1 / std::sqrt(square / static_cast<double>(width) + node.numbers[0]);
    for (int64_t i = 0; i < width; ++i)
      row[i] = (row[i] - mean) * scale * inputs[1]->values[i] + inputs[2]->values[i];
  });
  return result;
}

Array transpose(const Node& node, const Dims& dims, const Array& a) {
  Array result = make(dims);
  for (int64_t i = 0; i < std::ssize(result.values); ++i) {
    int64_t rest = i, place = 0;
    for (size_t axis = dims.size(); axis-- > 0;) {
      const auto from = static_cast<size_t>(node.integers[axis]);
      place += (rest % dims[axis]) * product(a.dims, from + 1, a.dims.size());
      rest /= dims[axis];
    }
    result.values[i] = a.values[place];
  }
  return result;
}

Array reduce(const Node& node, const Dims& dims, const Array& a) {
  Array result = make(dims);
  const auto axis = static_cast<size_t>(node.integers[0]);
  const int64_t size = a.dims[axis], inner = product(a.dims, axis + 1, a.dims.size());
  const double share = node.op == Op::kReduceMean ? 1 / static_cast<double>(size) : 1;
  const bool most = node.op == Op::kReduceMax;
  if (most) std::fill(result.values.begin(), result.values.end(), -HUGE_VAL);
  for (int64_t i = 0; i < std::ssize(a.values); ++i) {
    double& value = result.values[i / (size * inner) * inner + i % inner];
    value = most ? std::max(value, a.values[i]) : value + a.values[i] * share;
  }
  return result;
}

Array slice(const Node& node, const Dims& dims, const Array& a) {
  Array result = make(dims);
  const auto axis = static_cast<size_t>(node.integers[0]);
  const int64_t inner = product(dims, axis + 1, dims.size());
  const int64_t size = dims[axis] * inner, stride = a.dims[axis] * inner;
  for (int64_t i = 0; i < std::ssize(result.values); ++i)
    result.values[i] = a.values[i / size * stride + node.integers[1] * inner + i % size];
  return result;
}

Array concat(const Node& node, const Dims& dims, const std::vector<const Array*>& parts) {
  Array result = make(dims);
  const auto axis = static_cast<size_t>(node.integers[0]);
  const int64_t stride = product(dims, axis, dims.size());
  int64_t begin = 0;
  for (const Array* part : parts) {
    const int64_t size = product(part->dims, axis, dims.size());
    for (int64_t i = 0; i < std::ssize(part->values); ++i)
      result.values[i / size * stride + begin + i % size] = part->values[i];
    begin += size;
  }
  return result;
}

Array compute(const Node& node, const Dims& dims, const std::vector<const Array*>& inputs) {
  switch (node.op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kGreater: return binary(node, dims, *inputs[0], *inputs[1]);
    case Op::kMatmul: return matmul(dims, *inputs[0], *inputs[1]);
    case Op::kSoftmax: {
      Array result = *inputs[0];
      for_rows(result, softmax);
      return result;
    }
    case Op::kLayerNorm: return layer_norm(node, inputs);
    case Op::kTranspose: return transpose(node, dims, *inputs[0]);
    case Op::kReduceSum:
    case Op::kReduceMean:
    case Op::kReduceMax: return reduce(node, dims, *inputs[0]);
    case Op::kConcat: return concat(node, dims, inputs);
    case Op::kSlice: return slice(node, dims, *inputs[0]);
    default: return unary(node, dims, *inputs[0]);
  }
}

Array leaf(const Net& net, const NetBatch& batch, const Node& node, Dims dims) {
  const std::vector<float>& values = node.op == Op::kInput ? batch.inputs[node.source]
                                     : node.op == Op::kParameter
                                         ? net.parameters[node.source].values
                                         : net.constants[node.source].values;
  HONE_ASSERT(std::ssize(values) == product(dims, 0, dims.size()),
              "an input or a parameter has another size than its dimensions say");
  return {std::move(dims), std::vector<double>(values.begin(), values.end())};
}

}  // namespace

std::vector<std::vector<float>> evaluate(const Net& net, const NetBatch& batch) {
  HONE_ASSERT(batch.inputs.size() == net.inputs.size(), "inputs are missing");
  std::vector<Array> arrays;
  for (const Node& node : net.nodes) {
    Dims dims = node.dims;
    if (!dims.empty() && dims[0] < 0) dims[0] = batch.rows;
    if (node.source >= 0) {
      arrays.push_back(leaf(net, batch, node, std::move(dims)));
      continue;
    }
    std::vector<const Array*> inputs;
    for (const int input : node.inputs) inputs.push_back(&arrays[input]);
    arrays.push_back(compute(node, dims, inputs));
  }
  std::vector<std::vector<float>> outputs;
  for (const NetOutput& output : net.outputs) {
    const std::vector<double>& values = arrays[output.node].values;
    outputs.emplace_back(values.begin(), values.end());
  }
  return outputs;
}

namespace {

// The weights of the edges of random trees, which a net of graphs may read.
void fill_edges(std::vector<float>& values, int64_t nodes, Rng& rng) {
  std::fill(values.begin(), values.end(), 0.0F);
  for (auto row = values.begin(); row != values.end(); row += nodes * nodes) {
    for (int64_t i = 0; i < nodes; ++i) {
      row[i * nodes + i] = 0.5F;
      if (i == 0) continue;
      const int64_t parent = rng.between(0, i - 1);
      row[i * nodes + parent] = row[parent * nodes + i] = 0.3F;
    }
  }
}

}  // namespace

NetBatch random_batch(const Net& net, int64_t rows, uint64_t seed) {
  Rng rng(seed);
  NetBatch batch{.rows = rows, .inputs = {}};
  for (const NetInput& input : net.inputs) {
    const int64_t size = element_count(input.dims);
    std::vector<float>& values = batch.inputs.emplace_back(static_cast<size_t>(rows * size));
    if (input.name.ends_with("edges")) {
      fill_edges(values, input.dims[0], rng);
      continue;
    }
    for (float& value : values) value = static_cast<float>(rng.normal());
    if (!input.name.ends_with("mask")) continue;
    for (auto row = values.begin(); row != values.end(); row += size) {
      std::fill(row, row + size, 0.0F);
      std::fill(row, row + rng.between(1, size), 1.0F);
    }
  }
  return batch;
}

}  // namespace hone::cost::net
