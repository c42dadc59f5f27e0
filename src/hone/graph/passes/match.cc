#include "hone/graph/passes/match.h"

#include <algorithm>
#include <cmath>

namespace hone::graph {

bool Product::remove(std::vector<ValueId>& from, ValueId value) {
  const auto at = std::find(from.begin(), from.end(), value);
  if (at == from.end()) return false;
  from.erase(at);
  return true;
}

bool Match::near(double a, double b) { return std::abs(a - b) <= 1e-4 * std::abs(b); }

const Node* Match::made_by(ValueId id, std::string_view type) {
  const Node* node = site_->maker(id);
  if (node == nullptr || node->type != type || node->outputs[0] != id) return nullptr;
  interior_.insert(id);
  return node;
}

ValueId Match::operand_of(ValueId id, std::string_view type) {
  const Node* node = made_by(id, type);
  return node == nullptr ? kNoValue : node->inputs[0];
}

// Bounds the search, so that a chain of thousands is not walked again from each of its nodes: no
// pattern has so many.
constexpr size_t kMostNodes = 32;

// Factors and terms are read through a node if it has no other use and the shape of the whole.
bool Match::enters(ValueId id, ValueId top) const {
  if (id == top) return true;
  return interior_.size() < kMostNodes && site_->sole_maker(id) != nullptr &&
         value(id).shape == value(top).shape;
}

void Match::multiply(ValueId id, ValueId top, Product& product, bool over) {
  if (const auto constant = uniform_constant(value(id))) {
    product.scale *= over ? *constant : 1 / *constant;
    return;
  }
  const Node* node = enters(id, top) ? site_->maker(id) : nullptr;
  const std::string type = node != nullptr ? node->type : "";
  if (type == "Mul" || type == "Div") {
    interior_.insert(id);
    multiply(node->inputs[0], top, product, over);
    multiply(node->inputs[1], top, product, over == (type == "Mul"));
    return;
  }
  if (type == "Reciprocal" || type == "Neg") {
    interior_.insert(id);
    if (type == "Neg") product.scale = -product.scale;
    multiply(node->inputs[0], top, product, over == (type == "Neg"));
    return;
  }
  const auto power = type == "Pow" ? uniform_constant(value(node->inputs[1])) : std::nullopt;
  if (power && (*power == 2 || *power == 3)) {
    interior_.insert(id);
    for (int i = 0; i < static_cast<int>(*power); ++i)
      (over ? product.over : product.under).push_back(node->inputs[0]);
    return;
  }
  (over ? product.over : product.under).push_back(id);
}

Product Match::product(ValueId id) {
  Product product;
  multiply(id, id, product, true);
  return product;
}

void Match::add(ValueId id, ValueId top, Sum& sum, bool plus) {
  if (const auto constant = uniform_constant(value(id))) {
    sum.offset += plus ? *constant : -*constant;
    return;
  }
  const Node* node = enters(id, top) ? site_->maker(id) : nullptr;
  if (node != nullptr && (node->type == "Add" || node->type == "Sub")) {
    interior_.insert(id);
    add(node->inputs[0], top, sum, plus);
    add(node->inputs[1], top, sum, plus == (node->type == "Add"));
    return;
  }
  (plus ? sum.plus : sum.minus).push_back(id);
}

Sum Match::sum(ValueId id) {
  Sum sum;
  add(id, id, sum, true);
  return sum;
}

ValueId Match::plus_constant(ValueId id, double* constant) {
  const Sum terms = sum(id);
  if (terms.plus.size() != 1 || !terms.minus.empty() || terms.plus[0] == id) return kNoValue;
  *constant = terms.offset;
  return terms.plus[0];
}

bool Match::is_scaled(ValueId id, ValueId factor, double scale) {
  if (id == factor) return near(scale, 1);
  Product found = product(id);
  return found.take(factor) && found.over.empty() && found.under.empty() &&
         near(found.scale, scale);
}

ValueId Match::take_inverse_root(Product& product) {
  const auto root = [&](ValueId id, double power) {
    if (const ValueId of = power > 0 ? operand_of(id, "Sqrt") : kNoValue; of != kNoValue) return of;
    const Node* pow = site_->maker(id);
    if (pow == nullptr || pow->type != "Pow") return kNoValue;
    const auto exponent = uniform_constant(value(pow->inputs[1]));
    if (!exponent || *exponent != power) return kNoValue;
    interior_.insert(id);
    return pow->inputs[0];
  };
  // A divisor may itself be 1 / sqrt or sqrt.
  for (const auto& [list, power] :
       {std::pair{&product.under, 0.5}, std::pair{&product.over, -0.5}}) {
    for (size_t i = 0; i < list->size(); ++i) {
      const ValueId of = root((*list)[i], power);
      if (of == kNoValue) continue;
      list->erase(list->begin() + static_cast<long>(i));
      return of;
    }
  }
  // Reciprocals and quotients of a smaller shape are no factors that product() reads through.
  for (size_t i = 0; i < product.over.size(); ++i) {
    const ValueId id = product.over[i];
    const Node* node = site_->maker(id);
    if (node == nullptr || (node->type != "Reciprocal" && node->type != "Div")) continue;
    Product inner = this->product(id);
    if (!inner.over.empty() || inner.under.size() != 1 || inner.scale != 1) continue;
    const ValueId of = root(inner.under[0], 0.5);
    if (of == kNoValue) continue;
    product.over.erase(product.over.begin() + static_cast<long>(i));
    return of;
  }
  return kNoValue;
}

ValueId Match::reduced(ValueId id, std::string_view type, std::vector<int64_t>* axes) {
  const Node* node = made_by(id, type);
  if (node == nullptr || node->attributes.integer("keepdims", 1) == 0) return kNoValue;
  const auto given = InferContext(site_->graph, *node).integers_or_attribute(1, "axes");
  if (!given.ok()) return kNoValue;
  axes->clear();
  const auto rank = static_cast<int64_t>(value(node->inputs[0]).shape.size());
  for (const int64_t axis : given->value_or(std::vector<int64_t>{})) {
    const auto normal = normalize_axis(axis, rank);
    if (!normal) return kNoValue;
    axes->push_back(*normal);
  }
  std::sort(axes->begin(), axes->end());
  if (axes->empty()) return kNoValue;
  return node->inputs[0];
}

bool Match::closed() const {
  return std::all_of(interior_.begin(), interior_.end(), [&](ValueId id) {
    if (id == root_) return true;
    if (site_->uses.output[static_cast<size_t>(id)]) return false;
    const auto& readers = site_->uses.readers[static_cast<size_t>(id)];
    return std::all_of(readers.begin(), readers.end(), [&](int reader) {
      const Node& node = site_->graph.nodes[static_cast<size_t>(reader)];
      return node.outputs.size() == 1 &&
             (node.outputs[0] == root_ || interior_.count(node.outputs[0]) > 0);
    });
  });
}

}  // namespace hone::graph
