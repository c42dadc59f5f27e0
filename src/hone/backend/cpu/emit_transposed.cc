#include "hone/backend/cpu/emit_transposed.h"

#include <algorithm>
#include <utility>

#include "hone/backend/cpu/lane_analysis.h"
#include "hone/ir/loads.h"

namespace hone::backend::cpu {
namespace {

using ir::StmtKind;
using ir::StmtNode;

constexpr int kBlock = 4;  // elements that shuffles within 128 bits can reach

// The store of  unrolled i: vectorized j: x[..] = value,  or null.
const StmtNode* only_store(const StmtNode& s) {
  const auto one_child = [](const StmtNode& node) { return node.body.size() == 1; };
  if (!ir::is_const_int(s.extent) || !one_child(s)) return nullptr;
  const StmtNode& inner = *s.body[0];
  if (inner.kind != StmtKind::kFor || inner.for_kind != ir::ForKind::kVectorized ||
      !ir::is_const_int(inner.extent) || !one_child(inner))
    return nullptr;
  const StmtNode& store = *inner.body[0];
  return store.kind == StmtKind::kStore && !ir::loads_from(store.value, store.buffer.get())
             ? &store
             : nullptr;
}

}  // namespace

// Column j of n vectors of n lanes as vector j, n a power of two from 4 to 16: within blocks of 128
// bits by interleaving words and pairs, then whole blocks.
std::vector<llvm::Value*> Squares::transposed(std::vector<llvm::Value*> rows) {
  const size_t n = rows.size();
  // Lanes of a and b (n + lane) by block and place in it.
  const auto shuffle = [&](llvm::Value* a, llvm::Value* b, auto&& source) {
    std::vector<int> mask(n);
    for (size_t i = 0; i < n; ++i)
      mask[i] = static_cast<int>(source(i / kBlock * kBlock, i % kBlock));
    return builder_.CreateShuffleVector(a, b, mask);
  };
  std::vector<llvm::Value*> next(n);
  for (size_t r = 0; r < n; r += 2) {
    for (const size_t half : {0, 1}) {
      next[r + half] = shuffle(rows[r], rows[r + 1], [&](size_t block, size_t i) {
        return block + 2 * half + i / 2 + (i % 2 == 1 ? n : 0);
      });
    }
  }
  // Four rows: the first column of every block, the second, ...
  for (size_t r = 0; r < n; r += kBlock) {
    for (size_t column = 0; column < kBlock; ++column) {
      const size_t from = r + column / 2, pair = column % 2 * 2;
      rows[r + column] = shuffle(next[from], next[from + 2], [&](size_t block, size_t i) {
        return block + pair + i % 2 + (i >= 2 ? n : 0);
      });
    }
  }
  // Whole blocks: each round gathers the even ones of two vectors in one and the odd ones in the
  // other, so that after the last block q of all rows is one vector.
  const size_t blocks = n / kBlock;
  for (size_t apart = 1; apart < blocks; apart *= 2) {
    for (size_t a = 0; a < n; ++a) {
      const size_t b = a + apart * kBlock;
      if ((a / kBlock & apart) != 0) continue;
      for (const size_t odd : {0, 1}) {
        next[odd == 0 ? a : b] = shuffle(
            rows[a], rows[b], [&](size_t block, size_t i) { return 2 * block + odd * kBlock + i; });
      }
    }
    rows = next;
  }
  return rows;
}

bool Squares::emit(const StmtNode& s) {
  const StmtNode* stored = lanes_.width > 1 ? nullptr : only_store(s);
  if (!stored) return false;
  const StmtNode& inner = *s.body[0];
  target::LoopFacts facts = find_lane_use(inner).facts;
  facts.rows = s.extent->int_value;
  facts.extent = inner.extent->int_value;
  const int64_t n = target::square_side(facts.element_bytes, target_);
  if (!facts.vectorizable || facts.rows != n || facts.extent != n ||
      dtype_bytes(stored->buffer->dtype) != facts.element_bytes)
    return false;
  const IndexForm min = indices_.index(s.min);
  IndexForm lane = indices_.index(inner.min);
  if (failed()) return false;
  lane.lane = 1;
  const Lanes outer = lanes_;
  lanes_.active = lanes_.width = static_cast<int>(n);
  space_.set_lanes(lanes_.active);
  const auto leave = [&](bool done) {
    lanes_ = outer;
    space_.set_lanes(1);
    return done;
  };
  const auto bind = [&](int64_t row) {
    IndexForm at = min;
    at.constant += row;
    space_.bind(s.var.get(), at);
    space_.bind(inner.var.get(), lane);
  };
  bind(1);
  const IndexForm second = memory_.access(stored->buffer, stored->indices).form;
  bind(0);
  Access target = memory_.access(stored->buffer, stored->indices);
  const IndexForm step = add(second, target.form, -1);
  if (failed() || !step.is_constant() || !space_.is_strided(target.form)) return leave(false);
  facts.row_stride = step.constant;
  facts.lane_stride = target.form.lane;
  if (target::plan_loop(facts, target_).kind != target::LoopKind::kSquare) return leave(false);
  ++context_.loops.squares;
  context_.loops.width = std::max(context_.loops.width, lanes_.width);
  context_.statements += n;
  std::vector<llvm::Value*> rows;
  for (int64_t row = 0; row < n && !failed(); ++row) {
    bind(row);
    rows.push_back(
        splat(conversions_.to_memory(values_.value(stored->value), stored->buffer->dtype)));
  }
  if (failed()) return leave(true);
  target.form.lane = 1;
  for (llvm::Value* column : transposed(std::move(rows))) {
    memory_.store_vector(target, column);
    target.form.constant += facts.lane_stride;
  }
  return leave(true);
}

}  // namespace hone::backend::cpu
