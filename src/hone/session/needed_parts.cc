#include "hone/session/needed_parts.h"

#include <algorithm>
#include <numeric>

#include "hone/graph/size_sums.h"
#include "hone/graph/size_values.h"
#include "hone/ir/scalar.h"

namespace hone {
namespace {

bool same_place(const OffsetLimit& a, const OffsetLimit& b) {
  return a.form == b.form && a.stride == b.stride && a.extent == b.extent && a.scale == b.scale &&
         a.unit == b.unit;
}

// Returns the largest i % period of the indices i; the period 0 is that of i itself.
int64_t largest_place(const ir::Interval& indices, int64_t period) {
  if (period == 0) return indices.hi;
  const bool is_one_period = indices.lo / period == indices.hi / period;
  return is_one_period ? indices.hi % period : period - 1;
}

}  // namespace

void PartReader::add_limit(const OffsetLimit& limit) {
  for (OffsetLimit& own : limits) {
    if (!same_place(own, limit)) continue;
    own.beyond = std::min(own.beyond, limit.beyond);
    return;
  }
  limits.push_back(limit);
}

void PartReader::keep_indices(const std::vector<ir::Interval>& known) {
  if (indices.empty()) {
    indices = known;
    return;
  }
  for (size_t d = 0; d < indices.size(); ++d) indices[d] = ir::intersect(indices[d], known[d]);
}

NeededParts::NeededParts(const graph::Varying& varying) : all_forms_(varying.forms) {
  const std::vector<int64_t> least = graph::smallest_symbols(varying);
  const std::vector<int64_t> most = graph::largest_symbols(varying);
  for (const graph::SizeForm& form : varying.forms)
    forms_.push_back({graph::value_of(varying, form, least), graph::value_of(varying, form, most)});
}

// The least size of the runs in which a reader needs the tensor.
int64_t NeededParts::least_of(const PartReader& reader, size_t form) const {
  int64_t least = forms_[form].least;
  for (const ir::RunNeed& need : reader.runs) {
    if (need.form == static_cast<int>(form)) least = std::max(least, need.least);
  }
  return least;
}

// A reader of the first rows only, such as the state of a text's first token, has no limit of its
// own. As no run in which it reads has fewer rows, it stays within the limit of any size that has
// so many at least.
std::vector<OffsetLimit> NeededParts::suggested_by(const PartReader& reader) const {
  std::vector<OffsetLimit> limits = reader.limits;
  for (size_t d = 0; d < reader.indices.size(); ++d) {
    for (size_t f = 0; f < forms_.size(); ++f) {
      if (forms_[f].most != reader.shape[d] || reader.indices[d].hi >= least_of(reader, f))
        continue;
      const ir::SizeLimit rows{.form = static_cast<int>(f), .dimension = static_cast<int>(d)};
      if (const auto limit = to_offsets(rows, reader.shape)) limits.push_back(*limit);
      break;
    }
  }
  return limits;
}

// Returns a limit by another size of which the limit's own is a multiple or a part at all symbols:
// the sides of a picture before and after they are doubled.
std::optional<OffsetLimit> NeededParts::with_form(OffsetLimit limit, int form) const {
  if (limit.form == form) return limit;
  const auto factor_of = [&](int f) -> const graph::SizeTerm* {
    if (static_cast<size_t>(f) >= all_forms_.size()) return nullptr;
    const graph::SizeForm& one = all_forms_[static_cast<size_t>(f)];
    const bool is_product =
        one.terms.size() == 1 && one.offset == 0 && one.divisor == 1 && !one.is_bounded();
    return is_product && one.terms[0].factor > 0 ? one.terms.data() : nullptr;
  };
  const graph::SizeTerm *own = factor_of(limit.form), *other = factor_of(form);
  if (own == nullptr || other == nullptr || own->symbols != other->symbols) return std::nullopt;
  // The size is own / other times the other one.
  const int64_t scale = limit.scale * other->factor, unit = limit.unit * own->factor;
  const int64_t g = std::gcd(scale, unit);
  limit.form = form;
  limit.scale = scale / g;
  limit.unit = unit / g;
  // Whole numbers are less than a number that is not whole if they are less than the next whole
  // one.
  limit.beyond = -ir::floor_div(-limit.beyond * other->factor, g);
  return with_whole_rows(limit);
}

// Widens the limit to what a reader with the same kind of limit needs.
bool NeededParts::stays_within(const PartReader& reader, OffsetLimit& limit) const {
  for (const OffsetLimit& own : reader.limits) {
    const auto same = with_form(own, limit.form);
    if (!same || !same_place(*same, limit)) continue;
    limit.beyond = std::max(limit.beyond, same->beyond);
    return true;
  }
  const std::optional<ir::SizeLimit> seen = to_dimension(limit, reader.shape);
  if (!seen || static_cast<size_t>(limit.form) >= forms_.size()) return false;
  const ir::Interval& indices = reader.indices[static_cast<size_t>(seen->dimension)];
  if (indices.empty()) return true;
  int64_t least = 0;
  if (__builtin_mul_overflow(seen->unit, least_of(reader, static_cast<size_t>(limit.form)), &least))
    return false;
  return largest_place(indices, seen->period) * seen->scale - seen->offset < least;
}

std::vector<ir::RunNeed> NeededParts::runs_of(const Place& place) const {
  const auto found = readers_.find(place);
  if (found == readers_.end()) return {};
  std::vector<ir::RunNeed> runs = found->second.front().runs;
  for (const PartReader& reader : found->second) runs = ir::needed_by_either(runs, reader.runs);
  return runs;
}

std::vector<ir::RunNeed> NeededParts::that_matter(std::vector<ir::RunNeed> runs) const {
  std::erase_if(runs, [&](const ir::RunNeed& need) {
    return static_cast<size_t>(need.form) >= forms_.size() ||
           need.least <= forms_[static_cast<size_t>(need.form)].least;
  });
  return runs;
}

std::vector<OffsetLimit> NeededParts::of(const Place& place) const {
  std::vector<OffsetLimit> all;
  const auto found = readers_.find(place);
  if (found == readers_.end()) return all;
  for (const PartReader& reader : found->second) {
    for (OffsetLimit limit : suggested_by(reader)) {
      const bool is_known = std::any_of(all.begin(), all.end(), [&](const OffsetLimit& known) {
        const auto same = with_form(limit, known.form);
        return same && same_place(*same, known);
      });
      const auto stays = [&](const PartReader& other) { return stays_within(other, limit); };
      if (!is_known && std::all_of(found->second.begin(), found->second.end(), stays))
        all.push_back(limit);
    }
  }
  return all;
}

}  // namespace hone
