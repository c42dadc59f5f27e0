// graph/ops/sort_pairs.h - a stable sort of pairs (key, position) by ascending key, for bodies of
// extern stages. It is a radix sort by bytes, so its time does not depend on the data.
#pragma once

#include "hone/graph/ops/indices.h"

namespace hone::graph {

// The order of NaNs among other values.
enum class NanOrder : uint8_t { kFirst, kLast };
// Returns the key of a value: smaller keys come first. Zeros of both signs are equal. The type is
// kI32 if the value has at most 4 bytes, else kI64.
[[nodiscard]] ir::Expr sort_key(const ir::Expr& value, bool largest_first, NanOrder nan);
[[nodiscard]] DType sort_key_type(DType value);

class SortPairs {
 public:
  SortPairs(DType key, int64_t most);
  [[nodiscard]] ir::Expr key(const ir::Expr& at) const { return ir::load(key_, {at}); }
  [[nodiscard]] ir::Expr place(const ir::Expr& at) const { return ir::load(place_, {at}); }
  [[nodiscard]] std::vector<ir::Stmt> put(const ir::Expr& at, const ir::Expr& key,
                                          const ir::Expr& place) const;
  // Appends a pair and increments the count.
  [[nodiscard]] std::vector<ir::Stmt> add(const Local& count, const ir::Expr& key,
                                          const ir::Expr& place) const;
  [[nodiscard]] ir::Stmt sort(const ir::Expr& count) const;
  // Returns the statements inside the allocations that all this uses.
  [[nodiscard]] ir::Stmt with_memory(std::vector<ir::Stmt> body) const;

 private:
  [[nodiscard]] ir::Stmt sort_few(const ir::Expr& count) const;
  [[nodiscard]] ir::Stmt sort_many(const ir::Expr& count) const;

  ir::BufferPtr key_, place_, other_key_, other_place_, counts_;
  Local at_;
};

}  // namespace hone::graph
