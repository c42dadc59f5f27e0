// session/kernel_table.h - the kernels of a session: each schedule of each task is lowered and
// compiled once, however often the model is put together.
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

  // Both are safe from any thread: a caller that asks for what another thread makes waits for it.
  // An error is not remembered.
  [[nodiscard]] Result<LoweredPtr> lower(const TaskPtr& task, const schedule::Steps& steps);
  [[nodiscard]] Result<KernelPtr> build(const TaskPtr& task, const schedule::Steps& steps);
  // The number of schedules that were lowered.
  [[nodiscard]] int64_t lowered() const;

 private:
  struct Entry {
    Entry(TaskPtr of, const schedule::Steps& how) : task(std::move(of)), steps(how) {}
    const TaskPtr task;
    const schedule::Steps steps;
    std::mutex mutex;  // of what follows
    LoweredPtr lowered;
    KernelPtr kernel;
  };
  [[nodiscard]] Entry& entry(const TaskPtr& task, const schedule::Steps& steps);
  [[nodiscard]] Status lower_once(Entry& entry);

  const target::Target& target_;
  mutable std::mutex mutex_;
  std::multimap<uint64_t, std::unique_ptr<Entry>> entries_;  // by key and steps
  int64_t lowered_ = 0;
};

}  // namespace hone
