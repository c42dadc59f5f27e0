// time_plan.h - how `tune` divides its budget: what is compared with what, how long that may take,
// and when the search has to end so that the library is written in time. A plan is computed from
// numbers alone; nothing is measured here (internal to the facade).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hone {

// All seconds of all checks of a library.
struct CheckSeconds {
  double more = 0;  // After these, no more sets of random inputs are tried.
  double most = 0;  // A check that is predicted to take longer than this is left out.
};
[[nodiscard]] CheckSeconds check_seconds(double budget_seconds);

// What a plan is made for.
struct TimeDemand {
  double budget_seconds = 0;
  int64_t weight_bytes = 0;     // all constants of the model
  int64_t kernels = 0;          // distinct tasks: each is compiled once
  double run_seconds = 0;       // one run of the untuned model, as far as it is known
  bool static_library = false;  // A shared one is written besides it, to be timed.
  bool checks = true;           // The library is compared with the model as imported.
  bool bounded_memory = false;  // The user gave a limit of memory that the model must fit.
};

// What writing the untuned model took.
struct UntunedWrite {
  double seconds = 0;           // to compile, pack, link and write it
  double assembly_seconds = 0;  // of these, to compile and pack
  bool checked = false;         // The check's reference is known now.
};

struct TimePlan {
  std::string not_compared;      // why the tuned model is not compared with the untuned one, or ""
  std::string in_model_skipped;  // why kernels are not compared inside the model, or ""
  bool writes_untuned = true;    // The untuned model is written before the search.
  double assembly_seconds = 0;   // to compile and pack the model once
  double compare_seconds = 0;    // to run both models in turns, at the end
  double in_model_seconds = 0;   // to compare kernels inside the model; 0: they are not compared
  double finish_seconds = 0;     // to write, check and compare the library, at the end
  double reserved_seconds = 0;   // The search ends so many seconds before the budget does.
};

// A plan before anything is written estimates from sizes. Once the untuned model is written, a
// second plan puts what that took in place of the estimates; it compares what the first one did.
[[nodiscard]] TimePlan plan_time(const TimeDemand& demand,
                                 const std::optional<UntunedWrite>& written = {});

// How many schedules, of `kernels` tasks, can be compiled beside the best ones to compare them
// inside the model.
[[nodiscard]] int most_challengers(const TimePlan& plan, int64_t kernels);

// Nothing is begun in the last fifth of a second of the budget: what runs then may end late.
inline constexpr double kSpareSeconds = 0.2;
// Less than these seconds for both models together are too few to compare them.
inline constexpr double kLeastCompareSeconds = 0.3;

}  // namespace hone
