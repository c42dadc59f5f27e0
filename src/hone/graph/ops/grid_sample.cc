// GridSample: a picture (or a volume) read at places that are data.
#include "hone/graph/evaluate.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

struct GridMode {
  std::string mode, padding;
  bool corners = false;
  [[nodiscard]] int64_t taps() const { return mode == "nearest" ? 1 : mode == "linear" ? 2 : 4; }
};

// Opset 20 renamed the modes.
GridMode mode_of(const Attributes& attributes) {
  GridMode m{attributes.text("mode", "linear"), attributes.text("padding_mode", "zeros"),
             attributes.integer("align_corners", 0) != 0};
  if (m.mode == "bilinear") m.mode = "linear";
  if (m.mode == "bicubic") m.mode = "cubic";
  return m;
}

Status infer_grid_sample(InferContext& c) {
  const GridMode m = mode_of(c.attributes());
  if (m.mode != "nearest" && m.mode != "linear" && m.mode != "cubic")
    return c.fail("mode '{}'", m.mode);
  if (m.padding != "zeros" && m.padding != "border" && m.padding != "reflection")
    return c.fail("padding_mode '{}'", m.padding);
  const Shape& data = c.shape(0);
  const Shape& grid = c.shape(1);
  const auto spatial = c.rank(0) - 2;
  const bool fits = spatial >= 1 && spatial <= 3 && grid.size() == data.size() &&
                    grid[0] == data[0] && grid.back() == spatial && is_float(c.dtype(1));
  if (!fits || (num_elements(data) == 0 && num_elements(grid) > 0)) {
    return c.fail("a grid {} {} for data of shape {}", dtype_name(c.dtype(1)), to_string(grid),
                  to_string(data));
  }
  Shape shape = {data[0], data[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  return c.set(0, c.dtype(0), std::move(shape));
}

Expr clamp(const Expr& x, const Expr& low, const Expr& high) {
  return ir::min(ir::max(x, low), high);
}

// A place outside of low .. high, reflected at the ends until it is inside.
Expr reflected(const Expr& x, double low, double high) {
  if (high <= low) return literal(x->type, low);
  const Expr span = literal(x->type, high - low), least = literal(x->type, low);
  const Expr over = ir::make(ir::Op::kAbs, {x - least});
  const Expr turns = ir::make(ir::Op::kFloor, {over / span});
  const Expr rest = over - turns * span;
  const Expr half = turns * literal(x->type, 0.5);
  const Expr even = ir::make(ir::Op::kEq, {half, ir::make(ir::Op::kFloor, {half})});
  return least + ir::select(even, rest, span - rest);
}

Expr cubic_weight(const Expr& fraction, int64_t tap) {
  constexpr double a = -0.75;
  const auto number = [&](double v) { return literal(fraction->type, v); };
  const Expr x = tap == 0   ? fraction + number(1)
                 : tap == 1 ? fraction
                 : tap == 2 ? number(1) - fraction
                            : number(2) - fraction;
  if (tap == 1 || tap == 2) return (number(a + 2) * x - number(a + 3)) * x * x + number(1);
  return ((number(a) * x - number(5 * a)) * x + number(8 * a)) * x - number(4 * a);
}

// Along each dimension of the data: which elements, and with which weights.
class Sampler {
 public:
  Sampler(EmitContext& c, size_t spatial)
      : c_(c),
        mode_(mode_of(c.node().attributes)),
        spatial_(spatial),
        type_(compute_type(c.input(1).dtype)),
        place_("place", type_) {
    const Shape shape = {static_cast<int64_t>(spatial), mode_.taps()};
    index_ = ir::make_buffer("index", DType::kI64, shape, ir::Scope::kStack);
    weight_ = ir::make_buffer("weight", type_, shape, ir::Scope::kStack);
  }

  std::vector<Stmt> prepare(const std::vector<Expr>& point) {
    std::vector<Stmt> list;
    for (size_t d = 0; d < spatial_; ++d) {
      std::vector<Expr> at = point;
      at.push_back(ir::constant(static_cast<int64_t>(spatial_ - 1 - d)));  // x comes first
      prepare_dim(d, c_.read(1, "grid", at), list);
    }
    return list;
  }

  Stmt with_buffers(std::vector<Stmt> body) const {
    return with_locals({place_},
                       {ir::make_alloc(index_, {ir::make_alloc(weight_, std::move(body))})});
  }

  // The weighted sum over the taps of dimension d and those after it.
  Expr sum(size_t d, std::vector<Expr> at) const {
    if (d == spatial_) {
      const Expr element = c_.read(0, "data", at);
      const DType type = compute_type(c_.result().dtype);
      return mode_.mode == "nearest" ? element
                                     : ir::cast(type == DType::kF64 ? type : type_, element);
    }
    Expr total;
    for (int64_t tap = 0; tap < mode_.taps(); ++tap) {
      const std::vector<Expr> entry = {ir::constant(static_cast<int64_t>(d)), ir::constant(tap)};
      std::vector<Expr> from = at;
      from.push_back(ir::load(index_, entry));
      Expr term = sum(d + 1, from);
      if (mode_.mode != "nearest") term = term * ir::cast(term->type, ir::load(weight_, entry));
      total = total ? total + term : term;
    }
    return total;
  }

  // Returns whether no data is read: the nearest element is outside, and zeros surround the data.
  [[nodiscard]] Expr outside() const {
    Expr any = ir::constant_bool(false);
    if (mode_.mode != "nearest" || mode_.padding != "zeros") return any;
    for (size_t d = 0; d < spatial_; ++d) {
      const Expr weight =
          ir::load(weight_, {ir::constant(static_cast<int64_t>(d)), ir::constant(0)});
      any = ir::make(ir::Op::kOr, {any, ir::make(ir::Op::kEq, {weight, literal(type_, 0)})});
    }
    return any;
  }

 private:
  [[nodiscard]] Expr number(double v) const { return literal(type_, v); }

  void prepare_dim(size_t d, const Expr& grid, std::vector<Stmt>& list) {
    const int64_t extent = c_.input(0).shape[d + 2];
    const auto n = static_cast<double>(extent);
    const double low = mode_.corners ? 0 : -0.5, high = mode_.corners ? n - 1 : n - 0.5;
    const Expr half = number(0.5);
    const Expr x = mode_.corners ? (grid + number(1)) * half * number(n - 1)
                                 : ((grid + number(1)) * number(n) - number(1)) * half;
    list.push_back(place_.set(mode_.mode == "nearest" ? ir::make(ir::Op::kRound, {x}) : x));
    const Expr place = place_.get();
    if (mode_.padding != "zeros") {
      const Expr is_outside =
          ir::make(ir::Op::kOr, {ir::less(place, number(low)), ir::less(number(high), place)});
      const Expr moved = mode_.padding == "border" ? clamp(place, number(0), number(n - 1))
                                                   : reflected(place, low, high);
      list.push_back(ir::make_if(is_outside, {place_.set(moved)}));
    }
    // NaN, and values that no integer can hold, count as far outside.
    const Expr finite = clamp(place, number(-2 * n - 8), number(3 * n + 8));
    const Expr floor = ir::make(ir::Op::kFloor, {finite});
    const Expr base = ir::cast(DType::kI64, floor);
    for (int64_t tap = 0; tap < mode_.taps(); ++tap) {
      const Expr at = base + (tap - (mode_.mode == "cubic" ? 1 : 0));
      Expr inside = clamp(at, ir::constant(0), ir::constant(extent - 1));
      Expr weight = number(1);
      if (mode_.mode == "linear") weight = tap == 0 ? number(1) - (place - floor) : place - floor;
      if (mode_.mode == "cubic") weight = cubic_weight(place - floor, tap);
      if (mode_.padding == "zeros") {
        const Expr hit = ir::make(ir::Op::kEq, {inside, at});
        weight = ir::select(hit, weight, number(0));
      } else if (mode_.padding == "reflection") {
        const Expr whole = ir::cast(type_, at);
        const Expr is_outside =
            ir::make(ir::Op::kOr, {ir::less(whole, number(low)), ir::less(number(high), whole)});
        const Expr moved = ir::cast(DType::kI64, reflected(whole, low, high));
        inside =
            clamp(ir::select(is_outside, moved, at), ir::constant(0), ir::constant(extent - 1));
      }
      const std::vector<Expr> entry = {ir::constant(static_cast<int64_t>(d)), ir::constant(tap)};
      list.push_back(ir::make_store(index_, entry, inside));
      list.push_back(ir::make_store(weight_, entry, weight));
    }
  }

  EmitContext& c_;
  GridMode mode_;
  size_t spatial_;
  DType type_;
  Local place_;
  ir::BufferPtr index_, weight_;
};

void emit_grid_sample(EmitContext& c) {
  const Shape& shape = c.result().shape;
  const size_t spatial = shape.size() - 2;
  std::vector<compute::Axis> points = axes_of(shape, 0, shape.size());
  const compute::Axis channel = points[1];
  points.erase(points.begin() + 1);
  Sampler sampler(c, spatial);
  c.body("grid_sample", points, [&](const std::vector<Expr>& point) {
    std::vector<Expr> to = point;
    to.insert(to.begin() + 1, ir::variable(channel.var));
    const Expr value = sampler.sum(0, {to[0], to[1]});
    std::vector<Stmt> body = sampler.prepare(point);
    body.push_back(loops_over(
        {channel},
        {c.store(0, to, ir::select(sampler.outside(), literal(value->type, 0), value))}));
    return std::vector{sampler.with_buffers(std::move(body))};
  });
}

}  // namespace

std::span<const Op> grid_sample_ops() {
  static const Op ops[] = {
      {.name = "GridSample",
       .since = 16,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = "align_corners:i mode:s padding_mode:s",
       .infer = infer_grid_sample,
       .fold = evaluate_node,
       .emit = emit_grid_sample},
  };
  return ops;
}

}  // namespace hone::graph
