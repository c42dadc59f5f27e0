#include "hone/search/stored_trials.h"

#include <algorithm>
#include <cmath>

#include "hone/space/portable_point.h"

namespace hone::search {
namespace {

constexpr int kStoredBest = 2;  // schedules of earlier runs that are measured again

Status read_best(db::TrialStore& store, uint64_t task, const TaskContext& context,
                 StoredTrials& trials) {
  db::BestQuery query{
      .task = task, .device = context.device, .threads = context.threads, .limit = kStoredBest};
  query.accuracy = context.accuracy;
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> best, store.best(query));
  for (const trial::Record& record : best) {
    Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
    if (!steps.ok()) continue;
    // Times of another version are on a scale of their own.
    const bool same = record.version == context.version;
    trials.best.push_back({*std::move(steps), same ? record.centre : 0});
  }
  return ok_status();
}

}  // namespace

Result<StoredTrials> read_stored_trials(db::TrialStore& store, uint64_t task,
                                        const TaskContext& context, const space::Space& space) {
  StoredTrials trials;
  HONE_RETURN_IF_ERROR(read_best(store, task, context, trials));
  db::Filter filter;
  filter.task = task;
  filter.device = context.device;
  filter.threads = context.threads;
  filter.version = context.version;
  filter.limit = context.most_known;
  filter.newest_first = true;
  HONE_ASSIGN_OR_RETURN(std::vector<trial::Record> records, store.query(filter));
  std::reverse(records.begin(), records.end());
  for (const trial::Record& record : records) {
    const Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
    if (!steps.ok()) continue;
    const std::optional<space::Point> point =
        space::exact_point(space::known_point(record.decisions), *steps, space);
    if (!point) continue;
    trials.points.push_back(*point);
    trials.seconds.push_back(record.outcome == trial::Outcome::kOk ? record.centre : INFINITY);
  }
  trials.records = records.size();
  return trials;
}

}  // namespace hone::search
