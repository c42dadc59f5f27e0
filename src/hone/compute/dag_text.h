// compute/dag_text.h - a Dag as text that can be read back: what a database stores of a task.
//
// The text is a loop program (docs/formats/ir.md) that is written to be read, not run:
// intermediates are workspace, constants with values that the Dag itself carries are packed, and
// every stage is a phase that begins with its names: extern "conv2d conv2d n oh ow oc / kh kw
// ic"(extern reads). Per output follow the value's store, in a reduction the identity's, and with a
// merge the other part's buffer and the merge's store.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

[[nodiscard]] std::string to_text(const Dag& dag);
// The same Dag, with the same task key, and what is known of its inputs; verified.
[[nodiscard]] Result<Dag> parse_dag(std::string_view text);

}  // namespace hone::compute
