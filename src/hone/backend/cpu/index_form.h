// backend/cpu/index_form.h - integer expressions as linear forms over atoms.
//
// An atom is a loop variable, a non-linear expression of forms (floordiv, min, ...) or a value that
// only the emitter can compute (a load). Variables of unrolled loops are constants here, and the
// variable of a vectorized loop is `uniform + lane`, so a form tells how an access moves with the
// lane, which part belongs to which loop, and which part is a constant displacement.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hone/ir/expr.h"

namespace hone::backend::cpu {

struct IndexForm {
  // (atom, coefficient), ordered by atom; no coefficient is 0.
  std::vector<std::pair<int, int64_t>> terms;
  int64_t lane = 0;  // coefficient of the lane number
  int64_t constant = 0;
  [[nodiscard]] bool is_constant() const { return terms.empty() && lane == 0; }
};
[[nodiscard]] IndexForm add(const IndexForm& a, const IndexForm& b, int64_t scale_b = 1);
[[nodiscard]] IndexForm scaled(const IndexForm& a, int64_t factor);

struct Range {
  static constexpr int64_t kUnknown = int64_t{1} << 52;
  int64_t lo = -kUnknown, hi = kUnknown;  // inclusive
};

struct Atom {
  // KVar for a loop variable, kLoad for a value of the emitter, else the operator of args.
  ir::Op op;
  std::vector<IndexForm> args;
  int depth = 0;          // innermost scope whose variable it depends on; 0 for the function
  bool in_place = false;  // must be computed where it is used, as it depends on a lane or a load
  bool of_data = false;   // depends on a load
  bool varying = false;   // differs between lanes
  Range range;
};

class IndexSpace {
 public:
  // Computes the value of an expression that no form describes, and returns its atom.
  using Opaque = std::function<int(const ir::Expr&)>;

  [[nodiscard]] int add_variable(int depth, Range range);
  [[nodiscard]] int add_opaque(int depth, bool varying);
  [[nodiscard]] int add_fixed();  // a number that memory holds throughout the function
  void bind(const ir::Var* var, IndexForm form) { environment_[var] = std::move(form); }
  void set_lanes(int lanes) { lanes_ = lanes; }

  [[nodiscard]] IndexForm form(const ir::Expr& e, const Opaque& opaque);
  [[nodiscard]] static IndexForm of_atom(int atom) { return {{{atom, 1}}, 0, 0}; }
  [[nodiscard]] const Atom& atom(int id) const { return atoms_[static_cast<size_t>(id)]; }
  [[nodiscard]] int num_atoms() const { return static_cast<int>(atoms_.size()); }
  [[nodiscard]] Range range(const IndexForm& form) const;
  [[nodiscard]] bool varying(const IndexForm& form) const;
  // Returns whether the lane only adds a multiple of its number.
  [[nodiscard]] bool is_strided(const IndexForm& form) const;
  // Returns the form in which quotient and remainder of a value that moves with the lane are joined
  // again; they are the two digits of a dimension that was divided.
  [[nodiscard]] IndexForm with_joined_digits(IndexForm form) const;
  // Returns whether the form depends on data of any size, so that sums may wrap.
  [[nodiscard]] bool holds_data(const IndexForm& form) const;

 private:
  [[nodiscard]] IndexForm compound(ir::Op op, const IndexForm& a, const IndexForm& b);
  [[nodiscard]] IndexForm divided(ir::Op op, const IndexForm& a, int64_t divisor);

  std::vector<Atom> atoms_;
  std::map<std::vector<int64_t>, int> known_;  // compound atoms by their contents
  std::unordered_map<const ir::Var*, IndexForm> environment_;
  int lanes_ = 1;
};

}  // namespace hone::backend::cpu
