// compute/dag_text.h - writes a Dag as text that can be parsed again, which is how a database
// stores a task.
//
// The text is a loop program (docs/formats/ir.md) that is meant to be read, not run. Intermediates
// are workspace, constants with values that the Dag itself has are packed, and every stage is a
// phase that begins with its names: extern "conv2d conv2d n oh ow oc / kh kw ic"(extern reads). For
// each output the phase has the store of its value, then in a reduction that of the identity, and
// with a merge the other part's buffer and the store of the merge.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

[[nodiscard]] std::string to_text(const Dag& dag);
// Parses and verifies a Dag. It has the same task key and the same known zeros of inputs as the one
// that was written.
[[nodiscard]] Result<Dag> parse_dag(std::string_view text);

}  // namespace hone::compute
