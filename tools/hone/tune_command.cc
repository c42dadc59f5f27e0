#include <ctime>
#include <filesystem>

#include "hone/base/clock.h"
#include "hone/base/log.h"
#include "hone/base/options.h"
#include "hone/tune.h"

#include "build_report.h"
#include "command.h"
#include "command_files.h"
#include "interrupt.h"
#include "option_texts.h"
#include "output.h"
#include "progress.h"
#include "table.h"
#include "tune_report.h"

namespace hone::tool {
namespace {

struct Options {
  std::string model, output;
  std::string budget;  // empty: that of the mode
  std::string mode = SearchOptions().mode;
  std::string search = SearchOptions().strategy;
  std::string movable = "all", tiles = "all";
  std::string policy_state;
  std::string report;  // the file of the run; empty: none
  std::string live;    // a port; empty: no page is served
  std::string guide = SearchOptions().guide;
  std::string adapt = SearchOptions().adapt;
  std::string filter = SearchOptions().filter;
  std::string overlap = "auto";
  BuildOptionTexts build;
  bool json = false;
};

// How long this process has run: what it has done until now was starting up, without waiting.
double process_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::string output_of(const Options& options) {
  if (!options.output.empty()) return options.output;
  const char* extension = options.build.static_library ? ".a" : ".so";
  return std::filesystem::path(options.model).filename().replace_extension(extension).string();
}

Json to_json(const TuneSeconds& spent) {
  Json json = Json::object();
  for (const auto& [name, seconds] : parts_of(spent)) json[name] = seconds;
  json["overlapped"] = spent.overlapped;
  return json;
}

// "time: measuring 41.2 s (69 %), compiling 9.81 s (16 %), ...; 4.2 s of choosing and compiling
// while candidates were measured"
std::string describe(const TuneSeconds& spent) {
  double all = 0;
  for (const auto& [name, seconds] : parts_of(spent)) all += seconds;
  std::string text;
  for (const auto& [name, seconds] : parts_of(spent)) {
    if (seconds > 0)
      text += fmt::format("{}{} {} ({:.0f} %)", text.empty() ? "" : ", ", name,
                          format_seconds(seconds), 100 * seconds / all);
  }
  if (spent.overlapped > 0)
    text += fmt::format("; {} of choosing and compiling while candidates were measured",
                        format_seconds(spent.overlapped));
  return fmt::format("time: {}\n", text);
}

Json to_json(const InModelSummary& in_model) {
  return {{"compared", in_model.compared},
          {"changed", in_model.changed},
          {"saved_seconds", in_model.saved_seconds},
          {"model_seconds", in_model.model_seconds},
          {"seconds", in_model.seconds},
          {"skipped", in_model.skipped}};
}

std::string describe(const InModelSummary& in_model) {
  if (!in_model.skipped.empty())
    return fmt::format("inside the model: no kernels compared: {}\n", in_model.skipped);
  std::string gain;
  if (in_model.changed > 0) {
    gain =
        fmt::format(": {:.1f} % less time", 100 * in_model.saved_seconds / in_model.model_seconds);
  }
  return fmt::format("inside the model: {} kernels compared with their runners-up, {} changed{}\n",
                     in_model.compared, in_model.changed, gain);
}

Json to_json(const SizesSummary& sizes) {
  return {{"kernels", sizes.kernels},
          {"trials", sizes.trials},
          {"left_out", sizes.left_out},
          {"seconds", sizes.seconds},
          {"skipped", sizes.skipped}};
}

// Nothing is said of a model whose shapes are fixed.
std::string describe(const SizesSummary& sizes, const CompileSummary& compile) {
  if (compile.ranges.empty()) return "";
  if (!sizes.skipped.empty())
    return fmt::format("smaller sizes: kernels were not measured: {}\n", sizes.skipped);
  return fmt::format(
      "smaller sizes: {} trials of {} kernels{}\n", sizes.trials, sizes.kernels,
      sizes.left_out > 0 ? fmt::format(", no time for {} more", sizes.left_out) : "");
}

// "7 schedules could not be measured: 5 compile (the first: more than ...), 2 timeout (...)"
std::string describe(const std::vector<FailureSummary>& failures) {
  int count = 0;
  std::string kinds;
  for (const FailureSummary& alike : failures) {
    count += alike.count;
    kinds += fmt::format("{}{} {} (the first: {})", kinds.empty() ? "" : ", ", alike.count,
                         alike.outcome, shorten(alike.first, 100));
  }
  return count == 0 ? "" : fmt::format("{} schedules could not be measured: {}\n", count, kinds);
}

// "schedules that were not measured: 3 that the device cannot run, 12 that spill registers; ..."
std::string describe_dropped(const TuneSummary& summary) {
  std::string text;
  const auto add = [&](int count, const char* what) {
    if (count > 0) text += fmt::format("{}{} that {}", text.empty() ? "" : ", ", count, what);
  };
  add(summary.cannot_run, "the device cannot run");
  add(summary.spilling, "spill registers");
  add(summary.filtered, "--filter predicts to be much slower than the best");
  if (!text.empty()) text = fmt::format("schedules that were not measured: {}\n", text);
  if (summary.scored > 0)
    text += fmt::format("--filter predicted {} schedules, in {} of all threads\n", summary.scored,
                        format_seconds(summary.score_seconds));
  return text;
}

void print(const TuneSummary& summary, const std::string& output, const Limits& limits,
           bool as_json) {
  std::FILE* const report = report_output(output);
  if (as_json) {
    Json json = to_json(summary.compile, limits);
    json["output"] = output;
    json["trials"] = summary.trials;
    json["search_seconds"] = summary.search_seconds;
    json["compiled"] = summary.compiled;
    json["compile_seconds"] = summary.compile_seconds;
    json["cannot_run"] = summary.cannot_run;
    json["spilling"] = summary.spilling;
    json["scored"] = summary.scored;
    json["filtered"] = summary.filtered;
    json["score_seconds"] = summary.score_seconds;
    json["waited_seconds"] = summary.waited_seconds;
    json["spent"] = to_json(summary.spent);
    json["interrupted"] = summary.interrupted;
    json["store_failure"] = summary.store_status.message();
    json["policy_failure"] = summary.policy_status.message();
    json["model_seconds"] = summary.model_seconds;
    json["untuned_model_seconds"] = summary.untuned_model_seconds;
    json["kept_untuned"] = summary.kept_untuned;
    json["not_compared"] = summary.not_compared;
    json["in_model"] = to_json(summary.in_model);
    if (!summary.compile.ranges.empty()) json["sizes"] = to_json(summary.sizes);
    json["failures"] = Json::object();
    for (const FailureSummary& alike : summary.failures)
      json["failures"][alike.outcome] = {{"count", alike.count}, {"first", alike.first}};
    fmt::print(report, "{}", json_text(json));
    return;
  }
  fmt::print(report, "{}", kernel_table(summary.compile, limits));
  fmt::print(report, "{}{}{}{}{}{}", coverage(summary.compile), refined(summary.compile),
             describe(summary.failures), describe_dropped(summary), describe(summary.in_model),
             describe(summary.sizes, summary.compile));
  if (summary.waited_seconds > 0)
    fmt::print(report, "waited {} until each thread had a core of its own\n",
               format_seconds(summary.waited_seconds));
  if (!summary.not_compared.empty()) {
    fmt::print(report, "whole model: not compared with what it was before: {}\n",
               summary.not_compared);
  } else {
    fmt::print(report, "whole model: {} tuned, {} before{}\n",
               format_seconds(summary.model_seconds), format_seconds(summary.untuned_model_seconds),
               summary.kept_untuned ? ": it stays as it was" : "");
  }
  fmt::print(report, "{}{}{}", ranges(summary.compile), check_line(summary.compile.check),
             describe(summary.spent));
  fmt::print(report, "wrote {}: {} bytes, {} trials in {} ({:.1f}/s)\n", output,
             format_count(static_cast<double>(summary.compile.bytes)), summary.trials,
             format_seconds(summary.compile.seconds), summary.trials / summary.compile.seconds);
}

Result<std::optional<bool>> parse_overlap(std::string_view text) {
  if (text == "auto") return std::optional<bool>();
  if (text == "yes" || text == "no") return std::optional(text == "yes");
  return error(Code::kInvalid, "--overlap: unknown value '{}', expected auto, yes or no", text);
}

// The strategy with what it may move, which are options of every strategy.
Result<std::string> parse_strategy(const Options& options) {
  Status status = check_strategy(options.search);
  if (!status.ok()) return invalid("--search: {}", status.message());
  if (options.tiles != "all" && options.tiles != "powers-of-two")
    return invalid("--tiles: unknown value '{}', expected all or powers-of-two", options.tiles);
  std::string strategy = options.search;
  const auto add = [&](std::string_view option) {
    strategy += (strategy.find(':') == std::string::npos ? ":" : ",") + std::string(option);
  };
  const auto take = [&](std::string_view name, const std::string& option) -> Status {
    add(option);
    const Status taken = check_strategy(strategy);
    return taken.ok() ? taken : invalid("{}: {}", name, taken.message());
  };
  if (options.tiles != "all") HONE_RETURN_IF_ERROR(take("--tiles", "powers_of_two=1"));
  if (options.movable != "all")
    HONE_RETURN_IF_ERROR(take("--movable", "movable=" + options.movable));
  return strategy;
}

// Options that have no meaning where nothing is measured are errors that name them.
Result<double> parse_budget(const Options& options) {
  const bool efficient = options.mode == "efficient";
  const auto contradicts = [](std::string_view option) {
    return invalid("--mode efficient: nothing is measured, expected no {}", option);
  };
  if (efficient && !options.budget.empty()) return contradicts("--budget");
  if (efficient && options.overlap != "auto") return contradicts("--overlap");
  if (efficient && options.adapt != "none") return contradicts("--adapt");
  if (efficient && !options.filter.empty()) return contradicts("--filter");
  if (efficient && !options.report.empty()) return contradicts("--report");
  if (efficient && !options.live.empty()) return contradicts("--live");
  if (!options.budget.empty()) return of_option("--budget", parse_duration(options.budget));
  return options.mode == "quality" ? kQualityBudget : SearchOptions().budget_seconds;
}

Status run(const Options& options) {
  const double start = real_clock().now_seconds() - process_seconds();
  TuneOptions parsed;
  HONE_ASSIGN_OR_RETURN(parsed.compile, parse_build_options(options.build));
  HONE_ASSIGN_OR_RETURN(parsed.search.overlap, parse_overlap(options.overlap));
  HONE_ASSIGN_OR_RETURN(parsed.search.budget_seconds, parse_budget(options));
  parsed.search.mode = options.mode;
  HONE_ASSIGN_OR_RETURN(parsed.search.strategy, parse_strategy(options));
  parsed.search.policy_state = options.policy_state;
  parsed.search.guide = options.guide;
  parsed.search.adapt = options.adapt;
  parsed.search.filter = options.filter;
  parsed.interrupted = &listen_for_interrupt();
  ProgressDisplay display;
  HONE_ASSIGN_OR_RETURN(TuneReport report, TuneReport::start(options.model, options.report,
                                                             options.live, parsed.compile, start));
  report.listen(parsed);
  parsed.on_progress = [&](const TuneProgress& progress) {
    if (progress.trials > 0) finish_when_interrupted();  // there is something to write
    display.show(progress);
    report.add(progress);
  };
  const std::string output = output_of(options);
  parsed.search.spent_seconds = real_clock().now_seconds() - start;
  const Result<TuneSummary> summary = tune(options.model, output, parsed);
  display.finish();
  if (!summary.ok()) return summary.status();
  // The library is written: a database that cannot be read any more costs no more than a column.
  const Result<Limits> found = Limits::load(parsed.compile);
  if (!found.ok()) log_warning("no limits are shown: {}", found.status().message());
  const Limits limits = found.ok() ? *found : Limits();
  print(*summary, output, limits, options.json);
  HONE_RETURN_IF_ERROR(report.finish(*summary, limits));
  if (!summary->store_status.ok()) return summary->store_status;
  if (!summary->policy_status.ok()) return summary->policy_status;
  if (!summary->interrupted) return ok_status();
  return error(Code::kCancelled, "interrupted after {} trials, all kept; the same command resumes",
               summary->trials);
}

// What proposes schedules, and which decisions it may move.
void add_strategy_options(CLI::App& app, Options& options) {
  app.add_option(
         "--search", options.search,
         fmt::format("The search strategy: {}. Options (see docs/user/tuning.md) follow the name:\n"
                     "beam:width=16,incumbents=2",
                     join_names(strategy_names())))
      ->type_name("NAME[:OPTION=VALUE,...]")
      ->capture_default_str();
  app.add_option(
         "--movable", options.movable,
         "Which decisions about a kernel's schedule move; others stay as the first schedule has "
         "them: all; N: of\n"
         "the N roles that matter most on this machine; learned:N: of those that do so for alike "
         "kernels (both by\n"
         "hone sensitivity); predicted:N: by the cost model; scores:N: for what limits the kernel, "
         "memory or\n"
         "arithmetic; random:N; roles:NAME+NAME")
      ->type_name("WHICH")
      ->capture_default_str();
  app.add_option("--tiles", options.tiles,
                 "Which lengths of tiles are tried: all, or powers-of-two")
      ->type_name("LENGTHS")
      ->capture_default_str();
  app.add_option(
         "--policy-state", options.policy_state,
         "A file with what the strategy learned in earlier runs: read if it is there, and\n"
         "written after the search. The strategy is dqn or one with recall, as in mixed:recall=1")
      ->type_name("FILE");
}

}  // namespace

Command tune_command(CLI::App& root) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand(
      "tune", "Tune every kernel of a model by measuring, and write the fastest library");
  app->add_option("model", options->model, "The ONNX model")->required()->type_name("MODEL");
  app->add_option("-o,--output", options->output,
                  "The library to write; default: the model's name with .so or .a, in this folder")
      ->type_name("FILE");
  app->add_option("--budget", options->budget,
                  "Time limit from the start to the library on disk: 500ms, 60s, 5m, 1h. Default: "
                  "60s, or 1h with --mode quality")
      ->type_name("TIME");
  app->add_option(
         "--mode", options->mode,
         "efficient: measure nothing; kernels without a record get the best predicted of 64 "
         "schedules, which the\nstrategy proposes in one step; quality: measure until every kernel "
         "has converged or the budget is spent.\nDefault: until the budget is spent or nothing can "
         "be gained")
      ->type_name("MODE");
  add_strategy_options(*app, *options);
  app->add_option(
         "--guide", options->guide,
         "The cost model that guides the search, named as for --cost. The model of --cost then "
         "decides only\n"
         "which kernels there are and what is tried first. Default: the model of --cost")
      ->type_name("NAME");
  app->add_option(
         "--adapt", options->adapt,
         "How a net that guides the search (FILE.onnx) adapts to measurements: none; head: its "
         "last layer;\n"
         "full: all layers; momentum: all layers, starting each time from a running mean of them; "
         "scratch: all layers,\n"
         "from random weights. The latter three need libtorch")
      ->type_name("HOW")
      ->capture_default_str();
  app->add_option(
         "--filter", options->filter,
         "A score of machine code (hone train --cost static): what it predicts to be much slower "
         "than the best measured\n"
         "is compiled, but not measured. Options: static.model:factor=2,share=0.25: how many times "
         "slower, and the share\nof each batch that is measured all the same")
      ->type_name("FILE[:OPTION=VALUE,...]");
  app->add_option(
         "--overlap", options->overlap,
         "Whether schedules are compiled while others are measured: yes; no: alternately, on all "
         "cores;\n"
         "auto: yes if --threads leaves a core for it")
      ->type_name("WHEN")
      ->capture_default_str();
  app->add_option("--report", options->report,
                  "Also write what was measured to this file, for 'hone report'")
      ->type_name("FILE");
  app->add_option(
         "--live", options->live,
         "Serve that report as a page on this machine while it tunes; 0: any free port. The "
         "address is printed")
      ->type_name("PORT");
  add_build_options(*app, options->build);
  add_json(*app, options->json);
  app->footer(
      "Ctrl-C ends early: measurements are kept and the best library so far is written; the same "
      "command continues\n"
      "from there. A second Ctrl-C kills the process. Closing the terminal has the effect of "
      "Ctrl-C.");
  return {app, [options] { return run(*options); },
          [options](FileRoles& files) {
            files.read("MODEL", options->model);
            add_cost_file(options->guide, files);
            add_file_with_options("--filter", options->filter, files);
            if (!options->policy_state.empty())
              files.updated("--policy-state", options->policy_state);
            add_build_files(options->build, DatabaseUse::kWrite, files);
            add_outputs(output_of(*options), options->build.header, files);
            if (!options->report.empty()) files.written("--report", options->report);
          }};
}

}  // namespace hone::tool
