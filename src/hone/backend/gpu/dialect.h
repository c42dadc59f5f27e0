// backend/gpu/dialect.h - the two languages that kernels are printed in: how each spells types,
// numbers and vectors. `long` has 64 bits in both. CUDA C gets OpenCL's names of unsigned types.
#pragma once

#include <string>
#include <string_view>

#include "hone/tensor/dtype.h"

namespace hone::backend::gpu {

enum class Dialect : uint8_t { kOpenCl, kCuda };
[[nodiscard]] std::string_view dialect_name(Dialect dialect);

// Returns the type of values in expressions. Those of 16-bit floats are computed as float.
[[nodiscard]] std::string_view value_type(Dialect dialect, DType type);
// Returns the type of elements in memory, where 16-bit floats are their bits.
[[nodiscard]] std::string_view memory_type(Dialect dialect, DType type);
[[nodiscard]] bool is_small_float(DType type);  // f16 or bf16

// Returns a literal of the type. Integers of less than 32 bits are int in C.
[[nodiscard]] std::string integer_literal(DType type, int64_t value);
[[nodiscard]] std::string float_literal(DType type, double value);

// Returns how many elements a component of a vector has: CUDA's 16-bit floats lie by pairs in
// words, the first one in the low half.
[[nodiscard]] int vector_step(Dialect dialect, DType type);
// Returns the name of the vector of `lanes` elements that has the memory type of `type`: float4.
[[nodiscard]] std::string vector_type(Dialect dialect, DType type, int lanes);
// Returns the expression that makes such a vector of its elements.
[[nodiscard]] std::string make_vector(Dialect dialect, const std::string& type,
                                      const std::string& elements);

}  // namespace hone::backend::gpu
