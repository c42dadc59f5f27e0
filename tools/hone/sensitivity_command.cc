// hone sensitivity: how much each role of decisions matters on this machine.
#include "hone/base/options.h"
#include "hone/sensitivity.h"

#include "command.h"
#include "command_files.h"
#include "interrupt.h"
#include "json_text.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

constexpr int kMostTasks = 1000;
constexpr double kMostShown = 99.95;  // factors: more is a default that hardly runs

struct Options {
  std::vector<std::string> models;
  std::string tasks = std::to_string(SensitivityOptions().tasks);
  std::string budget = "2m";
  BuildOptionTexts build;
  bool json = false;
};

std::string percent(double share) {
  if (share >= kMostShown) return fmt::format("> {:.0f} %", 100 * kMostShown);
  return fmt::format("{:.1f} %", 100 * share);
}

void print_text(const SensitivityReport& report) {
  Table table({"role", "alone gains", "without it loses", "kernels"}, 1);
  for (const RoleSensitivity& role : report.roles)
    table.add({role.role, percent(role.gain), percent(role.loss), std::to_string(role.tasks)});
  fmt::print("{}{} of {} kernels, {} schedules measured in {}", table.text(), report.tasks,
             report.found, report.measured, format_seconds(report.seconds));
  if (report.left_out > 0) fmt::print(", no time for {}", report.left_out);
  fmt::print("; stored for {} with {} threads\n", report.device, report.threads);
}

Json to_json(const SensitivityReport& report) {
  Json json = {{"device", report.device},     {"threads", report.threads},
               {"kernels", report.found},     {"tasks", report.tasks},
               {"measured", report.measured}, {"left_out", report.left_out},
               {"seconds", report.seconds}};
  json["roles"] = Json::array();
  for (const RoleSensitivity& role : report.roles) {
    json["roles"].push_back({{"role", role.role},
                             {"gain", role.gain},
                             {"loss", role.loss},
                             {"score", role.score},
                             {"tasks", role.tasks}});
  }
  return json;
}

Status run(const Options& options) {
  SensitivityOptions parsed;
  HONE_ASSIGN_OR_RETURN(parsed.compile, parse_build_options(options.build));
  HONE_ASSIGN_OR_RETURN(parsed.tasks, parse_count("--tasks", options.tasks, 1, kMostTasks));
  HONE_ASSIGN_OR_RETURN(parsed.budget_seconds,
                        of_option("--budget", parse_duration(options.budget)));
  parsed.interrupted = &listen_for_interrupt();
  HONE_ASSIGN_OR_RETURN(const SensitivityReport report,
                        measure_sensitivity(options.models, parsed));
  if (options.json) {
    fmt::print("{}", json_text(to_json(report)));
  } else {
    print_text(report);
  }
  return ok_status();
}

}  // namespace

Command sensitivity_command(CLI::App& root) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand(
      "sensitivity",
      "Measure how much each role of the decisions about schedules matters, for tune --movable");
  app->add_option("models", options->models, "The ONNX models")->required()->type_name("MODEL...");
  app->add_option("--tasks", options->tasks,
                  "Most kernels to measure: those that represent all of the models' kernels")
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--budget", options->budget, "Time limit: 500ms, 60s, 5m, 1h")
      ->type_name("TIME")
      ->capture_default_str();
  add_task_options(*app, options->build);
  add_json(*app, options->json);
  app->footer(
      "alone gains: how much faster the default schedule gets if decisions of this role alone "
      "change;\n"
      "without it loses: how much slower the best schedule known gets if they are as the default "
      "has them.\n"
      "Both are means over the kernels that have such decisions, and are stored in the database.");
  return {app, [options] { return run(*options); },
          [options](FileRoles& files) {
            for (const std::string& model : options->models) files.read("MODEL", model);
            add_build_files(options->build, DatabaseUse::kWrite, files);
          }};
}

}  // namespace hone::tool
