// backend/cpu/scalar_x86.h - says what x86-64 instructions do to scalar values (scalar_inst.h).
#pragma once

#include <map>
#include <optional>

#include "hone/backend/cpu/machine_code.h"
#include "hone/backend/cpu/scalar_inst.h"

namespace hone::backend::cpu {

// The places of a function's stack and frame. Addresses are made up, and those of one function
// differ from each other as they do when it runs.
struct StackPlace {
  int64_t pointer = 0;
  std::optional<int64_t> frame;  // the place of a frame pointer, if there is one
  friend bool operator==(const StackPlace&, const StackPlace&) = default;
};

// Numbers the words of the stack that instructions name by constant distances.
class StackWords {
 public:
  [[nodiscard]] Variable at(int64_t address) {
    const auto [found, made] = words_.try_emplace(address, next_);
    if (made) ++next_;
    return found->second;
  }
  [[nodiscard]] int num_variables() const { return next_; }
  [[nodiscard]] const std::map<int64_t, Variable>& all() const { return words_; }

 private:
  std::map<int64_t, Variable> words_;
  Variable next_ = kFirstWord;
};

// Appends what an instruction does, and moves `place` where it changes the stack's pointer.
// Instructions that it doesn't know make all that they write unknown.
void decode_x86(const Instruction& code, StackPlace& place, StackWords& words,
                std::vector<ScalarInst>& out);
// Returns the condition of a conditional branch.
[[nodiscard]] Condition branch_condition_x86(const Instruction& code);
// Returns the variable of a register of any width; kNoVariable if it is no general register, and
// kFlags for the flags.
[[nodiscard]] Variable register_x86(std::string_view name);

}  // namespace hone::backend::cpu
