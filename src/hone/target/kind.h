// target/kind.h - the kinds of devices, which differ in how programs are lowered, compiled and
// launched. Each kind has its own back end (backend/registry.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace hone::target {

struct Target;

enum class Kind : uint8_t { kCpu, kGpu };
inline constexpr int kKinds = 2;

[[nodiscard]] std::string_view kind_name(Kind kind);
// Returns the kind of a device. The first part of its triple decides.
[[nodiscard]] Kind kind_of(const Target& target);

}  // namespace hone::target
