// compare.h - finds out how one tensor of a model differs from the expected one (internal).
#pragma once

#include <optional>

#include "hone/verify.h"

namespace hone {

// Compares one tensor. Returns nothing if it is right; `error` is then its largest relative error.
[[nodiscard]] std::optional<Divergence> compare(const Tensor& found, const Tensor& expected,
                                                double tolerance, double& error);

}  // namespace hone
