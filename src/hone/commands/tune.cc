#include "hone/commands/tune.h"

#include <filesystem>

#include "hone/base/output_file.h"
#include "hone/commands/tune_mode.h"
#include "hone/commands/tuning.h"
#include "hone/db/sensitivity_store.h"
#include "hone/search/policy_state.h"

namespace hone {
namespace {

// What a policy wants to know of the device before it chooses what may move.
Status load_sensitivities(const Session& session, const CompileOptions& options,
                          search::Policy& policy) {
  if (!policy.movable().reads_sensitivities()) return ok_status();
  const std::string where = fmt::format("{} with {} threads", session.device(), session.threads());
  if (!options.records.use_db) return policy.movable().set_sensitivities({}, where);
  HONE_ASSIGN_OR_RETURN(
      std::vector<trial::TaskSensitivity> measured,
      db::load_sensitivities(options.records.db, session.device(), session.threads()));
  return policy.movable().set_sensitivities(std::move(measured), where);
}

Result<TuneSummary> tune_since(graph::Graph graph, const std::string& output,
                               const TuneOptions& options, double start) {
  HONE_ASSIGN_OR_RETURN(const TuneMode mode, tune_mode(options.search));
  const bool measures = mode != TuneMode::kEfficient;
  if (measures) {
    const double budget = options.search.budget_seconds;
    if (!(budget > 0)) return invalid("the budget is {} seconds, expected more than 0", budget);
    HONE_RETURN_IF_ERROR(
        machine_of(options.compile).find_measurable(options.compile.target.device).status());
  }
  HONE_RETURN_IF_ERROR(check_output(output, options.compile));
  if (is_stream(output)) {  // what is written there cannot be compared, nor written again
    HONE_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create());
    const std::string library = folder.file(std::filesystem::path(output).filename().string());
    HONE_ASSIGN_OR_RETURN(TuneSummary summary,
                          tune_since(std::move(graph), library, options, start));
    HONE_RETURN_IF_ERROR(publish_file(library, output));
    return summary;
  }
  HONE_ASSIGN_OR_RETURN(auto policy, search::make_policy(strategy_of(options.search, mode)));
  if (!options.search.policy_state.empty())
    HONE_RETURN_IF_ERROR(search::load_policy_state(options.search.policy_state, *policy));
  PhaseClock phases(real_clock(), start);
  JobHooks hooks = hooks_of(options.compile);
  hooks.phases = &phases;
  TuneOptions watched = options;
  watched.compile.advanced.hooks = &hooks;
  using Store = SessionOptions::Store;
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Session> session,
      Session::open(watched.compile, {.store = measures ? Store::kWrite : Store::kRead,
                                      .guide = options.search.guide,
                                      .adapt = options.search.adapt}));
  HONE_RETURN_IF_ERROR(policy->prepare(*session->guide()));
  HONE_RETURN_IF_ERROR(load_sensitivities(*session, options.compile, *policy));
  if (measures) {
    return Tuning(*session, std::move(graph), output, watched, start, std::move(policy), phases)
        .run();
  }
  HONE_ASSIGN_OR_RETURN(TuneSummary summary,
                        tune_without_measuring(*session, graph, output, watched, start, *policy));
  summary.spent = tune_seconds(phases, 0);
  return summary;
}

double start_of(const TuneOptions& options) {
  return real_clock().now_seconds() - options.search.spent_seconds;
}

}  // namespace

Result<TuneSummary> tune(graph::Graph graph, const std::string& output,
                         const TuneOptions& options) {
  return tune_since(std::move(graph), output, options, start_of(options));
}

Result<TuneSummary> tune(const std::string& model, const std::string& output,
                         const TuneOptions& options) {
  const double start = start_of(options);
  HONE_RETURN_IF_ERROR(check_output(output, options.compile));
  std::set<std::string> files;
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(model, options.compile, &files));
  HONE_RETURN_IF_ERROR(check_files(files, output, options.compile));
  HONE_ASSIGN_OR_RETURN(TuneSummary summary, tune_since(std::move(graph), output, options, start));
  summary.compile.files = std::move(files);
  return summary;
}

Status check_strategy(const std::string& strategy) {
  return search::make_policy(strategy).status();
}

std::vector<std::string> strategy_names() { return search::strategy_names(); }

}  // namespace hone
