// search/trial_log.h - what was made and measured of a task in a run: of each program, its machine
// code; of each machine code, its seconds. No machine code is handed out twice, however many
// schedules lead to it.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hone/search/candidate.h"

namespace hone::search {

class TrialLog {
 public:
  // False if the program was added before.
  bool add_program(uint64_t program_hash) { return programs_.emplace(program_hash, 0).second; }
  // Of the program's machine code, infinity if it failed; nullopt while that is not known.
  [[nodiscard]] std::optional<double> seconds_of_program(uint64_t program_hash) const;

  // Points whose machine code was measured before, and its seconds.
  struct Known {
    std::vector<space::Point> points;
    std::vector<double> seconds;
  };
  // Keeps the candidates whose machine code was never handed out, the first of each, and gives
  // them the next ids; of those that were measured before it tells the seconds.
  [[nodiscard]] Known hand_out(std::vector<Candidate>& candidates);
  [[nodiscard]] uint64_t next_id() { return next_id_++; }
  // A candidate that was handed out came back; infinity if it failed.
  void add_trial(const Candidate& candidate, double seconds);
  // Code that was measured does not run any more.
  void add_failure(uint64_t code);
  // Candidates with machine code that came back.
  [[nodiscard]] int trials() const { return trials_; }

 private:
  std::unordered_map<uint64_t, uint64_t> programs_;  // code by program; 0: not built yet
  std::unordered_map<uint64_t, double> seconds_;     // by code
  std::unordered_set<uint64_t> in_flight_;           // codes handed out and not yet heard of
  int trials_ = 0;
  uint64_t next_id_ = 1;
};

}  // namespace hone::search
