// Einsum: one or two operands are a sum over the labels that the result lacks; of more operands,
// the first two are combined, keeping what the others and the result need.
#include "hone/graph/ops/einsum.h"

#include <algorithm>

#include "hone/graph/emit.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A term with its ellipsis written out as `dims` labels; an error message in `problem`.
std::string term_labels(const std::string& term, size_t dims, std::string& problem) {
  std::string labels;
  bool ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (is_letter(term[i])) {
      labels += term[i];
    } else if (term.compare(i, 3, "...") == 0 && !ellipsis) {
      for (size_t d = 0; d < dims; ++d) labels += static_cast<char>('9' - dims + 1 + d);
      ellipsis = true;
      i += 2;
    } else {
      problem = "the term '" + term + "' is not understood";
    }
  }
  return labels;
}

}  // namespace

Result<EinsumEquation> read_equation(const std::string& text, const std::vector<Shape>& shapes) {
  std::string equation;
  for (const char c : text) {
    if (c != ' ') equation += c;
  }
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms = {""};
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') terms.emplace_back();
    if (c != ',') terms.back() += c;
  }
  if (terms.size() != shapes.size())
    return invalid("equation '{}' for {} operands", text, shapes.size());
  EinsumEquation parsed;
  std::string problem;
  size_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t dots = terms[i].find("...") == std::string::npos ? 0 : 3;
    const size_t letters = terms[i].size() - dots;
    const size_t rank = shapes[i].size();
    if (letters > rank || (dots == 0 && letters != rank) || rank - letters > 8)
      return invalid("the term '{}' for an operand of shape {}", terms[i], to_string(shapes[i]));
    parsed.operands.push_back(term_labels(terms[i], rank - letters, problem));
    widest = std::max(widest, rank - letters);
  }
  if (arrow != std::string::npos) {
    parsed.result = term_labels(equation.substr(arrow + 2), widest, problem);
  } else {
    std::string all;
    for (const std::string& operand : parsed.operands) all += operand;
    parsed.result = term_labels("...", widest, problem);
    std::string once;
    for (const char c : all) {
      if (is_letter(c) && std::count(all.begin(), all.end(), c) == 1) once += c;
    }
    std::sort(once.begin(), once.end());
    parsed.result += once;
  }
  if (!problem.empty()) return invalid("equation '{}': {}", text, problem);
  for (const char c : parsed.result) {
    if (std::count(parsed.result.begin(), parsed.result.end(), c) > 1)
      return invalid("equation '{}': the result has a label twice", text);
  }
  return parsed;
}

namespace {

// The extent of each label, 0 .. 127.
Result<Shape> label_extents(const EinsumEquation& equation, const std::vector<Shape>& shapes) {
  Shape extents(128, -1);
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t d = 0; d < shapes[i].size(); ++d) {
      const char label = equation.operands[i][d];
      int64_t& extent = extents[static_cast<size_t>(label)];
      const int64_t own = shapes[i][d];
      if (extent >= 0 && own != extent && own != 1 && extent != 1)
        return invalid("label '{}' has the extents {} and {}", label, extent, own);
      if (extent < 0 || extent == 1) extent = own;
    }
  }
  for (const char label : equation.result) {
    if (extents[static_cast<size_t>(label)] < 0)
      return invalid("the result's label '{}' is in no operand", label);
  }
  return extents;
}

std::vector<Shape> operand_shapes(const Graph& graph, const Node& node) {
  std::vector<Shape> shapes;
  for (const ValueId in : node.inputs) shapes.push_back(graph.value(in).shape);
  return shapes;
}

Status infer_einsum(InferContext& c) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (!c.has(i)) return c.fail("operand {} is missing", i);
    if (c.dtype(i) != c.dtype(0) || c.dtype(i) == DType::kBool)
      return c.fail("operand {} of type {}", i, dtype_name(c.dtype(i)));
    shapes.push_back(c.shape(i));
  }
  const Result<EinsumEquation> equation =
      read_equation(c.attributes().text("equation", ""), shapes);
  if (!equation.ok()) return c.fail("{}", equation.status().message());
  const Result<Shape> extents = label_extents(*equation, shapes);
  if (!extents.ok()) return c.fail("{}", extents.status().message());
  Shape shape;
  for (const char label : equation->result) shape.push_back((*extents)[static_cast<size_t>(label)]);
  for (const Shape& operand : shapes) {
    // A sum of nothing is zero.
    if (num_elements(operand) == 0) return c.set_constant(0, Tensor(c.dtype(0), shape));
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

// More than two operands: ((1, 2), 3), ...
Status expand_einsum(ExpandContext& c) {
  if (c.num_inputs() <= 2) {
    c.decline();
    return ok_status();
  }
  HONE_RETURN_IF_ERROR(infer_einsum(c));
  std::vector<Shape> shapes;
  for (size_t i = 0; i < c.num_inputs(); ++i) shapes.push_back(c.shape(i));
  HONE_ASSIGN_OR_RETURN(EinsumEquation equation,
                        read_equation(c.attributes().text("equation", ""), shapes));
  // Labels of an ellipsis become letters that the equation does not use.
  std::string all = equation.result;
  for (const std::string& operand : equation.operands) all += operand;
  const std::string used = all;
  for (const char label : used) {
    if (is_letter(label)) continue;
    char letter = 'A';
    while (all.find(letter) != std::string::npos)
      letter = letter == 'Z' ? 'a' : static_cast<char>(letter + 1);
    if (!is_letter(letter)) return c.unsupported("an equation with so many labels");
    const auto rename = [&](std::string& term) {
      std::replace(term.begin(), term.end(), label, letter);
    };
    rename(equation.result);
    for (std::string& operand : equation.operands) rename(operand);
    all += letter;
  }
  ValueId value = c.input(0);
  std::string labels = equation.operands[0];
  for (size_t i = 1; i < equation.operands.size(); ++i) {
    const bool last = i + 1 == equation.operands.size();
    std::string needed = equation.result;
    for (size_t k = i + 1; k < equation.operands.size(); ++k) needed += equation.operands[k];
    std::string kept;
    for (const char label : labels + equation.operands[i]) {
      if (kept.find(label) == std::string::npos && needed.find(label) != std::string::npos)
        kept += label;
    }
    if (last) kept = equation.result;
    value = c.add("Einsum", {value, c.input(i)},
                  {{"equation", labels + "," + equation.operands[i] + "->" + kept}});
    labels = kept;
  }
  c.result(0, value);
  return ok_status();
}

void emit_einsum(EmitContext& c) {
  const std::vector<Shape> shapes = operand_shapes(c.graph(), c.node());
  const EinsumEquation equation = *read_equation(c.node().attributes.text("equation", ""), shapes);
  const Shape extents = *label_extents(equation, shapes);
  std::vector<std::string> roles;
  for (const char label : equation.result) roles.push_back(std::string("l") + label);
  c.name_dims(roles);
  std::string summed;
  for (const std::string& operand : equation.operands) {
    for (const char label : operand) {
      if ((equation.result + summed).find(label) == std::string::npos) summed += label;
    }
  }
  const auto product = [&](const Point& point, const std::vector<Expr>& r) {
    Expr value;
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::vector<Expr> index;
      for (size_t d = 0; d < shapes[i].size(); ++d) {
        const char label = equation.operands[i][d];
        const size_t at = equation.result.find(label);
        index.push_back(shapes[i][d] == 1         ? ir::constant(0)
                        : at != std::string::npos ? point.index[at]
                                                  : r[summed.find(label)]);
      }
      const Expr element = c.read(i, i == 0 ? "data" : "weight", index);
      value = value ? value * element : element;
    }
    return value;
  };
  if (summed.empty()) {
    c.pointwise("einsum", [&](const Point& point) { return product(point, {}); });
    return;
  }
  std::vector<compute::Axis> reduce;
  for (const char label : summed) {
    reduce.push_back(
        compute::make_axis(std::string("k") + label, extents[static_cast<size_t>(label)]));
  }
  c.reduce(Combine::kSum, "einsum", std::move(reduce), product);
}

}  // namespace

std::span<const Op> einsum_ops() {
  static const Op ops[] = {
      {.name = "Einsum",
       .since = 12,
       .max_inputs = 64,
       .kind = Kind::kContraction,
       .attributes = "equation:s",
       .infer = infer_einsum,
       .expand = expand_einsum,
       .emit = emit_einsum},
  };
  return ops;
}

}  // namespace hone::graph
