#include "profile.h"

#include <algorithm>
#include <map>

#include "hone/base/assert.h"

#include "table.h"

namespace hone::tool {

void Profile::add_run(std::span<const StepTime> steps) {
  HONE_ASSERT(runs_ == 0 || steps.size() == steps_.size(), "all runs are of one model");
  if (runs_++ == 0) {
    steps_.assign(steps.begin(), steps.end());
    return;
  }
  for (size_t i = 0; i < steps.size(); ++i) steps_[i].seconds += steps[i].seconds;
}

std::vector<KernelTime> Profile::kernels() const {
  std::vector<KernelTime> kernels;
  std::map<int, size_t> known;  // by the number of a task's first kernel
  size_t current = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const StepTime& step = steps_[i];
    if (i == 0 || step.name != steps_[i - 1].name) {
      const auto [entry, fresh] = known.try_emplace(step.kernel, kernels.size());
      current = entry->second;
      if (fresh) kernels.push_back({.name = step.name, .kernel_class = step.kernel_class});
      ++kernels[current].calls;
    }
    kernels[current].seconds += step.seconds / runs_;
    if (!is_whole_) continue;
    kernels[current].flops += step.flops;
    if (step.bytes > 0) kernels[current].limit.add(limits_.of(step.least_flops, step.bytes));
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
  return kernels;
}

std::string Profile::text() const {
  const std::vector<KernelTime> kernels = this->kernels();
  KernelTime all{.name = "all kernels"};
  for (const KernelTime& kernel : kernels) {
    all.calls += kernel.calls;
    all.seconds += kernel.seconds;
    all.flops += kernel.flops;
    all.limit.add(kernel.limit);
  }
  Table table(limits_.header({"first node", "kernel", "calls", "ms", "share", "GFLOP/s"}), 2);
  const auto add = [&](const KernelTime& kernel) {
    const bool known = kernel.flops > 0 && kernel.seconds > 0;
    const double share = all.seconds > 0 ? 100 * kernel.seconds / all.seconds : 0;
    table.add(limits_.row(
        {shorten(kernel.name, 36), shorten(kernel.kernel_class, 40), std::to_string(kernel.calls),
         fmt::format("{:.3f}", kernel.seconds * 1e3), fmt::format("{:.1f} %", share),
         known ? fmt::format("{:.1f}", kernel.flops / kernel.seconds * 1e-9) : "-"},
        kernel.limit, kernel.seconds));
  };
  for (const KernelTime& kernel : kernels) add(kernel);
  add(all);
  return table.text();
}

Json Profile::json() const {
  const auto known = [&](const auto& value) { return is_whole_ ? Json(value) : Json(); };
  Json list = Json::array();
  for (const KernelTime& kernel : kernels()) {
    list.push_back({{"name", kernel.name},
                    {"kernel", kernel.kernel_class},
                    {"calls", kernel.calls},
                    {"seconds", kernel.seconds},
                    {"flops", known(kernel.flops)},
                    {"limit_seconds", known(kernel.limit.seconds)},
                    {"limit", known(kernel.limit.what)}});
  }
  return list;
}

}  // namespace hone::tool
