// cost/booster.h - what boosting (boosting.cc) asks of a library that fits trees.
#pragma once

#include <memory>

#include "hone/cost/boosting.h"

namespace hone::cost {

class Booster {
 public:
  Booster() = default;
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  virtual ~Booster() = default;
  // Of the trees so far for the rows that it was made with; valid until the next call.
  [[nodiscard]] virtual Result<std::span<const float>> predict() = 0;
  // Adds a tree, or none if no split would do.
  [[nodiscard]] virtual Status boost(std::span<float> gradient, std::span<float> hessian) = 0;
  [[nodiscard]] virtual Result<Trees> trees() = 0;
};

}  // namespace hone::cost
