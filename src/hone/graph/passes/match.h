// graph/passes/match.h - recognises computations in any of the forms in which a graph may have
// them.
//
// Products and sums are read as lists, so commuted operands, other orders of the multiplications,
// divisions by constants, reciprocals, squares, and constants of any shape with one value all match
// alike. Values inside the match must have no use outside; closed() checks this.
#pragma once

#include <set>

#include "hone/graph/passes/rewrite.h"

namespace hone::graph {

// The value scale * (product of `over`) / (product of `under`). Squares and cubes are repeated
// factors.
struct Product {
  double scale = 1;
  std::vector<ValueId> over, under;
  // Removes one occurrence of a factor; returns false if there is none.
  bool take(ValueId factor) { return remove(over, factor); }
  static bool remove(std::vector<ValueId>& from, ValueId value);
};

// The value offset + sum of `plus` - sum of `minus`.
struct Sum {
  double offset = 0;
  std::vector<ValueId> plus, minus;
};

class Match {
 public:
  explicit Match(const RewriteSite& site) : site_(&site), root_(site.node().outputs[0]) {}

  [[nodiscard]] const Value& value(ValueId id) const { return site_->graph.value(id); }
  [[nodiscard]] ValueId root() const { return root_; }
  // Returns operand 0 of the node of this type that makes a value; kNoValue if another one makes
  // it.
  ValueId operand_of(ValueId id, std::string_view type);
  // Returns that node, or null if it has another type. It is part of the match from then on.
  const Node* made_by(ValueId id, std::string_view type);
  // Returns the factors of a value; a factor that has no other use is itself divided into factors.
  Product product(ValueId id);
  // Returns the terms of a value, divided in the same way.
  Sum sum(ValueId id);
  // Returns x if the value is x + c with a constant c; kNoValue if it is no such sum.
  ValueId plus_constant(ValueId id, double* constant);
  // Returns whether `id` is factor * scale.
  bool is_scaled(ValueId id, ValueId factor, double scale);
  // Removes a square root that divides or multiplies a product, and returns the value under the
  // root.
  ValueId take_inverse_root(Product& product);
  // Returns the value that a reduction of this type reduces over the dimensions `axes`, which it
  // keeps with extent 1.
  ValueId reduced(ValueId id, std::string_view type, std::vector<int64_t>* axes);

  // Returns whether only the match itself reads the values inside it.
  [[nodiscard]] bool closed() const;
  // Returns whether a equals b up to the precision of constants in models.
  [[nodiscard]] static bool near(double a, double b);

 private:
  bool enters(ValueId id, ValueId top) const;
  void multiply(ValueId id, ValueId top, Product& product, bool over);
  void add(ValueId id, ValueId top, Sum& sum, bool plus);

  const RewriteSite* site_;
  ValueId root_;
  std::set<ValueId> interior_;
};

}  // namespace hone::graph
