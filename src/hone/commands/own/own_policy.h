// own/own_policy.h - a search strategy of who calls Hone (hone/own_search.h) as one of Hone's.
#pragma once

#include <memory>

#include "hone/base/first_failure.h"
#include "hone/graph/graph.h"
#include "hone/own_search.h"
#include "hone/search/policy.h"

namespace hone {

// Tunes a graph that is imported already, as tune() does a model in a file.
[[nodiscard]] Result<TuneSummary> tune(graph::Graph graph, const std::string& output,
                                       const TuneOptions& options, OwnParts& parts);

// Returns a policy whose searchers ask `own`, one at a time. After its first error, which goes to
// `failure`, they propose nothing. Both must outlive the policy.
[[nodiscard]] std::unique_ptr<search::Policy> make_own_policy(OwnStrategy& own,
                                                              FirstFailure& failure);

}  // namespace hone
