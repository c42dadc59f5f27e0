#include "hone/schedule/matrix_product.h"

#include <algorithm>
#include <numeric>

#include "hone/base/round_up.h"
#include "hone/compute/stage_body.h"
#include "hone/ir/linear.h"
#include "hone/schedule/bilinear.h"
#include "hone/schedule/stage_rewrite.h"
#include "hone/tensor/half_tensor.h"

namespace hone::schedule {
namespace {

using compute::Axis;
using ir::Expr;
using ir::Op;

constexpr int64_t kVectorElements = 16;  // at most, that are copied at once

bool is_load(const Expr& e, const ir::BufferPtr& buffer) {
  return e->op == Op::kLoad && e->buffer == buffer;
}

bool is_zero_outside(const Expr& e) {
  return e->op == Op::kSelect && e->args[2]->op == Op::kFloat && e->args[2]->float_value == 0;
}

// Returns the expression in 16 bits if it is one that was widened, else null.
Expr narrowed(const Expr& e, DType type) {
  if (e->op == Op::kCast && e->args[0]->type == type) return e->args[0];
  if (e->op == Op::kFloat && e->float_value == 0) return ir::constant_float(0, type);
  if (e->op != Op::kSelect) return nullptr;
  const Expr a = narrowed(e->args[1], type), b = narrowed(e->args[2], type);
  return a && b ? ir::select(e->args[0], a, b) : nullptr;
}
Expr as_stored(const Expr& e) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    if (const Expr narrow = narrowed(e, type)) return narrow;
  }
  return e;
}

int64_t points(const std::vector<Axis>& axes) {
  int64_t product = 1;
  for (const Axis& axis : axes) product *= axis.extent;
  return product;
}

// Appends the values of axes that are the digits of a number, the outermost one first.
void add_digits(const std::vector<Axis>& axes, const Expr& number, ir::VarMap& map) {
  int64_t below = 1;
  const int64_t all = points(axes);
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t extent = axes[i].extent;
    Expr digit = below == 1 ? number : ir::floordiv(number, below);
    if (extent * below < all) digit = ir::floormod(digit, extent);
    map.push_back({axes[i].var, extent == 1 && axes.size() > 1 ? ir::constant(0) : digit});
    below *= extent;
  }
}

// The number that axes with these values are the digits of.
Expr number_of(const std::vector<Axis>& axes, const std::vector<Expr>& values) {
  Expr number = ir::constant(0);
  for (size_t i = 0; i < axes.size(); ++i) number = number * axes[i].extent + values[i];
  return number;
}

// The axes of a sum, by what they are in the product.
struct Roles {
  std::vector<Axis> outer, rows, columns;
};

Result<Roles> roles_of(const compute::Stage& stage, const MatrixProduct& step) {
  Roles roles;
  const auto take = [&](const std::vector<std::string>& names, std::vector<Axis>& to) -> Status {
    if (names.empty()) return invalid("{} has no rows or no columns", step.stage);
    for (const std::string& name : names) {
      const auto axis = std::find_if(stage.axes.begin(), stage.axes.end(),
                                     [&](const Axis& a) { return a.var->name == name; });
      if (axis == stage.axes.end()) return invalid("{} has no axis {}", step.stage, name);
      to.push_back(*axis);
    }
    return ok_status();
  };
  HONE_RETURN_IF_ERROR(take(step.rows, roles.rows));
  HONE_RETURN_IF_ERROR(take(step.columns, roles.columns));
  std::vector<std::string> named = step.rows;
  named.insert(named.end(), step.columns.begin(), step.columns.end());
  for (const Axis& axis : stage.axes) {
    const auto times = std::count(named.begin(), named.end(), axis.var->name);
    if (times > 1) return invalid("axis {} is named twice", axis.var->name);
    if (times == 0) roles.outer.push_back(axis);
  }
  return roles;
}

bool uses_any(const Expr& e, const std::vector<Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
    return axis.extent > 1 && ir::uses(e, axis.var.get());
  });
}

// The stage that lays out one factor, and how the sum reads it.
struct Operand {
  compute::Stage stage;
  Expr read;
};

class Rewriter {
 public:
  Rewriter(const State& state, const compute::Stage& stage, Roles roles, int64_t multiple)
      : state_(state), stage_(stage), roles_(std::move(roles)) {
    terms_ = points(stage.reduce);
    filled_ = round_up(terms_, multiple);
    for (const Axis& axis : roles_.outer)
      outer_.push_back(compute::make_axis(axis.var->name, axis.extent));
    rows_ = compute::make_axis("rows", points(roles_.rows));
    columns_ = compute::make_axis("columns", points(roles_.columns));
    sum_ = compute::make_axis("terms", filled_);
  }

  Operand operand(const Expr& factor, bool left) const {
    const Expr value = as_stored(factor);
    ir::BufferPtr source;
    ir::visit(value, [&](const Expr& e) {
      if (e->op == Op::kLoad && !source) source = e->buffer;
    });
    Operand made;
    compute::Stage& copy = made.stage;
    copy.name = unique_name(state_, source->name + (left ? ".left" : ".right"));
    std::vector<Expr> place;
    std::vector<int64_t> shape;
    ir::VarMap map;
    const auto add = [&](const Axis& axis) {
      copy.axes.push_back(compute::make_axis(axis.var->name, axis.extent));
      place.push_back(ir::variable(axis.var));
      shape.push_back(axis.extent);
      return ir::variable(copy.axes.back().var);
    };
    for (size_t i = 0; i < outer_.size(); ++i) {
      if (ir::uses(value, roles_.outer[i].var.get()))
        map.push_back({roles_.outer[i].var, add(outer_[i])});
    }
    if (left) add_digits(roles_.rows, add(rows_), map);
    const Expr terms = add(sum_);
    add_digits(stage_.reduce, terms, map);
    if (!left) add_digits(roles_.columns, add(columns_), map);
    // A factor may also name an axis of the other one that has one point.
    for (const Axis& axis : left ? roles_.columns : roles_.rows)
      map.push_back({axis.var, ir::constant(0)});
    Expr element = ir::substitute(value, map);
    if (filled_ > terms_) {
      // One test for all elements of a vector, if these end together.
      const int64_t together = std::gcd(terms_, kVectorElements);
      const Expr inside = ir::less(together == 1 ? terms : ir::floordiv(terms, together),
                                   ir::constant(terms_ / together));
      element = is_zero_outside(element)
                    ? ir::select(ir::logical_and(inside, element->args[0]), element->args[1],
                                 element->args[2])
                    : ir::select(inside, element, ir::constant_float(0, element->type));
    }
    const ir::BufferPtr to = ir::make_buffer(copy.name, element->type, shape);
    copy.outputs.push_back({to, compute::variables(copy.axes), element, nullptr, nullptr, nullptr});
    made.read = ir::load(to, place);
    if (is_half(element->type)) made.read = ir::cast(DType::kF32, made.read);
    return made;
  }

  // The product itself.
  compute::Stage product(const Expr& left, const Expr& right) {
    compute::Stage made;
    made.name = stage_.name;
    made.op = stage_.op;
    made.axes = outer_;
    made.axes.insert(made.axes.end(), {rows_, columns_});
    made.reduce = {sum_};
    std::vector<int64_t> shape;
    for (const Axis& axis : made.axes) shape.push_back(axis.extent);
    const compute::Output& old = stage_.outputs[0];
    buffer_ = ir::make_buffer(old.buffer->name, DType::kF32, shape);
    const ir::BufferPtr other = ir::make_buffer(stage_.name + ".other", DType::kF32, shape);
    const std::vector<Expr> at = compute::variables(made.axes);
    made.outputs.push_back({buffer_, at, ir::load(buffer_, at) + left * right, old.identity,
                            ir::load(buffer_, at) + ir::load(other, at), other});
    return made;
  }

  // An element of the sum as one of the product.
  [[nodiscard]] Expr read(const std::vector<Expr>& indices) const {
    const auto values = [&](const std::vector<Axis>& axes) {
      std::vector<Expr> found;
      for (const Axis& axis : axes) {
        const auto& write = stage_.outputs[0].write;
        const auto d = std::find_if(write.begin(), write.end(),
                                    [&](const Expr& e) { return ir::uses(e, axis.var.get()); });
        found.push_back(indices[static_cast<size_t>(d - write.begin())]);
      }
      return found;
    };
    std::vector<Expr> at = values(roles_.outer);
    at.push_back(number_of(roles_.rows, values(roles_.rows)));
    at.push_back(number_of(roles_.columns, values(roles_.columns)));
    return ir::load(buffer_, at);
  }

 private:
  const State& state_;
  const compute::Stage& stage_;
  Roles roles_;
  std::vector<Axis> outer_;
  Axis rows_, columns_, sum_;
  int64_t terms_ = 1, filled_ = 1;
  ir::BufferPtr buffer_;
};

}  // namespace

std::optional<ProductTerms> product_terms(const compute::Stage& stage) {
  if (stage.is_extern() || stage.where || stage.until || stage.outputs.size() != 1 ||
      stage.reduce.empty())
    return std::nullopt;
  const compute::Output& output = stage.outputs[0];
  if (output.buffer->dtype != DType::kF32 || output.value->op != Op::kAdd ||
      output.identity->op != Op::kFloat || output.identity->float_value != 0)
    return std::nullopt;
  const size_t old = is_load(output.value->args[0], output.buffer) ? 0 : 1;
  const Expr& product = output.value->args[1 - old];
  if (!is_load(output.value->args[old], output.buffer) || product->op != Op::kMul)
    return std::nullopt;
  return ProductTerms{product->args[0], product->args[1]};
}

Status matrix_product(const MatrixProduct& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  if (!untouched(state, index)) return invalid("{} is scheduled already", step.stage);
  if (step.multiple < 1 || step.multiple > 4096)
    return invalid("terms in multiples of {}", step.multiple);
  const StageInfoPtr info = state.stages[static_cast<size_t>(index)].info;
  const compute::Stage& stage = info->stage;
  const std::optional<ProductTerms> factors = product_terms(stage);
  if (!factors) return invalid("{} is no sum of products in float32", step.stage);
  const ir::BufferPtr old = stage.outputs[0].buffer;
  if (state.is_param(old) || state.writers(old).size() != 1 || written_axes(*info).empty())
    return invalid("{} does not store its axes as they are, in a buffer of its own", step.stage);
  HONE_ASSIGN_OR_RETURN(const Roles roles, roles_of(stage, step));
  const auto is_left = [&](const Expr& a, const Expr& b) {
    return !uses_any(a, roles.columns) && !uses_any(b, roles.rows);
  };
  const bool in_order = is_left(factors->first, factors->second);
  if (!in_order && !is_left(factors->second, factors->first))
    return invalid("a factor of {} has both rows and columns", step.stage);
  const Expr& a = in_order ? factors->first : factors->second;
  const Expr& b = in_order ? factors->second : factors->first;
  for (const Expr& factor : {a, b}) {
    if (!ir::has_load(factor)) return invalid("a factor of {} reads nothing", step.stage);
  }
  const StageList readers = state.readers(old);
  for (const int reader : readers) {
    if (state.stages[static_cast<size_t>(reader)].info->stage.is_extern())
      return invalid("{} is read by an extern stage", step.stage);
  }
  Rewriter rewriter(state, stage, roles, step.multiple);
  Operand left = rewriter.operand(a, true), right = rewriter.operand(b, false);
  compute::Stage product = rewriter.product(left.read, right.read);
  replace_stage(state, index, {std::move(left.stage), std::move(right.stage), std::move(product)});
  for (StageState& reader : state.stages) {
    if (std::none_of(reader.info->reads.begin(), reader.info->reads.end(),
                     [&](const compute::Access& read) { return read.buffer == old; }))
      continue;
    compute::Stage changed = reader.info->stage;
    for (compute::Output& output : changed.outputs) {
      output.value = ir::rewrite(output.value, [&](const Expr& e) {
        return is_load(e, old) ? rewriter.read(e->args) : nullptr;
      });
    }
    reader.info = make_stage_info(std::move(changed), reader.info->constant);
  }
  return ok_status();
}

}  // namespace hone::schedule
