// backend/cpu/stack_words.h - the stack of a function whose scalar instructions are followed
// (control_slice.h): where its pointers are, and a number for each word that is named.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "hone/backend/cpu/scalar_inst.h"

namespace hone::backend::cpu {

// The places of a function's stack and frame. Addresses are made up, and those of one function
// differ from each other as they do when it runs.
struct StackPlace {
  int64_t pointer = 0;
  std::optional<int64_t> frame;  // the place of a frame pointer, if there is one
  // A place that a register has, from which the pointer is aligned, if there is one.
  std::optional<int64_t> unaligned = {};
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

}  // namespace hone::backend::cpu
