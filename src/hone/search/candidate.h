// search/candidate.h - a schedule on its way to a runner: the data that all candidates of a task
// run on, machine code for one of them, and what is stored of its measurement.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "hone/measure/host_load.h"
#include "hone/measure/job.h"
#include "hone/space/space.h"
#include "hone/trial/record.h"

namespace hone::search {

struct Candidate {
  std::optional<space::Point> point;  // none: steps from elsewhere that are no point of the space
  schedule::Steps steps;
  std::optional<ir::Program> program;  // until it is built
  uint64_t program_hash = 0;           // of programs that become the same machine code
  uint64_t code = 0;                   // ObjectCode::content of the machine code
  measure::Job job;
  Status status;  // why there is no machine code, or ok
  [[nodiscard]] bool runs() const { return status.ok(); }
};

// Random operands of a task and what its outputs must be.
struct TaskOperands {
  std::shared_ptr<const measure::Operands> memory;
  std::map<const ir::Buffer*, int> places;  // looked up only
  int64_t constant_bytes = 0;
};
[[nodiscard]] Result<TaskOperands> make_operands(const compute::Dag& dag, uint64_t seed,
                                                 int threads);
[[nodiscard]] int64_t constant_bytes(const compute::Dag& dag);
// Seconds that packing the constants of one candidate takes on a slow day.
[[nodiscard]] double pack_seconds(int64_t constant_bytes);

// Makes the program and its hash, or says in `status` why there is none.
void lower(Candidate& candidate, const compute::Dag& dag, const target::Target& target);
// Makes machine code and fills in what the job needs of it, or says in `status` why there is none;
// safe for different candidates from several threads.
void build(Candidate& candidate, const compute::Dag& dag, const target::Target& target,
           const TaskOperands& operands);

// What the trials of a task have in common; everything pointed to outlives it.
struct TrialSource {
  const compute::Dag* dag = nullptr;
  const space::Space* space = nullptr;
  uint64_t task = 0;
  std::string device, version;
  std::string model;
  int threads = 1;
  uint64_t seed = 1;
  measure::HostLoad load;
};
// `seconds`: what the trial took, on the task's scale; `drift`: search/incumbent.h.
[[nodiscard]] trial::Record make_record(const TrialSource& source, const Candidate& candidate,
                                        const measure::Measurement& measurement, double seconds,
                                        double drift);

}  // namespace hone::search
