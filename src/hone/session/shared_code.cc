#include "hone/session/shared_code.h"

#include <algorithm>
#include <map>

#include "hone/compute/kernel_params.h"

namespace hone {
namespace {

// Fewer groups keep code that knows where its results begin: compiling them takes little.
constexpr size_t kLeastGroups = 8;

// Returns whether limits are of indices that are others in the task at the origin.
bool limits_move(const KernelLimits& limits, const compute::AtOrigin& task) {
  return std::ranges::any_of(limits.outputs, [&](const ir::ParamLimit& one) {
    return task.shifted[one.param] ||
           static_cast<size_t>(one.limit.dimension) < task.fixed[one.param];
  });
}

class Finder {
 public:
  Finder(const graph::TaskList& tasks, std::span<const schedule::Steps> schedules,
         const AssemblyLimits& limits)
      : tasks_(tasks), schedules_(schedules), limits_(limits), found_(tasks.groups.size()) {}

  std::vector<std::optional<SharedCode>> run() {
    for (size_t g = 0; g < found_.size(); ++g) add(g);
    for (const auto& [key, sets] : sets_) {
      for (const std::vector<size_t>& set : sets) {
        if (set.size() >= kLeastGroups) continue;
        for (const size_t group : set) found_[group].reset();
      }
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool has_variants(size_t group) const {
    if (group >= limits_.variants.size()) return false;
    const SizeVariants& variants = limits_.variants[group];
    return variants.replaces_own || !variants.others.empty();
  }

  void add(size_t group) {
    const graph::TaskCall& call = tasks_.calls[static_cast<size_t>(tasks_.groups[group].calls[0])];
    if (has_variants(group)) return;
    std::optional<compute::AtOrigin> task =
        compute::at_origin(call.dag, graph::MemoryPlan::kAlignment);
    if (!task) return;
    KernelLimits limits = group < limits_.kernels.size() ? limits_.kernels[group] : KernelLimits();
    if (!limits.decided.empty() || limits_move(limits, *task)) return;
    const uint64_t key = compute::task_key(task->dag);
    found_[group] =
        SharedCode{group, std::move(task->dag), std::move(limits), std::move(task->offsets)};
    for (std::vector<size_t>& set : sets_[key]) {
      if (!schedules_.empty() && schedules_[set.front()] != schedules_[group]) continue;
      if (!is_same(*found_[set.front()], *found_[group])) continue;
      found_[group]->leader = set.front();
      set.push_back(group);
      return;
    }
    sets_[key].push_back({group});
  }

  static bool is_same(const SharedCode& a, const SharedCode& b) {
    return a.limits == b.limits && compute::check_same_params(a.dag, b.dag).ok();
  }

  const graph::TaskList& tasks_;
  const std::span<const schedule::Steps> schedules_;
  const AssemblyLimits& limits_;
  std::vector<std::optional<SharedCode>> found_;
  std::map<uint64_t, std::vector<std::vector<size_t>>> sets_;  // by key: groups that share code
};

}  // namespace

std::vector<std::optional<SharedCode>> find_shared_code(const graph::TaskList& tasks,
                                                        std::span<const schedule::Steps> schedules,
                                                        const AssemblyLimits& limits) {
  return Finder(tasks, schedules, limits).run();
}

}  // namespace hone
