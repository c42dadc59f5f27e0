// schedule/lower_index.h - the indices of the loop program that a State makes: axes in terms of
// loop variables, and elements of buffers where their storage keeps them.
#pragma once

#include <map>

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// State and Bounds must outlive it.
class IndexMap {
 public:
  IndexMap(const State& state, const Bounds& bounds);

  // The storage of intermediate results at root, in the order of their stages.
  [[nodiscard]] const std::vector<ir::Param>& intermediates() const { return intermediates_; }

  // Of a leaf of a stage.
  [[nodiscard]] const ir::VarPtr& variable(int s, int leaf) const { return vars_[s][leaf]; }
  // Of any of its loops, former ones too.
  [[nodiscard]] ir::Expr loop_value(int s, int loop) const;
  [[nodiscard]] ir::Expr value(const Linear& linear) const;
  // Of an axis, and the part of it that the stage's own loops add.
  [[nodiscard]] ir::Expr axis_value(int s, int axis) const;
  [[nodiscard]] ir::Expr own_value(int s, int axis) const;
  [[nodiscard]] ir::VarMap axis_values(int s) const;

  // Where a logical buffer is kept, and its element at logical coordinates there.
  [[nodiscard]] ir::BufferPtr physical_buffer(const ir::BufferPtr& logical) const;
  [[nodiscard]] std::vector<ir::Expr> physical_indices(const ir::BufferPtr& logical,
                                                       const std::vector<ir::Expr>& indices) const;

  // Statements that name axes and logical buffers in terms of loops and storage: stores, inside
  // loops that are in these terms already; the body of an extern stage, whose loops are its own.
  [[nodiscard]] ir::Stmt place_stores(const ir::Stmt& s, const ir::VarMap& axes) const;
  [[nodiscard]] ir::Stmt place_body(const ir::Stmt& s, const ir::VarMap& axes) const;

 private:
  struct Storage {
    ir::BufferPtr buffer;
    int stage;
    int output;
  };

  void make_storage(int s, int output);
  [[nodiscard]] ir::Expr place_loads(const ir::Expr& e) const;

  const State& state_;
  const Bounds& bounds_;
  std::vector<std::vector<ir::VarPtr>> vars_;
  std::map<const ir::Buffer*, Storage> storage_;  // looked up only, never iterated
  std::vector<ir::Param> intermediates_;
};

}  // namespace hone::schedule
