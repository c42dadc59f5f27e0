#include "hone/api/tidy_trials.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <tuple>

#include "hone/base/status.h"
#include "hone/db/copy.h"

namespace hone {

Result<TidyResult> tidy_trials(db::Store& store, const TidyOptions& options) {
  constexpr int kSecondsADay = 24 * 3600;
  const int64_t newest =
      static_cast<int64_t>(std::time(nullptr)) - int64_t{options.older_than_days} * kSecondsADay;
  // The fastest verified trials of each task, device, number of threads, version and algorithm
  // stay: not every --accuracy allows every algorithm.
  std::map<std::tuple<uint64_t, std::string, int, std::string, std::string>,
           std::vector<std::pair<double, int64_t>>>
      verified;
  // A trial that says that a schedule must not be used on a device stays, too: one wrong answer is
  // enough, of other failures it takes two.
  constexpr int kFailures = 2;
  std::map<std::tuple<uint64_t, std::string, std::string, std::string>, int> failed;
  // The newest time of a schedule for a part of a task, by which compile chooses kernels of smaller
  // sizes.
  std::map<std::tuple<uint64_t, std::string, int, std::string, std::string, std::string>,
           std::pair<int64_t, int64_t>>
      parts;
  std::set<int64_t> removed;
  int64_t trials = 0;
  HONE_RETURN_IF_ERROR(
      db::for_each_record(store, {.parts = db::Filter::Parts::kAll}, [&](trial::Record&& record) {
        ++trials;
        const bool fails =
            record.outcome != trial::Outcome::kOk && record.outcome != trial::Outcome::kCompile &&
            failed[{record.task, record.device, record.steps, record.part}]++ < kFailures;
        if (record.unix_time <= newest && !fails) removed.insert(record.id);
        if (!record.part.empty()) {
          auto& last = parts[{record.task, record.device, record.threads, record.version,
                              record.steps, record.part}];
          last = std::max(last, {record.unix_time, record.id});
        }
        if (record.verified)
          verified[{record.task, record.device, record.threads, record.version, record.algorithm}]
              .emplace_back(record.centre, record.id);
        return ok_status();
      }));
  for (const auto& [key, last] : parts) removed.erase(last.second);
  for (auto& [key, group] : verified) {
    std::sort(group.begin(), group.end());
    for (size_t i = 0; i < std::min(group.size(), static_cast<size_t>(options.keep)); ++i)
      removed.erase(group[i].second);
  }
  if (!options.dry_run && !removed.empty())
    HONE_RETURN_IF_ERROR(store.remove(std::vector<int64_t>(removed.begin(), removed.end())));
  return TidyResult{trials, static_cast<int64_t>(removed.size())};
}

}  // namespace hone
