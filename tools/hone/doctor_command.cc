#include "hone/doctor.h"

#include "command.h"
#include "json_text.h"
#include "option_texts.h"

namespace hone::tool {
namespace {

struct Options {
  std::string db;
  bool json = false;
};

Json to_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"name", finding.name},
                    {"state", state_name(finding.state)},
                    {"needed", finding.needed},
                    {"found", finding.found},
                    {"cure", finding.cure}});
  }
  return {{"can_tune", can_tune(findings)}, {"findings", std::move(list)}};
}

// A line for each finding, with the cure after an arrow.
std::string to_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<8} {:<18} {}{}{}\n", state_name(finding.state), finding.name,
                        one_line(finding.found), finding.cure.empty() ? "" : " -> ", finding.cure);
  }
  return text;
}

// An error that names what is needed and missing.
Status verdict(const std::vector<Finding>& findings) {
  std::vector<std::string> names;
  for (const Finding& finding : findings) {
    if (finding.needed && finding.state == Finding::State::kMissing) names.push_back(finding.name);
  }
  if (names.empty()) return ok_status();
  return error(Code::kNotFound, "models cannot be tuned here, for lack of: {}", join_names(names));
}

Status run(const Options& options) {
  const std::vector<Finding> findings = examine_machine({.db = options.db});
  fmt::print("{}", options.json ? json_text(to_json(findings)) : to_text(findings));
  return verdict(findings);
}

}  // namespace

Command doctor_command(CLI::App& root) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand(
      "doctor", "Say what this machine lacks for compiling and tuning, and how to get it");
  add_db(*app, options->db);
  add_json(*app, options->json);
  app->footer(
      "A line per finding: ok, warning (it works, but times vary or something is slower) or missing, what was\n"
      "found, and after -> what to do about it. Exit codes: 0 if models can be tuned for this machine's CPU, 2 if\n"
      "something that this needs is missing; what is missing for GPUs or for training cost models does not count.");
  return {app, [options] { return run(*options); }};
}

}  // namespace hone::tool
