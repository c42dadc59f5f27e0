// Reshape, Squeeze and Flatten of values whose shape depends on data.
// These move elements to places that follow from the shape that a run has.
#include <algorithm>
#include <optional>

#include "hone/graph/integer_at.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

// A shape that a Reshape asks for: the largest, and what each of its extents is in a run.
struct Target {
  Shape most;
  std::vector<ExtentPart> parts;
  bool surely_fits = true;
};

// Extents that are multiplied: the product of those that are known, and the others.
struct Factors {
  int64_t number = 1;
  std::vector<ExtentPart> others;
};

Factors factors_of(const ExpandContext& c, const std::vector<ExtentPart>& parts) {
  Factors factors;
  for (const ExtentPart& part : parts) {
    const ExtentPart known = as_number(c, part);
    if (known.extents == kNoValue)
      factors.number *= known.dim;
    else
      factors.others.push_back(known);
  }
  return factors;
}

// Returns the quotient of products of extents; nothing if it may not be whole in a run.
std::optional<Factors> quotient_of(const ExpandContext& c, const std::vector<ExtentPart>& product,
                                   const std::vector<ExtentPart>& divisors) {
  Factors rest = factors_of(c, product);
  const Factors by = factors_of(c, divisors);
  for (const ExtentPart& one : by.others) {
    const auto same =
        std::find_if(rest.others.begin(), rest.others.end(),
                     [&](const ExtentPart& other) { return are_same(c, one, other); });
    if (same == rest.others.end()) return std::nullopt;
    rest.others.erase(same);
  }
  if (by.number == 0 || rest.number % by.number != 0) return std::nullopt;
  rest.number /= by.number;
  return rest;
}

// Returns a product as one extent, if it is one.
std::optional<ExtentPart> single(const Factors& product) {
  if (product.others.empty()) return ExtentPart{kNoValue, product.number};
  if (product.number == 1 && product.others.size() == 1) return product.others[0];
  return std::nullopt;
}

// Returns the product of extents, as a vector of one element.
ValueId product_of(ExpandContext& c, const std::vector<ExtentPart>& parts) {
  if (const auto one = single(factors_of(c, parts))) return extent_of(c, *one);
  return c.reduce("ReduceProd", join_extents(c, parts), {0});
}

// A run in which a shape has another number of elements than the operand ends with an error of this
// text. The check becomes a part of an extent of the shape that data decide, or, if there is none,
// of the value.
Status check_fit(ExpandContext& c, Target& target, ValueId& value, std::string_view text) {
  const std::vector<ExtentPart> from = parts(c, c.input(0), 0, c.shape(0).size());
  const ValueId fits = c.binary("Equal", product_of(c, from), product_of(c, target.parts));
  const auto decided =
      std::find_if(target.parts.begin(), target.parts.end(),
                   [&](const ExtentPart& part) { return as_number(c, part).extents != kNoValue; });
  const bool is_shape = decided != target.parts.end();
  HONE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> made,
      LoopBuilder::add_fault(c, c.add("Not", {c.reshape(fits, {})}),
                             {.beyond = fmt::format("{}: {}", name_and_type(c.node()), text)},
                             {is_shape ? extent_of(c, *decided) : value}));
  if (is_shape)
    *decided = {made[0], 0};
  else
    value = made[0];
  return ok_status();
}

Result<Target> target_of(ExpandContext& c) {
  const Tensor* asked = c.upper_of(c.input(1));
  if (asked == nullptr) return c.required(1, "the shape").status();
  if (varies(c, 1)) return c.unsupported("a shape whose length depends on data");
  if (c.shape(1).size() != 1 || c.dtype(1) != DType::kI64)
    return c.fail("a shape that is no vector of 64-bit integers");
  const Tensor numbers = *asked;
  const bool is_known = c.constant_of(c.input(1)) != nullptr;
  const bool copies = c.attributes().integer("allowzero", 0) == 0;
  const Shape from = c.shape(0);
  Target target;
  std::vector<ExtentPart> others;
  int64_t rest = 1, open = -1;
  for (int64_t d = 0; d < numbers.size(); ++d) {
    const int64_t number = integer_at(numbers, d);
    const auto dim = static_cast<size_t>(d);
    target.most.push_back(number);
    target.parts.push_back(is_known ? ExtentPart{kNoValue, number} : ExtentPart{c.input(1), d});
    if (number == 0 && copies) {
      if (dim >= from.size())
        return c.fail("a 0 in place {}, of a value of rank {}", d, from.size());
      target.most.back() = from[dim];
      target.parts.back() = parts(c, c.input(0), dim, dim + 1)[0];
    } else if (number < 0) {
      if (number != -1 || open >= 0) return c.fail("the shape has {} in place {}", number, d);
      open = d;
      continue;
    }
    if (__builtin_mul_overflow(rest, target.most.back(), &rest))
      return c.fail("the shape {} is too large", to_string(target.most));
    others.push_back(target.parts.back());
  }
  const int64_t all = num_elements(from);
  if (open < 0 ? rest != all : rest == 0 || all % rest != 0) {
    return c.unsupported("a value of at most {} to a shape of at most {}", to_string(from),
                         to_string(target.most));
  }
  const std::vector<ExtentPart> of_data = parts(c, c.input(0), 0, from.size());
  const std::optional<Factors> rest_of_data = quotient_of(c, of_data, others);
  if (open < 0) {
    target.surely_fits = rest_of_data && rest_of_data->others.empty() && rest_of_data->number == 1;
    return target;
  }
  target.surely_fits = rest_of_data.has_value();
  target.most[static_cast<size_t>(open)] = all / rest;
  const std::optional<ExtentPart> known = rest_of_data ? single(*rest_of_data) : std::nullopt;
  target.parts[static_cast<size_t>(open)] =
      known ? *known
            : ExtentPart{c.binary("Div", product_of(c, of_data), divisor(c, product_of(c, others))),
                         0};
  return target;
}

// Returns whether all dimensions but one have one element, so that elements are in the same order
// whatever the extents are.
bool is_list(const Shape& shape) {
  return std::count(shape.begin(), shape.end(), 1) + 1 >= std::ssize(shape);
}

// A dimension of which data decide the extent.
struct DecidedDim {
  ExtentPart part;
  int64_t most = 0, stride = 0;
};

// Returns those of a shape; nothing if another dimension of a run has less than its largest extent.
std::optional<std::vector<DecidedDim>> decided_dims(const ExpandContext& c, const Shape& most,
                                                    const std::vector<ExtentPart>& parts) {
  std::vector<DecidedDim> decided;
  int64_t stride = 1;
  for (size_t d = most.size(); d-- > 0; stride *= most[d]) {
    const ExtentPart known = as_number(c, parts[d]);
    if (known.extents != kNoValue)
      decided.push_back({known, most[d], stride});
    else if (known.dim != most[d])
      return std::nullopt;
  }
  return decided;
}

// Returns whether the elements lie in the largest shapes as in those of a run: what data decide of
// the operand are dimensions of the target, too, and all others are whole.
bool keeps_places(ExpandContext& c, const Target& target) {
  const auto own = decided_dims(c, c.shape(0), parts(c, c.input(0), 0, c.shape(0).size()));
  const auto made = decided_dims(c, target.most, target.parts);
  return own && made &&
         std::equal(own->begin(), own->end(), made->begin(), made->end(),
                    [&](const DecidedDim& a, const DecidedDim& b) {
                      return a.most == b.most && a.stride == b.stride &&
                             are_same(c, a.part, b.part);
                    });
}

// Returns for each element of the target where it lies among the elements of x in its largest
// shape.
ValueId places_of(ExpandContext& c, ValueId x, const Target& target) {
  const Shape from = c.shape_of(x);
  ValueId number = c.scalar(DType::kI64, 0);  // of the element, in the order of those of a run
  for (size_t d = 0; d < target.most.size(); ++d) {
    const std::vector<ExtentPart> behind(target.parts.begin() + static_cast<long>(d) + 1,
                                         target.parts.end());
    const ValueId stride = c.reshape(product_of(c, behind), {});
    number = c.binary("Add", number, c.binary("Mul", places_along(c, target.most, d), stride));
  }
  ValueId place = c.scalar(DType::kI64, 0);
  int64_t stride = 1;
  for (size_t d = from.size(); d-- > 0;) {
    const ValueId extent =
        divisor(c, c.reshape(dimension(c, c.extents_of(x), static_cast<int64_t>(d)), {}));
    const ValueId next = c.binary("Div", number, extent);
    const ValueId at = c.binary("Sub", number, c.binary("Mul", next, extent));
    place = c.binary("Add", place, c.binary("Mul", at, static_cast<double>(stride)));
    number = next;
    stride *= from[d];
  }
  return place;
}

// Gives the node the elements of its operand in another shape.
Status give_in_shape(ExpandContext& c, Target target) {
  const ValueId x = c.input(0);
  ValueId plain = without_extents(c, x), y = kNoValue;
  const bool keeps = keeps_places(c, target);
  if (!target.surely_fits && !keeps) {
    HONE_RETURN_IF_ERROR(check_fit(
        c, target, plain, "its operand has another number of elements than the shape in this run"));
  }
  if (keeps || (is_list(c.shape(0)) && is_list(target.most))) {
    y = c.reshape(plain, target.most);
  } else {
    const ValueId last = c.integers({std::max<int64_t>(num_elements(c.shape(0)) - 1, 0)});
    const ValueId places = c.binary("Min", places_of(c, x, target), last);
    y = c.add("Gather", {c.reshape(plain, {num_elements(c.shape(0))}), places});
  }
  c.result(0, with_extents(c, y, join_extents(c, target.parts)));
  return ok_status();
}

}  // namespace

Status propagate_reshape(ExpandContext& c) {
  if (!varies(c, 0)) return c.unsupported("a shape whose length depends on data");
  HONE_ASSIGN_OR_RETURN(const Target target, target_of(c));
  return give_in_shape(c, std::move(target));
}

namespace {

// Returns the dimensions of one element; nothing if data decide whether another one has as many.
std::optional<std::vector<int64_t>> ones_of(const ExpandContext& c) {
  std::vector<int64_t> ones;
  for (size_t d = 0; d < c.shape(0).size(); ++d) {
    if (c.shape(0)[d] == 1)
      ones.push_back(static_cast<int64_t>(d));
    else if (is_decided(c, 0, d))
      return std::nullopt;
  }
  return ones;
}

}  // namespace

Result<bool> propagate_squeeze(ExpandContext& c) {
  if (c.node().type != "Squeeze" || !varies(c, 0)) return false;
  HONE_ASSIGN_OR_RETURN(auto axes, c.integers_or_attribute(1, "axes"));
  const size_t rank = c.shape(0).size();
  if (!axes) axes = ones_of(c);
  if (!axes) return false;
  std::vector<bool> taken(rank, false);
  Target target;
  for (const int64_t given : *axes) {
    const auto axis = normalize_axis(given, static_cast<int64_t>(rank));
    if (!axis || c.shape(0)[static_cast<size_t>(*axis)] != 1) return false;  // an error
    taken[static_cast<size_t>(*axis)] = true;
    target.surely_fits = target.surely_fits && !is_decided(c, 0, static_cast<size_t>(*axis));
  }
  if (target.surely_fits) return false;
  ValueId plain = without_extents(c, c.input(0));
  for (size_t d = 0; d < rank; ++d) {
    if (taken[d]) continue;
    target.most.push_back(c.shape(0)[d]);
    target.parts.push_back(part_of(c, c.input(0), d));
  }
  HONE_RETURN_IF_ERROR(
      check_fit(c, target, plain, "a dimension that it removes has no element in this run"));
  c.result(0, with_extents(c, c.reshape(plain, target.most), join_extents(c, target.parts)));
  return true;
}

Status propagate_flatten(ExpandContext& c) {
  const auto rank = static_cast<int64_t>(c.shape(0).size());
  const int64_t given = c.attributes().integer("axis", 1);
  if (given < -rank || given > rank) return c.fail("axis {} of a value of rank {}", given, rank);
  const auto axis = static_cast<size_t>(given < 0 ? given + rank : given);
  const Shape from = c.shape(0);
  const auto middle = from.begin() + static_cast<long>(axis);
  const auto count = [](auto begin, auto end) { return num_elements(Shape(begin, end)); };
  Target target;
  target.most = {count(from.begin(), middle), count(middle, from.end())};
  for (const auto& [begin, end] : {std::pair{size_t{0}, axis}, std::pair{axis, from.size()}})
    target.parts.push_back({product_of(c, parts(c, c.input(0), begin, end)), 0});
  return give_in_shape(c, std::move(target));
}

}  // namespace hone::graph
