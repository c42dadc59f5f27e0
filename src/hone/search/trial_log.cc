#include "hone/search/trial_log.h"

#include <algorithm>
#include <cmath>

namespace hone::search {

std::optional<double> TrialLog::seconds_of_program(uint64_t program_hash) const {
  const auto program = programs_.find(program_hash);
  if (program == programs_.end()) return std::nullopt;
  const auto known = seconds_.find(program->second);
  if (known == seconds_.end()) return std::nullopt;
  return known->second;
}

TrialLog::Known TrialLog::hand_out(std::vector<Candidate>& candidates) {
  Known known;
  std::unordered_set<uint64_t> in_batch;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (!candidate.runs()) return false;
    programs_[candidate.program_hash] = candidate.code;
    if (in_flight_.contains(candidate.code)) return true;  // its time is not known yet
    const auto measured = seconds_.find(candidate.code);
    if (measured == seconds_.end()) return !in_batch.insert(candidate.code).second;
    if (candidate.point) {
      known.points.push_back(*candidate.point);
      known.seconds.push_back(measured->second);
    }
    return true;
  });
  in_flight_.merge(in_batch);
  for (Candidate& candidate : candidates) candidate.job.id = next_id();
  return known;
}

void TrialLog::add_trial(const Candidate& candidate, double seconds) {
  in_flight_.erase(candidate.code);
  if (!candidate.runs()) return;
  seconds_[candidate.code] = seconds;
  ++trials_;
}

void TrialLog::add_failure(uint64_t code) {
  if (code != 0) seconds_[code] = INFINITY;
}

}  // namespace hone::search
