#include "hone/commands/in_model.h"

#include <algorithm>
#include <numeric>

#include "hone/base/cancel.h"
#include "hone/base/clock.h"
#include "hone/session/assemble.h"
#include "hone/trial/statistics.h"

namespace hone {
namespace {

// A schedule that is slower alone than the best one by at most this factor may be faster in the
// model. For one that reads other data, the factor is kCloseOtherData.
constexpr double kClose = 1.10;
constexpr double kShare = 0.005;  // of the model's time, at least
constexpr double kError = 0.05;   // probability that a schedule wins that is no faster
constexpr int kMaxRounds = 400;
constexpr double kSampling = 0.6;  // of the time; the rest is for whole runs

// The model's calls, those of contests once more for each challenger: all fit one memory plan, and
// a run takes one of each.
struct Extended {
  graph::TaskList tasks;
  std::vector<schedule::Steps> schedules;
  std::vector<int> contest;               // per call of the model; -1: none
  std::vector<std::vector<int>> options;  // per call of the model: calls of `tasks`, the best first
};

Extended extend(const graph::TaskList& tasks, std::span<const schedule::Steps> schedules,
                std::span<const Contest> contests) {
  Extended result{tasks, {schedules.begin(), schedules.end()}, {}, {}};
  std::vector<int> contest_of(tasks.groups.size(), -1);
  std::vector<int> first(contests.size());  // group of the first challenger
  for (size_t c = 0; c < contests.size(); ++c) {
    contest_of[contests[c].group] = static_cast<int>(c);
    first[c] = static_cast<int>(result.schedules.size());
    for (const search::MeasuredSchedule& challenger : contests[c].challengers)
      result.schedules.push_back(challenger.steps);
  }
  result.tasks.calls.clear();
  result.tasks.groups.assign(result.schedules.size(), {});
  const auto add = [&](const graph::TaskCall& call, int group) {
    const int index = static_cast<int>(result.tasks.calls.size());
    result.tasks.calls.push_back(call);
    result.tasks.calls.back().group = group;
    graph::TaskGroup& added = result.tasks.groups[static_cast<size_t>(group)];
    added.key = call.key;
    added.calls.push_back(index);
    result.options.back().push_back(index);
  };
  for (const graph::TaskCall& call : tasks.calls) {
    const int contest = contest_of[static_cast<size_t>(call.group)];
    result.contest.push_back(contest);
    result.options.emplace_back();
    add(call, call.group);
    if (contest < 0) continue;
    const auto c = static_cast<size_t>(contest);
    for (int i = 0; i < std::ssize(contests[c].challengers); ++i) add(call, first[c] + i);
  }
  return result;
}

// One contest while it runs.
struct Scores {
  std::vector<trial::Duel> duels;
  std::vector<trial::PairTest> tests;
  int turn = 0;

  explicit Scores(size_t challengers)
      : duels(challengers),
        tests(challengers, trial::PairTest(1 - kError / static_cast<double>(challengers))) {}
  // The challenger of this round: they take turns until each is decided; 0: none any more.
  int next() {
    for (size_t i = 0; i < tests.size(); ++i) {
      turn = (turn + 1) % static_cast<int>(tests.size());
      if (!tests[static_cast<size_t>(turn)].decided()) return turn + 1;
    }
    return 0;
  }
  void add(int challenger, double seconds, double best) {
    const auto i = static_cast<size_t>(challenger - 1);
    duels[i].challenger.push_back(seconds);
    duels[i].incumbent.push_back(best);
    tests[i].add(seconds, best);
  }
};

class Comparison {
 public:
  Comparison(const Extended& extended, const Assembly& assembly, machine::TimedModel& run,
             uint64_t seed)
      : extended_(extended), run_(run), rng_(seed), steps_(extended.tasks.calls.size()) {
    for (int s = 0; s < std::ssize(assembly.calls); ++s)
      steps_[static_cast<size_t>(assembly.calls[static_cast<size_t>(s)])].push_back(s);
  }
  // `option` per call of the model; its seconds per call.
  Result<std::vector<double>> run(const std::vector<int>& option) {
    std::vector<int32_t> steps;
    std::vector<size_t> ends;
    for (size_t c = 0; c < option.size(); ++c) {
      const int call = extended_.options[c][static_cast<size_t>(option[c])];
      const std::vector<int32_t>& of_call = steps_[static_cast<size_t>(call)];
      steps.insert(steps.end(), of_call.begin(), of_call.end());
      ends.push_back(steps.size());
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> times, run_.run(steps));
    std::vector<double> seconds;
    size_t next = 0;
    for (const size_t end : ends) {
      double sum = 0;
      while (next < end) sum += times[next++];
      seconds.push_back(sum);
    }
    return seconds;
  }
  // Each schedule once: pages, caches and branch predictors know it then.
  Status warm_up() {
    size_t most = 0;
    for (const std::vector<int>& options : extended_.options) most = std::max(most, options.size());
    for (size_t i = most; i-- > 0;) {
      std::vector<int> option;
      for (const std::vector<int>& options : extended_.options)
        option.push_back(static_cast<int>(std::min(i, options.size() - 1)));
      HONE_RETURN_IF_ERROR(run(option).status());
    }
    return ok_status();
  }
  // Adds to the scores, and to `totals` the model's seconds with the best of all. False: everything
  // is decided.
  Result<bool> round(std::vector<Scores>& scores, std::vector<double>& totals) {
    std::vector<int> turn;  // per contest
    for (Scores& score : scores) turn.push_back(score.next());
    if (std::all_of(turn.begin(), turn.end(), [](int challenger) { return challenger == 0; }))
      return false;
    const size_t calls = extended_.contest.size();
    std::vector<int> option[2] = {std::vector<int>(calls, 0), std::vector<int>(calls, 0)};
    for (size_t c = 0; c < calls; ++c) {
      const int contest = extended_.contest[c];
      if (contest >= 0) option[rng_.below(2)][c] = turn[static_cast<size_t>(contest)];
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> first, run(option[0]));
    HONE_ASSIGN_OR_RETURN(const std::vector<double> second, run(option[1]));
    double both = std::accumulate(first.begin(), first.end(), 0.0) +
                  std::accumulate(second.begin(), second.end(), 0.0);
    for (size_t c = 0; c < calls; ++c) {
      const int challenger = std::max(option[0][c], option[1][c]);
      if (challenger == 0) continue;
      const bool is_first = option[0][c] > 0;
      const double seconds = is_first ? first[c] : second[c];
      const double best = is_first ? second[c] : first[c];
      scores[static_cast<size_t>(extended_.contest[c])].add(challenger, seconds, best);
      both += best - seconds;
    }
    totals.push_back(both / 2);
    return true;
  }
  // One run with the winners, one with the best of all as they were.
  Status whole_runs(const std::vector<int>& winners, trial::Duel& duel) {
    std::vector<int> before(extended_.contest.size(), 0), after = before;
    for (size_t c = 0; c < after.size(); ++c) {
      if (extended_.contest[c] >= 0)
        after[c] = winners[static_cast<size_t>(extended_.contest[c])] + 1;
    }
    const bool after_first = rng_.chance(0.5);
    for (const bool turn : {after_first, !after_first}) {
      HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds, run(turn ? after : before));
      (turn ? duel.challenger : duel.incumbent)
          .push_back(std::accumulate(seconds.begin(), seconds.end(), 0.0));
    }
    return ok_status();
  }

 private:
  const Extended& extended_;
  machine::TimedModel& run_;
  Rng rng_;
  std::vector<std::vector<int32_t>> steps_;  // per call of extended_
};

}  // namespace

std::vector<Contest> contests_of(const ModelTasks& model,
                                 std::span<const schedule::Steps> schedules,
                                 std::span<const std::vector<search::MeasuredSchedule>> runners_up,
                                 int most) {
  double whole = 0;
  const auto seconds_of = [&](size_t g) {
    const TaskSummary& task = model.summaries[g];
    return task.multiplicity * task.known_seconds();
  };
  for (size_t g = 0; g < schedules.size(); ++g) whole += seconds_of(g);
  std::vector<Contest> contests;
  for (size_t g = 0; g < schedules.size(); ++g) {
    const double best = model.summaries[g].seconds;
    if (best <= 0 || seconds_of(g) < kShare * whole) continue;
    Contest contest{g, runners_up[g]};
    std::erase_if(contest.challengers, [&](const search::MeasuredSchedule& next) {
      const double limit = next.fewer_weights || next.other_split ? kCloseOtherData : kClose;
      return next.seconds > limit * best || next.steps == schedules[g];
    });
    if (!contest.challengers.empty()) contests.push_back(std::move(contest));
  }
  std::stable_sort(contests.begin(), contests.end(), [&](const Contest& a, const Contest& b) {
    return seconds_of(a.group) > seconds_of(b.group);
  });
  const auto allowed = static_cast<size_t>(std::max(most, 0));
  if (contests.size() > allowed) contests.resize(allowed);
  size_t more = allowed - contests.size();
  for (Contest& contest : contests) {
    const size_t others = std::min(contest.challengers.size() - 1, more);
    contest.challengers.resize(1 + others);
    more -= others;
  }
  return contests;
}

int winner(std::span<const trial::Duel> duels) {
  int best = -1;
  double least = 1;
  for (size_t i = 0; i < duels.size(); ++i) {
    trial::PairTest test(1 - kError / static_cast<double>(duels.size()));
    for (size_t p = 0; p < duels[i].pairs(); ++p)
      test.add(duels[i].challenger[p], duels[i].incumbent[p]);
    if (!test.first_is_faster()) continue;
    const double ratio = trial::duel_ratio(duels[i]);
    if (ratio < least) least = ratio, best = static_cast<int>(i);
  }
  return best;
}

Result<InModelResult> compare_in_model(const ModelTasks& model,
                                       std::span<const schedule::Steps> schedules,
                                       std::span<const Contest> contests,
                                       const InModelOptions& options) {
  const Extended extended = extend(model.tasks, schedules, contests);
  const HostKernels host =
      model.target().kind() == target::Kind::kGpu ? HostKernels::kWhereNeeded : HostKernels::kNone;
  HONE_ASSIGN_OR_RETURN(
      std::optional<Assembly> assembly,
      assemble(*model.session, extended.tasks, extended.schedules, options.interrupted, {}, host));
  const InPhase measuring(model.session->phases(), Phase::kMeasuring);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<machine::TimedModel> run,
                        model.session->machine().models().load(assembly->spec, model.threads()));
  Comparison comparison(extended, *assembly, *run, options.seed);
  assembly.reset();  // the run has the weights
  HONE_RETURN_IF_ERROR(comparison.warm_up());

  InModelResult result;
  std::vector<Scores> scores;
  for (const Contest& contest : contests) scores.emplace_back(contest.challengers.size());
  std::vector<double> totals;
  const double start = real_clock().now_seconds();
  const double sampling_end = start + kSampling * (options.deadline - start);
  const auto goes_on = [&](double end) {
    return !is_cancelled(options.interrupted) && real_clock().now_seconds() < end;
  };
  while (result.rounds < kMaxRounds && goes_on(sampling_end)) {
    HONE_ASSIGN_OR_RETURN(const bool undecided, comparison.round(scores, totals));
    if (!undecided) break;
    ++result.rounds;
  }
  if (totals.empty()) return result;
  result.model_seconds = trial::median(totals);
  for (const Scores& score : scores) result.winners.push_back(winner(score.duels));
  if (std::count(result.winners.begin(), result.winners.end(), -1) == std::ssize(contests))
    return result;
  trial::Duel whole;
  while (std::ssize(whole.challenger) < kMaxRounds && goes_on(options.deadline)) {
    HONE_RETURN_IF_ERROR(comparison.whole_runs(result.winners, whole));
    if (winner({&whole, 1}) == 0) break;
  }
  if (winner({&whole, 1}) < 0) {
    result.winners.assign(contests.size(), -1);
    return result;
  }
  std::vector<double> saved;
  for (size_t p = 0; p < whole.pairs(); ++p)
    saved.push_back(whole.incumbent[p] - whole.challenger[p]);
  result.saved_seconds = trial::median(saved);
  return result;
}

}  // namespace hone
