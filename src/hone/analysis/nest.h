// analysis/nest.h - a stage of a State as a flat loop nest with strides: the common ground of the
// statement features and the static measures. Built from State and Bounds alone, without a program.
#pragma once

#include <span>

#include "hone/base/small_vector.h"
#include "hone/schedule/bounds.h"

namespace hone::analysis {

struct NestLoop {
  int stage;  // whose loop it is: the stage's own or one around it
  int loop;   // a leaf, or a digit of a fused leaf
  int64_t extent;
  schedule::Annotation annotation;
  bool reduce;
};

// Extents or distances along the dimensions of a buffer.
using Sizes = SmallVector<int64_t, 8>;

// [dimension][loop]: how far one iteration moves along it.
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

// A read or the write of the stage's first output, in elements of its storage. Reads that differ in
// constants only (the points of an unrolled window) are one access.
struct NestAccess {
  const ir::Buffer* buffer;  // the logical buffer
  bool write = false;
  bool constant = false;  // weights
  ir::Scope scope = ir::Scope::kGlobal;
  int element_bytes = 4;
  Sizes shape;  // of the storage
  Moves move;
  double reads = 1;  // loads that one point of the stage makes
  Sizes spread;      // per dimension: distance of the first from the last of them
  // Elements touched while loops first.. run and the others stand still: a box.
  [[nodiscard]] double footprint(const std::vector<NestLoop>& loops, size_t first) const;
  // The same while one of these loops stands still, too.
  [[nodiscard]] double footprint_without(const std::vector<NestLoop>& loops, size_t first,
                                         size_t still) const;
  // What it costs to bring them in, in bytes of whole cache lines; short runs count more.
  [[nodiscard]] double transfer_bytes(const std::vector<NestLoop>& loops, size_t first,
                                      int line_bytes) const;
  // What the same lines take up of a cache with so many sets of lines, in bytes: as if every set
  // held as many of them as the fullest. Large powers of two between rows put all into few sets.
  [[nodiscard]] double occupied_bytes(const std::vector<NestLoop>& loops, size_t first,
                                      int line_bytes, int64_t sets) const;
  [[nodiscard]] bool moves_with(size_t loop) const;
  [[nodiscard]] int64_t stride(size_t loop) const;  // elements, flattened
  // Once all of it is known: what it touches is asked for again and again.
  void remember_reaches(const std::vector<NestLoop>& loops);

 private:
  [[nodiscard]] int64_t reach(const std::vector<NestLoop>& loops, size_t first, size_t d) const;
  std::vector<int64_t> reaches_;  // [first][dimension], then strides; empty: not remembered
};

using compute::OpCounts;

struct Nest {
  int stage = -1;
  int root = -1;                     // the root stage that it runs in
  size_t outer = 0;                  // loops around the stage
  std::vector<NestLoop> loops;       // outermost first
  std::vector<NestAccess> accesses;  // reads, then the write
  OpCounts ops;
  std::vector<bool> tests;  // loops that the condition of a select moves with
  double useful = 1;        // share of the loops' points that are computed
  [[nodiscard]] double iterations(size_t first = 0) const;  // product of extents from `first` on
  [[nodiscard]] double operations() const;                  // of all points that are computed
};

// One nest per stage that runs at run time, in topological order.
[[nodiscard]] std::vector<Nest> build_nests(const schedule::State& state,
                                            const schedule::Bounds& bounds);

}  // namespace hone::analysis
