// search/champion.h - the best schedule of a task and those behind it. The incumbent is a schedule
// that ran and, where results are checked, computes the right one; another takes its place only by
// winning duels against it, or if it twice did not run.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "hone/search/finalists.h"
#include "hone/search/incumbent.h"
#include "hone/search/task_context.h"
#include "hone/search/trusted_schedules.h"

namespace hone::search {

// The result of a candidate's measurement, on the task's scale (search/incumbent.h).
struct Trial {
  double seconds = INFINITY;
  bool usable = false;    // it ran and computes the right result
  bool promoted = false;  // it became the incumbent
  measure::Measurement measurement;
};

class Champion {
 public:
  explicit Champion(const TaskContext& context)
      : checks_(context.tolerance > 0), finalists_(context.threads, context.weights) {}

  [[nodiscard]] const Incumbent& incumbent() const { return incumbent_; }
  // Returns the finalists, of which the first one is the incumbent.
  [[nodiscard]] const Finalists& finalists() const { return finalists_; }

  // An incumbent that ran before and failed twice now, so that the next finalist took its place.
  struct Deposed {
    Candidate candidate;
    measure::Measurement first, second;
  };
  // Times the incumbent again if that is due. Without another finalist it stays whatever happens.
  [[nodiscard]] Result<std::optional<Deposed>> refresh(measure::Runner& runner, const Clock& clock);

  // Judges the measurements and returns one trial per candidate, in order. The first incumbent is
  // the best of the trusted schedules that ran, or else any candidate that did. A candidate that
  // seems faster than the incumbent is measured again, alternating with it.
  [[nodiscard]] Result<std::vector<Trial>> judge(std::span<const Candidate> candidates,
                                                 std::vector<measure::Measurement> measurements,
                                                 const TrustedSchedules& trusted,
                                                 measure::Runner& runner, double now);

  struct Final {
    Candidate candidate;
    Trial trial;
  };
  // Holds longer duels at the end, of the incumbent with the finalists that are hardly slower.
  // Returns the finalists that won or turned out to be wrong.
  [[nodiscard]] Result<std::vector<Final>> compare_finalists(measure::Runner& runner);

 private:
  void install(std::span<const Candidate> candidates, std::span<Trial> trials,
               const TrustedSchedules& trusted, double now);
  [[nodiscard]] Status challenge(std::span<const Candidate> candidates, std::span<Trial> trials,
                                 measure::Runner& runner);
  [[nodiscard]] Status hold_duel(const Candidate& candidate, Trial& trial, measure::Runner& runner,
                                 const trial::DuelOptions& options);

  bool checks_;  // results are compared with a reference
  Incumbent incumbent_;
  Finalists finalists_;
};

}  // namespace hone::search
