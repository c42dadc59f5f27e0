#include "hone/graph/ops/sort_pairs.h"

#include <utility>

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

constexpr int64_t kDigits = 256;
constexpr int64_t kFew = 24;  // up to which a sort by insertion takes less time

// Rises with the float whose bits these are, numbers of both signs alike.
Expr rising_bits(const Expr& bits) {
  const DType type = bits->type;
  const int64_t width = 8 * dtype_bytes(type);
  const Expr sign = ir::make(ir::Op::kShr, {bits, ir::constant_int(width - 1, type)});
  const int64_t all_but_sign = width == 64 ? INT64_MAX : (int64_t{1} << (width - 1)) - 1;
  const Expr flip = ir::make(ir::Op::kBitAnd, {sign, ir::constant_int(all_but_sign, type)});
  return ir::make(ir::Op::kBitXor, {bits, flip});
}

Expr digit(const Expr& key, int64_t byte) {
  const Expr shifted = ir::make(ir::Op::kShr, {ir::cast(DType::kI64, key), ir::constant(8 * byte)});
  const Expr low = ir::make(ir::Op::kBitAnd, {shifted, ir::constant(kDigits - 1)});
  const bool has_sign = byte == dtype_bytes(key->type) - 1;
  return has_sign ? ir::make(ir::Op::kBitXor, {low, ir::constant(kDigits / 2)}) : low;
}

}  // namespace

DType sort_key_type(DType value) {
  return dtype_bytes(value) > 4 || value == DType::kU32 ? DType::kI64 : DType::kI32;
}

Expr sort_key(const Expr& value, bool largest_first, NanOrder nan) {
  const DType type = sort_key_type(value->type);
  const auto turned = [&](const Expr& key) {
    return largest_first ? ir::constant_int(-1, type) - key : key;
  };
  if (value->type == DType::kU64)
    return turned(
        ir::make(ir::Op::kBitXor, {ir::bit_cast(type, value), ir::constant_int(INT64_MIN, type)}));
  if (!is_float(value->type)) return turned(ir::cast(type, value));
  const Expr zero = literal(value->type, 0);
  const Expr is_zero = ir::make(ir::Op::kEq, {value, zero});
  const Expr is_number = ir::less_equal(ir::make(ir::Op::kAbs, {value}), highest(value->type));
  const Expr key = turned(rising_bits(ir::bit_cast(type, ir::select(is_zero, zero, value))));
  return ir::select(is_number, key, nan == NanOrder::kFirst ? lowest(type) : highest(type));
}

SortPairs::SortPairs(DType key, int64_t most)
    : key_(ir::make_buffer("key", key, {most}, ir::Scope::kThread)),
      place_(ir::make_buffer("place", DType::kI64, {most}, ir::Scope::kThread)),
      other_key_(ir::make_buffer("other_key", key, {most}, ir::Scope::kThread)),
      other_place_(ir::make_buffer("other_place", DType::kI64, {most}, ir::Scope::kThread)),
      counts_(
          ir::make_buffer("counts", DType::kI64, {dtype_bytes(key) * kDigits}, ir::Scope::kThread)),
      at_("at", DType::kI64) {}

std::vector<Stmt> SortPairs::put(const Expr& at, const Expr& key, const Expr& place) const {
  return {ir::make_store(key_, {at}, key), ir::make_store(place_, {at}, place)};
}

std::vector<Stmt> SortPairs::add(const Local& count, const Expr& key, const Expr& place) const {
  std::vector<Stmt> steps = put(count.get(), key, place);
  steps.push_back(count.set(count.get() + 1));
  return steps;
}

Stmt SortPairs::sort(const Expr& count) const {
  const Expr few = ir::less_equal(count, ir::constant(kFew));
  return ir::make_block({ir::make_if(few, {sort_few(count)}),
                         ir::make_if(ir::make(ir::Op::kNot, {few}), {sort_many(count)})});
}

// Each pair moves up past those with greater keys.
Stmt SortPairs::sort_few(const Expr& count) const {
  return count_to("i", count, [&](const Expr& i) {
    const Expr key = ir::load(other_key_, {ir::constant(0)}),
               place = ir::load(other_place_, {ir::constant(0)});
    const Expr before = ir::max(at_.get() + -1, ir::constant(0));
    std::vector<Stmt> move = put(at_.get(), this->key(before), this->place(before));
    move.push_back(at_.set(before));
    const Expr goes_on =
        ir::logical_and(ir::less(ir::constant(0), at_.get()), ir::less(key, this->key(before)));
    std::vector<Stmt> steps = {
        ir::make_store(other_key_, {ir::constant(0)}, this->key(i)),
        ir::make_store(other_place_, {ir::constant(0)}, this->place(i)), at_.set(i),
        count_to("j", i, [&](const Expr&) { return std::vector{ir::make_if(goes_on, move)}; })};
    for (Stmt& step : put(at_.get(), key, place)) steps.push_back(std::move(step));
    return steps;
  });
}

Stmt SortPairs::sort_many(const Expr& count) const {
  const int64_t bytes = dtype_bytes(key_->dtype);
  const auto counted = [&](const Expr& i) { return ir::load(counts_, {i}); };
  std::vector<Stmt> steps = {count_to("d", ir::constant(bytes * kDigits), [&](const Expr& d) {
    return std::vector{ir::make_store(counts_, {d}, ir::constant(0))};
  })};
  steps.push_back(count_to("i", count, [&](const Expr& i) {
    std::vector<Stmt> counting;
    for (int64_t byte = 0; byte < bytes; ++byte) {
      const Expr at = digit(ir::load(key_, {i}), byte) + byte * kDigits;
      counting.push_back(ir::make_store(counts_, {at}, counted(at) + 1));
    }
    return counting;
  }));
  struct Pairs {
    ir::BufferPtr key, place;
  };
  Pairs from{key_, place_}, to{other_key_, other_place_};
  for (int64_t byte = 0; byte < bytes; ++byte) {
    // Counts become places: where the first pair with the digit goes.
    steps.push_back(at_.set(ir::constant(0)));
    steps.push_back(count_to("d", ir::constant(kDigits), [&](const Expr& d) {
      const Expr slot = d + byte * kDigits;
      return std::vector{at_.set(at_.get() + counted(slot)),
                         ir::make_store(counts_, {slot}, at_.get() - counted(slot))};
    }));
    steps.push_back(count_to("i", count, [&](const Expr& i) {
      const Expr key = ir::load(from.key, {i});
      const Expr slot = digit(key, byte) + byte * kDigits;
      return std::vector{at_.set(counted(slot)), ir::make_store(to.key, {at_.get()}, key),
                         ir::make_store(to.place, {at_.get()}, ir::load(from.place, {i})),
                         ir::make_store(counts_, {slot}, at_.get() + 1)};
    }));
    std::swap(from, to);
  }
  return ir::make_block(std::move(steps));
}

Stmt SortPairs::with_memory(std::vector<Stmt> body) const {
  body = {with_locals({at_}, std::move(body))};
  for (const ir::BufferPtr& buffer : {key_, place_, other_key_, other_place_, counts_})
    body = {ir::make_alloc(buffer, std::move(body))};
  return body[0];
}

}  // namespace hone::graph
