// graph/node_names.h - makes names that no two nodes share without a search: for every name that is
// requested more than once, it remembers the last number behind it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "hone/graph/graph.h"

namespace hone::graph {

// Returns the text that messages name a node by, such as "node 'conv1' (Conv)".
[[nodiscard]] std::string name_and_type(const Node& node);

class NodeNames {
 public:
  NodeNames() = default;
  explicit NodeNames(const Graph& graph);

  // The suffix of a name that is taken: ".1", ".2", ...; or, for bodies that are inlined
  // repeatedly, "#", "##", ..., and a number behind the sign from kMostSigns on.
  enum class Suffix : uint8_t { kNumber, kSigns };
  static constexpr int64_t kMostSigns = 64;
  // Returns the first free name among `base` and `base` with a suffix; it is taken from then on.
  [[nodiscard]] std::string take(const std::string& base, Suffix suffix = Suffix::kNumber);
  // Frees the name of a node that was removed.
  void release(const std::string& name);

 private:
  std::unordered_set<std::string> taken_;
  // The next suffix by kind and name; all smaller ones are taken.
  std::unordered_map<std::string, int64_t> next_[2];
};

}  // namespace hone::graph
