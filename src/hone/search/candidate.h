// search/candidate.h - a schedule on its way to a runner: the data that all candidates of a task
// run on, machine code for one of them, and the record of its measurement.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hone/measure/host_load.h"
#include "hone/measure/job.h"
#include "hone/search/lower_schedule.h"
#include "hone/space/space.h"
#include "hone/tensor/tensor.h"
#include "hone/trial/record.h"

namespace hone::search {

// Why the code of a candidate is not measured.
enum class Dropped : uint8_t {
  kNo,
  kCannotRun,  // the device cannot run it: a block does not fit, or there is no code for a
               // statement
  kSpills,     // many registers of a thread ran out
};

struct Candidate {
  std::optional<space::Point> point;  // none: steps from elsewhere that are no point of the space
  schedule::Steps steps;
  ProgramPtr program;         // the schedule as a loop program; null until it is lowered
  uint64_t program_hash = 0;  // equal for programs that become the same machine code
  uint64_t code = 0;          // Executable::content of the machine code
  measure::Job job;
  Status status;  // why there is no machine code that is measured, or ok
  Dropped dropped = Dropped::kNo;
  // It was good before, or is what others are compared with: it is measured if it has code.
  bool trusted = false;
  double predicted_seconds = 0;  // by its machine code (search/code_filter.h); 0: unknown
  [[nodiscard]] bool runs() const { return status.ok(); }
};

// The random operands of a task and its expected outputs.
struct TaskOperands {
  std::shared_ptr<const measure::Operands> memory;
  std::map<const ir::Buffer*, int> places;  // index of each operand; looked up only, never iterated
  int64_t constant_bytes = 0;
  std::vector<int> more;  // indices of the inputs that are none of the task's
};
// `more` are inputs besides those of the task.
[[nodiscard]] Result<TaskOperands> make_operands(const compute::Dag& dag, uint64_t seed,
                                                 int threads, std::span<const Tensor> more = {});
[[nodiscard]] int64_t constant_bytes(const compute::Dag& dag);
// Returns the seconds that pass on a slow machine before one candidate can run: its constants are
// packed, and where the code is a source of OpenCL, the driver compiles it.
[[nodiscard]] double load_seconds(int64_t constant_bytes, const target::Target& target);

// Makes the program, unless the candidate has it already, and its hash, or says in `status` why
// there is none.
void lower(Candidate& candidate, const compute::Dag& dag, const target::Target& target);
// Makes machine code and fills in what the job needs of it, or says in `status` why there is none;
// safe for different candidates from several threads.
void build(Candidate& candidate, const compute::Dag& dag, const target::Target& target,
           const TaskOperands& operands);
// Says in `status` that code for a GPU is not worth measuring, if so many registers ran out that
// smaller tiles are sure to be faster. A trusted candidate stays.
void drop_if_it_spills(Candidate& candidate);

// The properties that all trials of a task share. Everything pointed to must outlive it.
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
// Makes the record of a trial. `seconds` is its time on the task's scale, and `drift` is
// Incumbent::drift() (search/incumbent.h).
[[nodiscard]] trial::Record make_record(const TrialSource& source, const Candidate& candidate,
                                        const measure::Measurement& measurement, double seconds,
                                        double drift);

}  // namespace hone::search
