#include "hone/commands/own/own_policy.h"

#include <algorithm>
#include <cmath>
#include <deque>
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
  OwnSearcher(const OwnSearcher&) = delete;
  OwnSearcher& operator=(const OwnSearcher&) = delete;
  ~OwnSearcher() override { tell(); }

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
  // Asks for at most n points, which waiting_ gets; `spent` if there are none.
  [[nodiscard]] Status ask(int n, bool& spent);
  // Hands out at most n of waiting_, those that are legal and new.
  [[nodiscard]] std::vector<space::Point> take_waiting(int n);
  // Tells the strategy what was measured since it was told last.
  void tell();

  search::SearchTask task_;
  OwnRun& run_;
  std::shared_ptr<LiveSearch> live_ = std::make_shared<LiveSearch>();
  ModelTask given_;
  search::Proposals proposals_;
  std::deque<space::Point> waiting_;  // proposed, but not handed out
  // Points that were measured or are illegal, which the strategy was not told yet, and their times.
  std::vector<space::Point> measured_;
  std::vector<double> seconds_;
};

Status OwnSearcher::ask(int n, bool& spent) {
  HONE_ASSIGN_OR_RETURN(const PointRows rows, run_.own.propose(given_, n));
  if (std::cmp_greater(rows.size(), n))
    return invalid("the strategy proposed {} points, expected at most {}", rows.size(), n);
  spent = rows.values.empty();
  if (spent) return ok_status();
  HONE_ASSIGN_OR_RETURN(const std::vector<space::Point> proposed, from_rows(*task_.space, rows));
  waiting_.insert(waiting_.end(), proposed.begin(), proposed.end());
  return ok_status();
}

std::vector<space::Point> OwnSearcher::take_waiting(int n) {
  std::vector<space::Point> points;
  for (; !waiting_.empty() && std::ssize(points) < n; waiting_.pop_front()) {
    space::Point& point = waiting_.front();
    if (!task_.space->legal(point)) {
      measured_.push_back(std::move(point));
      seconds_.push_back(INFINITY);
    } else if (proposals_.take(point)) {
      points.push_back(std::move(point));
    }
  }
  if (run_.own.batch_size() == 0) tell();
  return points;
}

void OwnSearcher::tell() {
  if (measured_.empty()) return;
  call([&] { return run_.own.observe(given_, to_rows(*task_.space, measured_), seconds_); });
  measured_.clear();
  seconds_.clear();
}

std::vector<space::Point> OwnSearcher::propose(int n) {
  std::vector<space::Point> points = take_waiting(n);
  bool spent = false;
  for (int asked = 0; asked < kAsked && points.empty() && !spent; ++asked) {
    tell();
    if (!call([&] { return ask(std::max(n, run_.own.batch_size()), spent); })) break;
    points = take_waiting(n);
  }
  if (run_.failure.failed()) return {};
  return points;
}

void OwnSearcher::observe(std::span<const space::Point> points, std::span<const double> seconds) {
  for (const space::Point& point : points) proposals_.take(point);
  measured_.insert(measured_.end(), points.begin(), points.end());
  seconds_.insert(seconds_.end(), seconds.begin(), seconds.end());
  if (run_.own.batch_size() == 0) tell();
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
