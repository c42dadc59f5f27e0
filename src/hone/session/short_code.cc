#include "hone/session/short_code.h"

#include "hone/base/cancel.h"

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
  // What is compiled here is kept for who compiles it next.
  const auto try_steps = [&](const schedule::Steps& tried) {
    return model.session->kernels().build(model.distinct[group], tried).status();
  };
  Status status = try_steps(steps);
  if (status.code() != Code::kUnsupported) return steps;
  HONE_RETURN_IF_ERROR(model.space(group).status());
  const space::Space& space = *model.space(group);
  std::vector<schedule::Steps> others = {space.steps(space.default_point()),
                                         without_unrolling(steps)};
  for (const space::Point& point : space.default_points())
    others.push_back(without_unrolling(space.steps(point)));
  others.emplace_back();
  for (schedule::Steps& other : others) {
    status = try_steps(other);
    if (status.ok()) return std::move(other);
  }
  return status;
}

Result<bool> shorten_code(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                          const CompileOptions& options) {
  std::vector<Result<schedule::Steps>> found(schedules.size(), invalid("nobody looked"));
  model.session->pool().parallel_for(std::ssize(schedules), [&](int64_t i) {
    const auto g = static_cast<size_t>(i);
    const Status cancelled = check_cancelled(options.interrupted);
    found[g] = cancelled.ok() ? short_steps(model, g, schedules[g]) : cancelled;
  });
  bool changed = false;
  Status failed = ok_status();  // that of a group without any code, unless there is another error
  for (size_t g = 0; g < found.size(); ++g) {
    TaskSummary& line = model.summaries[g];
    if (!found[g].ok()) {
      if (failed.ok() || failed.code() == Code::kUnsupported)
        failed = error(found[g].status().code(), "{}: {}", line.name, found[g].status().message());
      continue;
    }
    if (*found[g] == schedules[g]) continue;
    changed = true;
    HONE_ASSIGN_OR_RETURN(line.predicted_seconds, predicted_seconds(model, g, *found[g]));
    line.seconds = 0;
    line.steps = schedule::to_string(*found[g]);
    schedules[g] = *std::move(found[g]);
  }
  HONE_RETURN_IF_ERROR(failed);
  return changed;
}

}  // namespace hone
