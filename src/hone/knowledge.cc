#include "hone/knowledge.h"

#include <algorithm>
#include <cmath>

#include "hone/base/file.h"
#include "hone/db/registry.h"
#include "hone/search/prediction.h"
#include "hone/search/transfer_source.h"
#include "hone/shipped_records.h"

namespace hone {
namespace {

std::string describe_source(const search::Transferred& transferred) {
  const db::Record& from = *transferred.from;
  return fmt::format("{} {}{}{}", from.kernel_class, hash_hex(from.task),
                     from.model.empty() ? "" : " of " + from.model,
                     transferred.replayed ? "" : ", rescaled");
}

// What one group gets if it has no record of its own.
struct Choice {
  search::Predicted predicted;
  bool is_default = false;
  schedule::Steps steps;
  std::optional<space::Space> space;
};

Status predict(const ModelTasks& model, size_t g, uint64_t seed, Choice& choice) {
  HONE_ASSIGN_OR_RETURN(choice.space,
                        space::Space::create(model.dag(g), model.target, model.accuracy));
  choice.predicted = search::best_predicted(search_task(model, g, *choice.space, seed));
  choice.is_default = choice.predicted.point == choice.space->default_point();
  choice.steps = choice.space->steps(choice.predicted.point);
  return ok_status();
}

// With one source only: the model whose schedules promise most for what costs most untuned.
Status keep_best_source(search::TransferPool& pool, const ModelTasks& model) {
  std::map<std::string, double> seconds;  // by class
  for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
    HONE_ASSIGN_OR_RETURN(const space::Space space,
                          space::Space::create(model.dag(g), model.target, model.accuracy));
    const space::Point point = space.default_point();
    const TaskSummary& summary = model.summaries[g];
    seconds[summary.kernel_class] +=
        summary.multiplicity *
        std::exp(search::predict_log_seconds(search_task(model, g, space, 0), {&point, 1})[0]);
  }
  search::TransferPool others = pool;
  for (const graph::TaskGroup& group : model.tasks.groups) others.exclude_task(group.key);
  const std::vector<search::SourceScore> sources = search::rank_sources(others, seconds);
  pool.keep_model(sources.empty() ? "" : sources[0].model);
  return ok_status();
}

Status check_tuned(const ModelTasks& model, const std::vector<Choice>& choices) {
  int missing = 0;
  const TaskSummary* first = nullptr;
  for (size_t g = 0; g < choices.size(); ++g) {
    if (!choices[g].space || choices[g].space->size() <= 1) continue;  // nothing to tune
    if (++missing == 1) first = &model.summaries[g];
  }
  if (missing == 0) return ok_status();
  return error(
      Code::kNotFound,
      "{} of {} kernels have no record of their own, the first is {} ({}): tune the model, or "
      "leave --require-tuned out",
      missing, choices.size(), first->name, first->kernel_class);
}

}  // namespace

Result<std::unique_ptr<db::Store>> open_for_reading(const CompileOptions& options) {
  if (!options.use_db) return std::unique_ptr<db::Store>();
  std::string where = options.db;
  if (where.empty()) {  // having none is no error then
    const Result<std::string> path = db::default_path();
    if (!path.ok() || !file_exists(*path)) return std::unique_ptr<db::Store>();
    where = *path;
  }
  return db::open_store(where, {.read_only = true, .create = false});
}

Result<Knowledge> learn(const ModelTasks& model, db::Store* store, const CompileOptions& options) {
  Knowledge knowledge;
  if (!options.use_db) return knowledge;
  knowledge.store = store;
  search::TransferPool shipped;
  if (options.use_shipped) {
    HONE_ASSIGN_OR_RETURN(std::vector<db::Record> records,
                          shipped_records(model.target, options.shipped.empty() ? shipped_folder()
                                                                                : options.shipped));
    for (db::Record& record : records) shipped.add(std::move(record));
  }
  search::TransferPool& pool = knowledge.pool;
  if (store && options.transfer != "off") HONE_RETURN_IF_ERROR(pool.add_store(*store));
  for (search::TransferPool* from : {&shipped, &pool}) {
    for (const std::string& name : options.exclude_models) from->exclude_model(name);
    if (!excludes(options, model.name)) continue;
    // Its tasks may stand there under another model's name.
    for (const graph::TaskGroup& group : model.tasks.groups) from->exclude_task(group.key);
    for (const Alternative& other : model.alternatives) from->exclude_task(other.key);
  }
  knowledge.shipped = shipped.records();
  if (options.transfer == "off") return knowledge;
  for (const db::Record& record : knowledge.shipped) pool.add(record);
  if (options.transfer == "one") HONE_RETURN_IF_ERROR(keep_best_source(pool, model));
  return knowledge;
}

Result<std::optional<db::Record>> exact_record(const ModelTasks& model, size_t group,
                                               const Knowledge& knowledge,
                                               const CompileOptions& options) {
  const uint64_t key = model.tasks.groups[group].key;
  const bool strict = model.accuracy == space::Accuracy::kStrict;
  std::vector<db::Record> found;
  if (knowledge.store) {
    HONE_ASSIGN_OR_RETURN(found, best_stored(model, options, *knowledge.store, key));
  }
  for (const db::Record& record : knowledge.shipped) {
    if (record.task == key && record.device == model.device && record.threads == model.threads &&
        (!strict || record.algorithm == "direct"))
      found.push_back(record);
  }
  for (db::Record& record : found) {
    const Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
    if (steps.ok() && schedule::replay(model.dag(group), *steps).ok()) return std::optional(record);
  }
  return std::optional<db::Record>();  // or of a version whose schedules do not apply any more
}

Result<std::vector<schedule::Steps>> known_schedules(ModelTasks& model, const Knowledge& knowledge,
                                                     const CompileOptions& options,
                                                     ThreadPool& threads) {
  const size_t count = model.tasks.groups.size();
  std::vector<schedule::Steps> schedules(count);
  std::vector<Choice> choices(count);
  for (size_t g = 0; g < count; ++g) {
    HONE_ASSIGN_OR_RETURN(const std::optional<db::Record> record,
                          exact_record(model, g, knowledge, options));
    model.summaries[g].source.clear();
    if (!record) continue;
    HONE_ASSIGN_OR_RETURN(schedules[g], schedule::parse_steps(record->steps));
    model.summaries[g].source = "stored";
    model.summaries[g].seconds = record->quiet_seconds();
    model.summaries[g].from = record->model;
  }
  std::vector<Status> statuses(count);
  const auto for_unknown = [&](const auto& visit) {
    threads.parallel_for(static_cast<int64_t>(count), [&](int64_t i) {
      const auto g = static_cast<size_t>(i);
      if (model.summaries[g].source != "stored") visit(g);
    });
  };
  for_unknown([&](size_t g) { statuses[g] = predict(model, g, options.seed, choices[g]); });
  for (size_t g = 0; g < count; ++g) {
    if (!statuses[g].ok())
      return error(statuses[g].code(), "{}: {}", model.summaries[g].name, statuses[g].message());
  }
  if (options.require_tuned) HONE_RETURN_IF_ERROR(check_tuned(model, choices));

  for_unknown([&](size_t g) {
    TaskSummary& summary = model.summaries[g];
    const Choice& choice = choices[g];
    schedules[g] = choice.steps;
    summary.source = choice.is_default ? "default" : "predicted";
    summary.predicted_seconds = choice.predicted.seconds;
    if (knowledge.pool.empty()) return;
    const search::TransferResult found =
        search::transfer(search_task(model, g, *choice.space, options.seed), model.dag(g),
                         knowledge.pool, {.device = model.device});
    if (found.candidates.empty()) return;
    const search::Transferred& best = found.candidates[0];
    if (best.steps != choice.steps && best.predicted > kTransferTrust * choice.predicted.seconds)
      return;
    schedules[g] = best.steps;
    summary.source = "transferred";
    summary.predicted_seconds = best.predicted;
    summary.from = describe_source(best);
  });
  for (size_t g = 0; g < count; ++g) model.summaries[g].steps = schedule::to_string(schedules[g]);
  return schedules;
}

}  // namespace hone
