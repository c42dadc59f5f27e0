#include "hone/learn/torch/row_reader.h"

#include <algorithm>
#include <numeric>

namespace hone::learn::torch_module {
namespace {

int64_t count(const HoneTorchTensor& input) {
  return std::accumulate(input.dims, input.dims + input.rank, int64_t{1}, std::multiplies<>());
}

}  // namespace

RowReader::RowReader(const HoneTorchNet& net, const float* const* inputs, int64_t num_rows)
    : net_(net),
      inputs_(inputs),
      num_rows_(num_rows),
      tokens_(static_cast<size_t>(net.num_inputs)),
      all_tokens_(static_cast<size_t>(num_rows)) {
  for (int i = 0; i < net.num_inputs; ++i) {
    if (net.inputs[i].mask != i) continue;
    const int64_t most = net.inputs[i].dims[0];
    std::vector<int32_t>& tokens = tokens_[static_cast<size_t>(i)];
    tokens.resize(static_cast<size_t>(num_rows));
    for (int64_t row = 0; row < num_rows; ++row) {
      const float* mask = inputs[i] + row * most;
      int64_t length = most;
      while (length > 1 && mask[length - 1] == 0) --length;
      tokens[static_cast<size_t>(row)] = static_cast<int32_t>(length);
      all_tokens_[static_cast<size_t>(row)] += static_cast<int32_t>(length);
    }
  }
  for (int32_t& tokens : all_tokens_) tokens = std::max(tokens, 1);
}

RowInputs RowReader::read(std::span<const int64_t> rows) const {
  RowInputs some{{}, std::vector<int64_t>(static_cast<size_t>(net_.num_inputs))};
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].empty()) continue;
    for (const int64_t row : rows)
      some.tokens[i] = std::max<int64_t>(some.tokens[i], tokens_[i][static_cast<size_t>(row)]);
  }
  for (int i = 0; i < net_.num_inputs; ++i) {
    const HoneTorchTensor& input = net_.inputs[i];
    std::vector<int64_t> dims = {std::ssize(rows)};
    dims.insert(dims.end(), input.dims, input.dims + input.rank);
    const int64_t all = count(input);
    int64_t kept = all;
    if (input.mask >= 0) {
      dims[1] = some.tokens[static_cast<size_t>(input.mask)];
      kept = all / input.dims[0] * dims[1];
    }
    if (input.square != 0) dims[2] = dims[1];
    at::Tensor values = at::empty(dims, at::kFloat);
    float* to = values.data_ptr<float>();
    for (const int64_t row : rows) {
      const float* from = inputs_[i] + row * all;
      if (input.square == 0) to = std::copy_n(from, kept, to);
      for (int64_t k = 0; input.square != 0 && k < dims[1]; ++k)
        to = std::copy_n(from + k * input.dims[1], dims[2], to);
    }
    some.inputs.push_back(std::move(values));
  }
  return some;
}

std::vector<std::vector<int64_t>> RowReader::split(std::span<const int64_t> rows,
                                                   int64_t parts) const {
  const auto tokens = [&](int64_t place) {
    return int64_t{all_tokens_[static_cast<size_t>(rows[static_cast<size_t>(place)])]};
  };
  std::vector<int64_t> order = all_rows(std::ssize(rows));
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return tokens(a) < tokens(b); });
  int64_t left = 0;  // tokens of what no part has yet
  for (const int64_t place : order) left += tokens(place);
  std::vector<std::vector<int64_t>> split;
  auto next = order.begin();
  for (int64_t part = 0; part < parts; ++part) {
    std::vector<int64_t>& places = split.emplace_back();
    const int64_t others = parts - part - 1;
    // Half of a row more or less: never all that the others need.
    for (int64_t taken = 0; order.end() - next > others; ++next) {
      const int64_t more = tokens(*next);
      if (!places.empty() && (2 * taken + more) * (others + 1) > 2 * (left + taken) && others > 0)
        break;
      places.push_back(*next);
      taken += more, left -= more;
    }
  }
  return split;
}

std::vector<int64_t> all_rows(int64_t n) {
  std::vector<int64_t> rows(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace hone::learn::torch_module
