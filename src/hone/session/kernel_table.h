// session/kernel_table.h - the kernels of a session. Each schedule of each task is lowered and
// compiled once, however often the model is assembled. A search takes programs from here and gives
// back those of the schedules that it found.
#pragma once

#include <map>
#include <mutex>

#include "hone/session/kernel.h"
#include "hone/session/task.h"

namespace hone {

class KernelTable {
 public:
  // `target` outlives the table.
  explicit KernelTable(const target::Target& target) : target_(target) {}
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  // Both may be called from any thread. A caller that asks for a kernel that another thread is
  // making waits for it. Errors are not remembered.
  [[nodiscard]] Result<LoweredPtr> lower(const TaskPtr& task, const schedule::Steps& steps);
  [[nodiscard]] Result<KernelPtr> build(const TaskPtr& task, const schedule::Steps& steps);
  // Returns the program of a schedule if it is known already, else null.
  [[nodiscard]] search::ProgramPtr find(const TaskPtr& task, const schedule::Steps& steps);
  // Takes the program of a schedule that was lowered elsewhere for this task and target; null is
  // ignored.
  void insert(const TaskPtr& task, const schedule::Steps& steps, search::ProgramPtr program);
  // Returns the number of schedules that the table lowered itself.
  [[nodiscard]] int64_t lowered() const;

 private:
  struct Entry {
    Entry(TaskPtr of, const schedule::Steps& how) : task(std::move(of)), steps(how) {}
    const TaskPtr task;
    const schedule::Steps steps;
    std::mutex mutex;  // protects the members below
    LoweredPtr lowered;
    KernelPtr kernel;
  };
  // Returns null if there is no such entry. It is called under mutex_.
  [[nodiscard]] Entry* find_entry(uint64_t hash, const TaskPtr& task, const schedule::Steps& steps);
  [[nodiscard]] Entry& entry(const TaskPtr& task, const schedule::Steps& steps);
  [[nodiscard]] Status lower_once(Entry& entry);

  const target::Target& target_;
  mutable std::mutex mutex_;
  std::multimap<uint64_t, std::unique_ptr<Entry>> entries_;  // by a hash of key and steps
  int64_t lowered_ = 0;
};

}  // namespace hone
