#include "hone/session/write_model.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "hone/analysis/body_seconds.h"
#include "hone/analysis/cpu_measure.h"
#include "hone/backend/library_code.h"
#include "hone/base/cancel.h"
#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/base/file_roles.h"
#include "hone/base/output_file.h"
#include "hone/base/temporary_name.h"
#include "hone/compile.h"
#include "hone/graph/size_options.h"
#include "hone/session/assemble_limited.h"
#include "hone/session/short_code.h"

namespace hone {
namespace {

// Of intermediate tensors, so that kernels run together: little beside the weights, and enough for
// most of them.
constexpr double kArenaGrowth = 1.125;

// The time of a task's bodies on so many threads, which share their points; no cost model counts
// it.
double seconds_of_bodies(const compute::Dag& dag, const target::Target& target, int threads) {
  if (target.kind() != target::Kind::kCpu) return 0;
  const double alone = analysis::body_seconds(dag, target.cpu());
  if (alone == 0) return 0;
  int64_t points = 1;
  for (const compute::Axis& axis : dag.stages.back().axes) points *= axis.extent;
  const int64_t rounds = (points + threads - 1) / threads;
  const double fork_join = std::min<int64_t>(points, threads) > 1 ? analysis::kForkJoinSeconds : 0;
  return alone * static_cast<double>(rounds) / static_cast<double>(points) + fork_join;
}

// By predicted times, also where others are known: the same schedules give the same library.
Result<TogetherOptions> together_options(const ModelTasks& model,
                                         std::span<const schedule::Steps> schedules,
                                         const CompileOptions& options) {
  TogetherOptions together{.threads = model.threads()};
  const auto& skipped = options.advanced.skip_passes;
  if (std::count(skipped.begin(), skipped.end(), kRunTogether) > 0 || model.threads() == 1)
    return together;
  // As it was measured here, else the cost model's.
  together.fork_join = {{model.threads(), analysis::kForkJoinSeconds}};
  const std::optional<trial::Roofline>& roofline = model.session->roofline();
  if (roofline && !roofline->fork_join.empty()) together.fork_join = roofline->fork_join;
  if (options.target.max_memory == 0)
    together.arena = {kArenaGrowth, own_cache_bytes(model.target()) / 2};
  for (size_t g = 0; g < schedules.size(); ++g) {
    HONE_ASSIGN_OR_RETURN(const double seconds, predicted_seconds(model, g, schedules[g]));
    together.seconds.push_back(seconds +
                               seconds_of_bodies(model.dag(g), model.target(), model.threads()));
  }
  return together;
}

// Writes the library and returns its size in bytes. A static library cannot be loaded, so a shared
// library of the same parts is inspected in its place.
Result<int64_t> link_library(const artifact::ArtifactSpec& spec, const std::string& output,
                             const CompileOptions& options, double assembly_seconds) {
  const auto& hook = hooks_of(options).inspect;
  const auto inspect = [&](const std::string& file) {
    return hook ? hook({file, assembly_seconds}) : ok_status();
  };
  const bool is_static = is_static_library(output, options);
  int64_t bytes = 0;  // told before it goes to a pipe, which does not know
  artifact::ArtifactOptions how;
  how.sync = options.library.sync;
  how.before_publishing = [&](const std::string& file) {
    std::error_code ignored;
    bytes = static_cast<int64_t>(std::filesystem::file_size(file, ignored));
    HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
    return is_static ? ok_status() : inspect(file);
  };
  if (!is_static) {
    HONE_RETURN_IF_ERROR(artifact::write_shared_library(spec, output, how));
    return bytes;
  }
  if (hook) {
    HONE_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create());
    const std::string shared = folder.file("model.so");
    HONE_RETURN_IF_ERROR(artifact::write_shared_library(spec, shared, {.sync = false}));
    HONE_RETURN_IF_ERROR(inspect(shared));
  }
  HONE_RETURN_IF_ERROR(artifact::write_static_library(spec, output, how));
  return bytes;
}

void add_library_code(const ModelTasks& model, artifact::ArtifactSpec& spec,
                      const CompileOptions& options) {
  const InPhase compiling(model.session->phases(), Phase::kCompiling);
  model.session->pool().parallel_for(std::ssize(spec.executables), [&](int64_t i) {
    if (!is_cancelled(options.interrupted))
      backend::add_library_code(spec.executables[static_cast<size_t>(i)], model.target());
  });
}

}  // namespace

bool is_static_library(const std::string& path, const CompileOptions& options) {
  return options.library.static_library || std::filesystem::path(path).extension() == ".a";
}

std::string header_path(const std::string& output) {
  return std::filesystem::path(output).replace_extension(".h").string();
}

Status check_output(const std::string& path, const CompileOptions& options) {
  namespace fs = std::filesystem;
  HONE_RETURN_IF_ERROR(artifact::check_prefix(options.library.prefix));
  std::error_code ignored;
  clear_stale_files(temporary_folder());
  if (path.empty()) return invalid("the output has no name, expected a file");
  if (fs::is_directory(path, ignored))
    return invalid("output {} is a folder, expected a file", path);
  if (is_stream(path)) {
    if (options.library.header)
      return invalid("output {} is no file, so that no header can lie beside it", path);
    if (::access(path.c_str(), W_OK) == 0) return ok_status();
    return error(Code::kIo, "output {}: {}", path, errno_text(errno));
  }
  const fs::path target = link_target(path);
  fs::path folder = target.parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, ignored))
    return error(Code::kNotFound, "output {}: there is no folder {}", path, folder.string());
  if (fs::exists(target, ignored) && ::access(target.c_str(), W_OK) != 0)
    return error(Code::kIo, "output {}: {}", path, errno_text(errno));
  // Only trying tells: access() promises root too much, as in /proc or on a full disk.
  const Status probe = TempDir::create("", folder.string()).status();
  if (!probe.ok()) return error(Code::kIo, "output {}: {}", path, probe.message());
  return ok_status();
}

Status check_files(const std::set<std::string>& read, const std::string& output,
                   const CompileOptions& options) {
  FileRoles files;
  for (const std::string& file : read) files.read("the model", file);
  files.written("the output", output);
  if (options.library.header) files.written("the header", header_path(output));
  return files.check();
}

Result<Assembly> assemble_model(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                const CompileOptions& options) {
  const auto once = [&](HostKernels host) -> Result<Assembly> {
    HONE_RETURN_IF_ERROR(keep_rows_apart(model, schedules, options));
    HONE_ASSIGN_OR_RETURN(const TogetherOptions together,
                          together_options(model, schedules, options));
    if (has_sizes(model)) return assemble_limited(model, schedules, options, together);
    return assemble(*model.session, model.tasks, schedules, options.interrupted, together, host);
  };
  Result<Assembly> assembly = once(HostKernels::kNone);
  if (assembly.status().code() != Code::kUnsupported) return assembly;
  const Result<bool> changed = shorten_code(model, schedules, options);
  if (changed.ok()) return *changed ? once(HostKernels::kNone) : std::move(assembly);
  if (changed.status().code() != Code::kUnsupported || model.target().kind() == target::Kind::kCpu)
    return changed.status();
  // No schedule of some task has code for the device.
  assembly = once(HostKernels::kWhereNeeded);
  if (!assembly.ok()) return assembly;
  for (const size_t group : assembly->on_host) {
    TaskSummary& line = model.summaries[group];
    line.source = "host";
    line.steps.clear();
    line.seconds = line.predicted_seconds = 0;
  }
  return assembly;
}

Result<Written> write_model(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                            const std::string& output, const CompileOptions& options) {
  const double start = real_clock().now_seconds();
  HONE_ASSIGN_OR_RETURN(Assembly assembly, assemble_model(model, schedules, options));
  return link_model(model, std::move(assembly), output, options, start);
}

Result<Written> link_model(const ModelTasks& model, Assembly assembly, const std::string& output,
                           const CompileOptions& options, double start) {
  for (size_t i = 0; i < assembly.calls.size(); ++i) {
    const graph::TaskCall& call = model.tasks.calls[static_cast<size_t>(assembly.calls[i])];
    artifact::ArtifactStep& step = assembly.spec.steps[i];
    if (step.bytes > 0)
      step.least_flops = model.summaries[static_cast<size_t>(call.group)].least_flops;
  }
  const double assembled = real_clock().now_seconds();
  const InPhase packing(model.session->phases(), Phase::kPacking);
  if (options.library.sync && model.target().kind() == target::Kind::kGpu)
    add_library_code(model, assembly.spec, options);
  assembly.spec.name = model.name;
  assembly.spec.prefix = options.library.prefix;
  const Result<int64_t> linked = link_library(assembly.spec, output, options, assembled - start);
  if (!linked.ok()) {  // the terminal interrupts the linker too
    HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
    return linked.status();
  }
  if (options.library.header)
    HONE_RETURN_IF_ERROR(artifact::write_header(assembly.spec, header_path(output)));
  Written written;
  written.assembly = assembled - start;
  written.memory_bytes = memory_of(assembly.spec, model.threads()).total();
  written.bytes = *linked;
  written.seconds = real_clock().now_seconds() - start;
  written.arena_bytes = assembly.spec.arena_bytes;
  written.calls = static_cast<int>(assembly.plan.time_steps.size());
  written.turns = assembly.turns;
  written.small = assembly.small;
  return written;
}

namespace {

// Says which sizes a run may have.
void add_ranges(const graph::TaskList& tasks, CompileSummary& summary) {
  const graph::Varying& varying = tasks.varying;
  graph::InputForms inputs;
  for (size_t i = 0; i < varying.inputs.size(); ++i) {
    if (varying.inputs[i].empty()) continue;
    std::vector<graph::SizeForm>& forms = inputs[tasks.inputs[i].name];
    for (const graph::DimParts& dim : varying.inputs[i]) {  // an input's dimensions have one part
      const graph::SizePart& part = dim.front();
      forms.push_back(part.form == graph::kNoForm ? graph::SizeForm{.offset = part.most}
                                                  : varying.forms[static_cast<size_t>(part.form)]);
    }
    summary.ranges.push_back({tasks.inputs[i].name, graph::range_text(forms, varying.symbols)});
  }
  std::set<std::string> options;
  for (const graph::SizeSymbol& symbol : varying.symbols) {
    const std::string option = graph::range_option(symbol, varying.symbols, inputs);
    if (options.insert(option).second)
      summary.range_options += (summary.range_options.empty() ? "" : " ") + option;
  }
}

}  // namespace

CompileSummary summary_of(ModelTasks& model, const Written& written, double start) {
  CompileSummary summary = {std::move(model.summaries),
                            real_clock().now_seconds() - start,
                            written.bytes,
                            written.arena_bytes,
                            written.memory_bytes,
                            written.calls,
                            written.turns,
                            written.small,
                            model.refined,
                            {},
                            {},
                            {},
                            {}};
  add_ranges(model.tasks, summary);
  return summary;
}

}  // namespace hone
