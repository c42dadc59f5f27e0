#include "hone/trial/record.h"

#include <cmath>

#include "hone/trial/record_numbers.h"

namespace hone::trial {
namespace {

Status check_figures(const CodeFigures& code) {
  if (code.registers < 1) return invalid("a record's code takes no registers");
  Status status = ok_status();
  for_each_figure(code, [&](const char* name, int64_t value) {
    if (value < 0 || value > kMostFigure)
      status = invalid("a record's code has {} of {}, expected 0 to {}", value, name, kMostFigure);
  });
  return status;
}

}  // namespace

Status check_numbers(const Record& r) {
  if (r.threads < 1 || r.threads > kMostThreads) {
    return invalid("a record has {} threads, expected {}", r.threads,
                   r.threads < 1 ? "at least 1" : fmt::format("at most {}", kMostThreads));
  }
  const bool ok = r.outcome == Outcome::kOk;
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
  if (!(r.drift > 0 && std::isfinite(r.drift)))
    return invalid("a record has the drift {}, expected a positive number", r.drift);
  return r.code ? check_figures(*r.code) : ok_status();
}

Status check_plausible(const Record& r) {
  if (r.outcome != Outcome::kOk) return ok_status();
  std::vector<double> times = r.times;
  times.push_back(r.centre);
  for (const double t : times) {
    if (!(t >= kLeastSeconds && t <= kMostSeconds)) {
      return invalid("a successful record has the time {} s, expected {} to {}", t, kLeastSeconds,
                     kMostSeconds);
    }
  }
  return ok_status();
}

Status check(const Record& r) {
  if (r.device.empty()) return invalid("a record needs a device key");
  if (const Accuracy needed = accuracy_of(r.steps); r.accuracy != needed) {
    return invalid("a record has the accuracy {}, but its steps need {}", accuracy_name(r.accuracy),
                   accuracy_name(needed));
  }
  const bool ok = r.outcome == Outcome::kOk;
  if (ok && r.times.empty()) return invalid("a successful record needs times");
  HONE_RETURN_IF_ERROR(check_numbers(r));
  if (r.duel.size() % 2 != 0)
    return invalid("a record's duel has {} times, expected pairs", r.duel.size());
  if (r.crowned && !ok)
    return invalid("a crowned record ended as '{}', expected ok", outcome_name(r.outcome));
  if (!r.part.empty() && (r.verified || r.crowned))
    return invalid("a record of a part of its task is verified or crowned, expected neither");
  if (r.verified && !ok)
    return invalid("a verified record ended as '{}', expected ok", outcome_name(r.outcome));
  if (!r.bounds) return ok_status();
  const auto [memory, core] = r.bounds->scores;
  if (r.bounds->source.empty()) return invalid("a record's bounds have no source");
  constexpr double kMost = 1 + 1e-9;
  if (!(memory >= 0 && core >= 0 && memory + core <= kMost)) {
    return invalid("a record has the bounds {} and {}, expected shares of one whole", memory, core);
  }
  return ok_status();
}

}  // namespace hone::trial
