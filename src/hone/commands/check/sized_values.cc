#include "hone/commands/check/sized_values.h"

#include <cstring>

#include "hone/base/rng.h"
#include "hone/base/status.h"
#include "hone/graph/size_values.h"

namespace hone {
namespace {

using graph::ShapeParts;

// Calls visit(place in the largest shape, place in the dense part, elements) for runs of elements.
template <typename Visit>
void for_runs(const ShapeParts& parts, std::span<const int64_t> sizes, const Visit& visit) {
  Shape count, most;
  for (const graph::DimParts& dim : parts) {
    for (const graph::SizePart& part : dim) {
      most.push_back(part.most);
      count.push_back(part.form == graph::kNoForm ? part.most
                                                  : sizes[static_cast<size_t>(part.form)]);
    }
  }
  const int64_t elements = num_elements(count);
  if (elements == 0) return;
  const int64_t row = count.empty() ? 1 : count.back();
  for (int64_t dense = 0; dense < elements; dense += row) {
    int64_t rest = dense, wide = 0, stride = 1;
    for (size_t k = count.size(); k-- > 0;) {
      wide += rest % count[k] * stride;
      rest /= count[k];
      stride *= most[k];
    }
    visit(wide, dense, row);
  }
}

std::vector<int64_t> sizes_of(std::span<const Tensor> inputs) {
  const auto values = inputs.back().as<int64_t>();
  return {values.begin(), values.end()};
}

}  // namespace

Tensor sizes_tensor(const std::vector<int64_t>& sizes) {
  Tensor tensor(DType::kI64, {graph::kMaxForms});
  std::copy(sizes.begin(), sizes.end(), tensor.as<int64_t>().begin());
  return tensor;
}

Tensor sizes_tensor(const graph::Varying& varying, const std::vector<int64_t>& symbols) {
  return sizes_tensor(graph::sizes_of(varying, symbols));
}

std::vector<int64_t> random_symbols(const graph::Varying& varying, uint64_t seed) {
  Rng rng(seed);
  std::vector<int64_t> symbols;
  for (const graph::SizeSymbol& symbol : varying.symbols)
    symbols.push_back(rng.between(symbol.min, symbol.max));
  return symbols;
}

std::string symbols_text(const graph::Varying& varying, const std::vector<int64_t>& symbols) {
  std::string text;
  for (size_t s = 0; s < symbols.size(); ++s)
    text += fmt::format("{}{}={}", s == 0 ? "" : ", ", varying.symbols[s].name,
                        symbols[s] * graph::step_of(varying, static_cast<int>(s)));
  return text;
}

Tensor part_of_run(const Tensor& whole, const ShapeParts& parts, std::span<const int64_t> sizes) {
  if (parts.empty()) return whole;
  const std::vector<int64_t> values(sizes.begin(), sizes.end());
  Tensor part(whole.dtype(), graph::shape_of(parts, whole.shape(), values));
  const auto width = static_cast<size_t>(dtype_bytes(whole.dtype()));
  for_runs(parts, sizes, [&](int64_t wide, int64_t dense, int64_t count) {
    std::memcpy(static_cast<char*>(part.data()) + static_cast<size_t>(dense) * width,
                static_cast<const char*>(whole.data()) + static_cast<size_t>(wide) * width,
                static_cast<size_t>(count) * width);
  });
  return part;
}

Tensor in_largest(const Tensor& part, const Shape& largest, const ShapeParts& parts,
                  std::span<const int64_t> sizes) {
  if (parts.empty()) return part;
  Tensor whole(part.dtype(), largest);
  if (whole.bytes() > 0 && part.dtype() != DType::kBool)
    std::memset(whole.data(), 0xff, static_cast<size_t>(whole.bytes()));
  const auto width = static_cast<size_t>(dtype_bytes(part.dtype()));
  for_runs(parts, sizes, [&](int64_t wide, int64_t dense, int64_t count) {
    std::memcpy(static_cast<char*>(whole.data()) + static_cast<size_t>(wide) * width,
                static_cast<const char*>(part.data()) + static_cast<size_t>(dense) * width,
                static_cast<size_t>(count) * width);
  });
  return whole;
}

std::vector<Tensor> arrays_of_run(const graph::Graph& graph, std::span<const Tensor> inputs) {
  if (!graph.varying.any()) return {inputs.begin(), inputs.end()};
  const std::vector<int64_t> sizes = sizes_of(inputs);
  std::vector<Tensor> arrays;
  for (size_t i = 0; i + 1 < inputs.size(); ++i)
    arrays.push_back(part_of_run(inputs[i], graph.varying.inputs[i], sizes));
  return arrays;
}

Tensor output_of_run(const graph::Graph& graph, size_t i, const Tensor& whole,
                     std::span<const Tensor> inputs) {
  if (!graph.varying.any() || graph.varying.outputs[i].empty()) return whole;
  return part_of_run(whole, graph.varying.outputs[i], sizes_of(inputs));
}

}  // namespace hone
