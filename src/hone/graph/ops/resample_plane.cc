// The internal operator of Resize along two axes: hone.ResamplePlane.
#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/graph/evaluate.h"
#include "hone/graph/ops/axis_samples.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using compute::Axis;
using ir::Expr;
using ir::Stmt;

// A block of rows is resampled across, then makes rows of the result, whose stores are still on
// their way while the next block is resampled: the fewer rows, the more of both at once. Two rows
// belong to neighbouring blocks, too, unless each result is one element.
constexpr int64_t kKeptBytes = 16 * 1024, kKeptBytesOfOne = 4 * 1024;
constexpr int64_t kLeastRows = 10, kLeastRowsOfOne = 6;
constexpr int64_t kTiles = 16;       // so many give all threads work
constexpr int64_t kRowPadding = 16;  // elements, so that rows begin where vectors do

// Operands: data, then index and weight of each of the two axes, as hone.Resample has them; without
// weights each result is one element of the data.
Status infer_resample_plane(InferContext& c) {
  Shape shape = c.shape(0);
  const Shape axes = c.attributes().integers("axes");
  for (size_t i = 0; i < 2; ++i) shape[static_cast<size_t>(axes[i])] = c.shape(1 + 2 * i)[0];
  return c.set(0, c.dtype(0), std::move(shape));
}

// Rows are what lies along the axis that comes first in memory. Where that axis grows, the rows of
// the data are resampled across and kept, and each row of the result is a sum of kept ones; where
// it shrinks, the data's rows are added first, and their sum is resampled across.
class Plane {
 public:
  explicit Plane(EmitContext& c)
      : c_(c),
        all_(axes_of(c.result().shape, 0, c.result().shape.size())),
        down_(dim(0)),
        along_(dim(1)),
        down_samples_(c, operand(0), c.input(0).shape[down_]),
        along_samples_(c, operand(1), c.input(0).shape[along_]) {
    bool inside = false;
    for (const int d : order_of(c.result())) {
      const auto at = static_cast<size_t>(d);
      if (at == along_) inside = true;
      if (at == along_ || at == down_) continue;
      (inside && all_[at].extent > 1 ? inner_ : points_).push_back(all_[at]);
    }
    const DType type = compute_type(c.input(0).dtype);
    const int64_t row = std::max(c.input(0).shape[along_], c.result().shape[along_]);
    std::vector<int64_t> shape = {1, round_up(row, kRowPadding)};
    for (const Axis& axis : inner_) shape.push_back(axis.extent);
    kept_ = ir::make_buffer("kept", type, std::move(shape), ir::Scope::kThread);
  }

  void emit() {
    if (down_samples_.results() > down_samples_.extent()) {
      emit_kept();
    } else {
      emit_summed();
    }
  }

 private:
  // The dimension that comes first or second in memory, and the operand of its index.
  [[nodiscard]] size_t which(size_t place) const {
    const std::vector<int> order = order_of(c_.result());
    const Shape axes = c_.node().attributes.integers("axes");
    const bool in_order = std::find(order.begin(), order.end(), static_cast<int>(axes[0])) <
                          std::find(order.begin(), order.end(), static_cast<int>(axes[1]));
    return in_order ? place : 1 - place;
  }
  [[nodiscard]] size_t dim(size_t place) const {
    return static_cast<size_t>(c_.node().attributes.integers("axes")[which(place)]);
  }
  [[nodiscard]] size_t operand(size_t place) const { return 1 + 2 * which(place); }

  [[nodiscard]] std::vector<Expr> at(const Expr& down, const Expr& along) const {
    std::vector<Expr> index = compute::variables(all_);
    index[down_] = down;
    index[along_] = along;
    return index;
  }
  [[nodiscard]] std::vector<Expr> kept_at(const Expr& slot, const Expr& along) const {
    std::vector<Expr> index = {slot, along};
    for (const Axis& axis : inner_) index.push_back(ir::variable(axis.var));
    return index;
  }
  [[nodiscard]] Expr data(const Expr& down, const Expr& along) const {
    return c_.read(0, "data", at(down, along));
  }

  // All results along a row, for each row.
  std::vector<Stmt> across(const AxisSamples::Rows& rows, const AxisSamples::Element& element,
                           const AxisSamples::Store& store) const {
    if (inner_.empty()) return along_samples_.across(rows, element, store);
    const Expr o = ir::variable(all_[along_].var);
    return {rows({loops_over({all_[along_]}, {along_samples_.at(o, nullptr, [&](const auto& sum) {
                               return std::vector{vector_loops(inner_, {store(o, sum(element))})};
                             })})})};
  }
  // A body for each element along a row of so many.
  [[nodiscard]] Stmt each(int64_t extent,
                          const std::function<Stmt(const Expr& along)>& body) const {
    std::vector<Axis> axes = {compute::make_axis("along", extent)};
    const Expr along = ir::variable(axes[0].var);
    axes.insert(axes.end(), inner_.begin(), inner_.end());
    return vector_loops(axes, {body(along)});
  }

  void emit_summed() {
    points_.push_back(all_[down_]);
    const Expr o = ir::variable(all_[down_].var), only = ir::constant(0);
    c_.body("resample_plane", points_, [&](const std::vector<Expr>&) {
      std::vector<Stmt> steps = {down_samples_.at(o, nullptr, [&](const auto& sum) {
        return std::vector{each(along_samples_.extent(), [&](const Expr& along) {
          const Expr total = sum([&](const Expr& place) { return data(place, along); });
          return ir::make_store(kept_, kept_at(only, along), total);
        })};
      })};
      for (Stmt& s : across([](std::vector<Stmt> row) { return ir::make_block(std::move(row)); },
                            [&](const Expr&along) { return ir::load(kept_, kept_at(only, along)); },
                            [&](const Expr&along, const Expr&value) {
                              return c_.store(0, at(o, along), value);
                            }))
        steps.push_back(std::move(s));
      return std::vector{ir::make_alloc(kept_, std::move(steps))};
    });
  }

  // Rows of the result that are computed together, and the rows of the data that they need.
  struct Blocks {
    int64_t count, results, rows;
    std::vector<int64_t> first;
  };
  [[nodiscard]] Blocks blocks_of(int64_t count) const {
    const int64_t all = down_samples_.results();
    Blocks blocks{0, (all + count - 1) / count, 0, {}};
    for (int64_t o = 0; o < all; o += blocks.results) {
      const auto [low, high] = down_samples_.span(o, std::min(o + blocks.results, all));
      blocks.first.push_back(low);
      blocks.rows = std::max(blocks.rows, high - low + 1);
      ++blocks.count;
    }
    return blocks;
  }
  // Chooses the fewest blocks for which the rows of each stay in the cache and all threads have
  // work.
  [[nodiscard]] Blocks choose_blocks() const {
    const bool one = down_samples_.taps() == 1;
    const int64_t most = one ? kKeptBytesOfOne : kKeptBytes;
    int64_t outer = 1;
    for (const Axis& axis : points_) outer *= axis.extent;
    Blocks blocks = blocks_of(1);
    for (int64_t count = 2; count <= down_samples_.results(); count += 1 + count / 8) {
      const bool large = blocks.rows * kept_->bytes() > most;
      if (!large && outer * blocks.count >= kTiles) break;
      const Blocks more = blocks_of(count);
      if (more.rows < (one ? kLeastRowsOfOne : kLeastRows)) break;
      blocks = more;
    }
    return blocks;
  }

  void emit_kept() {
    const Blocks blocks = choose_blocks();
    auto kept = std::make_shared<ir::Buffer>(*kept_);
    kept->shape[0] = blocks.rows;
    kept_ = kept;
    Tensor first_rows(DType::kI32, {blocks.count});
    for (int64_t i = 0; i < blocks.count; ++i)
      first_rows.set(i, static_cast<double>(blocks.first[static_cast<size_t>(i)]));
    const Axis block = compute::make_axis("block", blocks.count);
    points_.push_back(block);
    const Expr number = ir::variable(block.var);
    c_.body("resample_plane", points_, [&](const std::vector<Expr>&) {
      const Local first("first_row", DType::kI32);
      const Expr given = c_.constant("first_row", first_rows, {number});
      const Expr last = ir::constant_int(down_samples_.extent() - blocks.rows, DType::kI32);
      const Expr first_row = ir::cast(DType::kI64, first.get());
      const Axis row = compute::make_axis("row", blocks.rows);
      const Expr r = ir::variable(row.var);
      std::vector<Stmt> steps = {first.set(ir::min(given, last))};
      for (Stmt& s :
           across([&](std::vector<Stmt> body) { return loops_over({row}, std::move(body)); },
                  [&](const Expr&along) { return data(first_row + r, along); },
                  [&](const Expr&along, const Expr&value) {
                    return ir::make_store(kept_, kept_at(r, along), value);
                  }))
        steps.push_back(std::move(s));
      const Expr begin = number * blocks.results;
      const Expr results = blocks.count * blocks.results == down_samples_.results()
                               ? ir::constant(blocks.results)
                               : ir::min(ir::constant(blocks.results),
                                         ir::constant(down_samples_.results()) - begin);
      const auto slot = [&](const Expr& place) {
        return ir::min(ir::max(place - first_row, ir::constant(0)), ir::constant(blocks.rows - 1));
      };
      steps.push_back(count_to("t", results, [&](const Expr& t) {
        const Expr o = begin + t;
        return std::vector{down_samples_.at(o, slot, [&](const auto& sum) {
          return std::vector{each(along_samples_.results(), [&](const Expr& along) {
            return c_.store(0, at(o, along), sum([&](const Expr& place) {
                              return ir::load(kept_, kept_at(place, along));
                            }));
          })};
        })};
      }));
      return std::vector{ir::make_alloc(kept_, {with_locals({first}, std::move(steps))})};
    });
  }

  EmitContext& c_;
  std::vector<Axis> all_, points_, inner_;  // points: what lies around the rows
  size_t down_, along_;                     // the dimensions across and along the rows
  AxisSamples down_samples_, along_samples_;
  ir::BufferPtr kept_;  // rows: of the result's length, or of the data's
};

void emit_resample_plane(EmitContext& c) { Plane(c).emit(); }

}  // namespace

std::span<const Op> resample_plane_ops() {
  static const Op ops[] = {
      {.name = "hone.ResamplePlane",
       .min_inputs = 2,
       .max_inputs = 5,
       .layout = Layout::kFollow,
       .attributes = "axes:is",
       .infer = infer_resample_plane,
       .fold = evaluate_node,
       .emit = emit_resample_plane},
  };
  return ops;
}

}  // namespace hone::graph
