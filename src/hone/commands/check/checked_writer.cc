#include "hone/commands/check/checked_writer.h"

#include <algorithm>
#include <cmath>

#include "hone/base/clock.h"
#include "hone/base/log.h"
#include "hone/commands/check/locate_fault.h"
#include "hone/commands/check/sized_values.h"
#include "hone/commands/verify_tasks.h"
#include "hone/machine/local.h"
#include "hone/model.h"
#include "hone/target/cpu_devices.h"

namespace hone {
namespace {

constexpr int kMostFaults = 24;  // that one command heals before it gives up
// Compiling a kernel of one node takes about this share of the time of one of the model's kernels.
constexpr double kKernelShare = 0.5;
// The check holds weights a second time. Beyond so many bytes it is only made if it is asked for.
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of weights and random inputs

// The default point of the direct algorithm: no record, no prediction.
Result<schedule::Steps> plain_schedule(const ModelTasks& model, size_t group) {
  const Result<space::Space>& space = model.task(group).space(trial::Accuracy::kStrict);
  HONE_RETURN_IF_ERROR(space.status());
  return space->steps(space->default_point());
}

void use_schedule(LibraryParts& parts, size_t group, schedule::Steps steps) {
  TaskSummary& line = parts.model.summaries[group];
  line.source = "default";
  line.from.clear();
  line.seconds = line.predicted_seconds = 0;
  line.steps = schedule::to_string(steps);
  parts.schedules[group] = std::move(steps);
}

bool skips(const CompileOptions& options, const std::string& pass) {
  return std::count(options.advanced.skip_passes.begin(), options.advanced.skip_passes.end(),
                    pass) > 0;
}

}  // namespace

Result<Written> CheckedWriter::write(LibraryParts parts, const std::string& output,
                                     CompileOptions& options, const Remake& remake) {
  if (policy_.when == CheckPolicy::When::kNever) {
    summary_.skipped = "switched off";
    return write_within(parts.model, parts.schedules, parts.sources, output, options);
  }
  const CompileOptions as_given = options;
  const size_t healed = summary_.healed.size();
  passes_are_right_ = left_out_all_ = summary_.checked = false;
  summary_.skipped.clear();
  for (int faults = 0; faults < kMostFaults; ++faults) {
    JobHooks hooks = hooks_of(options);
    hooks.inspect = [&](const FinishedLibrary& library) {
      return inspect(library, parts, options);
    };
    CompileOptions with = options;
    with.advanced.hooks = &hooks;
    wrong_.reset();
    Result<Written> written =
        write_within(parts.model, parts.schedules, parts.sources, output, with);
    if (!wrong_) return written;
    const InPhase checking(parts.model.session->phases(), Phase::kChecking);
    const double start = real_clock().now_seconds();
    if (left_out_all_) {
      HONE_ASSIGN_OR_RETURN(const bool sure, check_->is_sure(wrong_->draw));
      if (sure) return still_wrong();
      summary_.checked = false;
      summary_.skipped = "the model's results depend on the order of its sums";
      summary_.healed.resize(healed);
      options = as_given;
      HONE_RETURN_IF_ERROR(remake(options, parts));
      return write_within(parts.model, parts.schedules, parts.sources, output, options);
    }
    HONE_RETURN_IF_ERROR(heal(parts, options, remake));
    summary_.seconds += real_clock().now_seconds() - start;
  }
  return error(Code::kInternal, "too many faults");
}

// Returns whether this machine can load and run a library for the session's target.
static bool runs_here(const Session& session) {
  const target::Target& target = session.target();
  if (target.kind() == target::Kind::kGpu) return session.machine().runs(target);
  return target::has_features(machine::local().target().cpu(), target.cpu());
}

// Returns the seconds until a library is ready to run: a driver of OpenCL compiles its kernels.
static double loading_seconds(const target::Target& target, double kernels) {
  constexpr double kOpenClKernelSeconds = 1;
  const bool compiles =
      target.kind() == target::Kind::kGpu && target.gpu().api == target::GpuApi::kOpenCl;
  return compiles ? kOpenClKernelSeconds * kernels : 0;
}

Status CheckedWriter::inspect(const FinishedLibrary& library, const LibraryParts& parts,
                              const CompileOptions& options) {
  const InPhase checking(parts.model.session->phases(), Phase::kChecking);
  Clock& clock = real_clock();
  const double start = clock.now_seconds();
  const bool hurry = is_cancelled(interrupted_);
  if (hurry && !(check_ && check_->has_reference())) {
    if (!policy_.ends_early) return check_cancelled(interrupted_);
    summary_.skipped = "interrupted";
    return ok_status();
  }
  if (!runs_here(*parts.model.session)) {
    summary_.skipped = "this machine cannot run the library";
    return ok_status();
  }
  if (!check_) {
    HONE_ASSIGN_OR_RETURN(check_,
                          ModelCheck::create(imported_, {machine::local().target().cpu().cores,
                                                         options.advanced.seed, interrupted_}));
  }
  ModelCheck::Deadlines deadlines;
  if (summary_.healed.empty()) {  // after a fault the check is made, whatever it takes
    const double kernels = static_cast<double>(std::max<size_t>(parts.schedules.size(), 1));
    const double kernel =
        library.assembly_seconds * parts.model.session->pool().threads() / kernels * kKernelShare;
    const int64_t data_bytes = constant_bytes(parts.model.tasks) + check_->input_bytes();
    const double predicted = check_->predicted_seconds(kernel, data_bytes) +
                             loading_seconds(parts.model.target(), kernels);
    double most = policy_.most_seconds;
    if (policy_.when == CheckPolicy::When::kIfCheap) {
      most = kCheapShare * (start - policy_.start);
      deadlines = {start + most, start + most};
    } else if (policy_.more_seconds > 0) {
      deadlines.others = start + policy_.more_seconds - summary_.seconds;
    }
    if (hurry) deadlines.others = start;
    if (most > 0 && data_bytes > kMostBytes) {
      summary_.skipped = "the model has more than 1 GiB of weights and random inputs";
      return ok_status();
    }
    if (most > 0 && predicted > most) {
      summary_.skipped = fmt::format("it would take about {:.{}f} s", std::max(predicted, 0.1),
                                     predicted < 1 ? 1 : 0);
      return ok_status();
    }
  }
  const Status status = check(library, parts, deadlines);
  summary_.seconds += clock.now_seconds() - start;
  return status;
}

Status CheckedWriter::check(const FinishedLibrary& library, const LibraryParts& parts,
                            const ModelCheck::Deadlines& deadlines) {
  Result<Model> loaded = Model::load(library.file, parts.model.threads());
  if (!loaded
           .ok()) {  // a processor may lack what the library needs; else it is not as it should be
    if (loaded.status().code() != Code::kUnsupported) return loaded.status();
    summary_.skipped = loaded.status().message();
    return ok_status();
  }
  const auto run = [&](std::span<const Tensor> inputs) {
    return loaded->run(arrays_of_run(imported_, inputs));
  };
  const Rounding rounding = rounding_of(imported_, parts.schedules);
  const Result<std::optional<WrongOutput>> wrong =
      check_->check(run, rounding, deadlines, summary_);
  if (!wrong.ok()) {
    const Code code = wrong.status().code();
    if (code == Code::kInternal) return wrong.status();
    if (code == Code::kCancelled && !policy_.ends_early) return wrong.status();
    summary_.skipped = code == Code::kCancelled ? "interrupted" : wrong.status().message();
    return ok_status();
  }
  summary_.checked = true;
  summary_.skipped.clear();
  wrong_ = *wrong;
  if (!wrong_) return ok_status();
  return error(Code::kInternal, "the library computes something else than the model: output '{}'",
               wrong_->name);
}

Status CheckedWriter::still_wrong() const {
  return error(
      Code::kInternal,
      "the library computes something else than the model, whatever is left out: output "
      "'{}' {}; nothing was written",
      wrong_->name,
      std::isfinite(wrong_->error)
          ? fmt::format("is wrong by {:.2g} of its largest magnitude, expected {:.2g} at most",
                        wrong_->error, wrong_->allowed)
          : "has NaN or infinity where the model has numbers, or the other way round");
}

Status CheckedWriter::heal(LibraryParts& parts, CompileOptions& options, const Remake& remake) {
  HONE_ASSIGN_OR_RETURN(bool healed, leave_out_pass(parts, options, remake));
  if (!healed) {
    HONE_ASSIGN_OR_RETURN(healed, replace_schedule(parts, options));
  }
  return healed ? ok_status() : leave_out_all(parts, options, remake);
}

Result<bool> CheckedWriter::leave_out_pass(LibraryParts& parts, CompileOptions& options,
                                           const Remake& remake) {
  if (passes_are_right_) return false;
  HONE_ASSIGN_OR_RETURN(const std::optional<WrongPass> found,
                        find_wrong_pass(*check_, *wrong_, options, parts.model.target()));
  passes_are_right_ = !found;
  if (!found) return false;
  options.advanced.skip_passes.push_back(found->pass);
  add_fault(found->pass, found->node, "the pass " + found->pass);
  HONE_RETURN_IF_ERROR(remake(options, parts));
  return true;
}

// The first task whose result is wrong gets the plain schedule; if each is right for itself, they
// must not run together.
Result<bool> CheckedWriter::replace_schedule(LibraryParts& parts, CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Assembly assembly,
                        assemble_model(parts.model, parts.schedules, options));
  const double tolerance = rounding_of(imported_, parts.schedules).tolerance;
  HONE_ASSIGN_OR_RETURN(const VerifyReport report,
                        verify_tasks(imported_, parts.model, assembly, check_->inputs(wrong_->draw),
                                     tolerance, interrupted_));
  for (const Divergence& divergence : report.divergences) {
    if (divergence.group < 0) continue;
    const auto group = static_cast<size_t>(divergence.group);
    HONE_ASSIGN_OR_RETURN(schedule::Steps plain, plain_schedule(parts.model, group));
    if (plain == parts.schedules[group]) break;
    add_fault("", divergence.node, "the schedule of " + divergence.kernel_class);
    use_schedule(parts, group, std::move(plain));
    return true;
  }
  if (!report.divergences.empty() || skips(options, kRunTogether)) return false;
  options.advanced.skip_passes.emplace_back(kRunTogether);
  add_fault(kRunTogether, "", "running kernels together");
  return true;
}

Status CheckedWriter::leave_out_all(LibraryParts& parts, CompileOptions& options,
                                    const Remake& remake) {
  left_out_all_ = true;
  add_fault("all", "", "a pass or a schedule that is not known");
  for (const std::string& pass : graph::optional_pass_names()) {
    if (!skips(options, pass)) options.advanced.skip_passes.push_back(pass);
  }
  if (!skips(options, kRunTogether)) options.advanced.skip_passes.emplace_back(kRunTogether);
  HONE_RETURN_IF_ERROR(remake(options, parts));
  for (size_t g = 0; g < parts.schedules.size(); ++g) {
    HONE_ASSIGN_OR_RETURN(schedule::Steps plain, plain_schedule(parts.model, g));
    use_schedule(parts, g, std::move(plain));
  }
  return ok_status();
}

void CheckedWriter::add_fault(const std::string& pass, const std::string& node,
                              const std::string& what) {
  summary_.healed.push_back({pass, node, what, wrong_->error, wrong_->name});
}

void CheckedWriter::warn() {
  std::string faults;
  for (; warned_ < summary_.healed.size(); ++warned_) {
    const HealedFault& fault = summary_.healed[warned_];
    faults += fmt::format("{}{}{}", faults.empty() ? "" : "; ", fault.what,
                          fault.node.empty() ? "" : fmt::format(" at node '{}'", fault.node));
  }
  if (faults.empty()) return;
  log_warning(
      "a fault of Hone made output '{}' wrong; the library is right, without what was at fault: {}",
      summary_.healed.front().output, faults);
}

}  // namespace hone
