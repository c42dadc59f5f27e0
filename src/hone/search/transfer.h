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
#include "hone/search/searcher.h"

namespace hone::search {

// The best known schedules of many tasks, by family of kernel classes. Unchanging while it is read
// by several threads.
class TransferPool {
 public:
  // The fastest schedules of all tasks, devices and numbers of threads of a store.
  [[nodiscard]] Status add_store(db::TrialStore& store);
  // What is not verified is left out; its task_text is a shape_text().
  void add(trial::Record record);
  void exclude_tasks(const std::set<uint64_t>& tasks);
  // Only records of that model are left.
  void keep_model(std::string_view model);

  // Records of one family, in the order in which they were added.
  [[nodiscard]] std::vector<const trial::Record*> family(std::string_view kernel_class) const;
  [[nodiscard]] const std::vector<trial::Record>& records() const { return records_; }
  [[nodiscard]] bool empty() const { return records_.empty(); }

 private:
  std::vector<trial::Record> records_;
};

struct TransferOptions {
  size_t sources = 48;       // records tried at most: same class first, then the most alike shapes
  std::string device;        // of the task: its own records come before those of other devices
  bool same_class = false;   // nothing of near classes
  bool as_they_are = false;  // steps as they are only, as in the paper
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
  int invalid = 0;                      // of them, those whose steps do not apply as they are
};

// `task.key` itself counts as another task if the pool has it: a record of another device.
[[nodiscard]] TransferResult transfer(const SearchTask& task, const compute::Dag& dag,
                                      const TransferPool& pool, const TransferOptions& options);

// What a pool keeps of a record's task_text: compute::describe of it. Records of the first
// databases have that instead.
[[nodiscard]] std::string shape_text(const std::string& task_text);
// How unlike two such texts are: differences of the logarithms of the extents
// that stand at the same places; infinity if they have no extents in common.
[[nodiscard]] double shape_distance(std::string_view a, std::string_view b);

}  // namespace hone::search
