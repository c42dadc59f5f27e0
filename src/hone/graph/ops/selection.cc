// The k largest or least elements and their places: TopK.
#include "hone/graph/expand.h"
#include "hone/graph/ops/pointwise.h"
#include "hone/graph/ops/top_k.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

Status infer_top_k(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, -1));
  if (c.dtype(0) == DType::kBool) return c.fail("data of type bool");
  int64_t k = c.attributes().integer("k", 0);
  if (c.num_inputs() > 1) {
    HONE_ASSIGN_OR_RETURN(const auto given, c.integers(1, "k"));
    if (given.size() != 1) return c.fail("k has {} elements, expected 1", given.size());
    k = given[0];
  }
  Shape shape = c.shape(0);
  int64_t& extent = shape[axis];
  if (k < 0 || k > extent) return c.fail("k is {} of {} elements", k, extent);
  extent = k;
  HONE_RETURN_IF_ERROR(c.set(0, c.dtype(0), shape));
  return c.set(1, DType::kI64, std::move(shape));
}

// Each row by itself: the places of its first elements, then what is there. Equal values stay in
// order, and NaN is greater than all numbers.
void emit_top_k(EmitContext& c) {
  const size_t axis = axis_of(c, -1);
  const bool largest = c.node().attributes.integer("largest", 1) != 0;
  const Shape& shape = c.input(0).shape;
  const int64_t k = c.result_at(c.node().outputs[0] != kNoValue ? 0 : 1).shape[axis];
  std::vector<compute::Axis> rows;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != axis) rows.push_back(compute::make_axis(fmt::format("i{}", d), shape[d]));
  }
  c.body("top_k", rows, [&](const std::vector<Expr>& row) {
    const auto at = [&](const Expr& r) {
      std::vector<Expr> index = row;
      index.insert(index.begin() + static_cast<long>(axis), r);
      return index;
    };
    const auto element = [&](const Expr& r) { return c.read(0, "data", at(r)); };
    const TopK top(compute_type(c.input(0).dtype), shape[axis], k, largest);
    const Stmt write = count_to("o", ir::constant(k), [&](const Expr& o) {
      std::vector<Stmt> stores = {c.store(0, at(o), element(top.place(o))),
                                  c.store(1, at(o), top.place(o))};
      std::erase(stores, nullptr);
      return stores;
    });
    return std::vector{top.find(element, {write})};
  });
}

// Few rows that are long are cut into parts, so that threads share them: the first k of each part,
// then of all those. Equal elements of the candidates stand in the order of the row, so the places
// are the same, whatever the parts are.
constexpr int64_t kLongRow = 1 << 16;
constexpr int64_t kFewRows = 4;
constexpr int64_t kMostParts = 32;
constexpr int64_t kLeastPart = 1 << 11;
constexpr int64_t kFewCandidates = 8;  // the row has so many times as many elements

// The most parts of one length that a row of n elements may have; 1: it stays whole.
int64_t parts_of(int64_t n, int64_t k) {
  for (int64_t parts = kMostParts; parts > 1; --parts) {
    if (n % parts == 0 && n / parts >= kLeastPart && k * parts * kFewCandidates <= n) return parts;
  }
  return 1;
}

Status expand_top_k(ExpandContext& c) {
  const Result<size_t> axis = axis_attribute(c, -1);
  int64_t k = c.attributes().integer("k", 0);
  if (c.num_inputs() > 1) {
    const auto given = c.integers(1, "k");
    k = given.ok() && given->size() == 1 ? (*given)[0] : -1;
  }
  const Shape shape = c.shape(0);
  if (!axis.ok() || *axis + 1 != shape.size() || k < 1 || k > shape.back() ||
      c.dtype(0) == DType::kBool || c.extents_of(c.input(0)) != kNoValue) {
    c.decline();
    return ok_status();
  }
  const int64_t n = shape.back(), rows = num_elements(shape) / std::max<int64_t>(n, 1);
  const int64_t parts = n < kLongRow || rows < 1 || rows > kFewRows ? 1 : parts_of(n, k);
  if (parts == 1) {
    c.decline();
    return ok_status();
  }
  const int64_t largest = c.attributes().integer("largest", 1);
  const auto first = [&](ValueId x) {
    return c.add_all("TopK", {x, c.integers({k})}, 2,
                     {{"axis", int64_t{-1}}, {"largest", largest}});
  };
  const auto best = first(c.reshape(c.input(0), {rows, parts, n / parts}));
  Tensor begins(DType::kI64, {1, parts, 1});
  for (int64_t i = 0; i < parts; ++i) begins.set(i, static_cast<double>(i * (n / parts)));
  const Shape all = {rows, parts * k};
  const ValueId places = c.reshape(c.binary("Add", best[1], c.constant(begins)), all);
  const auto chosen = first(c.reshape(best[0], all));
  Shape result = shape;
  result.back() = k;
  c.result(0, c.reshape(chosen[0], result));
  if (c.wants(1))
    c.result(1, c.reshape(c.add("GatherElements", {places, chosen[1]}, {{"axis", int64_t{-1}}}),
                          result));
  return ok_status();
}

Op top_k(int since, int until, int inputs, std::string_view attributes) {
  return {.name = "TopK",
          .since = since,
          .until = until,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .max_outputs = 2,
          .attributes = attributes,
          .infer = infer_top_k,
          .expand = expand_top_k,
          .fold = evaluate_node,
          .emit = emit_top_k};
}

}  // namespace

std::span<const Op> selection_ops() {
  static const std::vector<Op> ops = {
      top_k(1, 9, 1, "axis:i k:i"),
      top_k(10, 10, 2, "axis:i"),
      top_k(11, kMaxOpset, 2, "axis:i largest:i sorted:i"),
  };
  return ops;
}

}  // namespace hone::graph
