#include "hone/commands/inspect.h"

#include "hone/base/cancel.h"
#include "hone/session/knowledge.h"

namespace hone {

Result<Inspection> inspect(const std::string& path, const InspectOptions& options) {
  Inspection inspection;
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(path, options.compile, &inspection.files));
  if (options.on_change) options.on_change("import", graph::describe(graph), {});
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options.compile));
  HONE_ASSIGN_OR_RETURN(ModelTasks model,
                        make_tasks(*session, std::move(graph), options.compile, options.on_change));
  HONE_RETURN_IF_ERROR(check_cancelled(options.compile.interrupted));
  HONE_ASSIGN_OR_RETURN(Knowledge knowledge, learn(model, options.compile));
  HONE_ASSIGN_OR_RETURN(const std::vector<schedule::Steps> schedules,
                        known_schedules(model, knowledge, options.compile));
  inspection.weight_bytes = constant_bytes(model.tasks);
  inspection.plan = graph::plan_memory(model.tasks);
  inspection.graph = std::move(model.graph);
  inspection.tasks = std::move(model.tasks);
  inspection.summaries = std::move(model.summaries);
  return inspection;
}

Result<TaskCounts> count_tasks(const std::string& model, const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::open(options, {.store = SessionOptions::Store::kNone}));
  std::set<std::string> files;
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(model, options, &files));
  HONE_ASSIGN_OR_RETURN(const ModelTasks made, make_tasks(*session, std::move(graph), options));
  TaskCounts counts{made.name, {}, std::move(files)};
  for (const graph::TaskGroup& group : made.tasks.groups)
    counts.tasks[group.key] += static_cast<int>(group.calls.size());
  return counts;
}

}  // namespace hone
