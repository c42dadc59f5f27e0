// cost/inputs/input_parts.h - the kinds of inputs, each of which has a file of its own (internal to
// cost/inputs). Rows are zero before they are written; the names of their numbers come from the
// same code.
#pragma once

#include "hone/analysis/nest.h"
#include "hone/cost/cost_model.h"
#include "hone/cost/inputs/operator_tag.h"
#include "hone/cost/inputs/row_writer.h"

namespace hone::cost {

// Returns, per stage of a candidate, whether it came from a convolution that Winograd's algorithm
// computes.
[[nodiscard]] std::vector<bool> winograd_stages(const space::Candidate& candidate);

// Returns how much a statement counts where there is no room for all: its operations; one that only
// moves data has weight, too.
[[nodiscard]] double statement_weight(const analysis::Nest& nest);
// Writes one row per statement, and per row its tag and mask. Any pointer may be null.
void write_statements(std::span<const analysis::Nest> nests, const Query& query, float* statements,
                      float* tags, float* mask);

[[nodiscard]] const std::vector<std::string>& step_names();
// Writes the steps of the schedule. `tokens` may be null.
void write_steps(const space::Candidate& candidate, float* tokens, float* mask);

// Writes the task. Without a Dag only names are written.
void write_task(const compute::Dag* dag, RowWriter& out);

void write_device(const target::Cpu& target, int threads, RowWriter& out);

}  // namespace hone::cost
