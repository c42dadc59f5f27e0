// ir/touch_recorder.h - which elements of its buffers a program touches: a bit each, for every
// statement and for every buffer.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hone/ir/bytecode.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/interpreter_memory.h"

namespace hone::ir {

class TouchRecorder {
 public:
  TouchRecorder(const Bytecode& code, const Memory& memory);

  // Notes that an access, by its position in the code, touches an element.
  void touch(int32_t access, int64_t element) {
    bits_[access_bits_[access].first].set(element);
    bits_[access_bits_[access].second].set(element);
  }
  // Appends what was noted; nothing is left here.
  void report(TouchReport& out);

 private:
  struct Bits {
    Touch touch;
    std::vector<uint64_t> words;
    void set(int64_t i) {
      ++touch.count;
      words[i >> 6] |= uint64_t{1} << (i & 63);
    }
  };
  int64_t bits_of(int statement, const Storage& storage, bool is_store);

  std::vector<Bits> bits_;
  std::vector<std::pair<int64_t, int64_t>> access_bits_;  // per access: by statement, by buffer
};

}  // namespace hone::ir
