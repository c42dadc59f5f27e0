// graph/ops/spatial_hash.h - a spatial hash of the boxes that were selected, for bodies of extern
// stages: a box is tested only against boxes near it. It is exact: two boxes whose interiors
// intersect share a cell. Cells are squares in levels, each level's four times as wide as those of
// the level before. A box is in the level whose cells are wider than it, so in at most four cells.
// Cells with the same hash share a list of chunks, in which edges are contiguous for vector lanes.
#pragma once

#include <array>

#include "hone/graph/ops/indices.h"

namespace hone::graph {

// The sides of one box, or a list of each for many: low and high edge in both dimensions, and the
// area.
using BoxSides = std::array<ir::BufferPtr, 5>;
[[nodiscard]] BoxSides box_sides(const std::string& prefix, DType type, const Shape& shape,
                                 ir::Scope scope);
// Stores an empty box, which intersects no other one.
[[nodiscard]] std::vector<ir::Stmt> store_nowhere(const BoxSides& sides, const ir::Expr& at);
[[nodiscard]] std::vector<ir::Stmt> copy_box(const BoxSides& to, const ir::Expr& at,
                                             const BoxSides& from);

class SpatialHash {
 public:
  static constexpr int64_t kLanes = 32;  // boxes of a chunk, or of a block of all boxes

  // Makes a hash of at most `most` boxes, which are set one after the other in `box`.
  SpatialHash(DType type, int64_t most, BoxSides box);
  // Returns whether it pays; for fewer boxes, testing all is as fast.
  [[nodiscard]] static bool pays(int64_t most) { return most >= 256; }

  // These are called in this order: clear() once, note_width() for each box, to learn the usual
  // width, and choose_cells() once.
  [[nodiscard]] ir::Stmt clear() const;
  [[nodiscard]] ir::Stmt note_width() const;
  [[nodiscard]] ir::Stmt choose_cells() const;
  // Adds the box, unless it can intersect no other one.
  [[nodiscard]] ir::Stmt add() const;
  // Tests the box against chunks of nearby boxes until it is `dead`, or by `all` if that has at
  // most `blocks` blocks to test. Does nothing if the box can intersect no other one.
  using TestChunk = std::function<std::vector<ir::Stmt>(const BoxSides& boxes, const ir::Expr& at)>;
  [[nodiscard]] ir::Stmt test(const Local& dead, const TestChunk& chunk, const ir::Stmt& all,
                              const ir::Expr& blocks) const;
  // Returns the statements inside the allocations that all this uses.
  [[nodiscard]] ir::Stmt with_memory(std::vector<ir::Stmt> body) const;

 private:
  [[nodiscard]] ir::Expr has_inside() const;
  [[nodiscard]] ir::Expr width_exponent() const;
  [[nodiscard]] ir::Expr cell_of(size_t side, const ir::Expr& level) const;
  [[nodiscard]] ir::Expr bucket_of(const ir::Expr& x, const ir::Expr& y,
                                   const ir::Expr& level) const;
  [[nodiscard]] ir::Expr chunks_of(const ir::Expr& bucket) const;
  [[nodiscard]] std::vector<ir::Stmt> find_cells(const ir::Expr& level) const;
  using WithCell = std::function<std::vector<ir::Stmt>(const ir::Expr& bucket)>;
  [[nodiscard]] ir::Stmt for_cells(const ir::Expr& level, const WithCell& body) const;
  [[nodiscard]] std::vector<ir::Stmt> add_to(const ir::Expr& bucket) const;

  DType type_;
  int64_t buckets_, chunks_;
  BoxSides box_, sides_;  // the current box, and those of all chunks
  // Per bucket: its last chunk and number of boxes. Per chunk: the one before it. Per level: its
  // number of boxes, cells per unit, and the cells that the current box covers.
  ir::BufferPtr last_, filled_, before_, used_, scale_, first_x_, first_y_, wide_, high_;
  ir::BufferPtr list_;  // buckets near the current box
  Local made_, levels_, widths_, noted_, level_, bucket_, near_, cost_, listed_, at_, plainly_;
};

}  // namespace hone::graph
