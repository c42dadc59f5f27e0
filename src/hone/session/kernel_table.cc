#include "hone/session/kernel_table.h"

#include "hone/base/hash.h"

namespace hone {

KernelTable::Entry& KernelTable::entry(const TaskPtr& task, const schedule::Steps& steps) {
  const uint64_t hash = hash_combine(task->key(), schedule::hash(steps));
  const std::lock_guard lock(mutex_);
  for (auto [it, end] = entries_.equal_range(hash); it != end; ++it) {
    if (it->second->task == task && it->second->steps == steps) return *it->second;
  }
  return *entries_.emplace(hash, std::make_unique<Entry>(task, steps))->second;
}

Status KernelTable::lower_once(Entry& entry) {
  if (entry.lowered) return ok_status();
  HONE_ASSIGN_OR_RETURN(entry.lowered, lower_kernel(entry.task->dag(), entry.steps, target_));
  const std::lock_guard lock(mutex_);
  ++lowered_;
  return ok_status();
}

Result<LoweredPtr> KernelTable::lower(const TaskPtr& task, const schedule::Steps& steps) {
  Entry& found = entry(task, steps);
  const std::lock_guard lock(found.mutex);
  HONE_RETURN_IF_ERROR(lower_once(found));
  return found.lowered;
}

Result<KernelPtr> KernelTable::build(const TaskPtr& task, const schedule::Steps& steps) {
  Entry& found = entry(task, steps);
  const std::lock_guard lock(found.mutex);
  if (found.kernel) return found.kernel;
  HONE_RETURN_IF_ERROR(lower_once(found));
  HONE_ASSIGN_OR_RETURN(Kernel kernel, build_kernel(found.lowered, target_));
  found.kernel = std::make_shared<const Kernel>(std::move(kernel));
  return found.kernel;
}

int64_t KernelTable::lowered() const {
  const std::lock_guard lock(mutex_);
  return lowered_;
}

}  // namespace hone
