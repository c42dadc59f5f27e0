// cost/cost_model.h - predicts run times; batch in, batch out. Several threads may predict at a
// time, but not while one updates.
#pragma once

#include <span>
#include <string_view>

#include "hone/space/space.h"

namespace hone::cost {

// What a model reads: a candidate of a task on a target with a number of threads.
struct Query {
  const space::Candidate* candidate;
  const target::Target* target;
  int threads;
  uint64_t task;  // task key
};

struct Observation {
  Query query;
  double seconds;  // measured; infinity if the candidate failed
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // part of the database key
  [[nodiscard]] virtual Result<std::vector<double>> predict(
      std::span<const Query> queries) const = 0;  // seconds
  [[nodiscard]] virtual Status update(std::span<const Observation> observations) = 0;
  // False: update() changes nothing, nobody need make candidates of what was measured.
  [[nodiscard]] virtual bool learns() const { return false; }
  // Changes when predictions do: whoever keeps some asks again.
  [[nodiscard]] virtual uint64_t revision() const { return 0; }
};

}  // namespace hone::cost
