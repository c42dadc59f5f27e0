// cost/inputs/input_parts.h - the kinds of inputs, each written by a file of its own (internal to
// cost/inputs). Rows are zero before; the names of their numbers come from the same code.
#pragma once

#include "hone/analysis/nest.h"
#include "hone/cost/cost_model.h"
#include "hone/cost/inputs/operator_tag.h"
#include "hone/cost/inputs/row_writer.h"

namespace hone::cost {

// Which stages of a candidate came from a convolution done by Winograd's algorithm.
[[nodiscard]] std::vector<bool> winograd_stages(const space::Candidate& candidate);

// One row per statement; `tags` and `mask` belong to the same rows. Any may be null.
void write_statements(std::span<const analysis::Nest> nests, const Query& query, float* statements,
                      float* tags, float* mask);

[[nodiscard]] const std::vector<std::string>& step_names();
// `tokens` may be null.
void write_steps(const space::Candidate& candidate, float* tokens, float* mask);

// Without a Dag only names are written.
void write_task(const compute::Dag* dag, RowWriter& out);

void write_device(const target::Target& target, int threads, RowWriter& out);

}  // namespace hone::cost
