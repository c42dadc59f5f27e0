#include "hone/base/options.h"
#include "hone/transfer.h"

#include "command.h"
#include "command_files.h"
#include "interrupt.h"
#include "json_text.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> from;
  std::string measure = "0";
  std::string search_time, full_time;
  bool as_in_paper = false;
  BuildOptionTexts build;
  bool json = false;
};

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.0f} %", 100 * *share) : "-";
}

std::optional<double> time_share(const TransferReport& report, const TransferSource& source) {
  if (report.full_seconds <= 0) return std::nullopt;
  return source.search_seconds / report.full_seconds;
}

std::vector<std::string> row(const TransferClass& sum, std::string first, std::string name,
                             std::string score, std::string time) {
  return {std::move(first),
          std::move(name),
          std::move(score),
          std::to_string(sum.tasks),
          std::to_string(sum.used),
          fmt::format("{}/{}", sum.invalid, sum.sources),
          format_seconds(sum.default_seconds),
          format_seconds(sum.transfer_seconds),
          format_seconds(sum.best_seconds),
          percent(sum.share()),
          std::move(time)};
}

void print_text(const TransferReport& report) {
  Table table({"source", "kernel", "score", "tasks", "used", "invalid", "default", "transferred",
               "best", "of the speed-up", "of the time"},
              2);
  for (const TransferSource& source : report.sources) {
    const auto share = time_share(report, source);
    table.add(row(source.total, shorten(source.name, 32), "all",
                  source.score > 0 ? fmt::format("{:.3f}", source.score) : "-",
                  share ? fmt::format("{:.2f} %", 100 * *share) : "-"));
    for (const TransferClass& sum : source.classes)
      table.add(row(sum, "", shorten(sum.kernel_class, 36), "", ""));
  }
  fmt::print("{}{}: {} of {} kernels have records to compare with", table.text(), report.model,
             report.tasks - report.untuned, report.tasks);
  if (report.full_trials > 0)
    fmt::print(", {} trials in {}", report.full_trials, format_seconds(report.full_seconds));
  fmt::print("\n");
}

Json to_json(const TransferClass& sum) {
  Json json = {{"tasks", sum.tasks},
               {"used", sum.used},
               {"records", sum.sources},
               {"invalid", sum.invalid},
               {"default_seconds", sum.default_seconds},
               {"transfer_seconds", sum.transfer_seconds},
               {"best_seconds", sum.best_seconds}};
  const std::optional<double> share = sum.share();
  json["speedup_share"] = share ? Json(*share) : Json();
  return json;
}

Json to_json(const TransferReport& report) {
  Json json = {{"model", report.model},
               {"kernels", report.tasks},
               {"untuned", report.untuned},
               {"full_trials", report.full_trials},
               {"full_seconds", report.full_seconds}};
  json["sources"] = Json::array();
  for (const TransferSource& source : report.sources) {
    Json entry = to_json(source.total);
    entry["source"] = source.name;
    entry["score"] = source.score;
    entry["seconds"] = source.search_seconds;
    const std::optional<double> share = time_share(report, source);
    entry["time_share"] = share ? Json(*share) : Json();
    entry["classes"] = Json::array();
    for (const TransferClass& sum : source.classes) {
      entry["classes"].push_back(to_json(sum));
      entry["classes"].back()["kernel"] = sum.kernel_class;
    }
    json["sources"].push_back(std::move(entry));
  }
  return json;
}

Status run(const Options& options) {
  TransferReportOptions parsed;
  HONE_ASSIGN_OR_RETURN(parsed.compile, parse_build_options(options.build));
  HONE_ASSIGN_OR_RETURN(parsed.measure, parse_count("--measure", options.measure, 0, 1000));
  if (!options.search_time.empty()) {
    HONE_ASSIGN_OR_RETURN(parsed.search_seconds,
                          of_option("--search-time", parse_duration(options.search_time)));
  }
  if (!options.full_time.empty()) {
    HONE_ASSIGN_OR_RETURN(parsed.full_seconds,
                          of_option("--full-time", parse_duration(options.full_time)));
  }
  parsed.from = options.from;
  parsed.as_in_paper = options.as_in_paper;
  parsed.interrupted = &listen_for_interrupt();
  HONE_ASSIGN_OR_RETURN(const TransferReport report, transfer_report(options.model, parsed));
  if (options.json) {
    fmt::print("{}", json_text(to_json(report)));
  } else {
    print_text(report);
  }
  return ok_status();
}

}  // namespace

Command transfer_command(CLI::App& root) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand(
      "transfer",
      "Measure how useful the schedules of other models are for a model that was tuned");
  app->add_option("--to", options->model, "The ONNX model")->required()->type_name("MODEL");
  app->add_option(
         "--from", options->from,
         "A model as the database names it, an ONNX file, another database, or pool for all; "
         "repeat to compare; default: the three most promising models, and pool")
      ->type_name("SOURCE")
      ->expected(1)
      ->take_all();
  app->add_option("--measure", options->measure,
                  "Number of candidates to measure per kernel, in a search that starts from the "
                  "transferred ones; 0: the best predicted one is taken")
      ->type_name("N")
      ->capture_default_str();
  CLI::Option* search_time =
      app->add_option(
             "--search-time", options->search_time,
             "Time limit of each source's search, which is spent where the model gains most, on "
             "at most --measure candidates per kernel if that is given; default: no limit")
          ->type_name("TIME");
  app->add_flag("--as-in-paper", options->as_in_paper,
                "Use only schedules of the same kernel class, unchanged")
      ->excludes(search_time);
  app->add_option("--full-time", options->full_time,
                  "Time that fully tuning the model took; default: by its records")
      ->type_name("TIME");
  add_task_options(*app, options->build);
  add_json(*app, options->json);
  app->footer(
      "score: of a model's schedules by the Transfer-Tuning paper's rule, the sum over kernel "
      "classes of P^2 sqrt(W);\n"
      "of the speed-up: (default - transferred) / (default - best), where default is what compile "
      "does with\n"
      "an empty database and best the fastest schedule known; of the time: of tuning the model in "
      "full.");
  return {app, [options] { return run(*options); },
          [options](FileRoles& files) {
            files.read("--to", options->model);
            for (const std::string& source : options->from) files.read("--from", source);
            add_build_files(options->build, DatabaseUse::kRead, files);
          }};
}

}  // namespace hone::tool
