// Pointwise operators, Expand and MatMul on values whose shape depends on data, where an extent may
// happen to be 1 and another one not. Elements of such a dimension are repeated where a run has one
// of them: the place that is read is 0 there. A run in which they do not go together fails.
#include <algorithm>
#include <optional>

#include "hone/graph/known_elements.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

// This is what one operand of a broadcast has along a dimension of the result.
struct Along {
  ExtentPart part;   // a number if it is known
  int64_t most = 1;  // the largest
  bool stands_for_run = false;
  [[nodiscard]] bool is_decided() const { return part.extents != kNoValue; }
};

// This is a dimension of the result.
struct Joined {
  int64_t most = 1;
  ExtentPart part;
  // Nothing but the largest shapes decides whether operands are repeated, and the result has the
  // extents of the first operand that has the largest one.
  bool is_plain = true;
  bool repeats = false;            // operands of one element in a run are repeated
  std::vector<ExtentPart> shapes;  // extents of operands that are shapes alone, which data decide
};

Along along(const ExpandContext& c, const ExtentPart& part, int64_t most, bool stands_for_run) {
  return {most == 0 ? ExtentPart{kNoValue, most} : as_number(c, part), most, stands_for_run};
}

bool are_same(const ExpandContext& c, const Along& a, const Along& b) {
  return are_same(c, a.part, b.part);
}

// Returns one of two extents that are equal where neither is 1.
ExtentPart chosen(ExpandContext& c, const ExtentPart& a, const ExtentPart& b) {
  const ValueId first = dimension(c, a.extents, a.dim), second = dimension(c, b.extents, b.dim);
  return {c.add("Where", {c.binary("Equal", first, 1.0), second, first}), 0};
}

// Numbers decide over extents that depend on data: these are equal to them or 1.
Joined join(ExpandContext& c, const std::vector<Along>& all) {
  std::vector<Along> decided;  // different ones
  std::optional<int64_t> number;
  Joined joined;
  bool differ = false;
  for (const Along& one : all) {
    differ = differ || (!one.is_decided() && one.part.dim < one.most);
    if (!one.is_decided()) continue;
    const auto known = std::find_if(decided.begin(), decided.end(),
                                    [&](const Along& other) { return are_same(c, one, other); });
    if (known == decided.end()) {
      decided.push_back(one);
    } else if (known->most != one.most) {
      known->most = std::min(known->most, one.most);
      differ = true;
    }
  }
  for (const Along& one : decided) joined.most = std::max(joined.most, one.most);
  for (const Along& one : all) {
    if (one.is_decided() || one.part.dim == 1) continue;
    if (!one.stands_for_run || decided.empty() || one.part.dim != joined.most)
      number = one.part.dim;
  }
  joined.repeats = std::max(joined.most, number.value_or(1)) > 1 && !decided.empty() &&
                   (number || decided.size() > 1);
  joined.is_plain = !differ && !joined.repeats && decided.size() < 2;
  if (number) joined.most = *number;
  joined.part =
      number || decided.empty() ? ExtentPart{kNoValue, number.value_or(1)} : decided.front().part;
  for (size_t i = 1; !number && i < decided.size(); ++i)
    joined.part = chosen(c, joined.part, decided[i].part);
  return joined;
}

std::string text_of_fault(const ExpandContext& c) {
  return fmt::format(
      "{}: its operands have different numbers of elements in one dimension in this "
      "run, and none has one element",
      name_and_type(c.node()));
}

// Returns the value. The run fails where these extents, or those of shapes, are neither 1 nor the
// joined one.
Result<ValueId> checked(ExpandContext& c, std::vector<ExtentPart> parts, const Joined& joined,
                        ValueId value) {
  ValueId fits = kNoValue;
  parts.insert(parts.end(), joined.shapes.begin(), joined.shapes.end());
  for (const ExtentPart& part : parts) {
    const ValueId extent = extent_of(c, part);
    const ValueId is_equal = c.binary("Equal", extent, extent_of(c, joined.part));
    const ValueId is_right = c.binary("Or", c.binary("Equal", extent, 1.0), is_equal);
    fits = fits == kNoValue ? is_right : c.binary("And", fits, is_right);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> made,
                        LoopBuilder::add_fault(c, c.add("Not", {c.reshape(fits, {})}),
                                               {.beyond = text_of_fault(c)}, {value}));
  return made[0];
}

// Returns a value whose dimension `d`, which is `one` of those that were joined, is as long as the
// joined one: elements that a run has once are repeated.
Result<ValueId> fitted(ExpandContext& c, ValueId x, int64_t d, const Along& one,
                       const Joined& joined) {
  if (one.is_decided() && !joined.repeats)
    return one.most > joined.most ? c.slice(x, d, 0, joined.most) : x;
  if (!one.is_decided() && one.part.dim < one.most) x = c.slice(x, d, 0, one.part.dim);
  if (!one.is_decided() && (!joined.repeats || joined.shapes.empty() || one.part.dim < 2)) return x;
  ValueId from = numbers_from_0(c, joined.most);
  if (one.is_decided()) {
    const ValueId extent = extent_of(c, one.part);
    HONE_ASSIGN_OR_RETURN(const ValueId is_one,
                          checked(c, {one.part}, joined, c.binary("Equal", extent, 1.0)));
    from = c.binary("Min", from, static_cast<double>(one.most - 1));
    from = c.add("Where", {is_one, c.integers({0}), from});
  } else {
    HONE_ASSIGN_OR_RETURN(from, checked(c, {}, joined, from));
  }
  return c.add("Gather", {x, from}, {{"axis", d}});
}

// The extents of operands, aligned with those of a result of their broadcast.
class Broadcast {
 public:
  Broadcast(ExpandContext& c, size_t rank) : c_(c), all_(rank) {}

  // Adds a shape, and returns its number.
  size_t add(const std::vector<ExtentPart>& parts, const Shape& most, bool stands_for_run = false) {
    const size_t missing = all_.size() - most.size();
    for (size_t d = 0; d < all_.size(); ++d)
      all_[d].push_back(d < missing
                            ? Along{{kNoValue, 1}, 1}
                            : along(c_, parts[d - missing], most[d - missing], stands_for_run));
    return count_++;
  }
  // Likewise, that of the first dimensions of operand `i`.
  size_t add_operand(size_t i, size_t rank) {
    const Shape& shape = c_.shape(i);
    return add(hone::graph::parts(c_, c_.input(i), 0, rank),
               Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(rank)),
               stands_for_run(c_, i));
  }
  // Adds an operand that is a shape, without elements to fit.
  void add_shape(const std::vector<ExtentPart>& parts, const Shape& most) {
    shapes_.push_back(add(parts, most));
  }
  void join_all() {
    for (const std::vector<Along>& all : all_) {
      joined_.push_back(join(c_, all));
      for (const size_t i : shapes_)
        if (all[i].is_decided()) joined_.back().shapes.push_back(all[i].part);
    }
  }
  [[nodiscard]] bool is_plain() const {
    return std::all_of(joined_.begin(), joined_.end(), [](const Joined& j) { return j.is_plain; });
  }
  // Returns a value of shape `i`, followed by `others` dimensions, so that its largest shape says
  // what is repeated.
  [[nodiscard]] Result<ValueId> fit(ValueId x, size_t i, size_t others = 0) {
    const size_t missing = all_.size() + others - c_.shape_of(x).size();
    x = without_extents(c_, x);
    for (size_t d = missing; d < all_.size(); ++d) {
      HONE_ASSIGN_OR_RETURN(
          x, fitted(c_, x, static_cast<int64_t>(d - missing), all_[d][i], joined_[d]));
    }
    return x;
  }
  [[nodiscard]] Shape most() const {
    Shape shape;
    for (const Joined& one : joined_) shape.push_back(one.most);
    return shape;
  }
  [[nodiscard]] std::vector<ExtentPart> parts() const {
    std::vector<ExtentPart> parts;
    for (const Joined& one : joined_) parts.push_back(one.part);
    return parts;
  }

 private:
  ExpandContext& c_;
  std::vector<std::vector<Along>> all_;  // by the dimension of the result
  std::vector<Joined> joined_;
  std::vector<size_t> shapes_;  // which operands are shapes
  size_t count_ = 0;
};

// Returns an operand of a product whose summed extent, dimension `d`, data decide. A run fails
// where it is not the other operand's.
Result<ValueId> with_checked_terms(ExpandContext& c, ValueId x, size_t d, const ExtentPart& other) {
  std::vector<ExtentPart> all = parts(c, x, 0, c.shape_of(x).size());
  HONE_ASSIGN_OR_RETURN(all[d], checked_extent(c, all[d], other, "terms to sum"));
  return with_extents(c, without_extents(c, x), join_extents(c, all));
}

// Returns the operands of a product. A run fails where they have different numbers of terms.
Result<std::vector<ValueId>> factors(ExpandContext& c) {
  const size_t column = c.shape(0).size() - 1, row = c.shape(1).size() - 2;
  const auto along_of = [&](size_t i, size_t d) {
    return along(c, parts(c, c.input(i), d, d + 1)[0], c.shape(i)[d], stands_for_run(c, i));
  };
  const Along a = along_of(0, column), b = along_of(1, row);
  std::vector<ValueId> list = {c.input(0), c.input(1)};
  const bool is_same =
      a.is_decided() && b.is_decided() ? are_same(c, a, b) : a.is_decided() == b.is_decided();
  const bool is_of_run =
      (!a.is_decided() && a.stands_for_run) || (!b.is_decided() && b.stands_for_run);
  if (is_same || is_of_run) return list;
  if (a.is_decided()) {
    HONE_ASSIGN_OR_RETURN(list[0], with_checked_terms(c, list[0], column, b.part));
  } else {
    HONE_ASSIGN_OR_RETURN(list[1], with_checked_terms(c, list[1], row, a.part));
  }
  return list;
}

}  // namespace

Result<bool> propagate_pointwise(ExpandContext& c) {
  if (c.num_inputs() < 2 || c.num_outputs() != 1) return false;
  size_t rank = 0;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (!c.has(i) || num_elements(c.shape(i)) == 0) return false;
    rank = std::max(rank, c.shape(i).size());
  }
  Broadcast broadcast(c, rank);
  for (size_t i = 0; i < c.num_inputs(); ++i) broadcast.add_operand(i, c.shape(i).size());
  broadcast.join_all();
  HONE_RETURN_IF_ERROR(c.status());
  if (broadcast.is_plain()) return false;
  std::vector<ValueId> operands;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    HONE_ASSIGN_OR_RETURN(const ValueId operand, broadcast.fit(c.input(i), i));
    operands.push_back(operand);
  }
  const ValueId y = c.add_like(c.node(), operands);
  c.result(0, with_extents(c, y, join_extents(c, broadcast.parts())));
  return true;
}

Status propagate_expand(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const Shape most, largest_shape(c, 1));
  const ValueId x = c.input(0);
  const bool is_known = c.constant_of(c.input(1)) != nullptr;
  std::vector<ExtentPart> wanted;
  for (size_t d = 0; d < most.size(); ++d)
    wanted.push_back(is_known ? ExtentPart{kNoValue, most[d]}
                              : ExtentPart{c.input(1), static_cast<int64_t>(d)});
  Broadcast broadcast(c, std::max(c.shape(0).size(), most.size()));
  const size_t data = broadcast.add_operand(0, c.shape(0).size());
  broadcast.add_shape(wanted, most);
  broadcast.join_all();
  HONE_ASSIGN_OR_RETURN(const ValueId repeated, broadcast.fit(x, data));
  const ValueId y = c.add("Expand", {repeated, c.integers(broadcast.most())});
  c.result(0, with_extents(c, y, join_extents(c, broadcast.parts())));
  return ok_status();
}

// Terms that are not there are 0 in both factors.
Status propagate_matmul(ExpandContext& c) {
  constexpr size_t kMatrix = 2;  // the dimensions that are not broadcast
  const Shape first = c.shape(0), second = c.shape(1);
  if (first.size() < kMatrix || second.size() < kMatrix)
    return c.unsupported("a product with a vector whose shape depends on data");
  Broadcast broadcast(c, std::max(first.size(), second.size()) - kMatrix);
  for (size_t i = 0; i < 2; ++i) broadcast.add_operand(i, c.shape(i).size() - kMatrix);
  broadcast.join_all();
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> of, factors(c));
  HONE_ASSIGN_OR_RETURN(const ValueId a, broadcast.fit(filled(c, of[0], 0), 0, kMatrix));
  HONE_ASSIGN_OR_RETURN(const ValueId b, broadcast.fit(filled(c, of[1], 0), 1, kMatrix));
  const ValueId y = c.add("MatMul", {a, b});
  const std::vector<ExtentPart> matrix =
      joined(parts(c, c.input(0), first.size() - 2, first.size() - 1),
             parts(c, c.input(1), second.size() - 1, second.size()));
  c.result(0, with_extents(c, y, join_extents(c, joined(broadcast.parts(), matrix))));
  return ok_status();
}

}  // namespace hone::graph
