// search/trial_log.h - the programs and measurements of a task in a run: the machine code of each
// program, and the seconds of each machine code. No machine code is handed out twice, however many
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
  // Adds a program. Returns false if it was added before.
  bool add_program(uint64_t program_hash) { return programs_.emplace(program_hash, 0).second; }
  // Returns the seconds of the program's machine code, infinity if it failed; nullopt while they
  // are not known.
  [[nodiscard]] std::optional<double> seconds_of_program(uint64_t program_hash) const;

  // The points whose machine code was measured before, with the seconds of that code.
  struct Known {
    std::vector<space::Point> points;
    std::vector<double> seconds;
  };
  // Keeps the candidates whose machine code was never handed out, the first of each, and gives them
  // the next ids; returns the seconds of those that were measured before.
  [[nodiscard]] Known hand_out(std::vector<Candidate>& candidates);
  [[nodiscard]] uint64_t next_id() { return next_id_++; }
  // Adds the seconds of a candidate that was handed out; infinity if it failed.
  void add_trial(const Candidate& candidate, double seconds);
  // Notes that code which was measured does not run any more.
  void add_failure(uint64_t code);
  // Returns the number of candidates with machine code that came back.
  [[nodiscard]] int trials() const { return trials_; }

 private:
  std::unordered_map<uint64_t, uint64_t> programs_;  // code by program; 0: not built yet
  std::unordered_map<uint64_t, double> seconds_;     // by code
  std::unordered_set<uint64_t> in_flight_;           // codes handed out and not yet heard of
  int trials_ = 0;
  uint64_t next_id_ = 1;
};

}  // namespace hone::search
