// target/arm_id.h - which core of 64-bit Arm this is, from the register that says it (MIDR_EL1).
#pragma once

#include <cstdint>
#include <string>

namespace hone::target {

// Returns the register of the core that the call runs on, which Linux lets programs read; 0 if this
// is no 64-bit Arm or the system does not say it.
[[nodiscard]] uint64_t read_midr();
// Returns LLVM's name of the core, or of the one with a row in the table of machines that is most
// like it; "generic" for others.
[[nodiscard]] std::string arm_cpu(uint64_t midr);

}  // namespace hone::target
