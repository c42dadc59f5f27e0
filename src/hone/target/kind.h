// target/kind.h - the kinds of devices, which differ in how programs are lowered, compiled and
// launched. Each kind has its own back end (backend/registry.h) and its own description (cpu.h,
// gpu.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace hone::target {

enum class Kind : uint8_t { kCpu, kGpu };
inline constexpr int kKinds = 2;

[[nodiscard]] std::string_view kind_name(Kind kind);

}  // namespace hone::target
