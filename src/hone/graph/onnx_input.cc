#include "hone/graph/onnx_input.h"

#include <cmath>
#include <set>

#include "hone/base/closest_name.h"
#include "hone/graph/some_names.h"
#include "hone/tensor/max_rank.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {
namespace {

// The extents that the model gives, -1 where it leaves them open.
struct Declaration {
  Shape shape;
  std::vector<std::string> text;
  bool any_rank = false;  // not even the rank is known
  [[nodiscard]] bool open() const {
    return any_rank || std::find(shape.begin(), shape.end(), -1) != shape.end();
  }
  [[nodiscard]] std::string to_text() const {
    return any_rank ? "..." : fmt::format("{}", fmt::join(text, ", "));
  }
  [[nodiscard]] bool fits(const Shape& given) const {
    if (!may_become(given)) return false;
    for (size_t i = 0; i < given.size() && !any_rank; ++i) {
      if (shape[i] >= 0 && shape[i] != given[i]) return false;
    }
    return true;
  }
  [[nodiscard]] bool has_rank(size_t rank) const { return any_rank || rank == shape.size(); }
  // With other extents than the model's, too: another batch.
  [[nodiscard]] bool may_become(const Shape& given) const {
    return has_rank(given.size()) && is_valid(given);
  }
};

// Returns whether a shape has more elements than one may have, but nothing else is wrong with it.
bool is_too_large(const Shape& shape) {
  const bool has_extents = std::ranges::all_of(shape, [](int64_t extent) { return extent >= 0; });
  return has_extents && shape.size() <= kMaxRank && !is_valid(shape);
}

Result<Declaration> read_declaration(const std::string& name, const onnx::TypeProto_Tensor& type,
                                     const std::string& file) {
  Declaration declared;
  declared.any_rank = !type.has_shape();
  if (const int rank = type.shape().dim_size(); rank > static_cast<int>(kMaxRank)) {
    return error(Code::kUnsupported, "{}: input '{}' has {} dimensions, at most {} are supported",
                 file, name, rank, kMaxRank);
  }
  for (const auto& dim : type.shape().dim()) {
    // Some exporters (Paddle's) write -1 for an extent that is open.
    const bool open = !dim.has_dim_value() || dim.dim_value() == -1;
    if (!open && dim.dim_value() < 0)
      return invalid("{}: input '{}' has an extent of {}", file, name, dim.dim_value());
    const std::string symbol = dim.dim_param().empty() ? "?" : dim.dim_param();
    declared.shape.push_back(open ? -1 : dim.dim_value());
    declared.text.push_back(open ? symbol : std::to_string(dim.dim_value()));
  }
  return declared;
}

// Returns whether a type has a number, which floats may round. All integers below 2^53 are exact as
// a double; beyond, it may stand for another number than was meant.
bool has_number(DType dtype, double number) {
  constexpr double kTooLarge = 0x1p53;
  if (!is_float(dtype) && !(std::abs(number) < kTooLarge)) return false;
  Tensor value(dtype, {});
  value.set(0, number);
  if (!is_float(dtype)) return value.at(0) == number;
  return std::isfinite(value.at(0)) || !std::isfinite(number);
}

// The value of an input to which a number is bound, a tensor of rank 0: of the input's type, if
// that has the number, and of its shape, if that is one element, open extents being 1. What has
// the input's type keeps its bits.
std::optional<Tensor> as_input(const Tensor& number, DType dtype, const Declaration& declared) {
  if (!number.shape().empty()) return std::nullopt;
  const bool same = number.dtype() == dtype;
  if (same && declared.fits(number.shape())) return number;
  Shape shape = declared.shape;
  std::replace(shape.begin(), shape.end(), int64_t{-1}, int64_t{1});
  if (!is_valid(shape) || num_elements(shape) != 1) return std::nullopt;
  if (same) return number.reshaped(shape);
  if (is_small(dtype) || !has_number(dtype, number.at(0))) return std::nullopt;
  Tensor value(dtype, shape);
  value.set(0, number.at(0));
  return value;
}

// A bound value for a message: its type and shape, and the number that it is.
std::string bound_text(const Tensor& value) {
  const std::string text =
      fmt::format("{} {}", dtype_name(value.dtype()), to_string(value.shape()));
  if (!value.shape().empty() || is_small(value.dtype())) return text;
  if (value.dtype() == DType::kI64) return fmt::format("{} ({})", text, value.as<int64_t>()[0]);
  return fmt::format("{} ({})", text, value.at(0));
}

// Says what a value is that is no tensor, for a message.
const char* kind_of(const onnx::TypeProto& type) {
  if (type.has_sequence_type()) return "a sequence";
  if (type.has_map_type()) return "a map";
  if (type.has_sparse_tensor_type()) return "a sparse tensor";
  return "of no type";
}

}  // namespace

std::set<std::string> constant_initializers(const onnx::GraphProto& graph,
                                            const ImportOptions& options) {
  std::set<std::string> names;
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& input : graph.input()) {
    const std::string& name = input.name();
    if (options.bind.contains(name) || options.shapes.contains(name) ||
        options.ranges.contains(name))
      names.erase(name);
  }
  return names;
}

Result<DeclaredInput> declared_input(const onnx::ValueInfoProto& input,
                                     const ImportOptions& options, const std::string& file) {
  const std::string& name = input.name();
  // An optional tensor is given in every run.
  const bool optional = input.type().has_optional_type();
  const auto& value_type = optional ? input.type().optional_type().elem_type() : input.type();
  if (!value_type.has_tensor_type()) {
    return error(Code::kUnsupported, "{}: input '{}' is {}, expected a tensor", file, name,
                 kind_of(value_type));
  }
  const auto& type = value_type.tensor_type();
  const auto dtype = dtype_from_onnx(type.elem_type());
  if (!dtype) {
    return error(Code::kUnsupported, "{}: input '{}' has element type {}, expected {}", file, name,
                 onnx_type_text(type.elem_type()),
                 type.elem_type() == onnx::TensorProto::STRING
                     ? "numbers or booleans: texts have to become numbers before the model, so "
                       "export it without the nodes that read them"
                     : "real numbers or booleans");
  }
  HONE_ASSIGN_OR_RETURN(const Declaration declared, read_declaration(name, type, file));

  if (const auto bound = options.bind.find(name); bound != options.bind.end()) {
    const Tensor& value = bound->second;
    if (const std::optional<Tensor> number = as_input(value, *dtype, declared))
      return DeclaredInput{*dtype, number->shape(), -1, number};
    const std::optional<Tensor> fitting = as_type(value, *dtype);
    if (!fitting || !declared.fits(value.shape())) {
      return invalid("{}: input '{}' is bound to a value of {}, expected {} [{}]", file, name,
                     bound_text(value), dtype_name(*dtype), declared.to_text());
    }
    return DeclaredInput{*dtype, value.shape(), -1, fitting};
  }
  if (const auto given = options.shapes.find(name); given != options.shapes.end()) {
    if (declared.has_rank(given->second.size()) && is_too_large(given->second)) {
      return invalid(
          "{}: the shape {} that is given for input '{}' is too large, expected {:.0f} "
          "elements at most",
          file, to_string(given->second), name, kMaxElements);
    }
    if (!declared.may_become(given->second)) {
      return invalid("{}: the shape {} is given for input '{}', which is declared as [{}]", file,
                     to_string(given->second), name, declared.to_text());
    }
    return DeclaredInput{*dtype, given->second, declared.shape.empty() ? -1 : declared.shape[0]};
  }
  if (declared.open()) {
    return DeclaredInput{.dtype = *dtype, .open = declared.text};
  }
  if (!declared.fits(declared.shape)) {
    return invalid("{}: input '{}' has the shape {}, which is too large", file, name,
                   to_string(declared.shape));
  }
  return DeclaredInput{*dtype, declared.shape};
}

Status open_inputs(const std::vector<OpenInput>& open, const std::string& file) {
  if (open.empty()) return ok_status();
  const auto shape = [](const OpenInput& input) {
    return input.extents.empty() ? "..." : fmt::format("{}", fmt::join(input.extents, ", "));
  };
  // An option, or nothing without an example for it.
  const auto option = [](const OpenInput& input, const std::string& example) {
    return example.empty() ? "" : fmt::format(" --shape {}={}", input.name, example);
  };
  const auto such_as = [](const std::string& options) {
    return options.empty() ? ", --shape" : ", such as" + options;
  };
  if (open.size() == 1) {
    const OpenInput& input = open[0];
    const std::string ranges = option(input, input.ranges);
    return invalid(
        "{}: input '{}' has the open shape [{}]: give its shape (ModelOptions::shapes{}{})", file,
        input.name, shape(input), such_as(option(input, input.shape)),
        ranges.empty() ? "" : ", or ModelOptions::ranges" + such_as(ranges));
  }
  std::string names, options;
  for (const OpenInput& input : open) {
    names += fmt::format("{}'{}' [{}]", names.empty() ? "" : ", ", input.name, shape(input));
    options += option(input, input.shape);
  }
  return invalid("{}: {} inputs have open shapes: {}: give their shapes (ModelOptions::shapes{})",
                 file, open.size(), names, such_as(options));
}

// Returns whether a dimension of an input has this name.
static bool is_dimension(const onnx::GraphProto& graph, const std::string& name) {
  for (const auto& input : graph.input()) {
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (dim.dim_param() == name) return true;
    }
  }
  return false;
}

Status check_given_names(const onnx::GraphProto& graph, const std::set<std::string>& constants,
                         const ImportOptions& options, const std::string& file) {
  std::vector<std::string> names;
  for (const auto& input : graph.input()) {
    if (!constants.contains(input.name())) names.push_back(input.name());
  }
  const auto check = [&](const std::string& name, const char* what) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return ok_status();
    return invalid("{}: {} '{}', which is no input{}{}{}", file, what, name,
                   names.empty() ? "" : ": the inputs are ", some_names(names),
                   did_you_mean(name, names));
  };
  for (const auto& [name, unused] : options.shapes)
    HONE_RETURN_IF_ERROR(check(name, "a shape is given for"));
  for (const auto& [name, unused] : options.bind) {
    const Status status = check(name, "a value is bound to");
    if (status.ok() || !is_dimension(graph, name)) {
      HONE_RETURN_IF_ERROR(status);
      continue;
    }
    return invalid("{}; it is a dimension, whose size or range --shape {}=... gives",
                   status.message(), name);
  }
  return ok_status();
}

Sources sources_of_values(const Graph& graph) {
  Sources sources;
  for (const Node& node : graph.nodes) {
    for (const ValueId out : node.outputs) sources[out] = node.inputs;
  }
  return sources;
}

std::vector<std::string> inputs_to_bind(const Graph& graph, const Sources& sources) {
  std::vector<ValueId> open = graph.unknown_operands;
  std::set<ValueId> seen;
  std::vector<std::string> names;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (id == kNoValue || graph.value(id).constant || !seen.insert(id).second) continue;
    if (graph.is_input(id)) names.push_back(graph.value(id).name);
    const auto it = sources.find(id);
    if (it != sources.end()) open.insert(open.end(), it->second.begin(), it->second.end());
  }
  return names;
}

}  // namespace hone::graph
