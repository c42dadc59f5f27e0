// Attention of com.microsoft: Attention, QAttention, MultiHeadAttention and RotaryEmbedding, as the
// products that passes recognize (ONNX Runtime, ContribOperators.md; what masks add is as its CPU
// provider has it).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hone/graph/ops/integer_product.h"
#include "hone/graph/ops/registry.h"
#include "hone/tensor/fill.h"

namespace hone::graph {
namespace {

struct Projections {
  ValueId query = kNoValue, key = kNoValue, value = kNoValue;  // [batch, heads, sequence, size]
};

constexpr size_t kNoOperand = 99;

// The operands that these operators have, by number.
struct Operands {
  size_t mask = 0, bias = kNoOperand;  // masks of keys, and what is added to the scores
};

class HeadedAttention {
 public:
  HeadedAttention(ExpandContext& c, const Operands& at) : c_(c), at_(at) {}

  // Computes result 0 from the projections; `past` is the number of keys before the first query.
  Status run(const Projections& p, int64_t past) {
    HONE_RETURN_IF_ERROR(c_.status());
    const Shape &q = c_.shape_of(p.query), &k = c_.shape_of(p.key), &v = c_.shape_of(p.value);
    if (q.size() != 4 || k.size() != 4 || v.size() != 4 || k[0] != q[0] || v[0] != q[0] ||
        k[1] != q[1] || v[1] != q[1] || k[3] != q[3] || v[2] != k[2]) {
      return c_.fail("queries, keys and values of shapes {}, {} and {} by heads", to_string(q),
                     to_string(k), to_string(v));
    }
    type_ = c_.dtype_of(p.query);
    scores_ = {q[0], q[1], q[2], k[2]};
    past_ = past;
    const double usual = 1 / std::sqrt(static_cast<double>(q[3]));
    const float given = c_.attributes().number("scale", 0);
    ValueId scores = c_.binary("MatMul", p.query, c_.transpose(p.key, {0, 1, 3, 2}));
    scores = c_.binary("Mul", scores, given == 0 ? usual : static_cast<double>(given));
    HONE_RETURN_IF_ERROR(add_masks(scores));
    const ValueId weights = c_.add("Softmax", {scores}, {{"axis", int64_t{-1}}});
    const ValueId sums = c_.binary("MatMul", weights, p.value);
    c_.result(0, c_.reshape(c_.transpose(sums, {0, 2, 1, 3}), {q[0], q[2], q[1] * v[3]}));
    return ok_status();
  }

 private:
  Status add_masks(ValueId& scores) {
    if (c_.attributes().integer("unidirectional", 0) != 0) {
      HONE_ASSIGN_OR_RETURN(const ValueId causal, causal_mask());
      scores = c_.binary("Add", scores, causal);
    }
    if (c_.has(at_.mask)) {
      HONE_ASSIGN_OR_RETURN(const ValueId mask, key_mask());
      scores = c_.binary("Add", scores, mask);
    }
    if (c_.has(at_.bias)) {
      if (broadcast(scores_, c_.shape(at_.bias)) != scores_)
        return c_.fail("attention_bias of shape {} for scores of shape {}",
                       to_string(c_.shape(at_.bias)), to_string(scores_));
      scores = c_.binary("Add", scores, c_.input(at_.bias));
    }
    return ok_status();
  }

  // [queries, keys]: the lowest number where a key comes after the query.
  Result<ValueId> causal_mask() {
    const int64_t queries = scores_[2], keys = scores_[3];
    HONE_ASSIGN_OR_RETURN(Tensor mask, c_.new_constant(type_, {queries, keys}));
    Tensor lowest(type_, {});
    lowest.set(0, type_ == DType::kF16 ? -65504 : std::numeric_limits<float>::lowest());
    fill_with(mask, lowest);
    const int64_t row = keys * dtype_bytes(type_);
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t seen = std::min(keys, past_ + i + 1);
      std::memset(static_cast<char*>(mask.data()) + static_cast<size_t>(i * row), 0,
                  static_cast<size_t>(seen * dtype_bytes(type_)));
    }
    return c_.constant(std::move(mask));
  }

  // Returns what is added to the scores of keys that the mask hides. Masks are of 0 and 1 as
  // [batch, keys] or [batch, queries, keys], or of the number of keys by batch, behind which begins
  // of keys may stand.
  Result<ValueId> key_mask() {
    const Shape& mask = c_.shape(at_.mask);
    const int64_t batch = scores_[0], queries = scores_[2], keys = scores_[3];
    const ValueId given = c_.input(at_.mask);
    ValueId seen = kNoValue;
    if (mask == Shape{batch, keys}) {
      seen = c_.reshape(c_.binary("Greater", given, 0.0), {batch, 1, 1, keys});
    } else if (mask == Shape{batch, queries, keys}) {
      seen = c_.reshape(c_.binary("Greater", given, 0.0), {batch, 1, queries, keys});
    } else if (mask == Shape{batch} || mask == Shape{2 * batch}) {
      const ValueId place = numbers_from_0(c_, c_.dtype_of(given), {keys});
      const auto of_batch = [&](int64_t from) {
        return c_.reshape(c_.slice(given, 0, from, from + batch), {batch, 1, 1, 1});
      };
      seen = c_.binary("Less", place, of_batch(0));
      if (mask[0] != batch)
        seen = c_.binary("And", seen, c_.binary("GreaterOrEqual", place, of_batch(batch)));
    } else {
      return c_.unsupported("a mask of shape {}, expected [{}], [{}], [{}, {}] or [{}, {}, {}]",
                            to_string(mask), batch, 2 * batch, batch, keys, batch, queries, keys);
    }
    const double hidden = static_cast<double>(c_.attributes().number("mask_filter_value", -10000));
    return c_.add("Where", {seen, c_.scalar(type_, 0), c_.scalar(type_, hidden)});
  }

  ExpandContext& c_;
  Operands at_;
  DType type_ = DType::kF32;
  Shape scores_;  // [batch, heads, queries, keys]
  int64_t past_ = 0;
};

// [batch, sequence, heads * size] as [batch, heads, sequence, size].
Result<ValueId> by_heads(ExpandContext& c, ValueId x, int64_t heads) {
  HONE_RETURN_IF_ERROR(c.status());
  const Shape shape = c.shape_of(x);
  if (shape.size() != 3 || heads < 1 || shape[2] % heads != 0)
    return c.fail("{} heads in a value of shape {}", heads, to_string(shape));
  const ValueId apart = c.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
  return c.transpose(apart, {0, 2, 1, 3});
}

Status refuse_operand(const ExpandContext& c, size_t i, const char* name) {
  return c.has(i) ? c.unsupported("the operand {}", name) : ok_status();
}
Status refuse_attribute(const ExpandContext& c, const char* name) {
  return c.attributes().integer(name, 0) != 0
             ? c.unsupported("{} is {}, expected 0", name, c.attributes().integer(name, 0))
             : ok_status();
}

// input W + bias for queries, keys and values, whose weights stand side by side.
Result<Projections> project(ExpandContext& c, int64_t heads) {
  const Shape &x = c.shape(0), &w = c.shape(1);
  if (x.size() != 3 || w.size() != 2 || w[0] != x[2])
    return c.fail("data of shape {} and weights of shape {}", to_string(x), to_string(w));
  auto sizes = c.attributes().integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, w[1] / 3);
  const bool positive =
      std::all_of(sizes.begin(), sizes.end(), [&](int64_t s) { return s > 0 && s <= w[1]; });
  if (sizes.size() != 3 || !positive || sizes[0] + sizes[1] + sizes[2] != w[1])
    return c.fail("qkv_hidden_sizes {} for weights of shape {}", to_string(sizes), to_string(w));
  if (c.has(2) && c.shape(2) != Shape{w[1]})
    return c.fail("bias of shape {} for weights of shape {}", to_string(c.shape(2)), to_string(w));
  ValueId made[3];
  int64_t from = 0;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t to = from + sizes[i];
    ValueId y = c.binary("MatMul", c.input(0), c.slice(c.input(1), 1, from, to));
    if (c.has(2)) y = c.binary("Add", y, c.slice(c.input(2), 0, from, to));
    HONE_ASSIGN_OR_RETURN(made[i], by_heads(c, y, heads));
    from = to;
  }
  return Projections{made[0], made[1], made[2]};
}

// Computes the results from projections, with keys and values of before in one operand.
Status attend(ExpandContext& c, Projections p, const Operands& at, size_t past_states) {
  int64_t past = 0;
  if (c.has(past_states)) {
    const Shape& shape = c.shape(past_states);
    if (shape.size() != 5 || shape[0] != 2)
      return c.fail("past of shape {}, expected [2, batch, heads, sequence, size]",
                    to_string(shape));
    past = shape[3];
    const Shape rest(shape.begin() + 1, shape.end());
    const auto join = [&](int64_t i, ValueId now) {
      const ValueId before = c.reshape(c.slice(c.input(past_states), 0, i, i + 1), rest);
      return c.add("Concat", {before, now}, {{"axis", int64_t{2}}});
    };
    p.key = join(0, p.key);
    p.value = join(1, p.value);
  }
  if (c.wants(1)) {
    if (c.status().ok() && c.shape_of(p.key) != c.shape_of(p.value))
      return c.fail("present of keys {} and values {}, expected one shape",
                    to_string(c.shape_of(p.key)), to_string(c.shape_of(p.value)));
    const ValueId first = c.integers({0});
    c.result(1, c.add("Concat",
                      {c.add("Unsqueeze", {p.key, first}), c.add("Unsqueeze", {p.value, first})},
                      {{"axis", int64_t{0}}}));
  }
  return HeadedAttention(c, at).run(p, past);
}

Status refuse_shared_states(const ExpandContext& c) {
  for (const char* name : {"do_rotary", "past_present_share_buffer", "rotary_embedding_dim"})
    HONE_RETURN_IF_ERROR(refuse_attribute(c, name));
  return ok_status();
}

Status expand_attention(ExpandContext& c) {
  constexpr size_t kMask = 3, kPast = 4, kBias = 5, kPastLength = 6;
  HONE_RETURN_IF_ERROR(refuse_shared_states(c));
  HONE_RETURN_IF_ERROR(refuse_operand(c, kPastLength, "past_sequence_length"));
  HONE_ASSIGN_OR_RETURN(const Projections p, project(c, c.attributes().integer("num_heads", 0)));
  return attend(c, p, {.mask = kMask, .bias = kBias}, kPast);
}

// Attention whose data and weights are bytes; all behind their product is as in Attention.
Status expand_quantized_attention(ExpandContext& c) {
  constexpr size_t kWeights = 1, kBias = 2, kScale = 3, kWeightScale = 4, kMask = 5, kZero = 6,
                   kWeightZero = 7, kPast = 8;
  HONE_RETURN_IF_ERROR(refuse_shared_states(c));
  const Shape &x = c.shape(0), &w = c.shape(kWeights);
  if (x.size() != 3 || w.size() != 2 || w[0] != x[2] || w[1] % 3 != 0)
    return c.fail(
        "data of shape {} and weights of shape {}, expected [batch, sequence, K] and "
        "[K, 3 * hidden]",
        to_string(x), to_string(w));
  const int64_t width = w[1] / 3;
  if (c.shape(kBias) != Shape{w[1]})
    return c.fail("bias of shape {}, expected [{}]", to_string(c.shape(kBias)), w[1]);
  HONE_ASSIGN_OR_RETURN(const ValueId data, centered(c, 0, kZero, kNoAxis));
  HONE_ASSIGN_OR_RETURN(const ValueId weights, centered(c, kWeights, kWeightZero, 1));
  HONE_ASSIGN_OR_RETURN(const ValueId scale, scale_of(c, kScale, kNoAxis, 3));
  HONE_ASSIGN_OR_RETURN(const ValueId weight_scale, scale_of(c, kWeightScale, 2, 3));
  const ValueId sum = c.cast(c.binary("MatMul", data, weights), DType::kF32);
  const ValueId scaled = c.binary("Mul", sum, c.binary("Mul", scale, weight_scale));
  HONE_RETURN_IF_ERROR(c.status());
  if (c.shape_of(scaled) != c.shape_of(sum))
    return c.fail("scales of shapes {} and {} for weights of shape {}", to_string(c.shape(kScale)),
                  to_string(c.shape(kWeightScale)), to_string(w));
  const ValueId y = c.binary("Add", c.cast(scaled, c.dtype(kBias)), c.input(kBias));
  ValueId made[3];
  for (int64_t i = 0; i < 3; ++i) {
    const ValueId part = c.slice(y, 2, i * width, (i + 1) * width);
    HONE_ASSIGN_OR_RETURN(made[i], by_heads(c, part, c.attributes().integer("num_heads", 0)));
  }
  return attend(c, {made[0], made[1], made[2]}, {.mask = kMask}, kPast);
}

// The operands of MultiHeadAttention, which may be packed, and their biases.
class Unpacked {
 public:
  Unpacked(ExpandContext& c, int64_t heads) : c_(c), heads_(heads) {}

  Result<Projections> run() {
    if (heads_ < 1) return c_.fail("{} heads", heads_);
    Projections p;
    if (c_.rank(0) == 5) {  // [batch, sequence, heads, 3, size]
      HONE_RETURN_IF_ERROR(check_packed(0, 3));
      p = {part(0, 0), part(0, 1), part(0, 2)};
    } else if (c_.has(1) && c_.rank(1) == 5) {  // [batch, sequence, heads, 2, size]
      HONE_RETURN_IF_ERROR(check_packed(1, 2));
      p = {c_.input(0), part(1, 0), part(1, 1)};
    } else {
      if (!c_.has(1) || !c_.has(2)) return c_.fail("neither keys and values nor packed operands");
      p = {c_.input(0), c_.input(1), c_.input(2)};
    }
    HONE_RETURN_IF_ERROR(c_.status());
    int64_t from = 0;
    for (ValueId* one : {&p.query, &p.key, &p.value}) HONE_RETURN_IF_ERROR(finish(*one, from));
    if (c_.has(3) && c_.shape(3) != Shape{from})
      return c_.fail("bias of shape {}, expected [{}]", to_string(c_.shape(3)), from);
    return p;
  }

 private:
  Status check_packed(size_t i, int64_t parts) {
    const Shape& x = c_.shape(i);
    if (x[2] == heads_ && x[3] == parts && !c_.has(2) && (i == 1 || !c_.has(1))) return ok_status();
    return c_.fail("packed operand of shape {}, expected [batch, sequence, {}, {}, size] alone",
                   to_string(x), heads_, parts);
  }
  // [batch, sequence, heads * size]
  ValueId part(size_t i, int64_t k) {
    const Shape& x = c_.shape(i);
    return c_.reshape(c_.slice(c_.input(i), 3, k, k + 1), {x[0], x[1], x[2] * x[4]});
  }
  // Adds the part of the bias from `from` on, which ends up behind it. Keys and values that come by
  // heads have had theirs.
  Status finish(ValueId& x, int64_t& from) {
    const Shape shape = c_.shape_of(x);
    const bool headed = shape.size() == 4;
    const int64_t size = headed ? shape[1] * shape[3] : shape.empty() ? 0 : shape.back();
    if (c_.has(3) && !headed) {
      if (c_.rank(3) != 1 || c_.shape(3)[0] < from + size)
        return c_.fail("bias of shape {} for operands of {} and more", to_string(c_.shape(3)),
                       from + size);
      x = c_.binary("Add", x, c_.slice(c_.input(3), 0, from, from + size));
    }
    from += size;
    if (headed) return ok_status();
    HONE_ASSIGN_OR_RETURN(x, by_heads(c_, x, heads_));
    return ok_status();
  }

  ExpandContext& c_;
  int64_t heads_;
};

Status expand_multi_head_attention(ExpandContext& c) {
  constexpr size_t kMask = 4, kBias = 5, kPastKey = 6, kPastValue = 7;
  HONE_RETURN_IF_ERROR(refuse_operand(c, 8, "past_sequence_length"));
  HONE_RETURN_IF_ERROR(refuse_operand(c, 9, "cache_indirection"));
  if (c.wants(3)) return c.unsupported("the result qk");
  if (c.has(kPastKey) != c.has(kPastValue))
    return c.fail("past_key and past_value must be given together");
  HONE_ASSIGN_OR_RETURN(Projections p, Unpacked(c, c.attributes().integer("num_heads", 0)).run());
  int64_t past = 0;
  if (c.has(kPastKey)) {
    if (c.rank(kPastKey) != 4 || c.rank(kPastValue) != 4)
      return c.fail("past states are not of rank 4");
    past = c.shape(kPastKey)[2];
    p.key = c.add("Concat", {c.input(kPastKey), p.key}, {{"axis", int64_t{2}}});
    p.value = c.add("Concat", {c.input(kPastValue), p.value}, {{"axis", int64_t{2}}});
  }
  c.result(1, p.key);
  c.result(2, p.value);
  return HeadedAttention(c, {.mask = kMask, .bias = kBias}).run(p, past);
}

// The operator of ONNX, whose caches come before the positions. One position is that of the first
// element of every sequence.
Status expand_rotary(ExpandContext& c) {
  if (c.extents_of(c.input(0)) != kNoValue)
    return c.unsupported("data whose shape depends on other data");
  HONE_RETURN_IF_ERROR(refuse_attribute(c, "is_packed_batching"));
  if (c.attributes().number("scale", 1) != 1)
    return c.unsupported("scale is {}, expected 1", c.attributes().number("scale", 1));
  const Shape& x = c.shape(0);
  if ((x.size() != 3 && x.size() != 4) || c.rank(2) != 2)
    return c.fail("data of shape {} and a cache of shape {}", to_string(x), to_string(c.shape(2)));
  const int64_t batch = x[0], length = x.size() == 3 ? x[1] : x[2];
  int64_t heads = c.attributes().integer("num_heads", 0);
  const int64_t size = 2 * c.shape(2)[1];
  if (heads == 0 && x.size() == 3 && size > 0) heads = x[2] / size;
  ValueId places = c.input(1);
  if (c.shape(1) == Shape{1} && length * batch != 1) {
    HONE_ASSIGN_OR_RETURN(Tensor steps, c.new_constant(c.dtype(1), {1, length}));
    for (int64_t i = 0; i < length; ++i) steps.set(i, static_cast<double>(i));
    places = c.binary("Add", c.constant(std::move(steps)), places);
    places = c.add("Expand", {places, c.integers({batch, length})});
  }
  places = c.shape_of(places) == Shape{1} ? c.reshape(places, {1, 1}) : places;
  if (c.shape_of(places) != Shape{batch, length})
    return c.fail("position_ids of shape {}, expected [1] or [{}, {}]", to_string(c.shape(1)),
                  batch, length);
  const Attributes& a = c.attributes();
  c.result(0, c.add("RotaryEmbedding", {c.input(0), c.input(2), c.input(3), places},
                    {{"interleaved", a.integer("interleaved", 0)},
                     {"num_heads", heads},
                     {"rotary_embedding_dim", a.integer("rotary_embedding_dim", 0)}}));
  return ok_status();
}

}  // namespace

std::span<const Op> microsoft_attention_ops() {
  static const Op ops[] = {
      expanded_op("com.microsoft.Attention", 1, {2, 7, 2},
                  "do_rotary:i mask_filter_value:f num_heads:i past_present_share_buffer:i "
                  "qkv_hidden_sizes:is rotary_embedding_dim:i scale:f unidirectional:i",
                  expand_attention),
      expanded_op("com.microsoft.QAttention", 1, {5, 9, 2},
                  "do_rotary:i mask_filter_value:f num_heads:i past_present_share_buffer:i scale:f "
                  "unidirectional:i",
                  expand_quantized_attention),
      expanded_op("com.microsoft.MultiHeadAttention", 1, {1, 10, 4},
                  "mask_filter_value:f num_heads:i scale:f unidirectional:i",
                  expand_multi_head_attention),
      expanded_op("com.microsoft.RotaryEmbedding", 1, {4, 4, 1},
                  "interleaved:i is_packed_batching:i num_heads:i rotary_embedding_dim:i scale:f",
                  expand_rotary),
  };
  return ops;
}

}  // namespace hone::graph
