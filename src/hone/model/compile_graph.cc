#include "hone/model/compile_graph.h"

#include "hone/base/cancel.h"
#include "hone/model/fit_memory.h"

namespace hone {

Result<Untuned> make_untuned(graph::Graph graph, const CostModelPtr& cost, db::Store* store,
                             const CompileOptions& options, ThreadPool& pool) {
  Untuned untuned;
  HONE_ASSIGN_OR_RETURN(untuned.model,
                        make_tasks(std::move(graph), options, {.cost = cost, .store = store}));
  HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
  HONE_ASSIGN_OR_RETURN(untuned.knowledge, learn(untuned.model, store, options));
  HONE_ASSIGN_OR_RETURN(untuned.schedules,
                        known_schedules(untuned.model, untuned.knowledge, options, pool));
  return untuned;
}

Result<CompileSummary> compile_graph(graph::Graph graph, const std::string& output,
                                     const CompileOptions& options, const CostModelPtr& cost,
                                     double start) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::Store> store, open_for_reading(options));
  ThreadPool pool(target::host().cores);
  HONE_ASSIGN_OR_RETURN(Untuned untuned,
                        make_untuned(std::move(graph), cost, store.get(), options, pool));
  HONE_ASSIGN_OR_RETURN(
      const Written written,
      write_within(untuned.model, untuned.schedules, untuned.knowledge, output, options, pool));
  return summary_of(untuned.model, written, start);
}

}  // namespace hone
