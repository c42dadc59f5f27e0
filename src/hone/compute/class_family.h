// compute/class_family.h - kernel classes whose schedules are worth trying on each other: the same
// work at heart, with other pointwise work behind it.
#pragma once

#include <string>
#include <string_view>

namespace hone::compute {

// "conv2d+bias+relu", "conv2d" and "conv2d+bias+add" are of the family "conv2d"; a fully connected
// layer ("gemm") is a "matmul"; classes of pointwise work only are "pointwise".
[[nodiscard]] std::string class_family(std::string_view kernel_class);

}  // namespace hone::compute
