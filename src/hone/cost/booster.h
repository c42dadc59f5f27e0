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

// A booster of the class B, ready for the rows.
template <typename B>
[[nodiscard]] Result<std::unique_ptr<Booster>> make_booster(const TrainingRows& rows,
                                                            const BoostOptions& options) {
  auto booster = std::make_unique<B>();
  HONE_RETURN_IF_ERROR(booster->init(rows, options));
  return std::unique_ptr<Booster>(std::move(booster));
}

}  // namespace hone::cost
