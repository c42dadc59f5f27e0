// RoiAlign: regions of feature maps, resampled to one size. hone.RoiAlign has one more operand, the
// sides of the maps in a run, [height, width].
#include "hone/graph/evaluate.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

Status infer_roi_align(InferContext& c) {
  const Attributes& a = c.attributes();
  const int64_t height = a.integer("output_height", 1), width = a.integer("output_width", 1);
  const std::string mode = a.text("mode", "avg");
  const std::string coordinates = a.text("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max") return c.fail("mode '{}'", mode);
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return c.fail("coordinate_transformation_mode '{}'", coordinates);
  const int64_t ratio = a.integer("sampling_ratio", 0);
  if (height < 1 || width < 1 || height > 1 << 16 || width > 1 << 16 || ratio < 0 ||
      ratio > 1 << 10)
    return c.fail("{} x {} elements with sampling_ratio {}", height, width, ratio);
  HONE_RETURN_IF_ERROR(check_indices(c, 2));
  if (c.has(3) && (c.shape(3) != Shape{2} || c.dtype(3) != DType::kI64))
    return c.fail("sides {} {}", dtype_name(c.dtype(3)), to_string(c.shape(3)));
  const bool fits = c.rank(0) == 4 && c.rank(1) == 2 && c.shape(1)[1] == 4 &&
                    c.shape(2) == Shape{c.shape(1)[0]} && c.dtype(1) == c.dtype(0) &&
                    is_float(c.dtype(0));
  if (!fits || num_elements(c.shape(0)) == 0) {
    return c.fail("regions of shape {} and indices of shape {} for data {} {}",
                  to_string(c.shape(1)), to_string(c.shape(2)), dtype_name(c.dtype(0)),
                  to_string(c.shape(0)));
  }
  return c.set(0, c.dtype(0), {c.shape(1)[0], c.shape(0)[1], height, width});
}

// One side of the maps: where the region begins, how long a bin is and how many samples a bin has;
// then, for a sample, the two elements around it and how far it is from the first.
struct Span {
  Span(const char* name, DType type, int64_t elements, Expr of_run)
      : extent(elements),
        extent_of_run(std::move(of_run)),
        start(name, type),
        bin("bin", type),
        samples("samples", DType::kI64),
        place("place", type),
        low("low", DType::kI64),
        high("high", DType::kI64) {}
  int64_t extent;
  Expr extent_of_run;  // null if it is the same in all runs
  Local start, bin, samples, place, low, high;
  [[nodiscard]] std::vector<Local> locals() const {
    return {start, bin, samples, place, low, high};
  }
};

class Aligner {
 public:
  explicit Aligner(EmitContext& c)
      : c_(c),
        attributes_(c.node().attributes),
        type_(compute_type(c.input(0).dtype)),
        rows_("top", type_, c.input(0).shape[2], side_of_run(0)),
        columns_("left", type_, c.input(0).shape[3], side_of_run(1)),
        maximum_(attributes_.text("mode", "avg") == "max") {}

  void emit() {
    const Shape& shape = c_.result().shape;
    const compute::Axis channel = compute::make_axis("c", shape[1]);
    std::vector<compute::Axis> points = axes_of(shape, 0, 4);
    points.erase(points.begin() + 1);
    c_.body("roi_align", points, [&](const std::vector<Expr>& point) {
      const std::vector<Expr> to = {point[0], ir::variable(channel.var), point[1], point[2]};
      std::vector<Stmt> body = region(rows_, point[0], 1, shape[2]);
      for (Stmt& s : region(columns_, point[0], 0, shape[3])) body.push_back(std::move(s));
      body.push_back(loops_over({channel}, {c_.store(0, to, number(0))}));
      body.push_back(sample_loops(point, to, channel));
      if (!maximum_) {
        const Expr count =
            ir::cast(type_, ir::max(rows_.samples.get() * columns_.samples.get(), ir::constant(1)));
        body.push_back(loops_over({channel}, {c_.store(0, to, c_.read_result(0, to) / count)}));
      }
      std::vector<Local> locals = rows_.locals();
      for (const Local& local : columns_.locals()) locals.push_back(local);
      return std::vector{with_locals(locals, std::move(body))};
    });
  }

 private:
  [[nodiscard]] Expr number(double v) const { return literal(type_, v); }
  [[nodiscard]] Expr side_of_run(int64_t i) const {
    return c_.node().has_input(3) ? c_.read(3, "sides", {ir::constant(i)}) : nullptr;
  }
  // The place of the element `before` the end: as an index, and as a number of the maps' type.
  [[nodiscard]] static Expr place_from_end(const Span& span, int64_t before) {
    return span.extent_of_run ? span.extent_of_run - before : ir::constant(span.extent - before);
  }
  [[nodiscard]] Expr number_from_end(const Span& span, int64_t before) const {
    return span.extent_of_run ? ir::cast(type_, place_from_end(span, before))
                              : number(static_cast<double>(span.extent - before));
  }
  [[nodiscard]] Expr bounded(const Span& span) const {
    return ir::min(ir::max(span.place.get(), number(0)), number_from_end(span, 1));
  }

  // `first`: the column of the regions in which this dimension begins; it ends two columns on.
  std::vector<Stmt> region(const Span& span, const Expr& roi, int64_t first, int64_t bins) {
    // Before opset 16 coordinates had no half pixel, and no region was smaller than a pixel.
    const InferContext context(const_cast<Graph&>(c_.graph()), c_.node());
    const std::string fallback = context.opset() < 16 ? "output_half_pixel" : "half_pixel";
    const bool half = attributes_.text("coordinate_transformation_mode", fallback) == "half_pixel";
    const Expr scale = number(static_cast<double>(attributes_.number("spatial_scale", 1)));
    const auto edge = [&](int64_t column) {
      return c_.read(1, "rois", {roi, ir::constant(column)}) * scale - number(half ? 0.5 : 0);
    };
    Expr length = edge(first + 2) - edge(first);
    if (!half) length = ir::max(length, number(1));
    const int64_t ratio = attributes_.integer("sampling_ratio", 0);
    // A region far larger than the data gains nothing from more samples than this.
    const Expr needed =
        ir::cast(DType::kI64, ir::min(ir::make(ir::Op::kCeil, {span.bin.get()}), number(1 << 12)));
    return {span.start.set(edge(first)), span.bin.set(length / number(static_cast<double>(bins))),
            span.samples.set(ratio > 0 ? ir::constant(ratio) : ir::max(needed, ir::constant(0)))};
  }

  std::vector<Stmt> sample(const Span& span, const Expr& bin, const Expr& k) const {
    const Expr step =
        (ir::cast(type_, k) + number(0.5)) * span.bin.get() / ir::cast(type_, span.samples.get());
    return {span.place.set(span.start.get() + ir::cast(type_, bin) * span.bin.get() + step),
            span.low.set(ir::cast(DType::kI64, bounded(span))),
            span.high.set(ir::min(span.low.get() + 1, place_from_end(span, 1)))};
  }

  Expr inside(const Span& span) const {
    return ir::logical_and(ir::less_equal(number(-1), span.place.get()),
                           ir::less_equal(span.place.get(), number_from_end(span, 0)));
  }

  // Returns the distance of the sample from the lower element, up to that of the upper one.
  Expr fraction(const Span& span) const { return bounded(span) - ir::cast(type_, span.low.get()); }

  Stmt sample_loops(const std::vector<Expr>& point, const std::vector<Expr>& to,
                    const compute::Axis& channel) {
    const ir::VarPtr row = ir::make_var("iy"), column = ir::make_var("ix");
    const Expr batch = place_of(c_.read(2, "batch", {point[0]}), c_.input(0).shape[0]);
    const auto corner = [&](bool lower, bool right) {
      const Expr y = fraction(rows_), x = fraction(columns_);
      const Expr weight = (lower ? y : number(1) - y) * (right ? x : number(1) - x);
      return c_.read(0, "data",
                     {batch, to[1], lower ? rows_.high.get() : rows_.low.get(),
                      right ? columns_.high.get() : columns_.low.get()}) *
             weight;
    };
    const Expr a = corner(false, false), b = corner(false, true), c = corner(true, false),
               d = corner(true, true), old = c_.read_result(0, to);
    const Expr within = ir::logical_and(inside(rows_), inside(columns_));
    const Expr is_first =
        ir::make(ir::Op::kEq, {ir::variable(row) + ir::variable(column), ir::constant(0)});
    const auto update = [&](const Expr& value) {
      return loops_over({channel}, {c_.store(0, to, value)});
    };
    std::vector<Stmt> body = sample(columns_, point[2], ir::variable(column));
    if (maximum_) {
      const Expr best = ir::max(ir::max(a, b), ir::max(c, d));
      const Expr value = ir::select(within, best, number(0));
      body.push_back(update(ir::select(is_first, value, ir::max(old, value))));
    } else {
      body.push_back(ir::make_if(within, {update(old + a + b + c + d)}));
    }
    const Stmt inner = ir::make_for(column, ir::constant(0), columns_.samples.get(),
                                    ir::ForKind::kSerial, std::move(body));
    std::vector<Stmt> outer = sample(rows_, point[1], ir::variable(row));
    outer.push_back(inner);
    return ir::make_for(row, ir::constant(0), rows_.samples.get(), ir::ForKind::kSerial,
                        std::move(outer));
  }

  EmitContext& c_;
  const Attributes& attributes_;
  DType type_;
  Span rows_, columns_;
  bool maximum_;
};

void emit_roi_align(EmitContext& c) { Aligner(c).emit(); }

Op roi_align(std::string_view name, int since, int inputs) {
  return {.name = name,
          .since = since,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .attributes =
              "coordinate_transformation_mode:s mode:s output_height:i output_width:i "
              "sampling_ratio:i spatial_scale:f",
          .infer = infer_roi_align,
          .fold = evaluate_node,
          .emit = emit_roi_align};
}

}  // namespace

std::span<const Op> roi_align_ops() {
  static const Op ops[] = {roi_align("RoiAlign", 10, 3), roi_align("hone.RoiAlign", 1, 4)};
  return ops;
}

}  // namespace hone::graph
