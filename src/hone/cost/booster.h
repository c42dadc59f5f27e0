// cost/booster.h - the interface of libraries that fit trees, as boosting (boosting.cc) needs it.
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
  // Returns the predictions of the trees so far for the rows that it was made with; valid until the
  // next call.
  [[nodiscard]] virtual Result<std::span<const float>> predict() = 0;
  // Adds a tree, or none if no split gains enough.
  [[nodiscard]] virtual Status boost(std::span<float> gradient, std::span<float> hessian) = 0;
  [[nodiscard]] virtual Result<Trees> trees() = 0;
};

// Makes a booster of the class B for the rows.
template <typename B>
[[nodiscard]] Result<std::unique_ptr<Booster>> make_booster(const TrainingRows& rows,
                                                            const BoostOptions& options) {
  auto booster = std::make_unique<B>();
  HONE_RETURN_IF_ERROR(booster->init(rows, options));
  return std::unique_ptr<Booster>(std::move(booster));
}

}  // namespace hone::cost
