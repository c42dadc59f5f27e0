#include "hone/session/kernel_table.h"

#include "hone/base/hash.h"

namespace hone {

namespace {

uint64_t hash_of(const TaskPtr& task, const schedule::Steps& steps) {
  return hash_combine(task->key(), schedule::hash(steps));
}

}  // namespace

KernelTable::Entry* KernelTable::find_entry(uint64_t hash, const TaskPtr& task,
                                            const schedule::Steps& steps) {
  for (auto [it, end] = entries_.equal_range(hash); it != end; ++it) {
    if (it->second->task == task && it->second->steps == steps) return it->second.get();
  }
  return nullptr;
}

KernelTable::Entry& KernelTable::entry(const TaskPtr& task, const schedule::Steps& steps) {
  const uint64_t hash = hash_of(task, steps);
  const std::lock_guard lock(mutex_);
  if (Entry* const found = find_entry(hash, task, steps)) return *found;
  return *entries_.emplace(hash, std::make_unique<Entry>(task, steps))->second;
}

search::ProgramPtr KernelTable::find(const TaskPtr& task, const schedule::Steps& steps) {
  Entry* found = nullptr;
  {
    const std::lock_guard lock(mutex_);
    found = find_entry(hash_of(task, steps), task, steps);
  }
  if (found == nullptr) return nullptr;
  const std::lock_guard lock(found->mutex);
  return found->lowered ? found->lowered->program : nullptr;
}

void KernelTable::insert(const TaskPtr& task, const schedule::Steps& steps,
                         search::ProgramPtr program) {
  if (!program) return;
  Entry& found = entry(task, steps);
  const std::lock_guard lock(found.mutex);
  if (!found.lowered) found.lowered = make_lowered(std::move(program));
}

Status KernelTable::lower_once(Entry& entry) {
  if (entry.lowered) return ok_status();
  HONE_ASSIGN_OR_RETURN(search::ProgramPtr program,
                        search::lower_schedule(entry.task->dag(), entry.steps, target_));
  entry.lowered = make_lowered(std::move(program));
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
  HONE_ASSIGN_OR_RETURN(Kernel kernel, build_kernel(found.lowered, found.steps, target_));
  found.kernel = std::make_shared<const Kernel>(std::move(kernel));
  return found.kernel;
}

int64_t KernelTable::lowered() const {
  const std::lock_guard lock(mutex_);
  return lowered_;
}

}  // namespace hone
