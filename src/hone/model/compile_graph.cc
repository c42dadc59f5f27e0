#include "hone/model/compile_graph.h"

#include "hone/base/cancel.h"
#include "hone/model/fit_memory.h"
#include "hone/model/knowledge.h"

namespace hone {

Result<CompileSummary> compile_graph(graph::Graph graph, const std::string& output,
                                     const CompileOptions& options, const CostModelPtr& cost,
                                     double start) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::Store> store, open_for_reading(options));
  HONE_ASSIGN_OR_RETURN(ModelTasks model, make_tasks(std::move(graph), options,
                                                     {.cost = cost, .store = store.get()}));
  HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
  ThreadPool pool(target::host().cores);
  HONE_ASSIGN_OR_RETURN(Knowledge knowledge, learn(model, store.get(), options));
  HONE_ASSIGN_OR_RETURN(std::vector<schedule::Steps> schedules,
                        known_schedules(model, knowledge, options, pool));
  HONE_ASSIGN_OR_RETURN(const Written written,
                        write_within(model, schedules, knowledge, output, options, pool));
  return summary_of(model, written, start);
}

}  // namespace hone
