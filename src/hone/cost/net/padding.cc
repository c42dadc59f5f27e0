#include "hone/cost/net/padding.h"

#include <algorithm>

namespace hone::cost::net {
namespace {

// A term this low before a softmax leaves no weight, whatever is added to it.
constexpr double kHidden = -1e8;

struct Axis {
  int mask = -1;                  // mask of the tokens along it; -1 if there are no tokens
  std::optional<double> padding;  // what each number is where a token is padding, if that is known
};

struct Known {
  std::vector<Axis> axes;
  std::optional<double> all;  // every number, of a constant
};

bool is_zero(const std::optional<double>& value) { return value && *value == 0; }

// Returns the result of a pointwise operator on two values, if it is known.
std::optional<double> combine(Op op, const std::optional<double>& a,
                              const std::optional<double>& b) {
  if (op == Op::kMul && (is_zero(a) || is_zero(b))) return 0;
  if (op == Op::kAdd && a && *a <= kHidden) return a;
  if (op == Op::kAdd && b && *b <= kHidden) return b;
  if (!a || !b) return std::nullopt;
  switch (op) {
    case Op::kAdd: return *a + *b;
    case Op::kSub: return *a - *b;
    case Op::kMul: return *a * *b;
    default: return std::nullopt;
  }
}

class Finder {
 public:
  explicit Finder(const Net& net) : net_(net) {}

  std::optional<TokenAxes> run() {
    TokenAxes found;
    for (const Node& node : net_.nodes) {
      std::optional<Known> known = follow(node);
      if (!known) return std::nullopt;
      std::vector<int>& masks = found.emplace_back();
      for (const Axis& axis : known->axes) masks.push_back(axis.mask);
      known_.push_back(std::move(*known));
    }
    const auto has_tokens = [](const std::vector<int>& masks) {
      return std::any_of(masks.begin(), masks.end(), [](int mask) { return mask >= 0; });
    };
    for (const NetOutput& output : net_.outputs) {
      if (has_tokens(found[static_cast<size_t>(output.node)])) return std::nullopt;
    }
    if (std::none_of(found.begin(), found.end(), has_tokens)) return std::nullopt;
    return found;
  }

 private:
  [[nodiscard]] const Known& in(const Node& node, size_t i) const {
    return known_[static_cast<size_t>(node.inputs[i])];
  }
  [[nodiscard]] const Dims& dims_in(const Node& node, size_t i) const {
    return net_.nodes[static_cast<size_t>(node.inputs[i])].dims;
  }

  std::optional<Known> follow(const Node& node) {
    switch (node.op) {
      case Op::kInput: return of_input(node);
      case Op::kConstant: return of_constant(node);
      case Op::kParameter: return Known{std::vector<Axis>(node.dims.size()), {}};
      case Op::kMatmul: return of_matmul(node);
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kDiv:
      case Op::kGreater: return of_elementwise(node);
      case Op::kRelu:
      case Op::kTanh:
      case Op::kDropout: return unary(node, true);
      case Op::kSigmoid:
      case Op::kExp:
      case Op::kClip: return unary(node, false);
      case Op::kSoftmax: return of_softmax(node);
      case Op::kLayerNorm:
        if (in(node, 0).axes.back().mask >= 0) return std::nullopt;
        return unary(node, false);
      case Op::kTranspose: return of_transpose(node);
      case Op::kReshape: return of_reshape(node);
      case Op::kReduceSum:
      case Op::kReduceMean: return of_reduction(node);
      case Op::kReduceMax: return of_maximum(node);
      case Op::kConcat: return of_concat(node);
      case Op::kSlice:
        if (in(node, 0).axes[static_cast<size_t>(node.integers[0])].mask >= 0) return std::nullopt;
        return Known{in(node, 0).axes, {}};
    }
    return std::nullopt;
  }

  [[nodiscard]] Known of_input(const Node& node) const {
    const int mask = mask_place(net_, static_cast<size_t>(node.source));
    Known known{std::vector<Axis>(node.dims.size()), {}};
    if (mask < 0 || node.dims[1] < 2) return known;
    known.axes[1].mask = mask;
    if (is_square(net_.inputs[static_cast<size_t>(node.source)])) known.axes[2].mask = mask;
    if (mask == node.source) known.axes[1].padding = 0;
    return known;
  }

  [[nodiscard]] Known of_constant(const Node& node) const {
    const std::vector<float>& values = net_.constants[static_cast<size_t>(node.source)].values;
    Known known{std::vector<Axis>(node.dims.size()), {}};
    if (values.size() == 1) known.all = values[0];
    return known;
  }

  // Keeps what is known of padding only if it is 0 and stays so.
  [[nodiscard]] Known unary(const Node& node, bool keeps_zero) const {
    Known known{in(node, 0).axes, {}};
    for (Axis& axis : known.axes) {
      if (!keeps_zero || !is_zero(axis.padding)) axis.padding.reset();
    }
    return known;
  }

  // Axes of two values that lie on each other, as numpy broadcasts. None: they do not fit any more
  // where tokens are left out.
  [[nodiscard]] std::optional<Known> broadcast(const Node& node, Op op, size_t rank) const {
    Known known{std::vector<Axis>(rank), {}};
    for (size_t i = 0; i < rank; ++i) {
      Axis axes[2];
      bool wide[2];
      std::optional<double> padding[2];
      for (size_t side = 0; side < 2; ++side) {
        const Known& from = in(node, side);
        const Dims& dims = dims_in(node, side);
        const size_t missing = node.dims.size() - dims.size();
        wide[side] = i >= missing && dims[i - missing] != 1;
        if (i >= missing) axes[side] = from.axes[i - missing];
        padding[side] = axes[side].mask >= 0 ? axes[side].padding : from.all;
      }
      if (axes[0].mask < 0 && axes[1].mask < 0) continue;
      if (wide[0] && wide[1] && axes[0].mask != axes[1].mask) return std::nullopt;
      known.axes[i] = {std::max(axes[0].mask, axes[1].mask), combine(op, padding[0], padding[1])};
    }
    return known;
  }

  [[nodiscard]] std::optional<Known> of_elementwise(const Node& node) const {
    return broadcast(node, node.op, node.dims.size());
  }

  [[nodiscard]] std::optional<Known> of_matmul(const Node& node) const {
    const Known &a = in(node, 0), &b = in(node, 1);
    const size_t rank = node.dims.size(), rows = a.axes.size() - 2, columns = b.axes.size() - 1;
    const Axis &inner_a = a.axes.back(), &inner_b = b.axes[columns - 1];
    if (inner_a.mask != inner_b.mask) return std::nullopt;
    if (inner_a.mask >= 0 && !is_zero(inner_a.padding) && !is_zero(inner_b.padding))
      return std::nullopt;
    std::optional<Known> known;
    if (columns == 1) {  // for a matrix, no axes come before its own
      known = Known{a.axes, {}};
    } else {
      known = broadcast(node, Op::kMul, rank - 2);
      if (!known) return std::nullopt;
      known->axes.resize(rank);
    }
    known->axes[rank - 2] = a.axes[rows];
    known->axes[rank - 1] = b.axes[columns];
    for (Axis& axis : known->axes) {
      if (!is_zero(axis.padding)) axis.padding.reset();
    }
    return known;
  }

  [[nodiscard]] std::optional<Known> of_softmax(const Node& node) const {
    const Axis& over = in(node, 0).axes.back();
    if (over.mask >= 0 && !(over.padding && *over.padding <= kHidden)) return std::nullopt;
    Known known = unary(node, false);
    if (over.mask >= 0) known.axes.back().padding = 0;
    return known;
  }

  [[nodiscard]] std::optional<Known> of_transpose(const Node& node) const {
    Known known;
    for (const int64_t axis : node.integers)
      known.axes.push_back(in(node, 0).axes[static_cast<size_t>(axis)]);
    return known;
  }

  // Each axis of tokens must stay one: as long, with as many numbers before it.
  [[nodiscard]] std::optional<Known> of_reshape(const Node& node) const {
    const std::vector<Axis>& from = in(node, 0).axes;
    const Dims& dims = dims_in(node, 0);
    Known known{std::vector<Axis>(node.dims.size()), {}};
    int64_t before = 1;
    for (size_t i = 1; i < from.size(); before *= dims[i++]) {
      if (from[i].mask < 0) continue;
      int64_t passed = 1;
      size_t place = 1;
      while (place < node.dims.size() && (passed != before || node.dims[place] != dims[i]))
        passed *= node.dims[place++];
      if (place == node.dims.size()) return std::nullopt;
      known.axes[place] = from[i];
    }
    return known;
  }

  [[nodiscard]] std::optional<Known> of_reduction(const Node& node) const {
    const auto over = static_cast<size_t>(node.integers[0]);
    Known known = unary(node, true);
    const Axis axis = known.axes[over];
    if (axis.mask >= 0 && (node.op == Op::kReduceMean || !is_zero(axis.padding)))
      return std::nullopt;
    remove(node, known);
    return known;
  }

  // Padding must be lower than anything else.
  [[nodiscard]] std::optional<Known> of_maximum(const Node& node) const {
    const Axis& axis = in(node, 0).axes[static_cast<size_t>(node.integers[0])];
    if (axis.mask >= 0 && !(axis.padding && *axis.padding <= kHidden)) return std::nullopt;
    Known known = unary(node, true);
    remove(node, known);
    return known;
  }

  // Removes the axis of a reduction.
  static void remove(const Node& node, Known& known) {
    const auto over = static_cast<size_t>(node.integers[0]);
    if (node.integers[1] != 0)
      known.axes[over] = {};
    else
      known.axes.erase(known.axes.begin() + static_cast<std::ptrdiff_t>(over));
  }

  [[nodiscard]] std::optional<Known> of_concat(const Node& node) const {
    Known known{in(node, 0).axes, {}};
    if (known.axes[static_cast<size_t>(node.integers[0])].mask >= 0) return std::nullopt;
    for (size_t part = 1; part < node.inputs.size(); ++part) {
      for (size_t i = 0; i < known.axes.size(); ++i) {
        const Axis& other = in(node, part).axes[i];
        if (other.mask != known.axes[i].mask) return std::nullopt;
        if (other.padding != known.axes[i].padding) known.axes[i].padding.reset();
      }
    }
    return known;
  }

  const Net& net_;
  std::vector<Known> known_;
};

}  // namespace

int mask_place(const Net& net, size_t input) {
  const std::string& name = net.inputs[input].name;
  const std::string_view mask = name == "steps" || name == "steps_mask" ? "steps_mask"
                                : name == "statements" || name == "tags" || name == "mask" ? "mask"
                                : name.starts_with("graph_")    ? "graph_mask"
                                : name.starts_with("template_") ? "template_mask"
                                                                : "";
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    if (net.inputs[i].name == mask) return static_cast<int>(i);
  }
  return -1;
}

bool is_square(const NetInput& input) { return input.name == "graph_edges"; }

std::optional<TokenAxes> find_token_axes(const Net& net) { return Finder(net).run(); }

}  // namespace hone::cost::net
