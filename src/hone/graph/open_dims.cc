#include "hone/graph/open_dims.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "hone/graph/size_options.h"

namespace hone::graph {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Exporters that know no name write one with a number that means nothing.
bool is_nameless(const std::string& name) {
  for (const std::string_view prefix :
       {"unk__", "dynamic_axes_", "DynamicDimension.", "p2o.DynamicDimension.", "dim_", "?"}) {
    if (name.starts_with(prefix) &&
        (name.size() == prefix.size() || all_digits(name.substr(prefix.size()))))
      return true;
  }
  return name.empty() || name == "None" || name == "-1";
}

bool says(const std::string& name, std::initializer_list<std::string_view> words) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return word.size() <= 2 ? lower == word : lower.find(word) != std::string::npos;
  });
}

// Returns whether an input is an image with open sides whose last dimension has its channels: those
// of a grey or coloured one.
bool has_channels_last(const std::vector<FileDim>& dims) {
  return dims.size() >= 4 && dims.back().extent >= 1 && dims.back().extent <= 4 &&
         std::all_of(dims.begin() + 1, dims.end() - 1, [](const FileDim& dim) {
           return dim.extent < 0 && kind_of(dim.name, DimKind::kSide) == DimKind::kSide;
         });
}

// An extent and a range of a dimension, as examples.
struct Example {
  std::string extent, range;
};

Example number_example(int64_t extent) { return {std::to_string(extent), std::to_string(extent)}; }

// Returns the examples for a dimension that no option decides.
Example usual_example(DimKind kind) {
  switch (kind) {
    case DimKind::kBatch: return {"1", "1..8"};
    case DimKind::kSequence: return {"128", "1..128"};
    case DimKind::kSide: break;
  }
  return {"224", "160..224"};
}

// Returns whether the example of a range is the symbol of the rule, which ties a batch without a
// name to those of other inputs.
bool is_tied(const FileDim& dim) {
  return dim.extent < 0 && dim.name.empty() && dim.by_place == DimKind::kBatch;
}

Example example_of(const FileDim& dim, const GivenSizes& given) {
  if (dim.extent >= 0) return number_example(dim.extent);
  const DimKind kind = kind_of(dim.name, dim.by_place);
  const std::string symbol = is_tied(dim) ? rule_name(kind) : dim.name;
  Example example = usual_example(kind);
  if (const auto range = given.ranges.find(symbol); range != given.ranges.end()) {
    const DimRange& sizes = range->second;
    example = number_example(sizes.max);
    if (sizes.min != sizes.max) example.range = fmt::format("{}..{}", sizes.min, sizes.max);
  } else if (const auto number = given.numbers.find(symbol); number != given.numbers.end()) {
    example = number_example(number->second);
  }
  if (is_tied(dim)) example.range = symbol;
  return example;
}

}  // namespace

const char* rule_name(DimKind kind) {
  return (kind == DimKind::kBatch ? kBatchSymbol : kSequenceSymbol).data();
}

DimKind kind_of(const std::string& name, DimKind by_place) {
  if (says(name, {"batch", "n", "b", "bs"})) return DimKind::kBatch;
  if (says(name, {"height", "width", "h", "w"})) return DimKind::kSide;
  if (says(name, {"seq", "len", "time", "token", "frame", "past"})) return DimKind::kSequence;
  return by_place;
}

DimKind kind_by_place(size_t place, size_t rank, bool channels_last) {
  if (place == 0) return DimKind::kBatch;
  const size_t first_side = channels_last ? 1 : 2;
  return rank >= 4 && place >= first_side ? DimKind::kSide : DimKind::kSequence;
}

FileInput read_file_input(const onnx::ValueInfoProto& input) {
  const bool optional = input.type().has_optional_type();
  const auto& type = optional ? input.type().optional_type().elem_type() : input.type();
  FileInput read{input.name(), type.has_tensor_type(), type.tensor_type().has_shape(), {}};
  for (const auto& dim : type.tensor_type().shape().dim()) {
    const bool is_open = !dim.has_dim_value() || dim.dim_value() == -1;
    read.dims.push_back({is_open ? -1 : dim.dim_value(),
                         is_nameless(dim.dim_param()) ? std::string() : dim.dim_param()});
  }
  const bool channels_last = has_channels_last(read.dims);
  for (size_t d = 0; d < read.dims.size(); ++d)
    read.dims[d].by_place = kind_by_place(d, read.dims.size(), channels_last);
  return read;
}

std::vector<std::string> terms_of(const std::string& name) {
  if (name.find('+') == std::string::npos) return {name};
  std::vector<std::string> terms = {""};
  for (const char letter : name) {
    if (letter == '+')
      terms.emplace_back();
    else
      terms.back() += letter;
  }
  for (std::string& term : terms) {
    term.erase(0, term.find_first_not_of(' '));
    term.erase(term.find_last_not_of(' ') + 1);
    if (term.empty() || term.find_first_of("*/()-") != std::string::npos ||
        (all_digits(term) && !number_of(term)))
      return {name};
  }
  return terms;
}

std::optional<int64_t> number_of(const std::string& term) {
  int32_t number = 0;
  if (!all_digits(term)) return std::nullopt;
  const auto [end, wrong] = std::from_chars(term.data(), term.data() + term.size(), number);
  return wrong == std::errc() ? std::optional<int64_t>(number) : std::nullopt;
}

OpenInput undecided_input(const FileInput& input, const GivenSizes& given) {
  OpenInput open{.name = input.name};
  if (!input.has_rank) return open;
  std::vector<std::string> shape, ranges;
  bool has_symbol = false;
  for (const FileDim& dim : input.dims) {
    const Example example = example_of(dim, given);
    open.extents.push_back(dim.extent >= 0    ? std::to_string(dim.extent)
                           : dim.name.empty() ? "?"
                                              : dim.name);
    shape.push_back(example.extent);
    ranges.push_back(example.range);
    has_symbol = has_symbol || is_tied(dim);
  }
  open.shape = fmt::format("{}", fmt::join(shape, "x"));
  open.ranges = fmt::format("{}", fmt::join(ranges, has_symbol ? "," : "x"));
  return open;
}

}  // namespace hone::graph
