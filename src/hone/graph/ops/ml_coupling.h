// graph/ops/ml_coupling.h - the probabilities of classes from those of pairs of classes.
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

// The parameter `first` [N, pairs] holds, for the pairs (0, 1), (0, 2), .. (1, 2), .., how probable
// the first class of a pair is, given that it is one of the two; all are above 0 and below 1.
// Returns the probabilities [N, classes] that fit these best, by the second method of Wu, Lin and
// Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling" (JMLR 5, 2004):
// its iteration ends for each row when no class is further than 0.005 / classes from the optimum's
// condition, and after 100 turns, as libsvm's and ONNX Runtime's do.
[[nodiscard]] Result<ValueId> coupled_probabilities(ExpandContext& c, ValueId first,
                                                    int64_t classes);

}  // namespace hone::graph
