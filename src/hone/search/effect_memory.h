// search/effect_memory.h - the errors of a cost model, remembered over tasks: the logarithm of
// measured / predicted seconds as a sum of effects, one of the schedule's algorithm and one of each
// of its choices. Each model and family of kernel classes has its own effects. An effect is a
// normal distribution; all are learned online as if they were independent (assumed-density
// filtering, as in Graepel et al., Web-Scale Bayesian Click-Through Rate Prediction, ICML 2010,
// here for a linear model).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hone/search/searcher.h"

namespace hone::search {

class EffectMemory {
 public:
  // Returns the expected error of a point, which is 0 if nothing is remembered.
  [[nodiscard]] double expected_error(const SearchTask& task, const space::Point& point) const;
  void learn(const SearchTask& task, const space::Point& point, double error);
  [[nodiscard]] size_t size() const { return effects_.size(); }  // number of known effects

  // Returns a line for each effect: its name, mean and variance.
  [[nodiscard]] std::string to_text() const;
  // Parses strictly: text that to_text() never writes is an error that names the line.
  [[nodiscard]] static Result<EffectMemory> parse(std::string_view text);

 private:
  struct Effect {
    double mean = 0, variance = 0;
  };
  [[nodiscard]] static std::vector<std::string> names_of(const SearchTask& task,
                                                         const space::Point& point);

  std::map<std::string, Effect, std::less<>> effects_;
};

}  // namespace hone::search
