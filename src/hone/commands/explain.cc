#include "hone/explain.h"

#include <algorithm>
#include <charconv>

#include "hone/analysis/cpu_measure.h"
#include "hone/analysis/gpu_measure.h"
#include "hone/backend/registry.h"
#include "hone/base/cancel.h"
#include "hone/base/hash.h"
#include "hone/base/options.h"
#include "hone/ir/printer.h"
#include "hone/schedule/lower.h"
#include "hone/search/prediction.h"
#include "hone/search/task_tuner.h"
#include "hone/session/model_tasks.h"
#include "hone/session/schedule_sources.h"
#include "hone/session/short_code.h"
#include "hone/session/size_tables.h"

namespace hone {
namespace {

using Schedule = ExplainOptions::Schedule;

struct Found {
  ModelTasks model;
  size_t task;  // index of its group
};

Result<Found> find_task(Session& session, const std::string& path, const ExplainOptions& options) {
  const std::string& text = options.task;
  if (path.empty()) {
    const Result<uint64_t> key = parse_key(text);
    if (!key.ok()) return invalid("task: {}, or a model", key.status().message());
    if (session.store() == nullptr)
      return invalid("task {}: there is no database to take it from, expected one or a model",
                     text);
    HONE_ASSIGN_OR_RETURN(ModelTasks model, make_stored_task(session, *key, options.compile));
    return Found{std::move(model), 0};
  }
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(path, options.compile));
  HONE_ASSIGN_OR_RETURN(ModelTasks model, make_tasks(session, std::move(graph), options.compile));
  const std::vector<graph::TaskGroup>& groups = model.tasks.groups;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (hash_hex(groups[g].key) == text) return Found{std::move(model), g};
  }
  const Result<int64_t> number = parse_int(text, 1, static_cast<int64_t>(groups.size()));
  if (number.ok()) return Found{std::move(model), static_cast<size_t>(*number - 1)};
  return error(Code::kNotFound, "found task '{}', expected 1 to {} or a key of the model", text,
               groups.size());
}

Result<ChosenSchedule> choose(const ModelTasks& model, size_t task, const ExplainOptions& options) {
  const compute::Dag& dag = model.dag(task);
  ChosenSchedule chosen;
  if (options.schedule == Schedule::kGiven) {
    std::string lines = options.steps;
    std::replace(lines.begin(), lines.end(), ';', '\n');
    HONE_ASSIGN_OR_RETURN(chosen.steps, schedule::parse_steps(lines));
    HONE_RETURN_IF_ERROR(schedule::replay(dag, chosen.steps).status());
    chosen.source = "given";
    return chosen;
  }
  if (options.schedule == Schedule::kDefault) {
    const Result<space::Space>& space = model.space(task);
    HONE_RETURN_IF_ERROR(space.status());
    const schedule::Steps steps = space->steps(space->default_point());
    HONE_ASSIGN_OR_RETURN(chosen.steps, short_steps(model, task, steps));
    chosen.source = "default";
    return chosen;
  }
  HONE_ASSIGN_OR_RETURN(ScheduleSources sources, load_sources(model, options.compile));
  if (options.schedule == Schedule::kBest) sources.choices.clear();  // the fastest alone
  HONE_ASSIGN_OR_RETURN(std::optional<ChosenSchedule> stored,
                        stored_schedule(model, task, sources));
  if (stored) return *std::move(stored);
  if (options.schedule == Schedule::kBest) {
    return error(Code::kNotFound, "the database has no best schedule of task {} with {} threads",
                 options.task, model.threads());
  }
  HONE_RETURN_IF_ERROR(load_other_tasks(model, options.compile, sources));
  HONE_ASSIGN_OR_RETURN(chosen, unmeasured_schedule(model, task, sources, options.compile));
  HONE_ASSIGN_OR_RETURN(chosen.steps, short_steps(model, task, chosen.steps));
  return chosen;
}

// Finds which schedules of the task run at which sizes if it has this one for the largest and the
// other tasks those that compile() chooses. What compile() would change of a schedule that it
// chose itself is changed: smaller sizes may want weights in another order.
Status explain_sizes(ModelTasks& model, size_t task, const ExplainOptions& options,
                     ChosenSchedule& chosen) {
  if (model.tasks.sizes < 0 || !has_variants(model, options.compile)) return ok_status();
  HONE_ASSIGN_OR_RETURN(ScheduleSources sources, load_sources(model, options.compile));
  HONE_ASSIGN_OR_RETURN(std::vector<schedule::Steps> schedules,
                        choose_schedules(model, sources, options.compile));
  const bool is_own = options.schedule == Schedule::kKnown;
  TaskSummary& line = model.summaries[task];
  if (!is_own) {
    schedules[task] = chosen.steps;
    chosen.describe(line);
    HONE_ASSIGN_OR_RETURN(line.predicted_seconds, predicted_seconds(model, task, chosen.steps));
  }
  const VariantScope scope = {.only = task, .may_replace = is_own};
  HONE_RETURN_IF_ERROR(find_size_tables(model, schedules, options.compile, scope));
  if (!is_own || line.steps == schedule::to_string(chosen.steps)) return ok_status();
  HONE_ASSIGN_OR_RETURN(chosen.steps, schedule::parse_steps(line.steps));
  chosen.source = line.source;
  chosen.from = line.from;
  return ok_status();
}

// The record of exactly these steps that the database gives first where it is asked for the best
// one: verified ones before others, then by their time as measured.
Result<std::optional<MeasuredTime>> recorded(const ModelTasks& model, size_t task,
                                             const std::string& steps) {
  std::optional<MeasuredTime> found;
  db::TrialStore* const store = model.session->store();
  if (store == nullptr) return found;
  db::Filter filter;
  filter.task = model.tasks.groups[task].key;
  filter.device = model.device();
  filter.threads = model.threads();
  filter.outcome = trial::Outcome::kOk;
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> records, store->query(filter));
  const trial::Record* first = nullptr;
  for (const trial::Record& record : records) {
    if (record.steps != steps) continue;
    if (first == nullptr ||
        std::pair(!record.verified, record.centre) < std::pair(!first->verified, first->centre))
      first = &record;
  }
  if (first == nullptr) return found;
  const double scale = first->undisturbed_seconds() / first->centre;
  found = MeasuredTime{.seconds = first->centre * scale,
                       .low = first->low * scale,
                       .high = first->high * scale,
                       .samples = static_cast<int>(first->times.size()),
                       .verified = first->verified};
  return found;
}

Result<MeasuredTime> run_now(const ModelTasks& model, size_t task, const schedule::Steps& steps,
                             const ExplainOptions& options) {
  const search::TaskContext context = task_context(model, options.compile.advanced.seed);
  search::TaskTuner tuner(tune_task(model, task), context);
  HONE_RETURN_IF_ERROR(tuner.open(nullptr));
  HONE_ASSIGN_OR_RETURN(std::vector<search::Candidate> candidates,
                        tuner.candidates_of({&steps, 1}));
  search::Candidate& candidate = candidates[0];
  tuner.build(candidate);
  HONE_RETURN_IF_ERROR(candidate.status);
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<measure::Runner> runner,
      model.session->machine().make_runner(hooks_of(options.compile).worker, model.target()));
  HONE_RETURN_IF_ERROR(runner->submit({candidate.job}));
  HONE_ASSIGN_OR_RETURN(const std::vector<measure::Measurement> answers, runner->collect());
  const measure::Measurement& answer = answers.at(0);
  MeasuredTime time{.seconds = answer.timing.centre,
                    .low = answer.timing.low,
                    .high = answer.timing.high,
                    .samples = static_cast<int>(answer.timing.samples.size()),
                    .now = true,
                    .verified = answer.verified};
  if (answer.outcome != trial::Outcome::kOk)
    time.failure = fmt::format("{}: {}", trial::outcome_name(answer.outcome), answer.message);
  return time;
}

Status trace_passes(const ModelTasks& model, size_t task, const schedule::Steps& steps,
                    Explanation& out) {
  const auto trace = [&](const ir::PassTrace& pass) {
    if (out.passes.empty()) out.raw_program = ir::print(pass.before);
    out.passes.push_back({std::string(pass.pass.name), std::string(pass.pass.reason), pass.seconds,
                          pass.changed ? ir::print(pass.after) : ""});
  };
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const backend::Backend> backend,
                        backend::of(model.target()));
  return schedule::lower(model.dag(task), steps, backend->passes(),
                         {.parameters = model.target().passes, .trace = trace})
      .status();
}

const std::string& stage_name(const space::Candidate& candidate, int stage) {
  return candidate.state.stages[static_cast<size_t>(stage)].name();
}

// Names the limit that takes a launch longest.
std::string_view limit_of(const analysis::GpuRootMeasure& root, const analysis::GpuTimes& times) {
  double instructions = 0, matrix = 0;
  for (const analysis::GpuStageMeasure& stage : root.stages)
    instructions += stage.compute_cycles, matrix += stage.matrix > 0 ? stage.compute_cycles : 0;
  const std::pair<double, std::string_view> limits[] = {
      {times.arithmetic, 2 * matrix > instructions ? "matrix products" : "arithmetic"},
      {times.units, "load units"},
      {times.l2, "L2"},
      {times.latency, "waiting"},
      {times.memory, "memory"},
      {analysis::kLaunchSeconds, "launch"}};
  return std::max_element(std::begin(limits), std::end(limits),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

void analyse(const space::Candidate& candidate, const target::Gpu& gpu, Explanation& out) {
  for (const analysis::GpuRootMeasure& root :
       analysis::measure_gpu(candidate.state, candidate.bounds, gpu).roots) {
    const analysis::GpuTimes times = root.times(gpu);
    out.launches.push_back({.name = stage_name(candidate, root.stage),
                            .blocks = root.blocks,
                            .threads = root.threads,
                            .registers = root.registers,
                            .shared_bytes = root.shared_bytes,
                            .resident_blocks = root.resident_blocks,
                            .memory_bytes = root.memory_bytes,
                            .arithmetic_seconds = times.arithmetic,
                            .units_seconds = times.units,
                            .l2_seconds = times.l2,
                            .latency_seconds = times.latency,
                            .memory_seconds = times.memory,
                            .seconds = root.seconds(gpu),
                            .limit = limit_of(root, times)});
  }
}

void analyse(const space::Candidate& candidate, const target::Cpu& cpu, int threads,
             Explanation& out) {
  const analysis::CpuMeasure measure =
      analysis::measure_cpu(candidate.state, candidate.bounds, cpu, threads);
  const double cycle = 1e-9 / cpu.ghz;
  out.level_seconds.assign(cpu.caches.size(), 0);
  for (const analysis::RootMeasure& root : measure.roots) {
    out.compute_seconds += root.compute_cycles * cycle;
    for (size_t level = 0; level < root.level_cycles.size(); ++level)
      out.level_seconds[level] += root.level_cycles[level] * cycle;
    for (const analysis::StageMeasure& stage : root.stages) {
      out.stages.push_back({stage_name(candidate, stage.stage), stage.body_cycles, stage.registers,
                            stage.compute_cycles, stage.bytes});
    }
  }
}

Status analyse(const ModelTasks& model, size_t task, const schedule::Steps& steps,
               Explanation& out) {
  HONE_ASSIGN_OR_RETURN(const space::Candidate candidate,
                        space::make_candidate(model.dag(task), steps));
  HONE_ASSIGN_OR_RETURN(out.task.predicted_seconds, predicted_seconds(model, task, steps));
  if (model.target().kind() == target::Kind::kGpu) {
    analyse(candidate, model.target().gpu(), out);
  } else {
    analyse(candidate, model.target().cpu(), model.threads(), out);
  }
  return ok_status();
}

}  // namespace

Result<Explanation> explain(const std::string& path, const ExplainOptions& options) {
  using Measure = ExplainOptions::Measure;
  if (options.measure == Measure::kAlways) HONE_RETURN_IF_ERROR(check_measurable(options.compile));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options.compile));
  HONE_ASSIGN_OR_RETURN(Found found, find_task(*session, path, options));
  auto& [model, task] = found;
  HONE_RETURN_IF_ERROR(check_cancelled(options.compile.interrupted));
  HONE_ASSIGN_OR_RETURN(ChosenSchedule chosen, choose(model, task, options));
  HONE_RETURN_IF_ERROR(explain_sizes(model, task, options, chosen));

  Explanation out;
  out.task = model.summaries[task];
  out.task.source = chosen.source;
  out.task.from = chosen.from;
  out.task.steps = schedule::to_string(chosen.steps);
  out.key = model.tasks.groups[task].key;
  out.threads = model.threads();
  HONE_ASSIGN_OR_RETURN(const KernelPtr kernel,
                        session->kernels().build(model.distinct[task], chosen.steps));
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const backend::Backend> backend,
                        backend::of(model.target()));
  out.program = ir::print(kernel->program());
  if (options.passes) HONE_RETURN_IF_ERROR(trace_passes(model, task, chosen.steps, out));
  out.text_bytes = kernel->executable.code_bytes;
  out.scratch_bytes = kernel->executable.scratch_bytes;
  HONE_ASSIGN_OR_RETURN(backend::Inspection code,
                        backend->inspect(kernel->program(), kernel->executable, model.target()));
  out.registers_needed = code.registers_needed;
  out.loops = std::move(code.loops);
  out.counts = std::move(code.counts);
  out.code = kernel->executable.figures;
  HONE_RETURN_IF_ERROR(analyse(model, task, chosen.steps, out));
  if (options.measure != Measure::kAlways) {
    HONE_ASSIGN_OR_RETURN(out.measured, recorded(model, task, out.task.steps));
  }
  if (!out.measured && options.measure != Measure::kNever &&
      session->machine().runs(model.target())) {
    HONE_RETURN_IF_ERROR(check_cancelled(options.compile.interrupted));
    HONE_ASSIGN_OR_RETURN(out.measured, run_now(model, task, chosen.steps, options));
  }
  if (out.measured) out.task.seconds = out.measured->seconds;
  return out;
}

}  // namespace hone
