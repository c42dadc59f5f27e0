#include "hone/compile.h"

#include "hone/base/clock.h"
#include "hone/commands/check/checked_writer.h"
#include "hone/commands/checked_compile.h"
#include "hone/commands/tune.h"

namespace hone {
namespace {

CheckPolicy policy_of(const CompileOptions& options, double start) {
  using When = CheckPolicy::When;
  if (!options.library.check) return {.when = When::kIfCheap, .start = start};
  return {.when = *options.library.check ? When::kAlways : When::kNever};
}

Result<CompileSummary> compile_since(const graph::Graph& graph, const std::string& output,
                                     const CompileOptions& options, double start) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options));
  return compile_checked(graph, output, options, start, [&](const CompileOptions& with) {
    return make_untuned(*session, graph, with);
  });
}

}  // namespace

Result<CompileSummary> compile_checked(const graph::Graph& imported, const std::string& output,
                                       CompileOptions options, double start,
                                       const MakeUntuned& make) {
  HONE_ASSIGN_OR_RETURN(Untuned untuned, make(options));
  CheckedWriter writer(imported, policy_of(options, start), options.interrupted);
  const auto remake = [&](const CompileOptions& with, LibraryParts& parts) -> Status {
    HONE_ASSIGN_OR_RETURN(Untuned made, make(with));
    parts.model = std::move(made.model);
    parts.sources = std::move(made.sources);
    parts.schedules = std::move(made.schedules);
    return ok_status();
  };
  HONE_ASSIGN_OR_RETURN(
      const Written written,
      writer.write({untuned.model, untuned.schedules, untuned.sources}, output, options, remake));
  writer.warn();
  CompileSummary summary = summary_of(untuned.model, written, start);
  summary.check = writer.summary();
  return summary;
}

Result<CompileSummary> compile(graph::Graph graph, const std::string& output,
                               const CompileOptions& options) {
  const double start = real_clock().now_seconds();
  HONE_RETURN_IF_ERROR(check_output(output, options));
  return compile_since(graph, output, options, start);
}

Result<CompileSummary> compile(const std::string& model, const std::string& output,
                               const CompileOptions& options) {
  const double start = real_clock().now_seconds();
  HONE_RETURN_IF_ERROR(check_output(output, options));
  std::set<std::string> files;
  HONE_ASSIGN_OR_RETURN(const graph::Graph graph, import_model(model, options, &files));
  HONE_RETURN_IF_ERROR(check_files(files, output, options));
  HONE_ASSIGN_OR_RETURN(CompileSummary summary, compile_since(graph, output, options, start));
  summary.files = std::move(files);
  return summary;
}

}  // namespace hone
