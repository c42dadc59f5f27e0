#include "hone/session/schedule_sources.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "hone/base/clock.h"
#include "hone/db/copy.h"
#include "hone/db/registry.h"
#include "hone/search/prediction.h"
#include "hone/search/transfer_source.h"
#include "hone/session/shared_code.h"
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

Status check_tuned(const ModelTasks& model, std::span<const ChosenSchedule> known) {
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
      "allow others (RecordOptions::require_tuned, --require-tuned)",
      missing, known.size(),
      stale > 0 ? fmt::format(" that still applies ({} had one of another version)", stale) : "",
      first->name, first->kernel_class);
}

// Returns the schedule of another task that is predicted to be fastest. Steps that are no point of
// the task's own space are left to measurements: nothing like them has taught the cost model (a
// tile of ssdlite320's channels, taken as it was for fewer, was predicted to take 49 us and took
// 565).
std::optional<ChosenSchedule> transferred(const ModelTasks& model, size_t group,
                                          const search::SearchTask& task,
                                          const ScheduleSources& sources) {
  const compute::Dag& dag = model.dag(group);
  const search::TransferResult found = search::transfer(
      task, dag, sources.pool, {.device = model.device(), .nearest = sources.nearest});
  for (const search::Transferred& best : found.candidates) {
    if (!best.point) continue;
    if (sources.failed.contains({task.key, schedule::to_string(best.steps)})) continue;
    return ChosenSchedule{.steps = best.steps,
                          .source = "transferred",
                          .from = describe_source(best),
                          .predicted_seconds = best.predicted};
  }
  return std::nullopt;
}

// Lets the session's refiner choose among what unmeasured_schedule() found for these groups.
Status refine(ModelTasks& model, std::span<const size_t> groups, std::vector<ChosenSchedule>& known,
              std::vector<std::vector<ChosenSchedule>>& rivals) {
  const double start = real_clock().now_seconds();
  const Refiner& refiner = *model.session->refiner();
  const target::Target& target = model.target();
  std::vector<Result<size_t>> winners(groups.size(), size_t{0});
  model.session->pool().parallel_for(std::ssize(groups), [&](int64_t i) {
    const size_t g = groups[static_cast<size_t>(i)];
    std::vector<Rival> all = {{&known[g].steps, known[g].predicted_seconds}};
    for (const ChosenSchedule& rival : rivals[g])
      all.push_back({&rival.steps, rival.predicted_seconds});
    if (all.size() > 1)
      winners[static_cast<size_t>(i)] = refined_choice(
          refiner, model.dag(g), target, model.threads(), all, unmeasured_margin(target));
  });
  RefineSummary& summary = model.refined;
  for (size_t i = 0; i < groups.size(); ++i) {
    const size_t g = groups[i];
    const Result<size_t>& winner = winners[i];
    if (!winner.ok())
      return error(winner.status().code(), "{}: {}", model.summaries[g].name,
                   winner.status().message());
    if (rivals[g].empty()) continue;
    ++summary.compared;
    summary.candidates += static_cast<int>(rivals[g].size()) + 1;
    if (*winner == 0) continue;
    ++summary.changed;
    known[g] = std::move(rivals[g][*winner - 1]);
  }
  summary.seconds += real_clock().now_seconds() - start;
  return ok_status();
}

// On a GPU, predictions of operators that memory limits were wrong by as much
// (docs/studies/gpus.md).
constexpr double kGpuMargin = 0.15;

// One query, however many tasks ask. A store that knows better has a record of its own that is
// right.
Status load_failures(const ModelTasks& model, ScheduleSources& sources) {
  if (!sources.store || sources.failures_loaded) return ok_status();
  sources.failures_loaded = true;
  FailedSchedules once;
  const db::Filter filter = {.device = model.device(), .failed_only = true};
  return db::for_each_record(*sources.store, filter, [&](trial::Record&& record) {
    if (record.outcome == trial::Outcome::kCompile) return ok_status();  // it is found out again
    const bool wrong = record.outcome == trial::Outcome::kWrongAnswer;
    std::pair key(record.task, std::move(record.steps));
    if (wrong || !once.insert(key).second) sources.failed.insert(std::move(key));
    return ok_status();
  });
}

// Whether a record is of one of the model's own tasks as they are to run here.
bool is_own(const ModelTasks& model, const trial::Record& record) {
  return record.device == model.device() && record.threads == model.threads() &&
         model.own.contains(record.task);
}

Status load_choices(const ModelTasks& model, ScheduleSources& sources) {
  if (!sources.store) return ok_status();
  HONE_ASSIGN_OR_RETURN(sources.choices, stored_choices(model, *sources.store));
  return ok_status();
}

// What takes a few microseconds by any algorithm is summed as it is written, unless a measurement
// says what rounding more would gain.
constexpr double kFewFlops = 1 << 20;

// Strassen's algorithm computes sums of rows, of which some runs do not have all.
bool sums_rows(const ModelTasks& model, size_t group) {
  if (!may_lack_rows(model, group) || !model.space(group).ok()) return false;
  const space::Space& space = *model.space(group);
  for (int sketch = 0; sketch < space.num_sketches(); ++sketch)
    if (space.algorithm(sketch).starts_with("strassen")) return true;
  return false;
}

}  // namespace

trial::Accuracy unmeasured_accuracy(const ModelTasks& model, size_t group) {
  const bool plain = model.summaries[group].flops < kFewFlops || sums_rows(model, group);
  return plain && model.accuracy() == trial::Accuracy::kDefault ? trial::Accuracy::kStrict
                                                                : model.accuracy();
}

double transfer_trust(const schedule::Steps& transferred, const schedule::Steps& predicted) {
  const auto is_fast = [](const schedule::Steps& steps) {
    return trial::accuracy_of(schedule::to_string(steps)) == trial::Accuracy::kFast;
  };
  return is_fast(predicted) && !is_fast(transferred) ? 1 : kTransferTrust;
}

double unmeasured_margin(const target::Target& target) {
  return target.kind() == target::Kind::kGpu ? kGpuMargin : search::BestPredictedOptions().margin;
}

bool excludes(const CompileOptions& options, const std::string& model) {
  return std::count(options.records.exclude_models.begin(), options.records.exclude_models.end(),
                    model) > 0;
}

Result<std::set<uint64_t>> excluded_tasks(Session& session, const CompileOptions& options) {
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

Result<ScheduleSources> load_sources(const ModelTasks& model, const CompileOptions& options) {
  ScheduleSources sources;
  if (!options.records.use_db) return sources;
  sources.store = model.session->store();
  HONE_RETURN_IF_ERROR(load_choices(model, sources));
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record>* const shipped, model.session->shipped());
  sources.shipped = *shipped;
  std::erase_if(sources.shipped,
                [&](const trial::Record& record) { return model.excluded.contains(record.task); });
  std::stable_sort(
      sources.shipped.begin(), sources.shipped.end(),
      [](const trial::Record& a, const trial::Record& b) { return a.centre < b.centre; });
  if (std::any_of(sources.shipped.begin(), sources.shipped.end(),
                  [&](const trial::Record& record) { return is_own(model, record); }))
    HONE_RETURN_IF_ERROR(load_failures(model, sources));
  return sources;
}

Status reload_sources(const ModelTasks& model, ScheduleSources& sources) {
  HONE_RETURN_IF_ERROR(load_choices(model, sources));
  if (!sources.failures_loaded) return ok_status();
  sources.failures_loaded = false;
  FailedSchedules before = std::exchange(sources.failed, {});
  const Status status = load_failures(model, sources);
  if (!status.ok()) sources.failed = std::move(before);
  return status;
}

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

Status load_other_tasks(const ModelTasks& model, const CompileOptions& options,
                        ScheduleSources& sources) {
  if (options.records.transfer == "off" || sources.others_loaded) return ok_status();
  HONE_ASSIGN_OR_RETURN(sources.nearest, search::parse_nearest(options.records.nearest));
  sources.others_loaded = true;
  search::TransferPool& pool = sources.pool;
  if (sources.store) HONE_RETURN_IF_ERROR(pool.add_store(*sources.store));
  pool.exclude_tasks(model.excluded);
  HONE_RETURN_IF_ERROR(load_failures(model, sources));
  for (const trial::Record& record : sources.shipped) {
    if (!sources.failed.contains({record.task, record.steps})) pool.add(record);
  }
  keep_kind(pool, model.target().kind());
  if (options.records.transfer == "one") HONE_RETURN_IF_ERROR(keep_best_source(pool, model));
  return ok_status();
}

void ChosenSchedule::describe(TaskSummary& summary) const {
  summary.source = source;
  summary.from = from;
  summary.seconds = seconds;
  summary.predicted_seconds = predicted_seconds;
  summary.steps = schedule::to_string(steps);
}

std::optional<ChosenSchedule> applicable_schedule(const compute::Dag& dag,
                                                  const trial::Record& record,
                                                  std::string_view source) {
  std::optional<ChosenSchedule> known;
  Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
  if (!steps.ok() || !schedule::replay(dag, *steps).ok()) return known;
  known = {.steps = *std::move(steps), .source = std::string(source), .from = record.model};
  known->seconds = record.undisturbed_seconds();
  return known;
}

Result<std::optional<ChosenSchedule>> stored_schedule(const ModelTasks& model, size_t group,
                                                      const ScheduleSources& sources,
                                                      const std::string& algorithm, int* stale) {
  const uint64_t key = model.tasks.groups[group].key;
  const db::BestQuery query = best_query(model, key, algorithm);
  const auto first_that_applies = [&](std::span<const trial::Record> records,
                                      std::string_view source) {
    std::optional<ChosenSchedule> known;
    for (const trial::Record& record : records) {
      const auto chosen = sources.choices.find({key, record.steps});
      if (algorithm.empty() && chosen != sources.choices.end())
        known = applicable_schedule(model.dag(group), chosen->second, source);
      if (!known) known = applicable_schedule(model.dag(group), record, source);
      if (known) break;
      if (stale != nullptr) ++*stale;
    }
    return known;
  };
  if (sources.store) {
    HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> own,
                          best_stored(model, *sources.store, key, algorithm));
    if (std::optional<ChosenSchedule> known = first_that_applies(own, "stored")) return known;
  }
  std::vector<trial::Record> shipped;
  for (const trial::Record& record : sources.shipped) {
    if (record.task == key && is_own(model, record) && query.takes(record) &&
        !sources.failed.contains({key, record.steps}))
      shipped.push_back(record);
  }
  return first_that_applies(shipped, "shipped");
}

Result<ChosenSchedule> unmeasured_schedule(const ModelTasks& model, size_t group,
                                           const ScheduleSources& sources,
                                           const CompileOptions& options,
                                           std::vector<ChosenSchedule>* rivals) {
  const Result<space::Space>& made = model.task(group).space(unmeasured_accuracy(model, group));
  HONE_RETURN_IF_ERROR(made.status());
  const space::Space& space = *made;
  const search::SearchTask task = search_task(model, group, space, options.advanced.seed);
  search::BestPredictedOptions how;
  how.margin = unmeasured_margin(model.session->target());
  const auto chosen = [&](const search::Predicted& predicted) {
    const bool is_default = predicted.point == space.default_point();
    return ChosenSchedule{.steps = space.steps(predicted.point),
                          .source = is_default ? "default" : "predicted",
                          .predicted_seconds = predicted.seconds,
                          .untuned = space.size() > 1};
  };
  ChosenSchedule known;
  if (rivals == nullptr) {
    known = chosen(search::best_predicted(task, how));
  } else {
    const auto others = static_cast<size_t>(model.session->refiner()->options.candidates - 1);
    const std::vector<search::Predicted> few = search::best_few_predicted(task, others, how);
    known = chosen(few[0]);
    for (size_t i = 1; i < few.size(); ++i) rivals->push_back(chosen(few[i]));
  }
  if (sources.pool.empty()) return known;
  std::optional<ChosenSchedule> other = transferred(model, group, task, sources);
  if (!other) return known;
  other->untuned = known.untuned;
  const bool same = other->steps == known.steps;
  if (same || other->predicted_seconds <=
                  transfer_trust(other->steps, known.steps) * known.predicted_seconds)
    std::swap(known, *other);
  if (rivals != nullptr && !same) {
    if (std::ssize(*rivals) + 2 > model.session->refiner()->options.candidates) rivals->pop_back();
    rivals->insert(rivals->begin(), *std::move(other));
  }
  return known;
}

namespace {

// Groups of these that get the schedule of another one of them, since they differ only in where
// their results begin, by group. Nothing that is known of a schedule's failure tells them apart.
std::map<size_t, size_t> same_choices(const ModelTasks& model, std::span<const size_t> groups,
                                      const ScheduleSources& sources) {
  if (groups.empty()) return {};
  const auto has_failures = [&](size_t group) {
    const uint64_t key = model.tasks.groups[group].key;
    const auto first = sources.failed.lower_bound({key, ""});
    return first != sources.failed.end() && first->first == key;
  };
  const auto shared = find_shared_code(model.tasks, {}, {});
  std::map<size_t, size_t> leaders, same;  // by the leader among all groups; by group
  for (const size_t group : groups) {
    if (!shared[group] || has_failures(group)) continue;
    const auto [leader, fresh] = leaders.try_emplace(shared[group]->leader, group);
    if (!fresh && unmeasured_accuracy(model, group) == unmeasured_accuracy(model, leader->second))
      same[group] = leader->second;
  }
  return same;
}

}  // namespace

Result<std::vector<schedule::Steps>> choose_schedules(ModelTasks& model, ScheduleSources& sources,
                                                      const CompileOptions& options) {
  const InPhase choosing(model.session->phases(), Phase::kChoosing);
  const size_t count = model.tasks.groups.size();
  std::vector<ChosenSchedule> known(count);
  std::vector<size_t> others;
  for (size_t g = 0; g < count; ++g) {
    HONE_ASSIGN_OR_RETURN(std::optional<ChosenSchedule> stored,
                          stored_schedule(model, g, sources, "", &model.summaries[g].stale));
    if (stored)
      known[g] = *std::move(stored);
    else
      others.push_back(g);
  }
  if (!others.empty()) HONE_RETURN_IF_ERROR(load_other_tasks(model, options, sources));
  const std::map<size_t, size_t> same = same_choices(model, others, sources);
  std::erase_if(others, [&](size_t g) { return same.contains(g); });
  std::vector<Status> statuses(count);
  const bool refines = model.session->refiner() != nullptr;
  std::vector<std::vector<ChosenSchedule>> rivals(count);
  model.session->pool().parallel_for(std::ssize(others), [&](int64_t i) {
    const size_t g = others[static_cast<size_t>(i)];
    Result<ChosenSchedule> found =
        unmeasured_schedule(model, g, sources, options, refines ? &rivals[g] : nullptr);
    statuses[g] = found.status();
    if (found.ok()) known[g] = *std::move(found);
  });
  for (size_t g = 0; g < count; ++g) {
    if (!statuses[g].ok())
      return error(statuses[g].code(), "{}: {}", model.summaries[g].name, statuses[g].message());
  }
  const auto copy_same = [&] {
    for (const auto& [group, as] : same) known[group] = known[as];
  };
  copy_same();
  if (options.records.require_tuned) HONE_RETURN_IF_ERROR(check_tuned(model, known));
  if (refines) HONE_RETURN_IF_ERROR(refine(model, others, known, rivals));
  copy_same();

  std::vector<schedule::Steps> schedules;
  for (size_t g = 0; g < count; ++g) {
    known[g].describe(model.summaries[g]);
    schedules.push_back(std::move(known[g].steps));
  }
  return schedules;
}

}  // namespace hone
