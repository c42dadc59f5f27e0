// compile.cc - the facade without measuring.
#include "hone/base/clock.h"
#include "hone/model/compile_graph.h"
#include "hone/model/write_model.h"
#include "hone/resolve_options.h"
#include "hone/tune.h"

namespace hone {

Result<CompileSummary> compile(graph::Graph graph, const std::string& output,
                               const CompileOptions& options) {
  const double start = real_clock().now_seconds();
  HONE_RETURN_IF_ERROR(check_output(output, options));
  HONE_ASSIGN_OR_RETURN(const CostModelPtr cost, resolve_options(options));
  return compile_graph(std::move(graph), output, options, cost, start);
}

Result<CompileSummary> compile(const std::string& model, const std::string& output,
                               const CompileOptions& options) {
  HONE_RETURN_IF_ERROR(check_output(output, options));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(model, options));
  return compile(std::move(graph), output, options);
}

Result<codegen::LoadedModel> load(const std::string& library, int num_threads) {
  return codegen::LoadedModel::open(library, num_threads);
}

}  // namespace hone
