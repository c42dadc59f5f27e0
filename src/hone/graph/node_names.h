// graph/node_names.h - names that no two nodes share, each found without a look at all others: for
// every name that is wanted more than once it remembers how far the numbers behind it have come.
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

  // What follows a name that is taken: ".1", ".2", ...; or, where a body is inlined again and
  // again, "#", "##", ..., and a number behind the sign from kMostSigns on.
  enum class Suffix : uint8_t { kNumber, kSigns };
  static constexpr int64_t kMostSigns = 64;
  // The first free one of `base` and `base` with a suffix; it is taken from then on.
  [[nodiscard]] std::string take(const std::string& base, Suffix suffix = Suffix::kNumber);
  // A node is gone.
  void release(const std::string& name);

 private:
  std::unordered_set<std::string> taken_;
  // By kind of suffix and name: all smaller suffixes are taken.
  std::unordered_map<std::string, int64_t> next_[2];
};

}  // namespace hone::graph
