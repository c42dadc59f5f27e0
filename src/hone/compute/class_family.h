// compute/class_family.h - groups kernel classes whose schedules are worth trying on each other:
// they have the same main operator, followed by other pointwise work.
#pragma once

#include <string>
#include <string_view>

namespace hone::compute {

// Returns the family. "conv2d+bias+relu", "conv2d" and "conv2d+bias+add" are of the family
// "conv2d"; a fully connected layer ("gemm") is a "matmul"; classes of pointwise work only are
// "pointwise".
[[nodiscard]] std::string class_family(std::string_view kernel_class);

}  // namespace hone::compute
