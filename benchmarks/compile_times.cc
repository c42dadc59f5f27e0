// What it takes to compile the candidates of a model's kernels: CPU milliseconds of one thread from
// the loop program to the object file, the least of three times, by kernel class and algorithm. Of
// each kernel the schedule that `hone compile` takes without a database of its own, candidates
// drawn at random, and as many that a search would measure: the best predicted of those drawn. Then
// the slowest ones, for `hone explain --schedule`.
//   hone_compile_times MODEL [CANDIDATES] [SLOWEST] [DEVICE]
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "hone/backend/cpu/compiler.h"
#include "hone/base/clock.h"
#include "hone/base/hash.h"
#include "hone/ir/program_hash.h"
#include "hone/schedule/lower.h"
#include "hone/search/prediction.h"
#include "hone/session/schedule_sources.h"
#include "hone/session/session.h"

namespace hone {
namespace {

constexpr int kDrawnForOne = 16;  // points drawn for each that the model is to pick
constexpr int kTimes = 3;         // that each is compiled: others may be busy on the machine

struct Compiled {
  uint64_t task;
  std::string steps, failure;
  double lower = 0;  // seconds
  backend::CompileCost cost;
};
using Row = std::pair<std::string, std::string>;  // kernel class, algorithm and where from

// Nothing if an equal program was seen before.
std::optional<Compiled> compile_if_new(const ModelTasks& model, size_t group,
                                       const schedule::Steps& steps, std::set<ir::Identity>& seen) {
  Compiled out{.task = model.tasks.groups[group].key, .steps = schedule::to_string(steps)};
  const double start = thread_seconds();
  const Result<ir::Program> program =
      schedule::lower(model.dag(group), steps, {.parameters = model.target().passes});
  out.lower = thread_seconds() - start;
  out.failure = program.status().message();
  if (!program.ok()) return out;
  if (!seen.insert(ir::identity(*program)).second) return std::nullopt;
  for (int i = 0; i < kTimes; ++i) {
    const Result<backend::cpu::ObjectCode> code =
        backend::cpu::compile(*program, model.target().cpu());
    out.failure = code.status().message();
    if (!code.ok()) break;
    if (i == 0 || code->cost.seconds() < out.cost.seconds()) out.cost = code->cost;
  }
  return out;
}

struct Chosen {
  const char* from;
  std::vector<schedule::Steps> schedules;
};

// `count` at random, and `count` that look best among many.
std::vector<Chosen> candidates(const ModelTasks& model, size_t group, int count) {
  const Result<space::Space>& space = model.space(group);
  if (!space.ok()) return {};
  const search::SearchTask task = search_task(model, group, *space, 1);
  Rng rng(hash_combine(1, task.key));
  std::vector<space::Point> points;
  for (int i = 0; i < count * kDrawnForOne; ++i) points.push_back(space->sample(rng));
  const std::vector<double> predicted = search::predict_log_seconds(task, points);
  std::vector<size_t> legal;
  for (size_t i = 0; i < points.size(); ++i) {
    if (std::isfinite(predicted[i])) legal.push_back(i);
  }
  Chosen random{"random", {}}, best{"best", {}};
  const auto most = std::min(legal.size(), static_cast<size_t>(count));
  for (size_t i = 0; i < most; ++i) random.schedules.push_back(space->steps(points[legal[i]]));
  std::stable_sort(legal.begin(), legal.end(),
                   [&](size_t a, size_t b) { return predicted[a] < predicted[b]; });
  for (size_t i = 0; i < most; ++i) best.schedules.push_back(space->steps(points[legal[i]]));
  return {random, best};
}

double milliseconds(const Compiled& compiled) { return 1e3 * compiled.cost.seconds(); }

void print_row(const std::string& kernel_class, const std::string& algorithm,
               std::vector<Compiled> all) {
  std::sort(all.begin(), all.end(), [](const Compiled& a, const Compiled& b) {
    return a.cost.seconds() < b.cost.seconds();
  });
  const auto at = [&](double share) {
    return milliseconds(all[static_cast<size_t>(share * static_cast<double>(all.size() - 1))]);
  };
  backend::CompileCost sum;
  double lower = 0;
  int64_t most = 0;
  for (const Compiled& one : all) {
    lower += one.lower;
    sum.emit += one.cost.emit;
    sum.optimize += one.cost.optimize;
    sum.generate += one.cost.generate;
    most = std::max(most, one.cost.instructions);
  }
  const double mean = 1e3 / static_cast<double>(all.size());
  fmt::print(
      "{:<28} {:<22} {:>6} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>8.1f} {:>6.1f} {:>9.1f} "
      "{:>9.1f} {:>7}\n",
      kernel_class.substr(0, 28), algorithm, all.size(), at(0.5), at(0.9), at(0.99), at(1),
      mean * lower, mean * sum.emit, mean * sum.optimize, mean * sum.generate, most);
}

Status report(const std::string& path, int count, size_t slowest, const std::string& device) {
  CompileOptions options;
  options.target.device = device;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::open(options, {.store = SessionOptions::Store::kNone}));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(path, options));
  HONE_ASSIGN_OR_RETURN(ModelTasks model, make_tasks(*session, std::move(graph), options));
  HONE_ASSIGN_OR_RETURN(ScheduleSources sources, load_sources(model, options));
  HONE_ASSIGN_OR_RETURN(std::vector<schedule::Steps> taken,
                        choose_schedules(model, sources, options));
  std::map<Row, std::vector<Compiled>> rows;
  std::vector<Compiled> all;
  std::set<ir::Identity> seen;
  int failed = 0;
  for (size_t g = 0; g < taken.size(); ++g) {
    std::vector<Chosen> groups = candidates(model, g, count);
    groups.push_back({"compile", {taken[g]}});
    for (const Chosen& chosen : groups) {
      for (const schedule::Steps& steps : chosen.schedules) {
        const std::optional<Compiled> one = compile_if_new(model, g, steps, seen);
        if (!one) continue;
        if (!one->failure.empty()) {
          ++failed;
          fmt::print("task {}: {}\n{}\n", hash_hex(one->task), one->failure, one->steps);
          continue;
        }
        const std::string from = fmt::format("{} {}", schedule::algorithm_of(steps), chosen.from);
        rows[{model.summaries[g].kernel_class, from}].push_back(*one);
        rows[{"all", from}].push_back(*one);
        all.push_back(*one);
      }
    }
  }
  fmt::print("{:<28} {:<22} {:>6} {:>7} {:>7} {:>7} {:>7} {:>8} {:>6} {:>9} {:>9} {:>7}\n",
             "kernel class", "algorithm", "number", "ms: 50%", "90%", "99%", "most", "lowering",
             "emit", "optimize", "generate", "instr.");
  for (const auto& [row, compiled] : rows) print_row(row.first, row.second, compiled);
  if (!all.empty()) print_row("all", "all", all);
  fmt::print("{} candidates, {} of which failed\n", std::ssize(all) + failed, failed);
  std::sort(all.begin(), all.end(), [](const Compiled& a, const Compiled& b) {
    return a.cost.seconds() > b.cost.seconds();
  });
  for (size_t i = 0; i < std::min(slowest, all.size()); ++i) {
    fmt::print("\n{:.1f} ms, {} instructions, {} after the passes; task {}\n{}",
               milliseconds(all[i]), all[i].cost.instructions, all[i].cost.optimized,
               hash_hex(all[i].task), all[i].steps);
  }
  return ok_status();
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: hone_compile_times MODEL [CANDIDATES] [SLOWEST] [DEVICE]\n");
    return 2;
  }
  const hone::Status status = hone::report(argv[1], argc > 2 ? std::atoi(argv[2]) : 8,
                                           static_cast<size_t>(argc > 3 ? std::atoi(argv[3]) : 0),
                                           argc > 4 ? argv[4] : "host");
  if (!status.ok()) fmt::print(stderr, "hone: {}\n", status.message());
  return status.ok() ? 0 : 1;
}
