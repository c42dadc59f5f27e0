#include "hone/stored_kernels.h"

#include "hone/base/cancel.h"
#include "hone/commands/task_programs.h"
#include "hone/session/short_code.h"

namespace hone {
namespace {

// The number of kernels that are lowered between two looks at the bytes that are left.
constexpr size_t kAtATime = 16;

struct Found {
  ModelTasks model;  // of one task
  schedule::Steps steps, untuned;
};

Status find_schedules(const StoredKernelQuery& query, Found& found) {
  HONE_ASSIGN_OR_RETURN(found.steps, schedule::parse_steps(query.steps));
  HONE_RETURN_IF_ERROR(schedule::replay(found.model.dag(0), found.steps).status());
  const Result<space::Space>& space = found.model.space(0);
  HONE_RETURN_IF_ERROR(space.status());
  HONE_ASSIGN_OR_RETURN(found.untuned,
                        short_steps(found.model, 0, space->steps(space->default_point())));
  return ok_status();
}

void print_programs(Session& session, const Found& found, TaskPrograms& programs) {
  const TaskPtr& task = found.model.distinct[0];
  programs.program = program_text(session, task, found.steps);
  programs.untuned_steps = schedule::to_string(found.untuned);
  programs.untuned_program = program_text(session, task, found.untuned);
}

int64_t bytes_of(const TaskPrograms& programs) {
  return std::ssize(programs.program) + std::ssize(programs.untuned_program);
}

}  // namespace

Result<std::vector<StoredKernel>> stored_kernels(std::span<const StoredKernelQuery> queries,
                                                 const CompileOptions& options,
                                                 int64_t most_bytes) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options));
  if (session->store() == nullptr) return invalid("there is no database to take kernels from");
  std::vector<StoredKernel> kernels(queries.size());
  int64_t bytes = 0;
  for (size_t begin = 0; begin < queries.size(); begin += kAtATime) {
    HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
    const size_t count = std::min(kAtATime, queries.size() - begin);
    std::vector<Result<ModelTasks>> models;  // a store is for one thread
    for (size_t i = 0; i < count; ++i)
      models.push_back(make_stored_task(*session, queries[begin + i].task, options));
    session->pool().parallel_for(static_cast<int64_t>(count), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      const StoredKernelQuery& query = queries[begin + at];
      StoredKernel& kernel = kernels[begin + at];
      kernel.task.key = query.task;
      if (!models[at].ok()) {
        kernel.problem = models[at].status().message();
        return;
      }
      Found found{.model = *std::move(models[at]), .steps = {}, .untuned = {}};
      kernel.task = found.model.summaries[0];
      if (query.steps.empty() || bytes >= most_bytes) return;
      const Status status = find_schedules(query, found);
      if (status.ok())
        print_programs(*session, found, kernel.programs);
      else
        kernel.problem = status.message();
    });
    for (size_t i = 0; i < count; ++i) {
      bytes += bytes_of(kernels[begin + i].programs);
      if (bytes > most_bytes) kernels[begin + i].programs = {};
    }
  }
  return kernels;
}

}  // namespace hone
