// graph/ops/box_grid.h - the boxes that were selected, by place, for bodies of extern stages: a box
// is tested against those near it instead of all. Exact: two boxes whose inner parts meet share a
// cell. Cells are squares in levels, each level's four times as wide as those of the level before;
// a box lies in the level whose cells are wider than it, so in four cells at most. Cells that have
// the same hash share a list of chunks, where edges stand side by side for vector lanes.
#pragma once

#include <array>

#include "hone/graph/ops/indices.h"

namespace hone::graph {

// What is known of a box or, of many, a list each: low and high edge in both dimensions, the area.
using BoxSides = std::array<ir::BufferPtr, 5>;
[[nodiscard]] BoxSides box_sides(const std::string& prefix, DType type, const Shape& shape,
                                 ir::Scope scope);
// Stores an element that lies nowhere: it meets no box.
[[nodiscard]] std::vector<ir::Stmt> store_nowhere(const BoxSides& sides, const ir::Expr& at);
[[nodiscard]] std::vector<ir::Stmt> copy_box(const BoxSides& to, const ir::Expr& at,
                                             const BoxSides& from);

class BoxGrid {
 public:
  static constexpr int64_t kLanes = 32;  // boxes of a chunk, or of a block of all

  // Of at most `most` boxes that are set one after the other in `box`.
  BoxGrid(DType type, int64_t most, BoxSides box);
  // Below that, all are tested as fast.
  [[nodiscard]] static bool pays(int64_t most) { return most >= 256; }

  // In this order: once; for each box, to know what is usual; once.
  [[nodiscard]] ir::Stmt clear() const;
  [[nodiscard]] ir::Stmt note_width() const;
  [[nodiscard]] ir::Stmt choose_cells() const;
  // Adds the box; nothing if no box can meet it.
  [[nodiscard]] ir::Stmt add() const;
  // Tests the box against chunks of those near it until it is `dead`, or by `all` where these have
  // no more than `blocks` blocks to test; nothing if no box can meet it.
  using TestChunk = std::function<std::vector<ir::Stmt>(const BoxSides& boxes, const ir::Expr& at)>;
  [[nodiscard]] ir::Stmt test(const Local& dead, const TestChunk& chunk, const ir::Stmt& all,
                              const ir::Expr& blocks) const;
  // The statements with the memory that all this uses.
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
  BoxSides box_, sides_;  // the box at hand; those of all chunks
  // Per bucket: its last chunk, its boxes. Per chunk: the one before. Per level: its boxes, cells
  // per unit, and the cells that the box at hand covers.
  ir::BufferPtr last_, filled_, before_, used_, scale_, first_x_, first_y_, wide_, high_;
  ir::BufferPtr list_;  // buckets near the box at hand
  Local made_, levels_, widths_, noted_, level_, bucket_, near_, cost_, listed_, at_, plainly_;
};

}  // namespace hone::graph
