#include "hone/compile.h"

#include "build_report.h"
#include "command.h"
#include "command_files.h"
#include "interrupt.h"
#include "option_texts.h"
#include "output.h"
#include "table.h"

namespace hone::tool {
namespace {

struct Options {
  std::string model, output;
  BuildOptionTexts build;
  bool require_tuned = false, json = false, verbose = false;
};

Status run(const Options& options) {
  HONE_ASSIGN_OR_RETURN(CompileOptions parsed, parse_build_options(options.build));
  parsed.records.require_tuned = options.require_tuned;
  parsed.interrupted = &listen_for_interrupt();
  const bool no_records = leave_out_new_database(parsed);
  HONE_ASSIGN_OR_RETURN(const Limits limits, Limits::load(parsed));
  HONE_ASSIGN_OR_RETURN(const CompileSummary summary,
                        compile(options.model, options.output, parsed));
  std::FILE* const report = report_output(options.output);
  if (options.json) {
    Json json = to_json(summary, limits);
    json["output"] = options.output;
    fmt::print(report, "{}", json_text(json));
  } else {
    std::string table =
        options.verbose ? kernel_table(summary, limits) : short_kernel_table(summary, limits);
    if (no_records) table += fmt::format("database {} does not exist yet\n", options.build.db);
    fmt::print(
        report,
        "{}{}{}{}{}{}wrote {}: {} bytes in {}; takes {} bytes to run, {} of them intermediate "
        "tensors\n",
        table, coverage(summary, options.verbose), refined(summary), turns(summary),
        ranges(summary), check_line(summary.check), options.output,
        format_count(static_cast<double>(summary.bytes)), format_seconds(summary.seconds),
        format_count(static_cast<double>(summary.memory_bytes)),
        format_count(static_cast<double>(summary.arena_bytes)));
  }
  return ok_status();
}

}  // namespace

Command compile_command(CLI::App& root) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand(
      "compile",
      "Compile a model without measuring, with the best known or best predicted schedules");
  app->add_option("model", options->model, "The ONNX model")->required()->type_name("MODEL");
  app->add_option("-o,--output", options->output, "The library to write")
      ->required()
      ->type_name("FILE");
  add_build_options(*app, options->build);
  app->add_flag("--require-tuned", options->require_tuned,
                "Fail if a kernel has no record in the database");
  app->add_flag(
         "--check", options->build.check,
         "Compare the library with the model however long that takes; default: only if it takes "
         "less than a tenth of the time")
      ->excludes("--no-check");
  app->add_flag("-v,--verbose", options->verbose,
                "List all kernels, not only those that take longest");
  add_json(*app, options->json);
  return {app, [options] { return run(*options); },
          [options](FileRoles& files) {
            files.read("MODEL", options->model);
            add_build_files(options->build, DatabaseUse::kRead, files);
            add_outputs(options->output, options->build.header, files);
          }};
}

}  // namespace hone::tool
