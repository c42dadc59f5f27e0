// cost/xgboost.h - the few functions of XGBoost's C interface that boosting needs, loaded when
// first asked for: no command pays for a library that it does not use.
#pragma once

#include <span>

#include "hone/cost/trees.h"

namespace hone::cost {

// Ok if the library can be used, else why not.
[[nodiscard]] Status xgboost_status();

class XgbBooster {
 public:
  [[nodiscard]] static Result<XgbBooster> create(std::span<const float> features, int width);
  XgbBooster(XgbBooster&& other) noexcept;
  XgbBooster& operator=(XgbBooster&& other) noexcept;
  ~XgbBooster();

  [[nodiscard]] Status set(const char* parameter, const char* value);
  // For the rows that it was made with; valid until the next call.
  [[nodiscard]] Result<std::span<const float>> predict();
  // Adds a tree.
  [[nodiscard]] Status boost(std::span<float> gradient, std::span<float> hessian);
  [[nodiscard]] Result<Trees> trees();

 private:
  XgbBooster() = default;
  void* rows_ = nullptr;
  void* booster_ = nullptr;
};

}  // namespace hone::cost
