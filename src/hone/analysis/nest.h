// analysis/nest.h - a stage of a State as a flat loop nest with strides, on which the statement
// features and the static measures are based. It is built from State and Bounds alone, without a
// program.
#pragma once

#include <span>

#include "hone/base/small_vector.h"
#include "hone/schedule/bounds.h"

namespace hone::analysis {

struct NestLoop {
  int stage;  // stage that the loop belongs to: this one or one around it
  int loop;   // a leaf, or a digit of a fused leaf
  int64_t extent;
  schedule::Annotation annotation;
  bool reduce;
};

// Extents or distances along the dimensions of a buffer.
using Sizes = SmallVector<int64_t, 8>;

// A matrix [dimension][loop] of how far one iteration moves along a dimension.
class Moves {
 public:
  Moves() = default;
  Moves(size_t dimensions, size_t loops)
      : dimensions_(dimensions), loops_(loops), steps_(dimensions * loops) {}
  [[nodiscard]] size_t size() const { return dimensions_; }
  [[nodiscard]] size_t loops() const { return loops_; }
  [[nodiscard]] std::span<int64_t> operator[](size_t d) {
    return std::span(steps_).subspan(d * loops_, loops_);
  }
  [[nodiscard]] std::span<const int64_t> operator[](size_t d) const {
    return std::span(steps_).subspan(d * loops_, loops_);
  }

 private:
  size_t dimensions_ = 0, loops_ = 0;
  std::vector<int64_t> steps_;
};

// A read, or the write of the stage's first output, in elements of its storage. Reads that differ
// only by constants (the points of an unrolled window) are one access.
struct NestAccess {
  const ir::Buffer* buffer;  // logical buffer
  bool write = false;
  bool constant = false;  // reads a constant, such as weights
  ir::Scope scope = ir::Scope::kGlobal;
  int element_bytes = 4;
  bool narrowed = false;  // the schedule rounds to this type, which the task itself does not have
  Sizes shape;            // shape of the storage
  Moves move;
  double reads = 1;  // loads of one point of the stage
  Sizes spread;      // per dimension: distance between the first and the last of them
  // Returns the elements that are touched, as a box, while loops first.. run and the others stand
  // still.
  [[nodiscard]] double footprint(const std::vector<NestLoop>& loops, size_t first) const;
  // Returns the elements that are touched while loop `still`, which is one of loops first.., also
  // stands still.
  [[nodiscard]] double footprint_without(const std::vector<NestLoop>& loops, size_t first,
                                         size_t still) const;
  // Returns the cost of loading them as bytes of whole cache lines; short runs count more.
  [[nodiscard]] double transfer_bytes(const std::vector<NestLoop>& loops, size_t first,
                                      int line_bytes) const;
  // Returns the bytes that these lines occupy in a cache with `sets` sets, as if every set held as
  // many of them as the fullest one. With strides of large powers of two, all lines are in few
  // sets.
  [[nodiscard]] double occupied_bytes(const std::vector<NestLoop>& loops, size_t first,
                                      int line_bytes, int64_t sets) const;
  [[nodiscard]] bool moves_with(size_t loop) const;
  [[nodiscard]] int64_t stride(size_t loop) const;  // in elements of the flat buffer
  // Caches what footprint() computes, as it is asked for again and again. It is called once the
  // access is complete.
  void remember_reaches(const std::vector<NestLoop>& loops);

 private:
  [[nodiscard]] int64_t reach(const std::vector<NestLoop>& loops, size_t first, size_t d) const;
  std::vector<int64_t> reaches_;  // [first][dimension], then strides; empty if not computed
};

using compute::OpCounts;

struct Nest {
  int stage = -1;
  int root = -1;                     // root stage that it runs in
  size_t outer = 0;                  // number of loops around the stage
  std::vector<NestLoop> loops;       // outermost first
  std::vector<NestAccess> accesses;  // reads, then the write
  OpCounts ops;
  std::vector<bool> tests;  // per loop: whether the condition of a select depends on it
  double useful = 1;        // share of the loops' points that are computed
  // Product of the extents from `first` on.
  [[nodiscard]] double iterations(size_t first = 0) const;
  [[nodiscard]] double operations() const;  // operations of all points that are computed
};

// Builds one nest per stage that runs at run time, in topological order.
[[nodiscard]] std::vector<Nest> build_nests(const schedule::State& state,
                                            const schedule::Bounds& bounds);

// The loops of a stage, without what it accesses: those around it, then its own.
struct StageLoops {
  int root = -1;     // as in Nest
  size_t outer = 0;  // number of loops around the stage
  std::vector<NestLoop> loops;
  Moves axes;  // how far one iteration of a loop moves along each axis of the stage
};
[[nodiscard]] StageLoops stage_loops(const schedule::State& state, const schedule::Bounds& bounds,
                                     int stage);

}  // namespace hone::analysis
