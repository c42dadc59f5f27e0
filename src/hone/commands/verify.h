// verify.h - verifies a graph that is imported already, as hone/verify.h does a model in a file.
#pragma once

#include "hone/session/compile_options.h"
#include "hone/verify.h"

namespace hone {

[[nodiscard]] Result<VerifyReport> verify(graph::Graph model, const VerifyOptions& options);

}  // namespace hone
