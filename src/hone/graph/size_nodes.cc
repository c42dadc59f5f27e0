// The nodes by which a graph reads the sizes of a run: masks, extents, and numbers that the import
// derived from shapes.
#include <algorithm>
#include <cmath>

#include "hone/graph/integer_at.h"
#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

constexpr int64_t kMostNumbers = 64;  // elements of a constant that are computed at run time

}  // namespace

ValueId SizeFollower::size_of(ExpandContext& c, int form) {
  const auto at = sizes_.find(form);
  if (at != sizes_.end()) return at->second;
  return sizes_[form] = c.reshape(c.slice(graph_.varying.sizes, 0, form, form + 1), {});
}

ValueId SizeFollower::extent_of(ExpandContext& c, const DimParts& parts) {
  int64_t number = 1;
  ValueId extent = kNoValue;
  for (const SizePart& part : parts) {
    if (part.form == kNoForm) {
      number *= part.most;
    } else {
      const ValueId size = size_of(c, part.form);
      extent = extent == kNoValue ? size : c.binary("Mul", extent, size);
    }
  }
  if (extent == kNoValue) return c.scalar(DType::kI64, static_cast<double>(number));
  return number == 1 ? extent : c.binary("Mul", extent, static_cast<double>(number));
}

// [extent], true at the elements that a run has.
ValueId SizeFollower::mask_of(ExpandContext& c, const DimParts& parts) {
  std::vector<std::pair<int, int64_t>> key;
  int64_t extent = 1;
  for (const SizePart& part : parts) {
    key.emplace_back(part.form, part.most);
    extent *= part.most;
  }
  if (const auto at = masks_.find(key); at != masks_.end()) return at->second;
  ValueId mask = kNoValue;
  int64_t inner = extent;
  for (const SizePart& part : parts) {
    inner /= std::max<int64_t>(1, part.most);
    if (part.form == kNoForm) continue;
    const ValueId places = constant_by(c, DType::kI64, {extent}, [&](int64_t i) {
      return static_cast<double>(i / inner % part.most);
    });
    const ValueId inside = c.binary("Less", places, size_of(c, part.form));
    mask = mask == kNoValue ? inside : c.binary("And", mask, inside);
  }
  return masks_[key] = mask;
}

ValueId SizeFollower::filled(ExpandContext& c, ValueId x, const std::vector<size_t>& dims,
                             double value) {
  std::vector<size_t> open;
  for (const size_t d : dims) {
    if (varies(x, d) && !(value == 0 && is_zero_beyond(x, d))) open.push_back(d);
  }
  if (open.empty()) return x;
  const auto key = std::tuple(x, open, value);
  if (const auto at = filled_.find(key); at != filled_.end()) return at->second;
  const ShapeParts parts = parts_of(x);
  const ValueId fill = c.scalar(c.dtype_of(x), value);
  ValueId y = x;
  for (const size_t d : open) {
    y = c.add("Where", {along(c, mask_of(c, parts[d]), d, parts.size()), y, fill});
    set_parts(y, parts);
  }
  for (size_t d = 0; value == 0 && d < parts.size(); ++d) {
    if (is_zero_beyond(x, d) || std::count(open.begin(), open.end(), d) > 0) set_zero_beyond(y, d);
  }
  return filled_[key] = y;
}

// The number of an element has a digit for each part, of which the run has so many.
ValueId SizeFollower::places_of(ExpandContext& c, ValueId numbers, const DimParts& parts) {
  ValueId left = numbers, place = kNoValue;
  int64_t stride = 1;
  for (size_t k = parts.size(); k-- > 0;) {
    const SizePart& part = parts[k];
    const ValueId size = c.binary("Max", extent_of(c, {part}), 1.0);
    const ValueId digit = k == 0 ? left : c.binary("Mod", left, size);
    const ValueId moved = c.binary("Mul", digit, static_cast<double>(stride));
    place = place == kNoValue ? moved : c.binary("Add", place, moved);
    stride *= part.most;
    if (k > 0) left = c.binary("Div", left, size);
  }
  return c.binary("Min", place, static_cast<double>(stride - 1));
}

std::optional<ValueId> SizeFollower::side_by_side(ExpandContext& c, ValueId x, size_t dim) {
  const ShapeParts parts = parts_of(x);
  if (is_contiguous(parts[dim])) return x;
  if (const auto at = side_by_side_.find({x, dim}); at != side_by_side_.end()) return at->second;
  const auto form = sum_form({parts[dim]});
  if (!form) return std::nullopt;
  const int64_t most = c.shape_of(x)[dim];
  const ValueId place = places_of(c, numbers_from_0(c, most), parts[dim]);
  const ValueId y = gathered(c, x, place, dim, {*form, parts[dim]});
  ShapeParts moved = parts;
  moved[dim] = {{*form, most}};
  set_parts(y, std::move(moved));
  origins_[y] = origin(x);
  return side_by_side_[{x, dim}] = y;
}

ValueId SizeFollower::gathered(ExpandContext& c, ValueId x, ValueId places, size_t dim,
                               RunPlaces known) {
  const ValueId y = c.add("Gather", {x, places}, {{"axis", static_cast<int64_t>(dim)}});
  run_places_[y] = std::move(known);
  return y;
}

ValueId along(ExpandContext& c, ValueId list, size_t dim, size_t rank) {
  Shape shape(rank - dim, 1);
  shape[0] = c.shape_of(list)[0];
  return c.reshape(list, shape);
}

ValueId are_inside(ExpandContext& c, ValueId places, ValueId extent) {
  return c.binary("And", c.binary("Less", c.scalar(DType::kI64, -1), places),
                  c.binary("Less", places, extent));
}

std::optional<int> SizeFollower::number_form(ValueId constant, int64_t element) {
  const auto is_whole = [](double number) {
    return std::abs(number) < 1e15 && number == std::floor(number);
  };
  const double most = graph_.value(constant).constant->at(element);
  if (!is_whole(most)) return std::nullopt;
  std::vector<SizeSample> samples = {{&most_, static_cast<int64_t>(most)}};
  for (const SizeProbe& probe : probes_) {
    const Value* twin = probe.twin(origin(constant));
    if (twin == nullptr) continue;
    const double number = twin->constant->at(element);
    if (!is_whole(number)) return std::nullopt;
    samples.push_back({&probe.symbols, static_cast<int64_t>(number)});
  }
  return form_of(samples);
}

std::optional<ValueId> SizeFollower::numbers_at_run_time(ExpandContext& c, ValueId constant) {
  const Tensor tensor = *graph_.value(constant).constant;
  if (tensor.size() > kMostNumbers || tensor.dtype() == DType::kBool) return std::nullopt;
  std::vector<int64_t> which, numbers;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto form = number_form(constant, i);
    if (!form) return std::nullopt;
    which.push_back(*form == kNoForm ? kMaxForms + std::ssize(numbers) : *form);
    if (*form == kNoForm) numbers.push_back(integer_at(tensor, i));
  }
  ValueId all = graph_.varying.sizes;
  if (!numbers.empty()) all = c.add("Concat", {all, c.integers(numbers)}, {{"axis", int64_t{0}}});
  const ValueId taken = c.reshape(c.add("Gather", {all, c.integers(which)}), tensor.shape());
  return c.cast(taken, tensor.dtype());
}

}  // namespace hone::graph
