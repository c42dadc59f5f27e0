#include "hone/session/compile_graph.h"

#include "hone/base/cancel.h"
#include "hone/session/fit_memory.h"

namespace hone {

Result<Untuned> make_untuned(Session& session, graph::Graph graph, const CompileOptions& options) {
  Untuned untuned;
  HONE_ASSIGN_OR_RETURN(untuned.model, make_tasks(session, std::move(graph), options));
  HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
  HONE_ASSIGN_OR_RETURN(untuned.sources, load_sources(untuned.model, options));
  HONE_ASSIGN_OR_RETURN(untuned.schedules,
                        choose_schedules(untuned.model, untuned.sources, options));
  return untuned;
}

Result<CompileSummary> compile_graph(Session& session, graph::Graph graph,
                                     const std::string& output, const CompileOptions& options,
                                     double start) {
  HONE_ASSIGN_OR_RETURN(Untuned untuned, make_untuned(session, std::move(graph), options));
  HONE_ASSIGN_OR_RETURN(const Written written, write_within(untuned.model, untuned.schedules,
                                                            untuned.sources, output, options));
  return summary_of(untuned.model, written, start);
}

}  // namespace hone
