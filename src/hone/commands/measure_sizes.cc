#include "hone/commands/measure_sizes.h"

#include <algorithm>
#include <cmath>

#include "hone/base/cancel.h"
#include "hone/base/clock.h"
#include "hone/base/round_up.h"
#include "hone/commands/check/sized_values.h"
#include "hone/machine/local.h"
#include "hone/search/reference.h"
#include "hone/session/size_trials.h"
#include "hone/session/variant_kernels.h"

namespace hone {
namespace {

// The most seconds of one measurement. There are some dozens of each kernel, of which the longest
// matter least.
constexpr double kMostSeconds = 0.06;
constexpr double kLeastShare = 0.002;  // of the model's time that a kernel takes, to be measured
// Seconds of a measurement: as for a candidate that nothing is known of, less near the deadline.
constexpr double kTimeout = 5, kLeastTimeout = 1;

// A kernel of the model with its calls.
struct Group {
  size_t index = 0;    // in LimitedTasks::tasks
  double seconds = 0;  // of all its calls at the largest size
  SizeTrials trials;
};

class KernelSizes {
 public:
  KernelSizes(const ModelTasks& model, const LimitedModel& limited, const Group& group,
              const MeasureSizesOptions& options)
      : model_(model),
        session_(*model.session),
        limits_(limited.split.limits[group.index]),
        trials_(group.trials),
        task_(model.distinct[limited.split.group_before[group.index]]),
        options_(options) {}

  Result<std::vector<trial::Record>> run() {
    HONE_RETURN_IF_ERROR(build());
    std::vector<trial::Record> records;
    if (kernels_.size() < 2) return records;
    std::vector<Tensor> sizes;
    for (const std::vector<int64_t>& one : trials_.sizes) sizes.push_back(sizes_tensor(one));
    const int threads = machine::host_cores(model_.target());
    HONE_ASSIGN_OR_RETURN(
        operands_, search::make_operands(task_->dag(), options_.context->seed, threads, sizes));
    std::vector<measure::Job> jobs;
    for (size_t s = 0; s < trials_.sizes.size(); ++s)
      for (size_t k = 0; k < kernels_.size(); ++k) jobs.push_back(job(k, s));
    HONE_RETURN_IF_ERROR(options_.runner->submit(std::move(jobs)));
    HONE_ASSIGN_OR_RETURN(const std::vector<measure::Measurement> answers,
                          options_.runner->collect());
    for (const measure::Measurement& answer : answers) records.push_back(record(answer));
    // A run that computes next to nothing may be too short to be timed.
    std::erase_if(records, [](const trial::Record& made) { return !trial::check(made).ok(); });
    return records;
  }

 private:
  // Those that cannot stand in for the first one of their layout are left out.
  Status build() {
    std::vector<const schedule::Steps*> all, first;
    for (const std::vector<schedule::Steps>& layout : trials_.layouts) {
      for (const schedule::Steps& steps : layout) {
        all.push_back(&steps);
        first.push_back(layout.data());
      }
    }
    std::vector<Result<KernelPtr>> built(all.size(),
                                         error(Code::kCancelled, "nothing was compiled"));
    const InPhase compiling(session_.phases(), Phase::kCompiling);
    session_.pool().parallel_for(std::ssize(all), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      built[at] = limited_kernel(session_, task_, *all[at], limits_);
    });
    HONE_RETURN_IF_ERROR(built[0].status());
    const Kernel* leader = nullptr;
    for (size_t i = 0; i < built.size(); ++i) {
      if (all[i] == first[i]) leader = built[i].ok() ? built[i]->get() : nullptr;
      if (!built[i].ok() || leader == nullptr ||
          !can_stand_in(**built[i], *leader, *first[i], task_->dag(), limits_))
        continue;
      kernels_.push_back(*built[i]);
      steps_.push_back(*all[i]);
    }
    return ok_status();
  }

  [[nodiscard]] bool is_largest(size_t size) const { return size + 1 == trials_.sizes.size(); }

  [[nodiscard]] measure::Job job(size_t kernel, size_t size) const {
    const Kernel& code = *kernels_[kernel];
    const search::TaskContext& context = *options_.context;
    measure::Job job;
    job.id = size * kernels_.size() + kernel;
    job.executable = code.executable;
    for (size_t p = 0; p < code.tiles.size(); ++p) {
      const ir::TileLimit& limit = code.tiles[p];
      int64_t& tiles = job.executable.entries[p].num_tiles;
      if (limit.form < 0) continue;
      const int64_t value = trials_.sizes[size][static_cast<size_t>(limit.form)];
      tiles = std::min(tiles, ceil_div(value, limit.divisor) * limit.multiplier);
    }
    for (const ir::Param& param : code.program().params) {
      measure::Argument argument{param.role, param.buffer->bytes(), -1};
      const auto place = operands_.places.find(param.buffer.get());
      if (place != operands_.places.end())
        argument.operand = place->second;
      else if (param.role == ir::Role::kInput)
        argument.operand = operands_.more[size];
      job.arguments.push_back(argument);
    }
    job.operands = operands_.memory;
    job.threads = context.threads;
    job.timing = context.timing;
    job.timing.max_seconds = kMostSeconds;
    job.weights = context.weights;
    job.own_cache_bytes = context.own_cache_bytes;
    if (is_largest(size)) job.tolerance = search::tolerance_of(task_->dag(), context.tolerance);
    const double left = std::max(options_.deadline - real_clock().now_seconds(), kLeastTimeout);
    job.timeout_seconds =
        std::min(kTimeout, left) + search::load_seconds(operands_.constant_bytes, model_.target());
    job.label = task_->kernel_class();
    return job;
  }

  [[nodiscard]] trial::Record record(const measure::Measurement& answer) const {
    const search::TaskContext& context = *options_.context;
    const size_t size = answer.id / kernels_.size(), kernel = answer.id % kernels_.size();
    const search::TrialSource source = {&task_->dag(),   nullptr,         task_->key(),
                                        context.device,  context.version, context.source,
                                        context.threads, context.seed,    {}};
    search::Candidate candidate;
    candidate.steps = steps_[kernel];
    trial::Record made = search::make_record(source, candidate, answer, answer.timing.centre, 1);
    made.part = part_text(task_->dag(), limits_, trials_.sizes[size]);
    made.verified = false;
    return made;
  }

  const ModelTasks& model_;
  Session& session_;
  const KernelLimits& limits_;
  const SizeTrials& trials_;
  const TaskPtr task_;
  const MeasureSizesOptions& options_;
  std::vector<KernelPtr> kernels_;
  std::vector<schedule::Steps> steps_;  // of each kernel
  search::TaskOperands operands_;
};

// Returns what is to be measured of a group of the limited model, with `next` among it.
SizeTrials trials_of(const ModelTasks& model, const LimitedModel& limited, size_t group,
                     const VariantContext& context, std::span<const schedule::Steps> next) {
  const LimitedTasks& split = limited.split;
  const int call = split.tasks.groups[group].calls[0];
  return choose_size_trials(split.tasks.calls[static_cast<size_t>(call)],
                            model.task(split.group_before[group]), limited.steps[group],
                            split.limits[group], context, next);
}

// The kernels that vary, those that take most time first, with what is to be measured of them.
std::vector<Group> groups_to_measure(const ModelTasks& model, const LimitedModel& limited,
                                     const TunedByKey& tuned, const CompileOptions& compile,
                                     double deadline) {
  const LimitedTasks& split = limited.split;
  double whole = 0;
  std::vector<Group> groups(split.tasks.groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    groups[g].index = g;
    groups[g].seconds = model.summaries[split.group_before[g]].known_seconds() *
                        static_cast<double>(split.tasks.groups[g].calls.size());
    whole += groups[g].seconds;
  }
  std::erase_if(groups, [&](const Group& group) {
    return group.seconds < kLeastShare * whole || !split.limits[group.index].any();
  });
  model.session->pool().parallel_for(std::ssize(groups), [&](int64_t i) {
    Group& group = groups[static_cast<size_t>(i)];
    if (is_cancelled(compile.interrupted) || real_clock().now_seconds() >= deadline) return;
    const size_t before = split.group_before[group.index];
    std::vector<schedule::Steps> next;
    if (const auto found = tuned.find(model.tasks.groups[before].key); found != tuned.end()) {
      next.push_back(found->second->steps);
      for (const search::MeasuredSchedule& other : found->second->runners_up)
        next.push_back(other.steps);
    }
    group.trials = trials_of(model, limited, group.index,
                             variant_context(model, limited, group.index, compile), next);
  });
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.seconds > b.seconds; });
  return groups;
}

// Returns whether a schedule has a time for each of these sizes.
bool is_measured(const ScheduleTimes& times, const schedule::Steps& steps, const compute::Dag& dag,
                 const KernelLimits& limits, const std::vector<std::vector<int64_t>>& sizes) {
  const auto known = times.find(schedule::to_string(steps));
  return known != times.end() &&
         std::all_of(sizes.begin(), sizes.end(), [&](const std::vector<int64_t>& one) {
           const auto found = known->second.find(part_text(dag, limits, one));
           return found != known->second.end() && std::isfinite(found->second);
         });
}

bool is_worth_measuring(const SizeTrials& trials) {
  return trials.schedules() >= 2 && trials.sizes.size() >= 2;
}

}  // namespace

Status measure_sizes(const ModelTasks& model, std::span<const schedule::Steps> schedules,
                     const TunedByKey& tuned, const CompileOptions& compile,
                     const MeasureSizesOptions& options, SizesSummary& summary) {
  const double start = real_clock().now_seconds();
  HONE_ASSIGN_OR_RETURN(const LimitedModel limited, limit_model(model, schedules));
  HONE_RETURN_IF_ERROR(load_size_times(model));
  for (const Group& group : groups_to_measure(model, limited, tuned, compile, options.deadline)) {
    if (is_cancelled(compile.interrupted)) break;
    if (real_clock().now_seconds() >= options.deadline) {
      ++summary.left_out;
      continue;
    }
    if (!is_worth_measuring(group.trials)) continue;
    const InPhase measuring(model.session->phases(), Phase::kMeasuring);
    HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> records,
                          KernelSizes(model, limited, group, options).run());
    for (const trial::Record& record : records) model.session->size_times().add(record);
    if (options.keep) options.keep(records);
    summary.kernels += records.empty() ? 0 : 1;
    summary.trials += static_cast<int>(records.size());
  }
  summary.seconds = real_clock().now_seconds() - start;
  return ok_status();
}

Status measure_task_sizes(const ModelTasks& model, LimitedModel& limited, const TaskAlone& task,
                          const CompileOptions& compile, const MeasureSizesOptions& options) {
  const LimitedTasks& split = limited.split;
  for (size_t g = 0; g < split.tasks.groups.size(); ++g) {
    if (split.group_before[g] != task.group || !split.limits[g].any()) continue;
    if (is_cancelled(compile.interrupted) || real_clock().now_seconds() >= options.deadline) break;
    limited.steps[g] = task.own;
    VariantContext context = variant_context(model, limited, g, compile);
    context.times = task.times;
    const SizeTrials trials = trials_of(model, limited, g, context, task.next);
    if (!is_worth_measuring(trials) ||
        (task.times &&
         is_measured(*task.times, task.own, model.dag(task.group), split.limits[g], trials.sizes)))
      continue;
    HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> records,
                          KernelSizes(model, limited, Group{g, 0, trials}, options).run());
    if (options.keep) options.keep(records);
  }
  return ok_status();
}

}  // namespace hone
