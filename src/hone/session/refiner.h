// session/refiner.h - the last stage of choosing schedules without measuring: a second cost model,
// which may be too slow for thousands of candidates, chooses among the best few of the first one
// (Tuna's static score of machine code).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "hone/cost/cost_model.h"
#include "hone/options.h"

namespace hone {

struct RefineOptions {
  int candidates = 8;   // schedules of a kernel that are compared
  double weight = 0.5;  // share of the second model when the logarithms of both are mixed
};

struct Refiner {
  std::string name;  // name of the second model
  std::shared_ptr<const cost::CostModel> model;
  RefineOptions options;
};

// Makes the refiner that AdvancedOptions::refine names, or null if it names none. Unknown names and
// options are errors.
[[nodiscard]] Result<std::shared_ptr<const Refiner>> make_refiner(const CompileOptions& options,
                                                                  const target::Target& target);

// A schedule that may be chosen, and the seconds that the first model predicts.
struct Rival {
  const schedule::Steps* steps;
  double predicted_seconds;
};

// Returns the index of the rival that both models together predict to be fastest. One takes the
// place of the first if it seems faster by the share `margin`. An error of the second model is one.
[[nodiscard]] Result<size_t> refined_choice(const Refiner& refiner, const compute::Dag& dag,
                                            const target::Target& target, int threads,
                                            std::span<const Rival> rivals, double margin);

}  // namespace hone
