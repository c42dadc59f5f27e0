// time_plan.h - divides the budget of `tune`: which comparisons are made, how long they may take,
// and when the search has to end so that the library is written in time. A plan is computed from
// numbers alone; nothing is measured here (internal).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hone {

// The limits of the seconds of all checks of a library.
struct CheckSeconds {
  double more = 0;  // after these, no more sets of random inputs are tried
  double most = 0;  // a check that is predicted to take longer than this is left out
};
[[nodiscard]] CheckSeconds check_seconds(double budget_seconds);

// The properties of a tune from which a plan is made.
struct TimeDemand {
  double budget_seconds = 0;
  int64_t weight_bytes = 0;     // size of all constants of the model
  int64_t kernels = 0;          // number of distinct tasks, each of which is compiled once
  double run_seconds = 0;       // seconds of a run of the untuned model, as far as they are known
  bool static_library = false;  // a shared library is written besides it, for timing
  bool checks = true;           // the library is compared with the model as imported
  bool bounded_memory = false;  // the user gave a limit of memory that the model must fit
  // The model is for a device. Compiling takes most of the time of writing it at first; what the
  // search finds is compiled then.
  bool for_device = false;
  std::string times_no_models;  // why the machine times no whole models, or empty
  bool varies = false;          // kernels are to be measured at smaller sizes than the largest, too
};

// The result of writing the untuned model.
struct UntunedWrite {
  double seconds = 0;           // seconds to compile, pack, link and write it
  double assembly_seconds = 0;  // the part of these to compile and pack
  bool checked = false;         // it was checked, so the outputs to compare with are known
};

struct TimePlan {
  std::string not_compared;  // why the tuned model is not compared with the untuned one, or empty
  std::string in_model_skipped;  // why kernels are not compared inside the model, or empty
  bool writes_untuned = true;    // the untuned model is written before the search
  double assembly_seconds = 0;   // seconds to compile and pack the model once
  double compare_seconds = 0;    // seconds to run both models alternately, at the end
  double in_model_seconds = 0;   // seconds to compare kernels inside the model; 0 if they are not
  double sizes_seconds = 0;      // seconds to measure kernels at smaller sizes; 0 if they are not
  double finish_seconds = 0;     // seconds to write, check and compare the library, at the end
  double reserved_seconds = 0;   // the search ends so many seconds before the budget does
};

// Makes a plan. Before anything is written, it estimates times from sizes. Once the untuned model
// is written, a second plan uses measured times instead; it compares what the first one did.
[[nodiscard]] TimePlan plan_time(const TimeDemand& demand,
                                 const std::optional<UntunedWrite>& written = {});

// Returns how many schedules of `kernels` tasks can be compiled besides the best ones, to compare
// them inside the model.
[[nodiscard]] int most_challengers(const TimePlan& plan, int64_t kernels);

// Nothing is begun in the last fifth of a second of the budget: what runs then may end late.
inline constexpr double kSpareSeconds = 0.2;
// Less than these seconds for both models together are too few to compare them.
inline constexpr double kLeastCompareSeconds = 0.3;

}  // namespace hone
