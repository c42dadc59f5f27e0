#include "hone/compute/regions.h"

#include <algorithm>

#include "hone/compute/affine.h"

namespace hone::compute {
namespace {

// The box that an affine access reaches, cut to the buffer: beyond it a guard holds.
Region reach(const ir::Buffer& buffer, const std::vector<AffineRow>& index,
             const std::vector<Axis>& axes) {
  Region region = Region::whole(buffer.shape);
  for (size_t d = 0; d < index.size(); ++d) {
    int64_t low = index[d].constant, high = low;
    for (size_t a = 0; a < index[d].coef.size(); ++a) {
      const int64_t span = index[d].coef[a] * (axes[a].extent - 1);
      (span < 0 ? low : high) += span;
    }
    region.low[d] = std::clamp<int64_t>(low, 0, buffer.shape[d]);
    region.high[d] = std::clamp<int64_t>(high + 1, 0, buffer.shape[d]);
  }
  return region;
}

class Collector {
 public:
  explicit Collector(const Dag& dag) : dag_(dag) {
    for (const ir::Param& param : dag.params)
      touched_.push_back({Region::none(param.buffer->shape), Region::none(param.buffer->shape)});
  }
  void add(const Stage& stage) {
    const std::vector<Axis> axes = stage_axes(stage);
    for (const Output& output : stage.outputs) {
      const bool everywhere = stage.is_extern();
      write(output.buffer, everywhere ? Region::whole(output.buffer->shape)
                                      : reach(*output.buffer, write_rows(stage, output), axes));
      for (const ir::Expr& e : {output.identity, output.merge}) read_all(e);
    }
    read_all(stage.where);
    for (const ir::BufferPtr& buffer : stage.extern_reads)
      read(buffer, Region::whole(buffer->shape));
    if (stage.is_extern()) return;
    for (const Access& access : reads(stage))
      read(access.buffer, reach(*access.buffer, access.index, axes));
  }
  std::vector<Touched> take() && { return std::move(touched_); }

 private:
  void read(const ir::BufferPtr& buffer, const Region& region) {
    if (Touched* param = find(buffer)) param->reads.include(region);
  }
  void write(const ir::BufferPtr& buffer, const Region& region) {
    if (Touched* param = find(buffer)) param->writes.include(region);
  }
  // Handles expressions that rarely load at all.
  void read_all(const ir::Expr& e) {
    if (!e) return;
    ir::visit(e, [&](const ir::Expr& node) {
      if (node->op == ir::Op::kLoad) read(node->buffer, Region::whole(node->buffer->shape));
    });
  }
  Touched* find(const ir::BufferPtr& buffer) {
    for (size_t i = 0; i < touched_.size(); ++i) {
      if (dag_.params[i].buffer == buffer) return &touched_[i];
    }
    return nullptr;
  }

  const Dag& dag_;
  std::vector<Touched> touched_;
};

// Neighbouring dimensions as one.
struct Span {
  int64_t points = 1, low = 0, last = 0;
  void add(const Region& region, size_t outer) {
    low += region.low[outer] * points;
    last += (region.high[outer] - 1) * points;
    points *= region.shape[outer];
  }
};

}  // namespace

Region Region::none(std::vector<int64_t> shape) {
  const std::vector<int64_t> zeros(shape.size(), 0);
  Region region{std::move(shape), zeros, zeros};
  region.nothing = true;
  return region;
}

Region Region::whole(std::vector<int64_t> shape) {
  const std::vector<int64_t> zeros(shape.size(), 0);
  return {shape, zeros, shape};
}

bool Region::empty() const {
  if (nothing) return true;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (low[d] >= high[d]) return true;
  }
  return false;
}

void Region::include(const Region& other) {
  if (other.empty()) return;
  if (empty()) {
    *this = other;
    return;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    low[d] = std::min(low[d], other.low[d]);
    high[d] = std::max(high[d], other.high[d]);
  }
}

std::vector<Touched> touched_regions(const Dag& dag) {
  Collector collector(dag);
  for (const Stage& stage : dag.stages) collector.add(stage);
  return std::move(collector).take();
}

// Dimensions are joined, from the innermost out, until both shapes have the same one.
bool disjoint(const Region& a, const Region& b) {
  if (a.empty() || b.empty()) return true;
  size_t i = a.shape.size(), j = b.shape.size();
  while (i > 0 || j > 0) {
    Span x, y;
    do {
      if (j == 0 || (i > 0 && x.points <= y.points))
        x.add(a, --i);
      else
        y.add(b, --j);
    } while (x.points != y.points && (i > 0 || j > 0));
    if (x.points != y.points) return false;
    if (x.last < y.low || y.last < x.low) return true;
  }
  return false;
}

}  // namespace hone::compute
