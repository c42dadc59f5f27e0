#include "hone/commands/record_check.h"

#include "hone/base/hash.h"
#include "hone/compute/dag_text.h"
#include "hone/schedule/state.h"
#include "hone/trial/record_numbers.h"
#include "hone/trial/schedule_version.h"

namespace hone {

const compute::Dag* RecordCheck::task_of(const trial::Record& record,
                                         std::vector<std::string>& problems) {
  const auto [place, added] = tasks_.try_emplace(record.task);
  std::optional<compute::Dag>& known = place->second;
  if (!added || record.task_text.empty()) return known ? &*known : nullptr;
  const std::string name = fmt::format("task {} (of trial {})", hash_hex(record.task), record.id);
  Result<compute::Dag> dag = compute::parse_dag(record.task_text);
  if (!dag.ok()) {
    problems.push_back(fmt::format("{}: its text is no task: {}", name, dag.status().message()));
  } else if (const uint64_t key = compute::task_key(*dag); key != record.task) {
    problems.push_back(fmt::format("{}: its text is that of the task {}", name, hash_hex(key)));
  } else {
    known = *std::move(dag);
  }
  return known ? &*known : nullptr;
}

Status RecordCheck::claims_of(const trial::Record& record) {
  HONE_RETURN_IF_ERROR(trial::check_plausible(record));
  if (record.version != kScheduleVersion) return ok_status();
  // Steps that this program does not know may be another build's; whoever reads them leaves them
  // out with a warning.
  const Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
  if (!steps.ok()) return ok_status();
  if (const std::string algorithm = schedule::algorithm_of(*steps); algorithm != record.algorithm) {
    return invalid("its algorithm is '{}', but its steps are of '{}'", record.algorithm, algorithm);
  }
  std::vector<std::string> problems;
  (void)task_of(record, problems);
  return problems.empty() ? ok_status() : invalid("{}", problems[0]);
}

std::vector<std::string> RecordCheck::problems_of(const trial::Record& record) {
  std::vector<std::string> problems;
  const auto add = [&](const Status& status, const char* what) {
    if (!status.ok())
      problems.push_back(fmt::format("trial {}: {}{}", record.id, what, status.message()));
  };
  const Status sound = trial::check(record);
  add(sound.ok() ? trial::check_plausible(record) : sound, "");
  const Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
  add(steps.status(), "");
  if (record.version != kScheduleVersion) return problems;
  if (steps.ok() && schedule::algorithm_of(*steps) != record.algorithm) {
    add(invalid("its algorithm is '{}', but its steps are of '{}'", record.algorithm,
                schedule::algorithm_of(*steps)),
        "");
  }
  const compute::Dag* task = task_of(record, problems);
  // One that could not be compiled may not even apply.
  if (task && steps.ok() && record.outcome != trial::Outcome::kCompile)
    add(schedule::replay(*task, *steps).status(), "its steps do not apply: ");
  return problems;
}

}  // namespace hone
