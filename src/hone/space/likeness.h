// space/likeness.h - how alike schedules are to one that is looked for. What a step counts is
// remembered, as the schedules of neighbouring points have most steps in common.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hone/schedule/step.h"

namespace hone::space {

class Likeness {
 public:
  explicit Likeness(const schedule::Steps& wanted);

  // The sum over the steps: equal steps count most, steps that the wanted schedule has not count
  // against, and between steps of one kind and stage the words that agree place by place.
  [[nodiscard]] int of(const schedule::Steps& steps);

 private:
  [[nodiscard]] int of_step(const schedule::Step& step) const;

  const schedule::Steps& wanted_;
  std::vector<std::vector<std::string>> words_;  // the words of each wanted step
  // The steps that were seen at each place of a schedule, and what they count.
  std::vector<std::vector<std::pair<schedule::Step, int>>> known_;
};

}  // namespace hone::space
