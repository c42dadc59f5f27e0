#include "hone/commands/time_plan.h"

#include <algorithm>
#include <iterator>

#include "hone/commands/check/random_inputs.h"
#include "hone/commands/measure_sizes.h"
#include "hone/machine/machine.h"

namespace hone {
namespace {

// Seconds that writing any library takes: a linker starts, and files are closed.
constexpr double kWriteSeconds = 0.5;
// Seconds that each kernel adds to writing a library, by being compiled and linked.
constexpr double kWriteSecondsPerKernel = 0.05;
// Seconds that each kernel adds to building the model in memory, where nothing is linked.
constexpr double kAssemblySecondsPerKernel = 0.03;
// Seconds in which a device is opened, to check or compare a library.
constexpr double kDeviceSeconds = 1;
// Bytes of weights that are packed, linked and written in a second, on a slow day.
constexpr double kWriteRate = 0.12e9;
// Bytes of weights that are packed in memory in a second.
constexpr double kPackRate = 0.5e9;
// Tuned code is larger: writing the tuned library takes the time of the untuned one times this
// factor, and these seconds besides.
constexpr double kTunedWriteFactor = 2;
constexpr double kTunedWriteSeconds = 0.3;

// Seconds for which the tuned and the untuned model run in turns, if the budget allows it.
constexpr double kCompareSeconds = 1.5;
// These seconds are at most this share of the budget. The fewest rounds that tell anything are run
// even if they take longer.
constexpr double kCompareShare = 0.05;
// Seconds that loading both libraries takes.
constexpr double kLoadSeconds = 0.5;
// Writing the untuned model, too, and comparing may take this share of the budget.
constexpr double kWriteAndCompareShare = 0.15;
// A model with at most these bytes of weights is cheap to write: it is compared whatever share that
// takes, if the budget has at least these seconds.
constexpr int64_t kCheapBytes = 256 << 20;
constexpr double kCheapBudgetSeconds = 10;
// A model with more bytes of weights than these is never held in memory twice.
constexpr int64_t kTwiceBytes = int64_t{1} << 30;

// The share of the budget for comparing kernels inside the model.
constexpr double kInModelShare = 0.05;
// This share is cut to so many seconds, by when all is decided, or to the time of so many builds of
// the model if these take longer.
constexpr double kInModelMostSeconds = 60;
constexpr double kInModelMostBuilds = 10;
// Comparing kernels inside the model takes at least the time of so many builds: half of it is for
// compiling and packing, and tuned code takes about twice as long as untuned code.
constexpr double kInModelLeastBuilds = 5;
// The share of the budget that these fewest builds may take where kInModelShare is too little.
constexpr double kInModelLargeShare = 0.12;
// The share of the time for comparing kernels inside the model that may go into compiling them.
constexpr double kInModelCompileShare = 0.25;
// The number of schedules that are compared inside the model even if time is short.
constexpr int kLeastChallengers = 4;

// The share of the budget after which checks try no more inputs, and its limits in seconds.
constexpr double kCheckShare = 1.0 / 30;
constexpr double kLeastCheckSeconds = 0.5;
constexpr double kMostCheckSeconds = 10;
// The share of the budget beyond which a check, by its predicted time, is left out.
constexpr double kCheckMostShare = 1.0 / 6;

// The share of the budget that the search keeps, however long the rest may take.
constexpr double kMinimumSearchShare = 0.2;

// The number of libraries that are written at the end.
int copies(const TimeDemand& demand) { return demand.static_library ? 2 : 1; }

double estimated_write_seconds(const TimeDemand& demand) {
  return kWriteSeconds + (demand.for_device ? kDeviceSeconds : 0) +
         kWriteSecondsPerKernel * static_cast<double>(demand.kernels) +
         static_cast<double>(demand.weight_bytes) / kWriteRate;
}

std::string why_not_compared(const TimeDemand& demand, double compare_seconds) {
  if (!demand.times_no_models.empty()) return demand.times_no_models;
  if (demand.weight_bytes > kTwiceBytes) return "the model is too large";
  const bool cheap =
      demand.weight_bytes <= kCheapBytes && demand.budget_seconds >= kCheapBudgetSeconds;
  const double seconds = copies(demand) * estimated_write_seconds(demand) + compare_seconds;
  if (!cheap && seconds > kWriteAndCompareShare * demand.budget_seconds)
    return "the budget is too short";
  return "";
}

void plan_in_model(const TimeDemand& demand, TimePlan& plan) {
  const double budget = demand.budget_seconds;
  const double least = kInModelLeastBuilds * plan.assembly_seconds;
  double seconds =
      std::min(kInModelShare * budget,
               std::max(kInModelMostSeconds, kInModelMostBuilds * plan.assembly_seconds));
  if (least <= kInModelLargeShare * budget) seconds = std::max(seconds, least);
  if (demand.weight_bytes > kTwiceBytes) plan.in_model_skipped = "the model is too large";
  if (least > seconds) plan.in_model_skipped = "the budget is too short";
  if (!demand.times_no_models.empty()) plan.in_model_skipped = demand.times_no_models;
  plan.in_model_seconds = plan.in_model_skipped.empty() ? seconds : 0;
}

// Returns the seconds of checking the last library; only it runs if the reference is known.
double last_check_seconds(const TimeDemand& demand, bool reference_known) {
  if (!demand.checks) return 0;
  if (reference_known) return static_cast<double>(std::size(kDraws)) * demand.run_seconds;
  const CheckSeconds check = check_seconds(demand.budget_seconds);
  return std::min(check.more, check.most);
}

}  // namespace

CheckSeconds check_seconds(double budget_seconds) {
  return {
      .more = std::clamp(kCheckShare * budget_seconds, kLeastCheckSeconds, kMostCheckSeconds),
      .most = kCheckMostShare * budget_seconds,
  };
}

TimePlan plan_time(const TimeDemand& demand, const std::optional<UntunedWrite>& written) {
  TimePlan plan;
  plan.compare_seconds = std::max(std::min(kCompareSeconds, kCompareShare * demand.budget_seconds),
                                  2 * machine::kLeastRounds * demand.run_seconds);
  plan.not_compared = why_not_compared(demand, plan.compare_seconds);
  const bool compares = plan.not_compared.empty();
  // A model that can never fit the limit of memory is to fail before the search.
  plan.writes_untuned = compares || demand.bounded_memory;
  double write_seconds = estimated_write_seconds(demand);
  plan.assembly_seconds = kAssemblySecondsPerKernel * static_cast<double>(demand.kernels) +
                          static_cast<double>(demand.weight_bytes) / kPackRate;
  if (written) {
    double seconds = written->seconds;
    if (demand.for_device)
      seconds -= std::max(0.0, written->assembly_seconds - plan.assembly_seconds);
    else
      plan.assembly_seconds = written->assembly_seconds;
    write_seconds = kTunedWriteSeconds + kTunedWriteFactor * seconds;
  }
  plan_in_model(demand, plan);
  plan.finish_seconds = compares
                            ? copies(demand) * write_seconds + kLoadSeconds + plan.compare_seconds
                            : write_seconds;
  plan.finish_seconds += last_check_seconds(demand, written && written->checked);
  plan.sizes_seconds = demand.varies ? kSizesShare * demand.budget_seconds : 0;
  plan.reserved_seconds = std::min(plan.in_model_seconds + plan.sizes_seconds + plan.finish_seconds,
                                   (1 - kMinimumSearchShare) * demand.budget_seconds);
  return plan;
}

int most_challengers(const TimePlan& plan, int64_t kernels) {
  // Each challenger takes as long to compile as a kernel of the model.
  const double builds =
      kInModelCompileShare * plan.in_model_seconds / std::max(plan.assembly_seconds, 1e-3) - 1;
  return std::max(kLeastChallengers, static_cast<int>(builds * static_cast<double>(kernels)));
}

}  // namespace hone
