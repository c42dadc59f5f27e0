// cost/own_model.h - a cost model of who calls Hone (hone/own_search.h) as one of Hone's.
#pragma once

#include <memory>
#include <string>

#include "hone/base/first_failure.h"
#include "hone/cost/candidate_features.h"
#include "hone/own_search.h"

namespace hone::cost {

// Returns the set of features with this name; the best one of the kind of device for "". It is an
// error if the set does not exist or is of another kind of device.
[[nodiscard]] Result<FeatureSet> parse_feature_set(const std::string& name, target::Kind kind);

// Returns a model that asks `own` for each batch. After its first error, which goes to `failure`,
// predictions are the first estimates. Both must outlive the model.
[[nodiscard]] Result<std::unique_ptr<CostModel>> make_own_model(OwnCostModel& own,
                                                                target::Kind kind,
                                                                FirstFailure& failure);

}  // namespace hone::cost
