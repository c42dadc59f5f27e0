// graph/attributes.h - the attributes of a node: names with values of one of seven types.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "hone/tensor/tensor.h"

namespace hone::graph {

struct SubgraphBody;  // defined in graph/subgraph.h
struct Subgraph {     // graph-valued attribute: the body of an If, Loop or Scan
  std::shared_ptr<const SubgraphBody> body;
  bool operator==(const Subgraph&) const = default;
};
using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>,
                               std::vector<float>, std::vector<std::string>, Tensor, Subgraph>;

class Attributes {
 public:
  void set(const std::string& name, Attribute value) { map_[name] = std::move(value); }
  [[nodiscard]] bool has(const std::string& name) const { return map_.count(name) != 0; }
  // Returns the attribute, or the default if it is missing or has another type. check_type() is
  // called for every attribute that an operator reads.
  template <typename T>
  [[nodiscard]] T get(const std::string& name, T otherwise) const {
    const T* found = find<T>(name);
    return found ? *found : otherwise;
  }
  template <typename T>
  [[nodiscard]] const T* find(const std::string& name) const {
    const auto it = map_.find(name);
    return it == map_.end() ? nullptr : std::get_if<T>(&it->second);
  }
  [[nodiscard]] int64_t integer(const std::string& name, int64_t otherwise) const {
    return get<int64_t>(name, otherwise);
  }
  [[nodiscard]] float number(const std::string& name, float otherwise) const {
    return get<float>(name, otherwise);
  }
  [[nodiscard]] std::vector<int64_t> integers(const std::string& name,
                                              std::vector<int64_t> otherwise = {}) const {
    return get<std::vector<int64_t>>(name, std::move(otherwise));
  }
  [[nodiscard]] std::string text(const std::string& name, std::string otherwise) const {
    return get<std::string>(name, std::move(otherwise));
  }
  [[nodiscard]] const std::map<std::string, Attribute>& all() const { return map_; }

 private:
  std::map<std::string, Attribute> map_;
};

}  // namespace hone::graph
