// learn/torch/raw_gradient.h - second derivatives of operators that this library computes itself.
//
// The derivative of a gradient (meta-learning) needs gradients that libtorch has recorded. What a
// backward pass computes from raw memory is not recorded: for libtorch it is a constant, whose
// derivative is 0. So a backward pass either computes by recorded operators whenever
// is_differentiated_again() is true, or calls refuse_second_derivative() before it reads memory.
#pragma once

#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

namespace hone::learn::torch_module {

// Returns, within a backward pass, whether the gradients that it computes are to be differentiated.
[[nodiscard]] inline bool is_differentiated_again() { return c10::GradMode::is_enabled(); }

// Throws c10::Error if the gradients are to be differentiated. `op` is the operator's name.
inline void refuse_second_derivative(const char* op) {
  TORCH_CHECK(!is_differentiated_again(), "the operator ", op,
              " has no second derivative: expected first-order meta-learning, or none");
}

}  // namespace hone::learn::torch_module
