// graph/size_form.h - sizes that are known at run time only: symbols, which the shapes of a model's
// inputs decide, and forms, which are numbers that follow from symbols.
//
// A graph whose inputs vary is that of the largest shapes. Graph::varying says which dimensions of
// inputs and outputs have fewer elements in a run. An element lies where it would lie in the
// largest shape; elements beyond the sizes of the run are undefined, but their memory exists.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace hone::graph {

// The value `hone.sizes` has this many elements; a graph has at most as many forms.
inline constexpr int kMaxForms = 64;
// The largest divisor of a form: its product with a size does not overflow.
inline constexpr int64_t kMostDivisor = 1 << 16;
// The largest number in a form: what a plan may have.
inline constexpr int64_t kMostNumber = int64_t{1} << 46;

// A number of a range that includes both ends: the extent `batch` of 1..8.
struct SizeSymbol {
  std::string name;
  int64_t min = 1, max = 1;
};

// A factor times a product of symbols, which are indices into Varying::symbols, and of other forms,
// of which index f into Varying::forms is -1 - f (graph/size_sums.h); without any, a number.
struct SizeTerm {
  int64_t factor = 1;
  std::vector<int> symbols;
};

// The sum of the terms and the offset, divided by the divisor and rounded down, but not less than
// `least` nor more than `most`: batch * 49, past + seq, (side + 1) / 2, min(past + seq, 128). It
// grows with every symbol, so it is largest where all symbols are.
struct SizeForm {
  std::vector<SizeTerm> terms;
  int64_t offset = 0;
  int64_t divisor = 1;
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
  [[nodiscard]] bool has_least() const { return least != std::numeric_limits<int64_t>::min(); }
  [[nodiscard]] bool has_most() const { return most != std::numeric_limits<int64_t>::max(); }
  [[nodiscard]] bool is_bounded() const { return has_least() || has_most(); }
};

// A dimension's extent in a run is the product of those of its parts, and its elements lie as those
// of an array with one dimension for each part, the first one slowest. A part is a form, an index
// into Varying::forms, and its largest value; or a number, if the form is kNoForm.
inline constexpr int kNoForm = -1;
struct SizePart {
  int form = kNoForm;
  int64_t most = 1;
};
using DimParts = std::vector<SizePart>;

// The parts of each dimension of a value. It is empty if none varies.
using ShapeParts = std::vector<DimParts>;

// Describes indices along a dimension with these parts: those before the size `within`, or all if
// that is kNoForm, are indices of elements that a run has.
struct RunPlaces {
  int within = kNoForm;
  DimParts parts;
};

struct Varying {
  std::vector<SizeSymbol> symbols;
  std::vector<SizeForm> forms;
  // In the order of the graph's inputs, without `hone.sizes`, and of its outputs.
  std::vector<ShapeParts> inputs, outputs;
  // The hidden input of the graph, i64[kMaxForms]: element f is form f in this run. -1: nothing
  // varies. The body of a loop has this alone, and it is an input like others there.
  int sizes = -1;
  [[nodiscard]] bool any() const { return sizes >= 0; }
};

// Returns the form's value; `symbols` are the values of all symbols.
[[nodiscard]] int64_t value_of(const SizeForm& form, const std::vector<int64_t>& symbols);

}  // namespace hone::graph
