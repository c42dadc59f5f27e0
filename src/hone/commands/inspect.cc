#include "hone/commands/inspect.h"

#include <algorithm>

#include "hone/base/cancel.h"
#include "hone/graph/dot.h"
#include "hone/graph/memory_plan.h"
#include "hone/session/schedule_sources.h"
#include "hone/session/size_tables.h"

namespace hone {

namespace {

// The shape of what a task computes where it occurs first.
Shape result_of(const ModelTasks& model, const graph::TaskGroup& group) {
  const graph::TaskCall& call = model.tasks.calls[static_cast<size_t>(group.calls[0])];
  const graph::Node& last = model.graph.nodes[static_cast<size_t>(call.nodes.back())];
  const auto result = std::find_if(last.outputs.begin(), last.outputs.end(),
                                   [](graph::ValueId id) { return id != graph::kNoValue; });
  return model.graph.value(*result).shape;
}

graph::OnChange reporter(const InspectOptions& options) {
  if (!options.on_change) return {};
  return [&](const std::string& pass, const std::string& graph, const graph::RuleCounts& rules) {
    options.on_change({pass, graph, {rules.begin(), rules.end()}});
  };
}

}  // namespace

Result<Inspection> inspect(const std::string& path, const InspectOptions& options) {
  Inspection inspection;
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(path, options.compile, &inspection.files));
  if (options.on_change) options.on_change({"import", graph::describe(graph), {}});
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options.compile));
  HONE_ASSIGN_OR_RETURN(ModelTasks model,
                        make_tasks(*session, std::move(graph), options.compile, reporter(options)));
  HONE_RETURN_IF_ERROR(check_cancelled(options.compile.interrupted));
  HONE_ASSIGN_OR_RETURN(ScheduleSources sources, load_sources(model, options.compile));
  HONE_ASSIGN_OR_RETURN(std::vector<schedule::Steps> schedules,
                        choose_schedules(model, sources, options.compile));
  HONE_RETURN_IF_ERROR(find_size_tables(model, schedules, options.compile));
  inspection.graph = graph::describe(model.graph);
  if (options.dot) inspection.dot = graph::to_dot(model.graph, model.tasks);
  inspection.nodes = static_cast<int>(model.graph.nodes.size());
  inspection.tasks = static_cast<int>(model.tasks.calls.size());
  inspection.flops = graph::total_flops(model.tasks);
  inspection.weight_bytes = constant_bytes(model.tasks);
  inspection.arena_bytes = graph::plan_memory(model.tasks).arena_bytes;
  for (size_t g = 0; g < model.summaries.size(); ++g)
    inspection.distinct.push_back({model.summaries[g], result_of(model, model.tasks.groups[g])});
  return inspection;
}

std::vector<std::string> pass_names() { return graph::pass_names(); }

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
