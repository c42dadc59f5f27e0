#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "hone/base/file.h"
#include "hone/base/input_file.h"

#include "command.h"
#include "command_files.h"
#include "database_run.h"
#include "output.h"
#include "record_filter.h"
#include "report_page.h"
#include "run_file.h"
#include "table.h"

namespace hone::tool {
namespace {

struct Options {
  std::vector<std::string> sources;  // files of runs, or databases; none: the usual database
  std::string output = "report.html";
  RecordFilterTexts filter;

  [[nodiscard]] bool filters() const {
    return !(filter.task + filter.kernel + filter.device + filter.model + filter.threads).empty();
  }
};

// The file of a run is JSON and begins with a brace; a database is a server or a file of SQLite.
Result<bool> is_run(const std::string& source) {
  constexpr std::string_view kSqlite = "SQLite format 3";
  if (source.empty() || database_files(source).empty()) return false;
  HONE_ASSIGN_OR_RETURN(const Descriptor file, open_input(source));
  char bytes[kSqlite.size()] = {};
  const ssize_t length = ::read(file.get(), bytes, sizeof bytes);
  if (length < 0) return error(Code::kIo, "cannot read '{}': {}", source, errno_text(errno));
  const std::string_view start(bytes, static_cast<size_t>(length));
  if (start.starts_with('{')) return true;
  if (start == kSqlite) return false;
  return invalid("{}{}, expected a database or a file that 'hone tune --report' wrote", source,
                 start.empty() ? " is empty" : ": neither a run nor a database");
}

Result<Json> load(const std::string& source, const TrialFilter& filter, bool filters) {
  HONE_ASSIGN_OR_RETURN(const bool run_file, is_run(source));
  if (!run_file) {
    HONE_ASSIGN_OR_RETURN(TuningRun run, database_run(source, filter));
    const Limits limits = limits_of_run(source, run);
    run.roofline = limits.roofline();
    return to_json(run, limits);
  }
  if (filters)
    return invalid(
        "{} is a run, of which all is shown: --task, --kernel, --device, --model and "
        "--threads are for databases",
        source);
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(source));
  HONE_ASSIGN_OR_RETURN(Json run, parse_run(source, text));
  run["name"] = std::filesystem::path(source).filename().string();
  return run;
}

Status run(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const TrialFilter filter, parse_record_filter(options.filter));
  const std::vector<std::string> sources =
      options.sources.empty() ? std::vector<std::string>{""} : options.sources;
  Json runs = Json::array();
  for (const std::string& source : sources) {
    HONE_ASSIGN_OR_RETURN(Json one, load(source, filter, options.filters()));
    runs.push_back(std::move(one));
  }
  const std::string page = report_page({{"live", false}, {"runs", runs}}, PageKind::kFile);
  HONE_RETURN_IF_ERROR(write_file_atomic(options.output, page));
  std::FILE* const report = report_output(options.output);
  size_t kernels = 0;
  for (const Json& one : runs) kernels += one["kernels"].size();
  fmt::print(report, "wrote {}: {} bytes, {} kernels\n", options.output,
             format_count(static_cast<double>(page.size())), kernels);
  return ok_status();
}

}  // namespace

Command report_command(CLI::App& root) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand(
      "report",
      "Write what was measured as one HTML page: a run of tune, a database, or two of them");
  app->add_option("source", options->sources,
                  "A file that 'hone tune --report' wrote, or a database (a file, or\n"
                  "postgres://user@host/name); default: the database that tune uses. Two are "
                  "compared")
      ->type_name("RUN|DB")
      ->expected(0, 2);
  app->add_option("-o,--output", options->output, "The page to write")
      ->type_name("FILE")
      ->capture_default_str();
  add_record_filter(*app, options->filter);
  app->footer("docs/user/report.md says what the page shows.");
  return {app, [options] { return run(*options); },
          [options](FileRoles& files) {
            for (const std::string& source : options->sources)
              add_database_files("the report's source", source, DatabaseUse::kRead, files);
            files.written("--output", options->output);
          }};
}

}  // namespace hone::tool
