// graph/open_shapes.h - decides which dimensions of a model's inputs differ from run to run, and
// names the numbers that decide them: by --shape, by the symbols of the file, or by a rule. Only
// files that see the ONNX protobuf headers include this.
//
// The rule, for open dimensions that no option decides: the first dimension of an input, or one
// whose name says batch, is 1..8; the sides of images (dimensions behind the second of an input of
// rank 4 or 5, or by name) have to be given; all others, which are sequences, are 1..512. First
// dimensions without a name are equal in all inputs, and so are sequences without one. If the model
// is not valid there, the importer tries others (import_ranges.h).
#pragma once

#include <onnx/onnx_pb.h>

#include <set>

#include "hone/graph/import_onnx.h"
#include "hone/graph/size_options.h"

namespace hone::graph {

struct OpenShapes {
  // A side that is counted in steps (ImportOptions::side_step) has the step as the factor of its
  // symbol wherever it stands in `inputs`.
  std::vector<SizeSymbol> symbols;
  InputForms inputs;
  // The largest shapes of all inputs that the options or the rule decide.
  std::map<std::string, Shape> shapes;
  std::string taken;  // one line about what the rule decided; empty: nothing
  // The symbols of batches (ImportOptions::most_batch) and of sequences that the rule gave a range.
  std::vector<std::string> batches, sequences;
  // Symbols such as `x.0`, of an extent without a name: no option can name these.
  std::set<std::string> unnamed;
  bool may_batch_states = false;  // ImportOptions::batched_states would make a difference
  // The greatest common divisor of the ends of all ranges of sides; 0 if there are none.
  int64_t side_divisor = 0;
};

// The error names the input, and the symbol or the option that is wrong.
[[nodiscard]] Result<OpenShapes> open_shapes(const onnx::GraphProto& graph,
                                             const ImportOptions& options, const std::string& file);

}  // namespace hone::graph
