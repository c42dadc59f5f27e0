#include "hone/session/fit_memory.h"

#include <algorithm>
#include <limits>
#include <set>

#include "hone/base/clock.h"
#include "hone/search/prediction.h"

namespace hone {
namespace {

constexpr int kSamples = 400;  // points of a space that are looked at for good ones

struct Size {
  int64_t weights = 0;    // of all calls of the group
  int64_t workspace = 0;  // of one
};

Result<Size> size_of(const ModelTasks& model, size_t group, const schedule::Steps& steps) {
  HONE_ASSIGN_OR_RETURN(const LoweredPtr lowered,
                        model.session->kernels().lower(model.distinct[group], steps));
  const ir::Program& program = *lowered->program;
  const std::vector<bool>& used = lowered->used;
  Size size;
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ir::Param& param = program.params[i];
    const int64_t bytes = param.buffer->bytes();
    const bool weight = param.role == ir::Role::kConstant || param.role == ir::Role::kPacked;
    if (weight && used[i]) size.weights += bytes;
    if (param.role == ir::Role::kWorkspace) size.workspace += bytes;
  }
  std::set<uint64_t> distinct;
  for (const int call : model.tasks.groups[group].calls) {
    distinct.insert(
        graph::constants_hash(model.tasks, model.tasks.calls[static_cast<size_t>(call)]));
  }
  size.weights *= std::ssize(distinct);
  return size;
}

// Another schedule of a group.
struct Move {
  size_t group = 0;
  ChosenSchedule schedule;
  Size size;
  double price = 0;  // seconds of the model for each byte saved
};

// For each algorithm of the task's space the best schedule that is stored, else the best of some
// that are predicted.
Result<std::vector<Move>> moves_of(const ModelTasks& model, size_t group,
                                   const ScheduleSources& sources, const CompileOptions& options) {
  HONE_RETURN_IF_ERROR(model.space(group).status());
  const space::Space& space = *model.space(group);
  std::vector<Move> moves;
  if (space.num_sketches() == 1) return moves;
  std::vector<space::Point> points = space.default_points();
  Rng rng(options.advanced.seed);
  for (int i = 0; i < kSamples; ++i) points.push_back(space.sample(rng));
  const std::vector<double> logs =
      search::predict_log_seconds(search_task(model, group, space, options.advanced.seed), points);
  for (int sketch = 0; sketch < space.num_sketches(); ++sketch) {
    auto best = static_cast<size_t>(sketch);
    for (size_t i = 0; i < points.size(); ++i) {
      if (points[i].sketch == sketch && logs[i] < logs[best]) best = i;
    }
    HONE_ASSIGN_OR_RETURN(std::optional<ChosenSchedule> stored,
                          stored_schedule(model, group, sources, space.algorithm(sketch)));
    if (!stored && options.records.require_tuned) continue;
    Move move{.group = group, .schedule = {space.steps(points[best]), "predicted", ""}};
    if (stored) move.schedule = *std::move(stored);
    HONE_ASSIGN_OR_RETURN(move.schedule.predicted_seconds,
                          predicted_seconds(model, group, move.schedule.steps));
    HONE_ASSIGN_OR_RETURN(move.size, size_of(model, group, move.schedule.steps));
    moves.push_back(std::move(move));
  }
  return moves;
}

std::string mebibytes(int64_t bytes) {
  return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

Result<int64_t> packed_bytes(const ModelTasks& model, std::span<const schedule::Steps> schedules) {
  int64_t bytes = 0;
  for (size_t g = 0; g < schedules.size(); ++g) {
    HONE_ASSIGN_OR_RETURN(const Size size, size_of(model, g, schedules[g]));
    bytes += size.weights;
  }
  return bytes;
}

Result<int64_t> fit_memory(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                           const ScheduleSources& sources, const CompileOptions& options,
                           int64_t allowed) {
  std::vector<Size> sizes;
  for (size_t g = 0; g < schedules.size(); ++g) {
    HONE_ASSIGN_OR_RETURN(const Size size, size_of(model, g, schedules[g]));
    sizes.push_back(size);
  }
  const int64_t arena = graph::plan_memory(model.tasks).arena_bytes;
  const auto total = [&] {
    int64_t weights = 0, workspace = 0;
    for (const Size& size : sizes) {
      weights += size.weights;
      workspace = std::max(workspace, size.workspace);
    }
    return arena + weights + workspace;
  };
  if (total() <= allowed) return total();

  std::vector<Move> moves;
  for (size_t g = 0; g < schedules.size(); ++g) {
    const TaskSummary& summary = model.summaries[g];
    HONE_ASSIGN_OR_RETURN(const double predicted, predicted_seconds(model, g, schedules[g]));
    HONE_ASSIGN_OR_RETURN(std::vector<Move> of_group, moves_of(model, g, sources, options));
    for (Move& move : of_group) {
      const int64_t saved = sizes[g].weights - move.size.weights;
      if (saved <= 0) continue;
      const bool known = move.schedule.seconds > 0 && summary.seconds > 0;
      const double slower = known ? move.schedule.seconds - summary.seconds
                                  : move.schedule.predicted_seconds - predicted;
      move.price = std::max(slower, 0.0) * summary.multiplicity / static_cast<double>(saved);
      moves.push_back(std::move(move));
    }
  }
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Move& a, const Move& b) { return a.price < b.price; });
  for (Move& move : moves) {
    if (total() <= allowed) break;
    if (move.size.weights >= sizes[move.group].weights) continue;
    sizes[move.group] = move.size;
    move.schedule.describe(model.summaries[move.group]);
    schedules[move.group] = std::move(move.schedule.steps);
  }
  return total();
}

Result<Written> write_within(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                             const ScheduleSources& sources, const std::string& output,
                             const CompileOptions& options) {
  if (options.target.max_memory <= 0) return write_model(model, schedules, output, options);
  const double start = real_clock().now_seconds();
  // What a fit does not know, as the code's size, an assembly tells for the next fit. The first
  // one changes nothing.
  ModelMemory memory;
  int64_t allowed = std::numeric_limits<int64_t>::max(), least = allowed;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const int64_t known,
                          fit_memory(model, schedules, sources, options, allowed));
    if (known >= least) break;
    least = known;
    HONE_ASSIGN_OR_RETURN(Assembly assembly, assemble_model(model, schedules, options));
    memory = memory_of(assembly.spec, model.threads());
    if (memory.total() <= options.target.max_memory)
      return link_model(model, std::move(assembly), output, options, start);
    allowed = options.target.max_memory - (memory.total() - known);
  }
  return error(Code::kUnsupported,
               "the model needs {} of memory ({} of weights, {} between kernels, {} of code), more "
               "than the {} that are allowed (TargetOptions::max_memory, --max-memory)",
               mebibytes(memory.total()), mebibytes(memory.weights), mebibytes(memory.working),
               mebibytes(memory.code), mebibytes(options.target.max_memory));
}

}  // namespace hone
