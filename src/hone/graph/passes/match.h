// graph/passes/match.h - recognises computations whichever way a graph writes them.
//
// Products and sums are read as lists: commuted operands, other orders of the multiplications,
// divisions by constants, reciprocals, squares, and constants of any shape with one value all look
// the same. What a match went through must have no use outside of it: closed() says so.
#pragma once

#include <set>

#include "hone/graph/passes/rewrite.h"

namespace hone::graph {

// scale * (product of `over`) / (product of `under`); squares and cubes are factors that recur.
struct Product {
  double scale = 1;
  std::vector<ValueId> over, under;
  // Removes one occurrence of a factor; false if there is none.
  bool take(ValueId factor) { return remove(over, factor); }
  static bool remove(std::vector<ValueId>& from, ValueId value);
};

// offset + sum of `plus` - sum of `minus`
struct Sum {
  double offset = 0;
  std::vector<ValueId> plus, minus;
};

class Match {
 public:
  explicit Match(const RewriteSite& site) : site_(&site), root_(site.node().outputs[0]) {}

  [[nodiscard]] const Value& value(ValueId id) const { return site_->graph.value(id); }
  [[nodiscard]] ValueId root() const { return root_; }
  // Operand 0 of the node of this type that makes a value; kNoValue if another one makes it.
  ValueId operand_of(ValueId id, std::string_view type);
  // The node itself; null if it is of another type. It is part of the match from then on.
  const Node* made_by(ValueId id, std::string_view type);
  // The factors of a value, and those of its factors that have no other use.
  Product product(ValueId id);
  // The terms of a value, likewise.
  Sum sum(ValueId id);
  // What a value is one constant more than (x + c); kNoValue if it is no such sum.
  ValueId plus_constant(ValueId id, double* constant);
  // Whether `id` is factor * scale.
  bool is_scaled(ValueId id, ValueId factor, double scale);
  // The square root that divides or multiplies a product, as the value under it; it is removed.
  ValueId take_inverse_root(Product& product);
  // What a reduction of this type reduces over the dimensions `axes`, which it keeps with extent 1.
  ValueId reduced(ValueId id, std::string_view type, std::vector<int64_t>* axes);

  // Whether nothing but the match reads what it went through.
  [[nodiscard]] bool closed() const;
  // a is b up to the precision of constants in models.
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
