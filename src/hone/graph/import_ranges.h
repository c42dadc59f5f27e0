// graph/import_ranges.h - imports a model whose open dimensions the rule decides (open_shapes.h) at
// the first ranges at which it is valid.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hone/graph/import_onnx.h"
#include "hone/graph/size_options.h"
#include "hone/graph/size_ties.h"

namespace hone::graph {

// An import, above all a failed one, tells this about other ranges.
struct RangeFailure {
  bool at_sizes = false;  // it was inference, at some sizes of ranges
  bool is_valid_at_largest = false;
  std::vector<std::string> batches;    // OpenShapes
  std::vector<std::string> sequences;  // OpenShapes
  int64_t side_divisor = 0;            // OpenShapes
  bool may_batch_states = false;       // OpenShapes
  std::vector<SizeSymbol> symbols;     // OpenShapes
  InputForms inputs;                   // OpenShapes
  std::vector<TiedSymbols> ties;       // those that make it valid; only of ImportPart::kAll
  std::string advice;                  // what its message ends with, if that is advice for ranges
};

// This is what an import does where inputs have ranges.
enum class ImportPart : uint8_t {
  kAll,
  // The same, but not before the model is valid at the smallest sizes. Its errors are for nobody.
  kAllIfSmallest,
  kLargest,  // it only infers shapes at the largest sizes: the graph is not complete
};
using ReadModel = std::function<Result<Graph>(const ImportOptions& options, ImportPart part,
                                              RangeFailure& failure)>;

// If the rule gave a dimension a range in which the model is not valid, other ranges are tried as
// far as the rule gave such: equal ones, half as long sequences, then a batch of 1, then sequences,
// or a batch, that begin with more elements: each with the fewest at which the model is valid. If
// sides of images have ranges, and the model is valid at the largest, multiples of a power of two
// are tried before; then, of other symbols at which one less than the largest is not valid, the
// multiples of a divisor of both ends, whoever gave the range. Where it makes a difference,
// ImportOptions::batched_states is tried first, with all of them. An error says what was found out
// about the ranges that were given. Logs the warnings of the graph.
[[nodiscard]] Result<Graph> import_ranges(const ImportOptions& options, const std::string& file,
                                          const ReadModel& read);

}  // namespace hone::graph
