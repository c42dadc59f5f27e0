// search/code_filter.h - keeps candidates from being measured whose machine code is predicted to be
// much slower than the best that was measured (Tuna's static model between building and measuring).
// Some of each batch are measured all the same, so a wrong prediction ends no search.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hone/cost/cost_model.h"
#include "hone/search/candidate.h"

namespace hone::search {

// Predicts the seconds of a candidate whose machine code there is, without running it. Several
// threads may call it at the same time.
class CodeScore {
 public:
  virtual ~CodeScore() = default;
  [[nodiscard]] virtual Result<double> seconds(const cost::Query& query, const ir::Program& program,
                                               const backend::Executable& code) const = 0;
};

struct FilterLimits {
  double factor = 2;    // predicted seconds of what is still measured, over those of the best
  double share = 0.25;  // the share of a batch that is always measured, the best predicted ones
};
// Parses the options of a filter, as in "factor=2,share=0.25".
[[nodiscard]] Result<FilterLimits> parse_filter_limits(std::string_view options);

class CodeFilter {
 public:
  CodeFilter(std::unique_ptr<const CodeScore> score, const FilterLimits& limits)
      : score_(std::move(score)), limits_(limits) {}

  // Sets Candidate::predicted_seconds of a candidate that has machine code, from any thread. What
  // cannot be predicted keeps 0 and is never left out.
  void predict(Candidate& candidate, const compute::Dag& dag, const target::Target& target,
               int threads, uint64_t task);
  // Moves the candidates out of a batch that are not to be measured, and returns them. `best` is
  // the predicted seconds of the best one that was measured, 0 if they are not known. Trusted
  // candidates and those without machine code stay.
  [[nodiscard]] std::vector<Candidate> take_out(std::vector<Candidate>& batch, double best);

  struct Counts {
    int predicted = 0, left_out = 0;  // numbers of candidates
    double seconds = 0;               // seconds of all threads for predictions
  };
  [[nodiscard]] Counts counts() const;

 private:
  const std::unique_ptr<const CodeScore> score_;
  const FilterLimits limits_;
  mutable std::mutex mutex_;
  Counts counts_;
};

}  // namespace hone::search
