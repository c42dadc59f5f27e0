// record_check.h - finds what is wrong with stored records that a store cannot know: whether a
// task's text is the task of its key, and whether the steps of a trial are a schedule of it. Only
// trials of this version of the schedules are held to it: another one may have had other keys and
// rules.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hone/compute/dag.h"
#include "hone/trial/record.h"

namespace hone {

class RecordCheck {
 public:
  // The record has its task's text. What is wrong, each with the trial's or the task's number.
  [[nodiscard]] std::vector<std::string> problems_of(const trial::Record& record);
  // The first of them that can be told without applying the steps, which takes long, of a record
  // that has passed trial::check().
  [[nodiscard]] Status claims_of(const trial::Record& record);

 private:
  // Null: its text is no such task, or there is none.
  const compute::Dag* task_of(const trial::Record& record, std::vector<std::string>& problems);
  std::map<uint64_t, std::optional<compute::Dag>> tasks_;
};

}  // namespace hone
