// schedule/lower_index.h - the index expressions of a lowered program: axes in terms of loop
// variables, and elements of buffers in terms of their storage.
#pragma once

#include <map>

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// Maps axes and buffers. The State and the Bounds must outlive it.
class IndexMap {
 public:
  IndexMap(const State& state, const Bounds& bounds);

  // Returns the params of intermediate results at root, in the order of their stages.
  [[nodiscard]] const std::vector<ir::Param>& intermediates() const { return intermediates_; }

  // Returns whether the program has this loop over threads. One of one iteration is left out,
  // unless the stage has no other.
  [[nodiscard]] bool keeps_loop(int s, int leaf) const;
  // Returns the variable of a leaf of a stage.
  [[nodiscard]] const ir::VarPtr& variable(int s, int leaf) const { return vars_[s][leaf]; }
  // Returns the value of any loop of a stage, also of one that was split or fused.
  [[nodiscard]] ir::Expr loop_value(int s, int loop) const;
  [[nodiscard]] ir::Expr value(const Linear& linear) const;
  // These return the value of an axis, the part of it that the stage's own loops contribute, and
  // the values of all axes.
  [[nodiscard]] ir::Expr axis_value(int s, int axis) const;
  [[nodiscard]] ir::Expr own_value(int s, int axis) const;
  [[nodiscard]] ir::VarMap axis_values(int s) const;

  // These return the buffer that stores a logical buffer, and the indices there of an element with
  // these logical coordinates. The first dimension of what works ahead is the slot of the ring.
  [[nodiscard]] ir::BufferPtr physical_buffer(const ir::BufferPtr& logical) const;
  // `by` is the stage that accesses it.
  [[nodiscard]] std::vector<ir::Expr> physical_indices(const ir::BufferPtr& logical,
                                                       const std::vector<ir::Expr>& indices,
                                                       int by) const;

  // Both rewrite statements of a stage from axes and logical buffers to loops and storage: stores
  // inside loops that are rewritten already, and the body of an extern stage, which has its own
  // loops.
  [[nodiscard]] ir::Stmt place_stores(const ir::Stmt& s, const ir::VarMap& axes, int by) const;
  [[nodiscard]] ir::Stmt place_body(const ir::Stmt& s, const ir::VarMap& axes, int by) const;

 private:
  struct Storage {
    ir::BufferPtr buffer;
    int stage;
    int output;
    std::vector<LayoutDim> layout;
  };

  void make_storage(int s, int output);
  [[nodiscard]] ir::Expr place_loads(const ir::Expr& e, int by) const;
  // Returns the number of the thread that runs a stage, along one of the loops over threads.
  [[nodiscard]] ir::Expr thread_number(int by, size_t loop) const;
  // Removes the dimensions of loops over threads that are left out from those of a fragment.
  template <typename T>
  void drop_dimensions(int s, std::vector<T>& dims) const;

  const State& state_;
  const Bounds& bounds_;
  std::vector<std::vector<ir::VarPtr>> vars_;
  // Only looked up, never iterated, as its order is that of addresses.
  std::map<const ir::Buffer*, Storage> storage_;
  std::vector<ir::Param> intermediates_;
};

}  // namespace hone::schedule
