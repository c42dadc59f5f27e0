// cost/cost_model.h - predicts run times of batches of candidates. Several threads may predict at
// the same time, but not while one updates.
#pragma once

#include <span>
#include <string_view>

#include "hone/space/space.h"

namespace hone::cost {

// The input of a model: a candidate of a task on a target with a number of threads.
struct Query {
  const space::Candidate* candidate;
  const target::Target* target;
  int threads;
  uint64_t task;  // task key
  [[nodiscard]] const target::Cpu& cpu() const { return target->cpu(); }
};

struct Observation {
  Query query;
  double seconds;  // measured time; infinity if the candidate failed
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  // Name, which is part of the database key.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Returns seconds. An error with Code::kUnsupported means that the model cannot judge the task.
  [[nodiscard]] virtual Result<std::vector<double>> predict(
      std::span<const Query> queries) const = 0;
  [[nodiscard]] virtual Status update(std::span<const Observation> observations) = 0;
  // Returns false if update() has no effect, so that no candidates need to be made of what was
  // measured.
  [[nodiscard]] virtual bool learns() const { return false; }
  // Returns whether it predicts times on devices of a kind.
  [[nodiscard]] virtual bool knows(target::Kind kind) const { return kind == target::Kind::kCpu; }
  // Returns a number that changes when predictions do, so that stored predictions can be refreshed.
  // A model may find out while it predicts that it cannot judge a task.
  [[nodiscard]] virtual uint64_t revision() const { return 0; }
};

}  // namespace hone::cost
