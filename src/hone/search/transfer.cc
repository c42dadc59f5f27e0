#include "hone/search/transfer.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_set>

#include "hone/compute/class_family.h"
#include "hone/compute/dag_text.h"
#include "hone/space/portable_point.h"

namespace hone::search {
namespace {

constexpr int kLocated = 8;  // records without decisions whose nearest point is looked for: slow

// A candidate before anyone asked how fast it is.
struct Trial {
  Transferred transferred;
  space::Candidate candidate;
};

class Collector {
 public:
  Collector(const space::Space& space, const compute::Dag& dag) : space_(space), dag_(dag) {
    for (int sketch = 0; sketch < space.num_sketches(); ++sketch)
      algorithms_.insert(space.algorithm(sketch));
  }

  void add_point(const space::Point& point, const trial::Record& from) {
    schedule::Steps steps = space_.steps(point);
    if (!seen_.insert(schedule::hash(steps)).second) return;
    Result<space::Candidate> candidate = space_.instantiate(point);
    if (!candidate.ok()) return;
    const bool replayed = schedule::to_string(steps) == from.steps;
    trials_.push_back({{point, std::move(steps), 0, &from, replayed}, *std::move(candidate)});
  }
  // False if the steps do not apply.
  bool add_steps(schedule::Steps steps, const trial::Record& from) {
    if (seen_.contains(schedule::hash(steps))) return true;
    if (!algorithms_.contains(schedule::algorithm_of(steps))) return false;  // rounds more
    Result<space::Candidate> candidate = space::make_candidate(dag_, steps);
    if (!candidate.ok()) return false;
    seen_.insert(schedule::hash(steps));
    trials_.push_back({{std::nullopt, std::move(steps), 0, &from, true}, *std::move(candidate)});
    return true;
  }
  [[nodiscard]] std::vector<Trial>& trials() { return trials_; }

 private:
  const space::Space& space_;
  const compute::Dag& dag_;
  std::set<std::string> algorithms_;
  std::unordered_set<uint64_t> seen_;
  std::vector<Trial> trials_;
};

// Many tasks have the same rank correlation with another one, as all sizes of one kind have; these
// are ordered by the distance of shapes.
std::vector<const trial::Record*> choose_sources(const compute::Dag& dag, const TransferPool& pool,
                                                 const TransferOptions& options) {
  struct Ranked {
    bool other_class, other_device;
    double unlike, distance;
    const trial::Record* record;
  };
  const bool by_rank = options.nearest.by == Nearest::By::kSpearman;
  const std::string kernel_class = compute::kernel_class(dag), text = compute::describe(dag);
  std::vector<Ranked> ranked;
  for (const trial::Record* record : pool.family(kernel_class)) {
    const bool other = record->kernel_class != kernel_class;
    if (other && options.same_class) continue;
    const double alike = by_rank ? attribute_correlation(record->task_text, text) : 0;
    if (by_rank && alike < options.nearest.tau) continue;
    ranked.push_back({other, record->device != options.device, -alike,
                      shape_distance(record->task_text, text), record});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.other_class, a.other_device, a.unlike, a.distance) <
           std::tie(b.other_class, b.other_device, b.unlike, b.distance);
  });
  std::vector<const trial::Record*> sources;
  for (const Ranked& r : ranked) {
    if (std::ssize(sources) < options.nearest.sources) sources.push_back(r.record);
  }
  return sources;
}

}  // namespace

Status TransferPool::add_store(db::TrialStore& store) {
  HONE_ASSIGN_OR_RETURN(std::vector<trial::Record> fastest,
                        store.query({.fastest_only = true, .with_task_text = true}));
  std::map<uint64_t, std::string> shapes;
  for (trial::Record& record : fastest) {
    const auto [shape, added] = shapes.try_emplace(record.task);
    if (added) shape->second = shape_text(record.task_text);
    record.task_text = shape->second;
    add(std::move(record));
  }
  return ok_status();
}

void TransferPool::add(trial::Record record) {
  if (record.verified) records_.push_back(std::move(record));
}

void TransferPool::exclude_tasks(const std::set<uint64_t>& tasks) {
  std::erase_if(records_, [&](const trial::Record& record) { return tasks.contains(record.task); });
}

void TransferPool::keep_model(std::string_view model) {
  std::erase_if(records_, [&](const trial::Record& record) { return record.model != model; });
}

std::vector<const trial::Record*> TransferPool::family(std::string_view kernel_class) const {
  const std::string wanted = compute::class_family(kernel_class);
  std::vector<const trial::Record*> found;
  for (const trial::Record& record : records_) {
    if (compute::class_family(record.kernel_class) == wanted) found.push_back(&record);
  }
  return found;
}

std::string shape_text(const std::string& task_text) {
  const Result<compute::Dag> dag = compute::parse_dag(task_text);
  return dag.ok() ? compute::describe(*dag) : task_text;
}

TransferResult transfer(const SearchTask& task, const compute::Dag& dag, const TransferPool& pool,
                        const TransferOptions& options) {
  TransferResult result;
  Collector collector(*task.space, dag);
  int located = 0;
  for (const trial::Record* source : choose_sources(dag, pool, options)) {
    ++result.sources;
    Result<schedule::Steps> steps = schedule::parse_steps(source->steps);
    const std::optional<space::PortablePoint> point = space::known_point(source->decisions);
    if (!options.as_they_are && steps.ok() && (point || located++ < kLocated)) {
      for (const space::Point& similar : space::adapt(point, *steps, *task.space))
        collector.add_point(similar, *source);
    }
    if (!steps.ok() || !collector.add_steps(*std::move(steps), *source)) ++result.invalid;
  }
  std::vector<Trial>& trials = collector.trials();
  std::vector<cost::Query> queries;
  for (const Trial& trial : trials)
    queries.push_back({&trial.candidate, task.target, task.threads, task.key});
  const Result<std::vector<double>> seconds = task.model->predict(queries);
  for (size_t i = 0; i < trials.size(); ++i) {
    Transferred& transferred = trials[i].transferred;
    transferred.predicted = seconds.ok() ? (*seconds)[i] : INFINITY;
    result.candidates.push_back(std::move(transferred));
  }
  std::stable_sort(
      result.candidates.begin(), result.candidates.end(),
      [](const Transferred& a, const Transferred& b) { return a.predicted < b.predicted; });
  return result;
}

}  // namespace hone::search
