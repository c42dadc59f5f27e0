// cost/booster.h - the interface of libraries that fit trees, as boosting (boosting.cc) needs it.
//
// There are two, and each has its use. XGBoost is a package of Debian and fits the trees that ship
// and those that are fitted while tuning. LightGBM comes with Python only. ATFormer's trees are
// made with it, so results can be compared, and it shows that a result is not one library's
// (docs/studies/structure.md). Gradients, pairs and the draw of features are Hone's own for both.
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
