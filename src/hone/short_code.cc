#include "hone/short_code.h"

#include "hone/kernel.h"

namespace hone {
namespace {

schedule::Steps without_unrolling(schedule::Steps steps) {
  std::erase_if(steps, [](const schedule::Step& step) {
    const auto* scope = std::get_if<schedule::SetScope>(&step);
    return std::holds_alternative<schedule::Unroll>(step) ||
           (scope != nullptr && scope->scope == ir::Scope::kRegister);
  });
  return steps;
}

}  // namespace

Result<schedule::Steps> short_steps(const ModelTasks& model, size_t group,
                                    const schedule::Steps& steps) {
  // What is compiled here is kept for who compiles it next (codegen/llvm/code_cache.h).
  const auto try_steps = [&](const schedule::Steps& tried) {
    return build_kernel(model.dag(group), tried, model.target).status();
  };
  Status status = try_steps(steps);
  if (status.code() != Code::kUnsupported) return steps;
  HONE_ASSIGN_OR_RETURN(const space::Space space,
                        space::Space::create(model.dag(group), model.target, model.accuracy));
  std::vector<schedule::Steps> others = {without_unrolling(steps)};
  for (const space::Point& point : space.default_points())
    others.push_back(without_unrolling(space.steps(point)));
  others.emplace_back();
  for (schedule::Steps& other : others) {
    status = try_steps(other);
    if (status.ok()) return std::move(other);
  }
  return status;
}

Status shorten(ModelTasks& model, std::vector<schedule::Steps>& schedules, ThreadPool& pool) {
  std::vector<Status> statuses(schedules.size());
  pool.parallel_for(std::ssize(schedules), [&](int64_t i) {
    const auto g = static_cast<size_t>(i);
    Result<schedule::Steps> found = short_steps(model, g, schedules[g]);
    statuses[g] = found.status();
    if (!found.ok() || *found == schedules[g]) return;
    model.summaries[g].steps = schedule::to_string(*found);
    schedules[g] = *std::move(found);
  });
  for (size_t g = 0; g < statuses.size(); ++g) {
    if (!statuses[g].ok())
      return error(statuses[g].code(), "{}: {}", model.summaries[g].name, statuses[g].message());
  }
  return ok_status();
}

}  // namespace hone
