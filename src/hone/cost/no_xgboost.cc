// Stands in for xgboost.cc in a build without the library.
#include "hone/base/assert.h"
#include "hone/cost/xgboost.h"

namespace hone::cost {

Status xgboost_status() {
  return error(Code::kUnsupported,
               "training a cost model needs XGBoost, which this build is without "
               "(libxgboost-dev was missing)");
}

Result<XgbBooster> XgbBooster::create(std::span<const float>, int) { return xgboost_status(); }
XgbBooster::XgbBooster(XgbBooster&&) noexcept = default;
XgbBooster& XgbBooster::operator=(XgbBooster&&) noexcept = default;
XgbBooster::~XgbBooster() = default;
Status XgbBooster::set(const char*, const char*) { return xgboost_status(); }
Result<std::span<const float>> XgbBooster::predict() { return xgboost_status(); }
Status XgbBooster::boost(std::span<float>, std::span<float>) { return xgboost_status(); }
Result<Trees> XgbBooster::trees() { return xgboost_status(); }

}  // namespace hone::cost
