// learn/torch/row_reader.h - reads the inputs of a net for some rows, with no more tokens than the
// longest of them has. It also divides rows into parts of similar length.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "hone/cost/net/torch_api.h"

namespace hone::learn::torch_module {

struct RowInputs {
  std::vector<at::Tensor> inputs;  // [rows, ...], one per input of the net
  std::vector<int64_t> tokens;     // per input: the number of tokens if it is a mask, else 0
};

class RowReader {
 public:
  // Reads from the caller's memory.
  RowReader(const HoneTorchNet& net, const float* const* inputs, int64_t num_rows);

  [[nodiscard]] int64_t num_rows() const { return num_rows_; }
  [[nodiscard]] RowInputs read(std::span<const int64_t> rows) const;
  // Divides `rows` into `parts` (at most as many as there are rows) of about equally many tokens.
  // Returns indices into `rows`, those with the fewest tokens first. Every part has a row.
  [[nodiscard]] std::vector<std::vector<int64_t>> split(std::span<const int64_t> rows,
                                                        int64_t parts) const;

 private:
  const HoneTorchNet& net_;
  const float* const* inputs_;
  int64_t num_rows_;
  std::vector<std::vector<int32_t>> tokens_;  // per input that is a mask, and per row
  std::vector<int32_t> all_tokens_;           // per row: the sum over all masks, at least 1
};

// Returns 0 to n - 1.
[[nodiscard]] std::vector<int64_t> all_rows(int64_t n);

}  // namespace hone::learn::torch_module
