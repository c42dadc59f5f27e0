// fuzz/random_operator.h - operators that are a task of their own, with a body instead of sums and
// maps: selections, indices that are data, scans, samples between pixels.
#pragma once

#include "hone/base/rng.h"
#include "hone/graph/test_model.h"

namespace hone::fuzz {

void add_random_operator(graph::TestModel& model, Rng& rng);

}  // namespace hone::fuzz
