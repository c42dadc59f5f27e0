// search/transfer.h - schedules of other tasks as starting points for a task that nobody tuned
// (Transfer-Tuning, Gibson and Cano, PACT 2022, and what it leaves on the table): other shapes,
// near classes, other devices. A schedule is tried as it is and as the points of the task's own
// space that correspond to it; a cost model ranks what is legal, so nothing has to be measured.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "hone/db/trial_store.h"
#include "hone/search/nearest.h"
#include "hone/search/searcher.h"

namespace hone::search {

// The best known schedules of many tasks, by family of kernel classes. It must not change while
// several threads read it.
class TransferPool {
 public:
  // Adds the fastest schedules of all tasks, devices and numbers of threads of a store.
  [[nodiscard]] Status add_store(db::TrialStore& store);
  // Adds a record, unless it is not verified. Its task_text must be a shape_text().
  void add(trial::Record record);
  void exclude_tasks(const std::set<uint64_t>& tasks);
  // Removes all records but those of that model.
  void keep_model(std::string_view model);

  // Returns the records of the family of a kernel class, in the order in which they were added.
  [[nodiscard]] std::vector<const trial::Record*> family(std::string_view kernel_class) const;
  [[nodiscard]] const std::vector<trial::Record>& records() const { return records_; }
  [[nodiscard]] bool empty() const { return records_.empty(); }

 private:
  std::vector<trial::Record> records_;
};

struct TransferOptions {
  std::string device;        // device of the task, whose records come before those of others
  bool same_class = false;   // leaves out records of near classes
  bool as_they_are = false;  // tries only steps as they are, as in the paper
  Nearest nearest = {};      // which records are tried: those of the same class first, then these
};

struct Transferred {
  std::optional<space::Point> point;  // none: steps that are no point of the space
  schedule::Steps steps;
  double predicted = 0;  // seconds
  const trial::Record* from = nullptr;
  bool replayed = false;  // its steps are those of the record
};

struct TransferResult {
  std::vector<Transferred> candidates;  // distinct, fastest predicted first
  int sources = 0;                      // records tried
  int invalid = 0;                      // those of them whose steps do not apply as they are
};

// Finds candidates for a task in the pool and predicts their seconds. Records of the task itself,
// as from another device, count like those of other tasks.
[[nodiscard]] TransferResult transfer(const SearchTask& task, const compute::Dag& dag,
                                      const TransferPool& pool, const TransferOptions& options);

// Returns the text that a pool keeps instead of a record's task_text: compute::describe of the
// task. Records of the first databases already have that text.
[[nodiscard]] std::string shape_text(const std::string& task_text);

}  // namespace hone::search
