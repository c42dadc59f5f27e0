// verify.h - verifies a graph that is imported already, as hone/verify.h does a model in a file.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "hone/session/compile_options.h"
#include "hone/verify.h"

namespace hone {

// Imports the same model for these shapes of its inputs alone.
using ImportAt = std::function<Result<graph::Graph>(const std::map<std::string, Shape>& shapes)>;

// A model whose inputs vary is verified at its largest size, at the smallest, and at some others
// that are drawn by the seed. There the reference is what `at` imports or, if that is empty, the
// model itself with NaN beyond the sizes.
[[nodiscard]] Result<VerifyReport> verify(graph::Graph model, const VerifyOptions& options,
                                          const ImportAt& at = {});

}  // namespace hone
