// graph/unread_labels.h - labels that are texts, which have no type here, of classifiers whose
// scores alone are read.
#pragma once

#include "hone/graph/graph.h"

namespace hone::graph {

// Takes away the labels of classifiers (`classlabels_strings`) that no output of the model needs,
// and the nodes that nothing needs but for them. The nodes are sorted; no shapes are inferred yet.
void leave_out_unread_labels(Graph& graph);

}  // namespace hone::graph
