#include "hone/commands/tune.h"

#include <filesystem>

#include "hone/base/output_file.h"
#include "hone/commands/own/own_policy.h"
#include "hone/commands/tune_mode.h"
#include "hone/commands/tuning.h"
#include "hone/cost/own_model.h"
#include "hone/db/sensitivity_store.h"
#include "hone/search/policy_state.h"

namespace hone {

Status load_sensitivities(const Session& session, const CompileOptions& options,
                          search::Policy& policy) {
  if (!policy.movable().reads_sensitivities()) return ok_status();
  const std::string where = fmt::format("{} with {} threads", session.device(), session.threads());
  if (!options.records.use_db) return policy.movable().set_sensitivities({}, where);
  Result<std::vector<trial::TaskSensitivity>> measured =
      db::load_sensitivities(options.records.db, session.device(), session.threads());
  if (measured.status().code() == Code::kNotFound)  // the database is not made yet
    return policy.movable().set_sensitivities({}, where);
  HONE_RETURN_IF_ERROR(measured.status());
  return policy.movable().set_sensitivities(*std::move(measured), where);
}

namespace {

using PolicyPtr = std::unique_ptr<search::Policy>;

// Options of a named strategy or model are an error beside one of the caller's own.
Status check_own(const SearchOptions& options, TuneMode mode, const OwnParts& parts) {
  const bool named = options.strategy != search::kDefaultStrategy || !options.policy_state.empty();
  if (parts.strategy != nullptr && named)
    return invalid(
        "there is a strategy of the caller's own, expected no option strategy or policy_state");
  if (parts.cost_model != nullptr && (!options.guide.empty() || options.adapt != "none"))
    return invalid("there is a cost model of the caller's own, expected no option guide or adapt");
  if (mode == TuneMode::kEfficient && (parts.strategy != nullptr || parts.cost_model != nullptr))
    return invalid(
        "--mode efficient: nothing is measured, expected no strategy or cost model of the caller's "
        "own");
  return ok_status();
}

Result<PolicyPtr> make_policy(const SearchOptions& options, TuneMode mode, const OwnParts& parts,
                              FirstFailure& failure) {
  if (parts.strategy != nullptr) return make_own_policy(*parts.strategy, failure);
  return search::make_policy(strategy_of(options, mode));
}

// Returns the caller's own cost model or, if there is none, that of the session.
Result<CostModelPtr> make_guide(const Session& session, const OwnParts& parts,
                                FirstFailure& failure) {
  if (parts.cost_model == nullptr) return session.guide();
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<cost::CostModel> model,
                        cost::make_own_model(*parts.cost_model, session.target().kind(), failure));
  return CostModelPtr(std::move(model));
}

Result<TuneSummary> tune_since(graph::Graph graph, const std::string& output,
                               const TuneOptions& options, OwnParts& parts, double start) {
  HONE_ASSIGN_OR_RETURN(const TuneMode mode, tune_mode(options.search));
  HONE_RETURN_IF_ERROR(check_own(options.search, mode, parts));
  const bool measures = mode != TuneMode::kEfficient;
  if (measures) {
    const double budget = options.search.budget_seconds;
    if (!(budget > 0)) return invalid("the budget is {} seconds, expected more than 0", budget);
    HONE_RETURN_IF_ERROR(check_measurable(options.compile));
  }
  HONE_RETURN_IF_ERROR(check_output(output, options.compile));
  if (is_stream(output)) {  // what is written there cannot be compared, nor written again
    HONE_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create());
    const std::string library = folder.file(std::filesystem::path(output).filename().string());
    HONE_ASSIGN_OR_RETURN(TuneSummary summary,
                          tune_since(std::move(graph), library, options, parts, start));
    HONE_RETURN_IF_ERROR(publish_file(library, output));
    return summary;
  }
  FirstFailure failure;
  HONE_ASSIGN_OR_RETURN(PolicyPtr policy, make_policy(options.search, mode, parts, failure));
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
  if (const std::string& state = options.search.policy_state; !state.empty())
    HONE_RETURN_IF_ERROR(search::load_policy_state(state, session->target(), *policy));
  HONE_ASSIGN_OR_RETURN(const CostModelPtr guide, make_guide(*session, parts, failure));
  HONE_RETURN_IF_ERROR(policy->prepare(*guide));
  HONE_RETURN_IF_ERROR(load_sensitivities(*session, options.compile, *policy));
  if (measures) {
    Result<TuneSummary> summary = Tuning(*session, std::move(graph), output, watched, start,
                                         std::move(policy), *guide, phases)
                                      .run();
    parts.failure = failure.status();
    return summary;
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
  OwnParts none;
  return tune(std::move(graph), output, options, none);
}

Result<TuneSummary> tune(graph::Graph graph, const std::string& output, const TuneOptions& options,
                         OwnParts& parts) {
  return tune_since(std::move(graph), output, options, parts, start_of(options));
}

Result<TuneSummary> tune(const std::string& model, const std::string& output,
                         const TuneOptions& options) {
  OwnParts none;
  return tune(model, output, options, none);
}

Result<TuneSummary> tune(const std::string& model, const std::string& output,
                         const TuneOptions& options, OwnParts& parts) {
  const double start = start_of(options);
  HONE_RETURN_IF_ERROR(check_output(output, options.compile));
  std::set<std::string> files;
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(model, options.compile, &files));
  HONE_RETURN_IF_ERROR(check_files(files, output, options.compile));
  HONE_ASSIGN_OR_RETURN(TuneSummary summary,
                        tune_since(std::move(graph), output, options, parts, start));
  summary.compile.files = std::move(files);
  return summary;
}

Status check_strategy(const std::string& strategy) {
  return search::make_policy(strategy).status();
}

std::vector<std::string> strategy_names() { return search::strategy_names(); }

}  // namespace hone
