// search/searcher.h - which points of a space to measure next. A strategy sees a space, a cost
// model and what was measured, and nothing else; the same seed and measurements give the same
// proposals.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/thread_pool.h"
#include "hone/cost/cost_model.h"

namespace hone::search {

// What a searcher works on; everything pointed to outlives it.
struct SearchTask {
  const space::Space* space = nullptr;
  const target::Target* target = nullptr;
  const cost::CostModel* model = nullptr;
  int threads = 1;
  uint64_t key = 0;  // task key
  uint64_t seed = 0;
  ThreadPool* pool = nullptr;  // helps with predictions; may be null
  std::string family = {};     // compute::class_family: what is learned of it holds for its others
};

class Searcher {
 public:
  virtual ~Searcher() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // At most n points, the most promising first, none of which was proposed before or makes a
  // schedule that was. A guided search begins with the space's default point. Empty: the space is
  // exhausted.
  [[nodiscard]] virtual std::vector<space::Point> propose(int n) = 0;
  // What was measured, here or in an earlier run; infinity for a candidate that failed.
  virtual void observe(std::span<const space::Point> points, std::span<const double> seconds) = 0;
};

}  // namespace hone::search
