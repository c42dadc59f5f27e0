#include "hone/session/task.h"

#include <algorithm>

#include "hone/compute/bytes_moved.h"
#include "hone/compute/kernel_params.h"

namespace hone {

Task::Task(compute::Dag dag, uint64_t key, const target::Target& target)
    : dag_(std::move(dag)),
      key_(key),
      kernel_class_(compute::kernel_class(dag_)),
      flops_(compute::flops(dag_)),
      bytes_(compute::bytes_moved(dag_)),
      target_(target) {}

const Result<space::Space>& Task::space(trial::Accuracy accuracy) const {
  const auto i = static_cast<size_t>(accuracy);
  std::call_once(made_[i], [&] { spaces_[i] = space::Space::create(dag_, target_, accuracy); });
  return *spaces_[i];
}

double Task::least_flops(trial::Accuracy accuracy) const {
  const Result<space::Space>& made = space(accuracy);
  return made.ok() ? made->least_flops() : flops_;
}

std::string Task::matrix_type(trial::Accuracy accuracy) const {
  if (target_.kind() != target::Kind::kGpu || target_.gpu().matrix.empty()) return "";
  const Result<space::Space>& made = space(accuracy);
  if (!made.ok()) return "";
  for (int s = 0; s < made->num_sketches(); ++s) {
    // Which instructions there are does not depend on decisions.
    const space::Point any = {s, std::vector<int>(made->decisions(s).size(), 0)};
    const schedule::Steps steps = made->steps(any);
    const bool has_matrices = std::any_of(steps.begin(), steps.end(), [](const auto& step) {
      return std::holds_alternative<schedule::Tensorize>(step);
    });
    if (!has_matrices) continue;
    DType type = DType::kF32;
    for (const ir::Param& param : dag_.params) {
      const DType found = param.buffer->dtype;
      if (found == DType::kF16 || found == DType::kBF16) type = found;
    }
    return std::string(dtype_name(type));
  }
  return "";
}

TaskPtr TaskTable::get(const compute::Dag& dag, uint64_t key) {
  const std::lock_guard lock(mutex_);
  std::vector<TaskPtr>& same = tasks_[key];
  const auto known = std::find_if(same.begin(), same.end(), [&](const TaskPtr& task) {
    return compute::check_same_params(task->dag(), dag).ok();
  });
  if (known != same.end()) return *known;
  return same.emplace_back(std::make_shared<const Task>(dag, key, target_));
}

}  // namespace hone
