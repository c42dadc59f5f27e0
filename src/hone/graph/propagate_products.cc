// Gemm and Einsum of values whose shape depends on data. Terms that are not there are 0.
#include <map>

#include "hone/graph/ops/einsum.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

ValueId scaled(ExpandContext& c, ValueId x, double factor) {
  return factor == 1 ? x : c.binary("Mul", x, factor);
}

// Labels of an Einsum of which data decide the number of elements, and what it is.
using Labels = std::map<char, ExtentPart>;

Result<Labels> decided_labels(ExpandContext& c, const EinsumEquation& equation) {
  Labels decided;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    for (size_t d = 0; d < equation.operands[i].size(); ++d)
      if (is_decided(c, i, d))
        decided.emplace(equation.operands[i][d], parts(c, c.input(i), d, d + 1)[0]);
  }
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    for (size_t d = 0; d < equation.operands[i].size(); ++d) {
      const auto known = decided.find(equation.operands[i][d]);
      const bool repeats = c.shape(i)[d] == 1 && !is_decided(c, i, d);
      if (known == decided.end() || repeats) continue;
      HONE_ASSIGN_OR_RETURN(known->second,
                            checked_extent(c, known->second, parts(c, c.input(i), d, d + 1)[0],
                                           "elements of a label"));
    }
  }
  return decided;
}

// Returns operand i in its largest shape, with zeros behind the labels over which is summed.
ValueId with_zeros(ExpandContext& c, size_t i, const EinsumEquation& equation,
                   const Labels& decided) {
  std::vector<ExtentPart> shape = parts(c, c.input(i), 0, c.shape(i).size());
  bool sums = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto known = decided.find(equation.operands[i][d]);
    if (known == decided.end() || equation.result.find(known->first) != std::string::npos) continue;
    shape[d] = known->second;
    sums = true;
  }
  const ValueId x = without_extents(c, c.input(i));
  return sums ? filled(c, with_extents(c, x, join_extents(c, shape)), 0) : x;
}

// Returns the factors of a Gemm, [m, k] and [k, n]. A run fails where they have different numbers
// of terms to sum.
Result<std::vector<ValueId>> with_same_terms(ExpandContext& c, std::vector<ValueId> factors) {
  const ExtentPart a = part_of(c, factors[0], 1), b = part_of(c, factors[1], 0);
  const size_t decided = a.extents != kNoValue ? 0 : 1;
  const ExtentPart& own = decided == 0 ? a : b;
  if (own.extents == kNoValue) return factors;
  std::vector<ExtentPart> shape = parts(c, factors[decided], 0, 2);
  HONE_ASSIGN_OR_RETURN(shape[1 - decided],
                        checked_extent(c, own, decided == 0 ? b : a, "terms to sum"));
  factors[decided] = with_extents(c, without_extents(c, factors[decided]), join_extents(c, shape));
  return factors;
}

// Returns an error unless what a Gemm adds has one element, or surely as many as the product, in
// each dimension.
Status check_addend(ExpandContext& c, const std::vector<ValueId>& factors) {
  const size_t rank = c.has(2) ? c.shape(2).size() : 0;
  for (size_t d = 0; d < rank; ++d) {
    const size_t at = d + 2 - rank;
    if (c.shape(2)[d] == 1 && !is_decided(c, 2, d)) continue;
    const ExtentPart own = part_of(c, c.input(2), d), result = part_of(c, factors[at], at);
    if (!are_same(c, own, result))
      return c.unsupported(
          "operand 2 with {} elements in dimension {}, where data decide how many the product has",
          c.shape(2)[d], d);
  }
  return ok_status();
}

}  // namespace

// It is made of operators that follow what varies.
Status propagate_gemm(ExpandContext& c) {
  std::vector<ValueId> factors;
  for (size_t i = 0; i < 2; ++i) {
    if (c.rank(i) != 2) return c.fail("operand {} of rank {}, expected 2", i, c.rank(i));
    const bool transposed = c.attributes().integer(i == 0 ? "transA" : "transB", 0) != 0;
    factors.push_back(transposed ? c.transpose(c.input(i), {1, 0}) : c.input(i));
  }
  HONE_ASSIGN_OR_RETURN(factors, with_same_terms(c, factors));
  HONE_RETURN_IF_ERROR(check_addend(c, factors));
  ValueId y = scaled(c, c.add("MatMul", factors), c.attributes().number("alpha", 1));
  if (c.has(2)) y = c.binary("Add", y, scaled(c, c.input(2), c.attributes().number("beta", 1)));
  c.result(0, y);
  return ok_status();
}

// A label of several operands has as many elements in each of them, or a run fails.
Status propagate_einsum(ExpandContext& c) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (!c.has(i)) return c.fail("operand {} is missing", i);
    shapes.push_back(c.shape(i));
  }
  HONE_ASSIGN_OR_RETURN(const EinsumEquation equation,
                        read_equation(c.attributes().text("equation", ""), shapes));
  HONE_ASSIGN_OR_RETURN(const Labels decided, decided_labels(c, equation));
  std::vector<ValueId> operands;
  for (size_t i = 0; i < c.num_inputs(); ++i)
    operands.push_back(with_zeros(c, i, equation, decided));
  const ValueId y = c.add_like(c.node(), operands);
  std::vector<ExtentPart> shape;
  bool any = false;
  for (size_t d = 0; d < equation.result.size(); ++d) {
    const auto known = decided.find(equation.result[d]);
    any = any || known != decided.end();
    shape.push_back(known != decided.end() ? known->second
                                           : ExtentPart{kNoValue, c.shape_of(y)[d]});
  }
  c.result(0, any ? with_extents(c, y, join_extents(c, shape)) : y);
  return ok_status();
}

}  // namespace hone::graph
