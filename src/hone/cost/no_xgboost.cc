// Stands in for xgboost.cc in a build without the library.
#include "hone/cost/xgboost.h"

namespace hone::cost {

Status xgboost_status() {
  return error(Code::kUnsupported,
               "training a cost model needs XGBoost, which this build is without "
               "(libxgboost-dev was missing)");
}

Result<std::unique_ptr<Booster>> make_xgboost_booster(const TrainingRows&, const BoostOptions&) {
  return xgboost_status();
}

}  // namespace hone::cost
