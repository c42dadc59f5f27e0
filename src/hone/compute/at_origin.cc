#include "hone/compute/at_origin.h"

#include <algorithm>

#include "hone/compute/affine.h"
#include "hone/compute/regions.h"

namespace hone::compute {
namespace {

// Elements that lie side by side: one index along the dimensions before `first`, some along it, and
// all along those behind it.
struct Block {
  size_t first = 0;
  int64_t offset = 0;  // in elements
};

std::optional<Block> block_of(const Region& region) {
  if (region.empty() || region.shape.empty()) return std::nullopt;
  const size_t rank = region.shape.size();
  const auto extent = [&](size_t d) { return region.high[d] - region.low[d]; };
  Block block;
  while (block.first + 1 < rank && extent(block.first) == 1) ++block.first;
  for (size_t d = block.first + 1; d < rank; ++d)
    if (extent(d) != region.shape[d]) return std::nullopt;
  for (size_t d = 0; d < rank; ++d) block.offset = block.offset * region.shape[d] + region.low[d];
  return block;
}

// Returns whether the stages only write a buffer, and all that they write is known.
bool is_only_written(const Dag& dag, const ir::BufferPtr& buffer) {
  return dag.readers(buffer).empty() && std::ranges::all_of(dag.writers(buffer), [&](int writer) {
           const Stage& stage = dag.stages[static_cast<size_t>(writer)];
           return !stage.is_extern() && stage.reduce.empty();
         });
}

// Returns an index that is less by `by`.
ir::Expr moved_by(const ir::Expr& index, int64_t by, const Stage& stage) {
  if (by == 0) return index;
  const std::vector<ir::VarPtr> vars = stage_vars(stage);
  const std::optional<AffineRow> row = affine_row(index, vars);
  HONE_ASSERT(row, "writes are affine");
  ir::Expr sum;
  for (size_t i = 0; i < vars.size(); ++i) {
    if (row->coef[i] == 0) continue;
    const ir::Expr term =
        row->coef[i] == 1 ? ir::variable(vars[i]) : ir::variable(vars[i]) * row->coef[i];
    sum = sum ? sum + term : term;
  }
  const int64_t constant = row->constant - by;
  if (!sum) return ir::constant(constant);
  return constant == 0 ? sum : sum + constant;
}

// Moves one result to the begin of a buffer of its own.
class Mover {
 public:
  Mover(AtOrigin& made, int64_t alignment) : made_(made), alignment_(alignment) {}

  bool move(size_t param, const Region& region) {
    const ir::BufferPtr whole = made_.dag.params[param].buffer;
    const std::optional<Block> block = block_of(region);
    if (!block || !made_.dag.params[param].zeros.empty() || !is_only_written(made_.dag, whole))
      return false;
    const size_t rank = whole->shape.size(), last = rank - 1;
    const int64_t width = dtype_bytes(whole->dtype);
    if (alignment_ % width != 0) return false;
    // The offset is rounded down to the alignment; the buffer begins with the elements in between.
    const int64_t rest = block->offset % (alignment_ / width);
    if (rest != 0 && block->first != last) return false;
    ir::Buffer own = *whole;
    for (size_t d = 0; d < rank; ++d) own.shape[d] = region.high[d] - region.low[d];
    own.shape[last] += rest;
    if (own.shape == whole->shape) return false;
    std::vector<int64_t> by = region.low;
    by[last] -= rest;
    replace(param, whole, std::make_shared<const ir::Buffer>(std::move(own)), by);
    made_.offsets[param] = (block->offset - rest) * width;
    made_.fixed[param] = block->first;
    made_.shifted[param] = by[block->first] != 0;
    return true;
  }

 private:
  void replace(size_t param, const ir::BufferPtr& whole, const ir::BufferPtr& own,
               const std::vector<int64_t>& by) {
    made_.dag.params[param].buffer = own;
    for (Stage& stage : made_.dag.stages) {
      for (Output& output : stage.outputs) {
        if (output.buffer != whole) continue;
        output.buffer = own;
        for (size_t d = 0; d < by.size(); ++d)
          output.write[d] = moved_by(output.write[d], by[d], stage);
      }
    }
  }

  AtOrigin& made_;
  const int64_t alignment_;
};

}  // namespace

std::optional<AtOrigin> at_origin(const Dag& dag, int64_t alignment) {
  AtOrigin made{dag, std::vector<int64_t>(dag.params.size(), 0),
                std::vector<size_t>(dag.params.size(), 0),
                std::vector<bool>(dag.params.size(), false)};
  const std::vector<Touched> touched = touched_regions(dag);
  bool any = false;
  for (size_t i = 0; i < dag.params.size(); ++i) {
    if (dag.params[i].role != ir::Role::kOutput) continue;
    any = Mover(made, alignment).move(i, touched[i].writes) || any;
  }
  return any ? std::optional(std::move(made)) : std::nullopt;
}

}  // namespace hone::compute
