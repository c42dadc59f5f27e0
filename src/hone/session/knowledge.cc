#include "hone/session/knowledge.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "hone/db/copy.h"
#include "hone/db/registry.h"
#include "hone/search/prediction.h"
#include "hone/search/transfer_source.h"
#include "hone/session/shipped_records.h"
#include "hone/target/gpu_devices.h"

namespace hone {
namespace {

std::string describe_source(const search::Transferred& transferred) {
  const trial::Record& from = *transferred.from;
  return fmt::format("{} {}{}{}", from.kernel_class, hash_hex(from.task),
                     from.model.empty() ? "" : " of " + from.model,
                     transferred.replayed ? "" : ", rescaled");
}

// With one source only: the model whose schedules promise most for what costs most untuned.
Status keep_best_source(search::TransferPool& pool, const ModelTasks& model) {
  std::map<std::string, double> seconds;  // by class
  for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
    HONE_RETURN_IF_ERROR(model.space(g).status());
    const space::Space& space = *model.space(g);
    const space::Point point = space.default_point();
    const TaskSummary& summary = model.summaries[g];
    seconds[summary.kernel_class] +=
        summary.multiplicity *
        std::exp(search::predict_log_seconds(search_task(model, g, space, 0), {&point, 1})[0]);
  }
  search::TransferPool others = pool;
  others.exclude_tasks(model.own);
  const std::vector<search::SourceScore> sources = search::rank_sources(others, seconds);
  pool.keep_model(sources.empty() ? "" : sources[0].model);
  return ok_status();
}

// Removes what was measured on another kind of device: schedules of GPUs give loops to threads,
// those of CPUs do not.
void keep_kind(search::TransferPool& pool, target::Kind kind) {
  std::map<std::string, bool> of_kind;  // by device
  const auto is_kept = [&](const trial::Record& record) {
    const auto [device, is_new] = of_kind.try_emplace(record.device);
    if (is_new) {
      const bool is_gpu = target::gpu_of_key(record.device).has_value();
      device->second = is_gpu == (kind == target::Kind::kGpu);
    }
    return device->second;
  };
  if (std::all_of(pool.records().begin(), pool.records().end(), is_kept)) return;
  search::TransferPool kept;
  for (const trial::Record& record : pool.records()) {
    if (is_kept(record)) kept.add(record);
  }
  pool = std::move(kept);
}

Status check_tuned(const ModelTasks& model, std::span<const KnownSchedule> known) {
  int missing = 0, stale = 0;
  const TaskSummary* first = nullptr;
  for (size_t g = 0; g < known.size(); ++g) {
    if (!known[g].untuned) continue;
    if (++missing == 1) first = &model.summaries[g];
    stale += model.summaries[g].stale > 0;
  }
  if (missing == 0) return ok_status();
  return error(
      Code::kNotFound,
      "{} of {} kernels have no record of their own{}, the first is {} ({}): tune the model, or "
      "leave --require-tuned out",
      missing, known.size(),
      stale > 0 ? fmt::format(" that still applies ({} had one of another version)", stale) : "",
      first->name, first->kernel_class);
}

// Takes the schedule of another task if it is predicted to be about as fast as the best predicted.
// Steps that are no point of the task's own space are left to measurements: nothing like them has
// taught the cost model (a tile of ssdlite320's channels, taken as it was for fewer, was predicted
// to take 49 us and took 565).
void take_transferred(const ModelTasks& model, size_t group, const search::SearchTask& task,
                      const Knowledge& knowledge, KnownSchedule& known) {
  const compute::Dag& dag = model.dag(group);
  const search::TransferResult found =
      search::transfer(task, dag, knowledge.pool, {.device = model.device()});
  for (const search::Transferred& best : found.candidates) {
    if (!best.point) continue;
    if (knowledge.failed.contains({task.key, schedule::to_string(best.steps)})) continue;
    if (best.steps != known.steps && best.predicted > kTransferTrust * known.predicted_seconds)
      return;
    known.steps = best.steps;
    known.source = "transferred";
    known.predicted_seconds = best.predicted;
    known.from = describe_source(best);
    return;
  }
}

// One query, however many tasks ask. A store that knows better has a record of its own that is
// right.
Status ask_what_failed(const ModelTasks& model, Knowledge& knowledge) {
  if (!knowledge.store || knowledge.asked_failed) return ok_status();
  knowledge.asked_failed = true;
  FailedSchedules once;
  const db::Filter filter = {.device = model.device(), .failed_only = true};
  return db::for_each_record(*knowledge.store, filter, [&](trial::Record&& record) {
    if (record.outcome == trial::Outcome::kCompile) return ok_status();  // it is found out again
    const bool wrong = record.outcome == trial::Outcome::kWrongAnswer;
    std::pair key(record.task, std::move(record.steps));
    if (wrong || !once.insert(key).second) knowledge.failed.insert(std::move(key));
    return ok_status();
  });
}

// Whether a record is of one of the model's own tasks as they are to run here.
bool is_own(const ModelTasks& model, const trial::Record& record) {
  return record.device == model.device() && record.threads == model.threads() &&
         model.own.contains(record.task);
}

Status learn_choices(const ModelTasks& model, Knowledge& knowledge) {
  if (!knowledge.store) return ok_status();
  HONE_ASSIGN_OR_RETURN(knowledge.choices, stored_choices(model, *knowledge.store));
  return ok_status();
}

// What takes a few microseconds by any algorithm is summed as it is written, unless a measurement
// says what rounding more would gain.
constexpr double kFewFlops = 1 << 20;

trial::Accuracy unmeasured_accuracy(const ModelTasks& model, size_t group) {
  const bool few = model.summaries[group].flops < kFewFlops;
  return few && model.accuracy() == trial::Accuracy::kDefault ? trial::Accuracy::kStrict
                                                              : model.accuracy();
}

}  // namespace

bool excludes(const CompileOptions& options, const std::string& model) {
  return std::count(options.records.exclude_models.begin(), options.records.exclude_models.end(),
                    model) > 0;
}

Result<std::set<uint64_t>> forgotten_tasks(Session& session, const CompileOptions& options) {
  std::set<uint64_t> tasks;
  if (options.records.exclude_models.empty() || !options.records.use_db) return tasks;
  const auto forget = [&](const std::vector<trial::Record>& records) {
    for (const trial::Record& record : records) {
      if (excludes(options, record.model)) tasks.insert(record.task);
    }
  };
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record>* const shipped, session.shipped());
  forget(*shipped);
  for (const std::string& name : options.records.exclude_models) {
    if (session.store() == nullptr) break;
    HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> measured,
                          session.store()->query({.model = name}));
    forget(measured);
  }
  return tasks;
}

Result<Knowledge> learn(const ModelTasks& model, const CompileOptions& options) {
  Knowledge knowledge;
  if (!options.records.use_db) return knowledge;
  knowledge.store = model.session->store();
  HONE_RETURN_IF_ERROR(learn_choices(model, knowledge));
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record>* const shipped, model.session->shipped());
  knowledge.shipped = *shipped;
  std::erase_if(knowledge.shipped,
                [&](const trial::Record& record) { return model.forgotten.contains(record.task); });
  std::stable_sort(
      knowledge.shipped.begin(), knowledge.shipped.end(),
      [](const trial::Record& a, const trial::Record& b) { return a.centre < b.centre; });
  if (std::any_of(knowledge.shipped.begin(), knowledge.shipped.end(),
                  [&](const trial::Record& record) { return is_own(model, record); }))
    HONE_RETURN_IF_ERROR(ask_what_failed(model, knowledge));
  return knowledge;
}

Status learn_again(const ModelTasks& model, Knowledge& knowledge) {
  HONE_RETURN_IF_ERROR(learn_choices(model, knowledge));
  if (!knowledge.asked_failed) return ok_status();
  knowledge.asked_failed = false;
  FailedSchedules before = std::exchange(knowledge.failed, {});
  const Status status = ask_what_failed(model, knowledge);
  if (!status.ok()) knowledge.failed = std::move(before);
  return status;
}

Status learn_from_others(const ModelTasks& model, const CompileOptions& options,
                         Knowledge& knowledge) {
  if (options.records.transfer == "off" || knowledge.asked_others) return ok_status();
  knowledge.asked_others = true;
  search::TransferPool& pool = knowledge.pool;
  if (knowledge.store) HONE_RETURN_IF_ERROR(pool.add_store(*knowledge.store));
  pool.exclude_tasks(model.forgotten);
  HONE_RETURN_IF_ERROR(ask_what_failed(model, knowledge));
  for (const trial::Record& record : knowledge.shipped) {
    if (!knowledge.failed.contains({record.task, record.steps})) pool.add(record);
  }
  keep_kind(pool, model.target().kind());
  if (options.records.transfer == "one") HONE_RETURN_IF_ERROR(keep_best_source(pool, model));
  return ok_status();
}

void KnownSchedule::describe(TaskSummary& summary) const {
  summary.source = source;
  summary.from = from;
  summary.seconds = seconds;
  summary.predicted_seconds = predicted_seconds;
  summary.steps = schedule::to_string(steps);
}

std::optional<KnownSchedule> if_it_applies(const compute::Dag& dag, const trial::Record& record,
                                           std::string_view source) {
  std::optional<KnownSchedule> known;
  Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
  if (!steps.ok() || !schedule::replay(dag, *steps).ok()) return known;
  known = {.steps = *std::move(steps), .source = std::string(source), .from = record.model};
  known->seconds = record.quiet_seconds();
  return known;
}

Result<std::optional<KnownSchedule>> stored_schedule(const ModelTasks& model, size_t group,
                                                     const Knowledge& knowledge,
                                                     const std::string& algorithm, int* stale) {
  const uint64_t key = model.tasks.groups[group].key;
  const db::BestQuery query = best_query(model, key, algorithm);
  const auto first_that_applies = [&](std::span<const trial::Record> records,
                                      std::string_view source) {
    std::optional<KnownSchedule> known;
    for (const trial::Record& record : records) {
      const auto chosen = knowledge.choices.find({key, record.steps});
      if (algorithm.empty() && chosen != knowledge.choices.end())
        known = if_it_applies(model.dag(group), chosen->second, source);
      if (!known) known = if_it_applies(model.dag(group), record, source);
      if (known) break;
      if (stale != nullptr) ++*stale;
    }
    return known;
  };
  if (knowledge.store) {
    HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> own,
                          best_stored(model, *knowledge.store, key, algorithm));
    if (std::optional<KnownSchedule> known = first_that_applies(own, "stored")) return known;
  }
  std::vector<trial::Record> shipped;
  for (const trial::Record& record : knowledge.shipped) {
    if (record.task == key && is_own(model, record) && query.takes(record) &&
        !knowledge.failed.contains({key, record.steps}))
      shipped.push_back(record);
  }
  return first_that_applies(shipped, "shipped");
}

Result<KnownSchedule> unmeasured_schedule(const ModelTasks& model, size_t group,
                                          const Knowledge& knowledge,
                                          const CompileOptions& options) {
  KnownSchedule known;
  const Result<space::Space>& made = model.task(group).space(unmeasured_accuracy(model, group));
  HONE_RETURN_IF_ERROR(made.status());
  const space::Space& space = *made;
  const search::SearchTask task = search_task(model, group, space, options.advanced.seed);
  const search::Predicted predicted = search::best_predicted(task);
  known.steps = space.steps(predicted.point);
  known.source = predicted.point == space.default_point() ? "default" : "predicted";
  known.predicted_seconds = predicted.seconds;
  known.untuned = space.size() > 1;
  if (!knowledge.pool.empty()) take_transferred(model, group, task, knowledge, known);
  return known;
}

Result<std::vector<schedule::Steps>> known_schedules(ModelTasks& model, Knowledge& knowledge,
                                                     const CompileOptions& options) {
  const size_t count = model.tasks.groups.size();
  std::vector<KnownSchedule> known(count);
  std::vector<size_t> others;
  for (size_t g = 0; g < count; ++g) {
    HONE_ASSIGN_OR_RETURN(std::optional<KnownSchedule> stored,
                          stored_schedule(model, g, knowledge, "", &model.summaries[g].stale));
    if (stored)
      known[g] = *std::move(stored);
    else
      others.push_back(g);
  }
  if (!others.empty()) HONE_RETURN_IF_ERROR(learn_from_others(model, options, knowledge));
  std::vector<Status> statuses(count);
  model.session->pool().parallel_for(std::ssize(others), [&](int64_t i) {
    const size_t g = others[static_cast<size_t>(i)];
    Result<KnownSchedule> found = unmeasured_schedule(model, g, knowledge, options);
    statuses[g] = found.status();
    if (found.ok()) known[g] = *std::move(found);
  });
  for (size_t g = 0; g < count; ++g) {
    if (!statuses[g].ok())
      return error(statuses[g].code(), "{}: {}", model.summaries[g].name, statuses[g].message());
  }
  if (options.records.require_tuned) HONE_RETURN_IF_ERROR(check_tuned(model, known));

  std::vector<schedule::Steps> schedules;
  for (size_t g = 0; g < count; ++g) {
    known[g].describe(model.summaries[g]);
    schedules.push_back(std::move(known[g].steps));
  }
  return schedules;
}

}  // namespace hone
