// Operators whose results along some dimensions of an operand do not depend on what else stands
// there, as a convolution's along the batch. Where data decide how long these dimensions are, the
// results are computed for the most, and have the extents of the operand there.
#include <algorithm>
#include <array>
#include <optional>

#include "hone/graph/known_elements.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

constexpr int64_t kNowhere = -1;  // in a result that has no such dimension

// This is a dimension of an operand along which results do not depend on each other, and where it
// is in each result; results without a number of their own have it where the last one has.
struct Row {
  size_t operand = 0, dim = 0;
  std::vector<int64_t> in_results;

  [[nodiscard]] int64_t in(size_t result) const {
    return in_results[std::min(result, in_results.size() - 1)];
  }
};
using Rows = std::vector<Row>;

struct RowRule {
  std::string_view type;
  Rows (*rows)(const ExpandContext&);
  // Changes operands, which have no extents any more, so that what is not there is harmless.
  void (*prepare)(ExpandContext&, std::vector<ValueId>& operands) = nullptr;
  // Follows operands of which data decide other dimensions, too.
  Status (*otherwise)(ExpandContext&) = nullptr;
};

Row same(size_t operand, size_t dim) { return {operand, dim, {static_cast<int64_t>(dim)}}; }

// Returns the dimensions of operand 0 for which a condition holds. All results have them, too.
template <typename Condition>
Rows dims_where(const ExpandContext& c, Condition holds) {
  Rows rows;
  for (size_t d = 0; d < c.shape(0).size(); ++d)
    if (holds(d)) rows.push_back(same(0, d));
  return rows;
}

Rows batch(const ExpandContext&) { return {same(0, 0)}; }
Rows batch_of_two(const ExpandContext&) { return {same(0, 0), same(1, 0)}; }
Rows all_dims(const ExpandContext& c) {
  return dims_where(c, [](size_t) { return true; });
}
Rows matrices(const ExpandContext& c) {
  return dims_where(c, [&](size_t d) { return d + 2 < c.shape(0).size(); });
}
Rows all_but_channels(const ExpandContext& c) {
  return dims_where(c, [](size_t d) { return d != 1; });
}

// Returns the rows of a matrix; a vector is one row.
Rows samples(const ExpandContext& c) { return c.rank(0) == 2 ? batch(c) : Rows{}; }

Rows before_axis(const ExpandContext& c) {
  const auto axis = normalize_axis(c.attributes().integer("axis", -1), c.rank(0));
  return dims_where(c, [&](size_t d) { return axis && static_cast<int64_t>(d) < *axis; });
}

Rows but_axes(const ExpandContext& c) {
  const auto* given = c.attributes().find<std::vector<int64_t>>("axes");
  const std::vector<int64_t> axes = given != nullptr ? *given : std::vector<int64_t>{0, 2, 3};
  return dims_where(c, [&](size_t d) {
    return std::none_of(axes.begin(), axes.end(), [&](int64_t a) {
      return normalize_axis(a, c.rank(0)) == static_cast<int64_t>(d);
    });
  });
}

// Returns the dimensions that keep their elements.
Rows not_resized(const ExpandContext& c) {
  const Tensor* scales = c.has(2) ? c.constant_of(c.input(2)) : nullptr;
  const bool crops =  // and takes places by the extent
      c.attributes().text("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  if (scales == nullptr || crops || c.attributes().find<std::vector<int64_t>>("axes") != nullptr)
    return {};
  return dims_where(c, [&](size_t d) {
    return static_cast<int64_t>(d) < scales->size() && scales->at(static_cast<int64_t>(d)) == 1;
  });
}

// Returns the regions and the numbers of their pictures.
Rows regions(const ExpandContext&) { return {{1, 0, {0}}, {2, 0, {0}}}; }

// A grid [N, height, width, 2] gives a result [N, C, height, width].
Rows grid(const ExpandContext& c) {
  Rows rows = batch_of_two(c);
  for (size_t d = 1; d + 1 < c.shape(1).size(); ++d)
    rows.push_back({1, d, {static_cast<int64_t>(d) + 1}});
  return rows;
}

Rows one_hot(const ExpandContext& c) {
  const int64_t rank = c.rank(0) + 1;
  const auto axis = normalize_axis(c.attributes().integer("axis", -1), rank);
  Rows rows;
  for (int64_t d = 0; axis && d + 1 < rank; ++d)
    rows.push_back({0, static_cast<size_t>(d), {d < *axis ? d : d + 1}});
  return rows;
}

Rows reversed(const ExpandContext& c) {
  Rows rows = all_dims(c);
  rows.push_back({1, 0, {c.attributes().integer("batch_axis", 1)}});
  return rows;
}

// Returns rows of the first factor, which stay where they are if it has as many dimensions as the
// result. Those of several matrices are only taken where the second factor has one.
Rows rows_of_product(const ExpandContext& c) {
  const size_t rank = c.shape(0).size();
  return dims_where(c, [&](size_t d) {
    return d + 2 == rank ? c.rank(0) >= c.rank(1) : d + 1 < rank && c.rank(1) == 2;
  });
}
Rows all_but_last(const ExpandContext& c) {
  return dims_where(c, [&](size_t d) { return d + 1 < c.shape(0).size(); });
}

Rows rows_and_columns(const ExpandContext& c) {
  const bool transposed[] = {c.attributes().integer("transA", 0) != 0,
                             c.attributes().integer("transB", 0) != 0};
  const Rows rows = {{0, transposed[0] ? size_t{1} : size_t{0}, {0}},
                     {1, transposed[1] ? size_t{0} : size_t{1}, {1}}};
  // An addend of one element is repeated; propagate_gemm() looks at others.
  const size_t rank = c.has(2) ? c.shape(2).size() : 0;
  for (size_t d = 0; d < rank && rank <= rows.size(); ++d) {
    const size_t at = d + 2 - rank;
    if (c.shape(2)[d] > 1 && is_decided(c, at, rows[at].dim)) return {};
  }
  return rows;
}

// Returns the steps and the rows of a recurrent net, X [steps, batch, inputs]: Y [steps,
// directions, batch, states] and the last states [directions, batch, states]; the batch comes first
// in each where `layout` is 1.
Rows steps_and_rows(const ExpandContext& c) {
  if (c.attributes().integer("layout", 0) != 0)
    return {{0, 0, {0}}, {0, 1, {1, kNowhere}}, {4, 0, {0}}};
  return {{0, 1, {2, 1}}, {0, 0, {0, kNowhere}}, {4, 0, {2, 1}}};
}

// Rows end where data say, as if their lengths were given.
void end_rows(ExpandContext& c, std::vector<ValueId>& operands) {
  constexpr size_t kLengths = 4;
  const size_t steps = c.attributes().integer("layout", 0) != 0 ? 1 : 0;
  if (operands.size() > kLengths && operands[kLengths] != kNoValue) {
    operands[kLengths] = safe_indices(c, c.input(kLengths));
    return;
  }
  if (!is_decided(c, 0, steps)) return;
  operands.resize(std::max(operands.size(), kLengths + 1), kNoValue);
  const ValueId length = dimension(c, c.extents_of(c.input(0)), static_cast<int64_t>(steps));
  operands[kLengths] =
      c.add("Expand", {c.cast(length, DType::kI32), c.integers({c.shape(0)[1 - steps]})});
}

// Makes operands that are indices or lengths point to something that is there.
template <size_t... kOperands>
void safe(ExpandContext& c, std::vector<ValueId>& operands) {
  for (const size_t i : {kOperands...})
    if (varies(c, i)) operands[i] = safe_indices(c, c.input(i));
}

constexpr RowRule kRules[] = {
    {"AveragePool", batch, nullptr, propagate_average_pool},
    {"Conv", batch, nullptr, propagate_convolution},
    {"ConvInteger", batch},
    {"ConvTranspose", batch},
    {"DepthToSpace", batch},
    {"Det", matrices},
    {"EyeLike", all_dims},
    {"GRU", steps_and_rows, end_rows},
    {"Gemm", rows_and_columns, nullptr, propagate_gemm},
    {"GlobalAveragePool", batch, nullptr, propagate_global_average},
    {"GlobalLpPool", batch},
    {"GlobalMaxPool", batch, nullptr, propagate_global_max},
    {"GridSample", grid},
    {"GroupNormalization", batch},
    {"InstanceNormalization", batch},
    {"LRN", all_but_channels},
    {"LSTM", steps_and_rows, end_rows},
    {"LayerNormalization", before_axis},
    {"LpPool", batch},
    {"MatMulInteger", rows_of_product},
    {"MaxPool", batch, nullptr, propagate_max_pool},
    {"MaxUnpool", batch_of_two, safe<1>},
    {"MeanVarianceNormalization", but_axes},
    {"OneHot", one_hot, safe<0>},
    {"QLinearConv", batch},
    {"RMSNormalization", before_axis},
    {"RNN", steps_and_rows, end_rows},
    {"Resize", not_resized},
    {"ReverseSequence", reversed, safe<1>},
    {"RoiAlign", regions, safe<2>},
    {"SpaceToDepth", batch},
    {"ai.onnx.ml.ArrayFeatureExtractor", samples},
    {"ai.onnx.ml.Binarizer", all_dims},
    {"ai.onnx.ml.Imputer", samples},
    {"ai.onnx.ml.LabelEncoder", all_dims},
    {"ai.onnx.ml.LinearClassifier", samples},
    {"ai.onnx.ml.LinearRegressor", samples},
    {"ai.onnx.ml.Normalizer", samples},
    {"ai.onnx.ml.SVMClassifier", samples},
    {"ai.onnx.ml.SVMRegressor", samples},
    {"ai.onnx.ml.TreeEnsemble", samples},
    {"ai.onnx.ml.TreeEnsembleClassifier", samples},
    {"ai.onnx.ml.TreeEnsembleRegressor", samples},
    {"com.microsoft.MatMulNBits", all_but_last},
};

// Returns a dimension that data decide and that is none of these.
std::optional<std::pair<size_t, size_t>> other_dim(const ExpandContext& c, const Rows& rows) {
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (!varies(c, i)) continue;
    for (size_t d = 0; d < c.shape(i).size(); ++d) {
      if (!is_decided(c, i, d)) continue;
      if (std::none_of(rows.begin(), rows.end(),
                       [&](const Row& row) { return row.operand == i && row.dim == d; }))
        return std::pair(i, d);
    }
  }
  return std::nullopt;
}

// Returns whether the operand of a row is there and has that dimension, as those of a node that is
// wrong may not.
bool has_row(const ExpandContext& c, const Row& row) {
  return c.has(row.operand) && row.dim < c.shape(row.operand).size();
}

// Returns what the rows say of the extents of a result, of which the largest are known. A run fails
// where two operands have different numbers of the same rows.
Result<std::vector<ExtentPart>> extents_of(ExpandContext& c, const Rows& rows, size_t result,
                                           const Shape& most) {
  std::vector<ExtentPart> all;
  for (const int64_t extent : most) all.push_back({kNoValue, extent});
  for (const Row& row : rows) {
    const int64_t at = row.in(result);
    if (at < 0 || at >= std::ssize(all) || !has_row(c, row)) continue;
    if (!is_decided(c, row.operand, row.dim)) continue;
    ExtentPart part = part_of(c, c.input(row.operand), row.dim);
    for (const Row& other : rows) {
      if (&other == &row || !has_row(c, other) || other.in(result) != at) continue;
      if (stands_for_run(c, other.operand) && !is_decided(c, other.operand, other.dim)) continue;
      HONE_ASSIGN_OR_RETURN(
          part, checked_extent(c, part, part_of(c, c.input(other.operand), other.dim), "rows"));
    }
    all[static_cast<size_t>(at)] = part;
  }
  return all;
}

}  // namespace

Result<bool> propagate_rows(ExpandContext& c) {
  const auto* const rule = std::find_if(std::begin(kRules), std::end(kRules),
                                        [&](const RowRule& r) { return r.type == c.node().type; });
  if (rule == std::end(kRules)) return false;
  const Rows rows = rule->rows(c);
  if (const auto other = other_dim(c, rows)) {
    if (rule->otherwise == nullptr)
      return c.unsupported("operand {} whose dimension {} depends on data", other->first,
                           other->second);
    HONE_RETURN_IF_ERROR(rule->otherwise(c));
    return true;
  }
  std::vector<ValueId> operands = c.node().inputs;
  for (ValueId& x : operands)
    if (x != kNoValue) x = without_extents(c, x);
  if (rule->prepare != nullptr) rule->prepare(c, operands);
  const std::vector<ValueId> results = c.add_all_like(c.node(), operands);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!c.wants(i)) continue;
    HONE_ASSIGN_OR_RETURN(const auto all, extents_of(c, rows, i, c.shape_of(results[i])));
    const bool any = std::any_of(all.begin(), all.end(),
                                 [](const ExtentPart& p) { return p.extents != kNoValue; });
    c.result(i, any ? with_extents(c, results[i], join_extents(c, all)) : results[i]);
  }
  return true;
}

}  // namespace hone::graph
