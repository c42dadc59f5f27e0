#include "hone/db/record.h"

#include <cmath>

#include "hone/schedule/step.h"

namespace hone::db {

// No name in a schedule has a parenthesis, so each of these begins a step.
space::Accuracy accuracy_of(std::string_view steps) {
  if (steps.find("narrow(") != std::string_view::npos) return space::Accuracy::kFast;
  for (const std::string_view rounding : schedule::kRoundingAlgorithms) {
    if (steps.find(std::string(rounding) + "(") != std::string_view::npos)
      return space::Accuracy::kDefault;
  }
  return space::Accuracy::kStrict;
}

Status check(const Record& r) {
  if (r.device.empty()) return invalid("a record needs a device key");
  if (const space::Accuracy needed = accuracy_of(r.steps); r.accuracy != needed) {
    return invalid("a record has the accuracy {}, but its steps need {}",
                   space::accuracy_name(r.accuracy), space::accuracy_name(needed));
  }
  if (r.threads < 1) return invalid("a record has {} threads, expected at least 1", r.threads);
  const bool ok = r.outcome == measure::Outcome::kOk;
  if (ok && r.times.empty()) return invalid("a successful record needs times");
  if (ok && !(r.centre > 0 && std::isfinite(r.centre))) {
    return invalid("a successful record has the centre {}, expected a positive time", r.centre);
  }
  if (!std::isfinite(r.low) || !std::isfinite(r.high) || !std::isfinite(r.host_load) ||
      !std::isfinite(r.centre) || !std::isfinite(r.others) || !std::isfinite(r.steal)) {
    return invalid("a record has a number that is not finite");
  }
  for (const double t : r.times) {
    if (!(t > 0 && std::isfinite(t)))
      return invalid("a record has the time {}, expected a positive one", t);
  }
  for (const double t : r.duel) {
    if (!(t > 0 && std::isfinite(t)))
      return invalid("a record's duel has the time {}, expected a positive one", t);
  }
  if (r.duel.size() % 2 != 0)
    return invalid("a record's duel has {} times, expected pairs", r.duel.size());
  if (!(r.drift > 0 && std::isfinite(r.drift)))
    return invalid("a record has the drift {}, expected a positive number", r.drift);
  if (r.crowned && !ok)
    return invalid("a crowned record ended as '{}', expected ok", measure::outcome_name(r.outcome));
  if (r.verified && !ok)
    return invalid("a verified record ended as '{}', expected ok",
                   measure::outcome_name(r.outcome));
  if (!r.bounds) return ok_status();
  const auto [memory, core] = r.bounds->scores;
  if (r.bounds->source.empty()) return invalid("a record's bounds have no source");
  constexpr double kMost = 1 + 1e-9;
  if (!(memory >= 0 && core >= 0 && memory + core <= kMost)) {
    return invalid("a record has the bounds {} and {}, expected shares of one whole", memory, core);
  }
  return ok_status();
}

}  // namespace hone::db
