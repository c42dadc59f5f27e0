#include "hone/ir/touch_recorder.h"

#include <algorithm>
#include <bit>

namespace hone::ir {
namespace {

constexpr int kWholeBuffer = -2;

}  // namespace

TouchRecorder::TouchRecorder(const Bytecode& code, const Memory& memory) {
  for (const Access& a : code.accesses) {
    const Storage& storage = memory[a.buffer];
    const int64_t by_statement = bits_of(a.statement, storage, a.is_store);
    access_bits_.emplace_back(by_statement, bits_of(kWholeBuffer, storage, a.is_store));
  }
}

int64_t TouchRecorder::bits_of(int statement, const Storage& storage, bool is_store) {
  for (size_t i = 0; i < bits_.size(); ++i) {
    const Touch& t = bits_[i].touch;
    if (t.statement == statement && t.buffer == storage.buffer && t.is_store == is_store)
      return static_cast<int64_t>(i);
  }
  bits_.push_back({{statement, storage.buffer, is_store}, {}});
  bits_.back().words.resize(storage.cells.size() / 64 + 1);
  return static_cast<int64_t>(bits_.size()) - 1;
}

void TouchRecorder::report(TouchReport& out) {
  for (Bits& bits : bits_) {
    Touch& t = bits.touch;
    const std::vector<int64_t>& shape = t.buffer->shape;
    for (size_t w = 0; w < bits.words.size(); ++w) {
      for (uint64_t word = bits.words[w]; word != 0; word &= word - 1) {
        int64_t flat = static_cast<int64_t>(w) * 64 + std::countr_zero(word);
        if (t.distinct++ == 0) t.low = shape, t.high.assign(shape.size(), -1);
        for (size_t d = shape.size(); d-- > 0; flat /= shape[d]) {
          t.low[d] = std::min(t.low[d], flat % shape[d]);
          t.high[d] = std::max(t.high[d], flat % shape[d]);
        }
      }
    }
    const bool whole = t.statement == kWholeBuffer;
    if (whole) t.statement = -1;
    (whole ? out.by_buffer : out.by_statement).push_back(std::move(t));
  }
}

}  // namespace hone::ir
