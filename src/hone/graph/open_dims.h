// graph/open_dims.h - reads the open dimensions of a file's inputs. Their names and places tell
// which are equal, and whether one is a batch, a sequence or the side of an image.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hone/graph/onnx_input.h"

namespace hone::graph {

enum class DimKind : uint8_t { kBatch, kSequence, kSide };

// The symbol of dimensions without a name.
[[nodiscard]] const char* rule_name(DimKind kind);

// A dimension as the file has it: a number, or else a name, which may be empty. If the name says
// nothing, the place in its input decides of which kind it is.
struct FileDim {
  int64_t extent = -1;
  std::string name;
  DimKind by_place = DimKind::kSequence;
};

struct FileInput {
  std::string name;
  bool is_tensor = true, has_rank = false;
  std::vector<FileDim> dims;
};

[[nodiscard]] FileInput read_file_input(const onnx::ValueInfoProto& input);

[[nodiscard]] DimKind kind_of(const std::string& name, DimKind by_place);
// The kind of dimension `place` of an input of so many; of images, the channels are the second one
// or the last one.
[[nodiscard]] DimKind kind_by_place(size_t place, size_t rank, bool channels_last);

// The terms of a name such as "past_sequence_length + 1", separated by signs; a name without a
// sign, or with what is no term, is one term.
[[nodiscard]] std::vector<std::string> terms_of(const std::string& name);
// The number that a term is, or nullopt if it is a name, or larger than any extent of a model.
[[nodiscard]] std::optional<int64_t> number_of(const std::string& term);

// The sizes that options give symbols.
struct GivenSizes {
  std::map<std::string, DimRange> ranges;
  std::map<std::string, int64_t> numbers;
};
// An input that needs an option, with a shape and ranges that one could give: of symbols that
// options decide already, with what these say.
[[nodiscard]] OpenInput undecided_input(const FileInput& input, const GivenSizes& given);

}  // namespace hone::graph
