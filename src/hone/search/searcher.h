// search/searcher.h - chooses the points of a space to measure next. A strategy sees a space, a
// cost model and what was measured, and nothing else; the same seed and measurements give the same
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

// The task of a searcher. Everything pointed to must outlive the searcher.
struct SearchTask {
  const space::Space* space = nullptr;
  const target::Target* target = nullptr;
  const cost::CostModel* model = nullptr;
  int threads = 1;
  uint64_t key = 0;  // task key
  uint64_t seed = 0;
  ThreadPool* pool = nullptr;  // helps with predictions; may be null
  std::string family = {};     // compute::class_family, whose tasks share what is learned
};

class Searcher {
 public:
  virtual ~Searcher() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Proposes at most n points, the most promising first. None of them was proposed before or makes
  // a schedule that was. A guided search begins with the space's default point. The result is empty
  // if the space is exhausted.
  [[nodiscard]] virtual std::vector<space::Point> propose(int n) = 0;
  // Receives measured seconds, of this or an earlier run; infinity for a candidate that failed.
  virtual void observe(std::span<const space::Point> points, std::span<const double> seconds) = 0;
};

}  // namespace hone::search
