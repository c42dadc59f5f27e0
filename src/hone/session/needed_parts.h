// session/needed_parts.h - which elements of each tensor of a model its readers need in runs whose
// sizes are smaller than the largest.
#pragma once

#include <map>
#include <utility>

#include "hone/session/limit_tasks.h"

namespace hone {

// The memory that an argument is in.
using Place = std::pair<graph::Argument::Kind, int>;
[[nodiscard]] inline Place place_of(const graph::Argument& argument) {
  return {argument.kind, argument.index};
}

// A reader of a tensor: it needs an element only in certain runs, and only if the element is within
// each of the limits and has one of these indices in each dimension.
struct PartReader {
  std::vector<OffsetLimit> limits;
  Shape shape;                        // as the reader sees the tensor
  std::vector<ir::Interval> indices;  // one for each dimension; an empty one: it reads nothing
  std::vector<ir::RunNeed> runs;      // each of them holds

  void add_limit(const OffsetLimit& limit);  // the narrower one of two of a kind stays
  void keep_indices(const std::vector<ir::Interval>& known);
};

class NeededParts {
 public:
  explicit NeededParts(const graph::Varying& varying);

  void add(const Place& place, PartReader reader) { readers_[place].push_back(std::move(reader)); }
  // Returns the limits within which all readers stay: an element beyond one of them is not needed.
  // There are none if nobody reads the tensor.
  [[nodiscard]] std::vector<OffsetLimit> of(const Place& place) const;
  // Returns in which runs any reader needs anything of the tensor.
  [[nodiscard]] std::vector<ir::RunNeed> runs_of(const Place& place) const;
  // Leaves out what all runs have.
  [[nodiscard]] std::vector<ir::RunNeed> that_matter(std::vector<ir::RunNeed> runs) const;

 private:
  struct FormRange {
    int64_t least = 1, most = 1;
  };
  [[nodiscard]] int64_t least_of(const PartReader& reader, size_t form) const;
  [[nodiscard]] std::vector<OffsetLimit> suggested_by(const PartReader& reader) const;
  [[nodiscard]] bool stays_within(const PartReader& reader, OffsetLimit& limit) const;
  [[nodiscard]] std::optional<OffsetLimit> with_form(OffsetLimit limit, int form) const;

  std::vector<FormRange> forms_;  // one for each form
  std::vector<graph::SizeForm> all_forms_;
  std::map<Place, std::vector<PartReader>> readers_;
};

}  // namespace hone
