#include "hone/commands/own/own_policy.h"

#include <cmath>
#include <mutex>

#include "hone/commands/own/point_conversion.h"
#include "hone/commands/own/task_state.h"
#include "hone/search/proposals.h"

namespace hone {

OwnStrategy::~OwnStrategy() = default;

namespace {

constexpr int kAsked = 4;  // questions in a row to which there may be no new answer

// The state that all searchers of a run share.
struct OwnRun {
  OwnStrategy& own;
  FirstFailure& failure;
  std::shared_ptr<NamedModels> models = std::make_shared<NamedModels>(nullptr);
  std::mutex mutex = {};  // held while `own` works
};

ModelTask make_task(const search::SearchTask& task, const std::shared_ptr<LiveSearch>& live,
                    const OwnRun& run) {
  const space::Space& space = *task.space;
  // Every space has a legal point, whose candidate knows the task.
  const Result<space::Candidate> any = space.instantiate(space.default_point());
  HONE_ASSERT(any.ok(), "the default point of a space is legal");
  TaskInfo info = describe_task(*any->dag, space, *task.target);
  info.key = task.key;
  info.threads = task.threads, info.seed = task.seed;
  return ModelTask(std::make_shared<ModelTask::State>(
      ModelTask::State{.info = std::move(info),
                       .space = space,
                       .sketches = sketches_of(space),
                       .dag = any->dag,
                       .target = std::make_shared<const target::Target>(*task.target),
                       .models = run.models,
                       .live = live}));
}

class OwnSearcher : public search::Searcher {
 public:
  OwnSearcher(const search::SearchTask& task, OwnRun& run)
      : task_(task), run_(run), given_(make_task(task, live_, run)), proposals_(*task.space) {}

  [[nodiscard]] std::string_view name() const override { return "own"; }
  [[nodiscard]] std::vector<space::Point> propose(int n) override;
  void observe(std::span<const space::Point> points, std::span<const double> seconds) override;

 private:
  // Calls the strategy; false, also from then on, if that fails.
  bool call(const auto& work) {
    if (run_.failure.failed()) return false;
    const std::lock_guard one_at_a_time(run_.mutex);
    const LiveSearch::Window window(*live_, task_);
    const Status status = work();
    if (!status.ok()) run_.failure.add(status);
    return status.ok();
  }
  [[nodiscard]] Status ask(int n, std::vector<space::Point>& points, bool& spent);

  search::SearchTask task_;
  OwnRun& run_;
  std::shared_ptr<LiveSearch> live_ = std::make_shared<LiveSearch>();
  ModelTask given_;
  search::Proposals proposals_;
};

// Adds those of the proposed points that are legal and new.
Status OwnSearcher::ask(int n, std::vector<space::Point>& points, bool& spent) {
  HONE_ASSIGN_OR_RETURN(const PointRows rows, run_.own.propose(given_, n));
  if (std::cmp_greater(rows.size(), n))
    return invalid("the strategy proposed {} points, expected at most {}", rows.size(), n);
  spent = rows.values.empty();
  if (spent) return ok_status();
  HONE_ASSIGN_OR_RETURN(std::vector<space::Point> proposed, from_rows(*task_.space, rows));
  std::vector<space::Point> illegal;
  for (space::Point& point : proposed) {
    if (!task_.space->legal(point)) {
      illegal.push_back(std::move(point));
    } else if (proposals_.take(point)) {
      points.push_back(std::move(point));
    }
  }
  if (illegal.empty()) return ok_status();
  return run_.own.observe(given_, to_rows(*task_.space, illegal),
                          std::vector<double>(illegal.size(), INFINITY));
}

std::vector<space::Point> OwnSearcher::propose(int n) {
  std::vector<space::Point> points;
  bool spent = false;
  for (int asked = 0; asked < kAsked && points.empty() && !spent; ++asked) {
    if (!call([&] { return ask(n, points, spent); })) return {};
  }
  return points;
}

void OwnSearcher::observe(std::span<const space::Point> points, std::span<const double> seconds) {
  for (const space::Point& point : points) proposals_.take(point);
  if (points.empty()) return;
  call([&] { return run_.own.observe(given_, to_rows(*task_.space, points), seconds); });
}

class OwnPolicy : public search::Policy {
 public:
  OwnPolicy(OwnStrategy& own, FirstFailure& failure)
      : Policy("own"), run_{.own = own, .failure = failure} {}

 private:
  [[nodiscard]] std::unique_ptr<search::Searcher> make(const search::SearchTask& task,
                                                       const space::Subspace* /*part*/) override {
    return std::make_unique<OwnSearcher>(task, run_);
  }

  OwnRun run_;
};

}  // namespace

std::unique_ptr<search::Policy> make_own_policy(OwnStrategy& own, FirstFailure& failure) {
  return std::make_unique<OwnPolicy>(own, failure);
}

}  // namespace hone
