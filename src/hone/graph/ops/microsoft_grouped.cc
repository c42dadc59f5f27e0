// GroupQueryAttention of com.microsoft: attention of groups of heads with a cache of keys and
// values, as exporters of language models write it (ONNX Runtime, ContribOperators.md). It is
// RotaryEmbedding, TensorScatter and Attention of ONNX.
#include <cmath>

#include "hone/graph/node_names.h"
#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/ops/microsoft_quantized.h"

namespace hone::graph {
namespace {

class GroupedAttention {
 public:
  explicit GroupedAttention(ExpandContext& c)
      : c_(c), causal_(c.attributes().integer("causal", 1) != 0) {}

  Status run() {
    HONE_RETURN_IF_ERROR(refuse());
    HONE_RETURN_IF_ERROR(read_operands());
    if (c_.attributes().integer("do_rotary", 0) != 0) HONE_RETURN_IF_ERROR(turn());
    const ValueId keys = cached(kPastKey, key_), values = cached(kPastValue, value_);
    c_.result(1, keys);
    c_.result(2, values);
    const auto seen = [&](ValueId x) {
      return capacity_ == total_ ? x : c_.slice(x, 2, 0, total_);
    };
    // In a first text, of which the causal mask hides the padding from valid queries, the places of
    // queries do not follow from the lengths.
    const ValueId lengths = first_ && causal_ ? kNoValue : lengths_;
    const ValueId y = attend(
        {query_, seen(keys), seen(values), c_.input(kBias), kNoValue, kNoValue, lengths, sinks()});
    c_.result(0, c_.reshape(c_.transpose(y, {0, 2, 1, 3}), {batch_, length_, heads_ * size_}));
    return ok_status();
  }

 private:
  static constexpr size_t kPastKey = 3, kPastValue = 4, kLengths = 5, kTotal = 6, kCos = 7,
                          kSin = 8, kPlaces = 9, kBias = 10, kSinks = 11;

  Status refuse() const {
    const Attributes& a = c_.attributes();
    for (const char* name : {"qk_output", "sliding_window_cache", "kv_cache_bit_width"}) {
      if (a.integer(name, 0) != 0) return c_.unsupported("{} is {}", name, a.integer(name, 0));
    }
    if (a.integer("causal", 1) == 0 && a.integer("local_window_size", -1) >= 1)
      return c_.unsupported("causal is 0 and local_window_size is {}",
                            a.integer("local_window_size", -1));
    for (const char* name : {"k_quant_type", "v_quant_type"}) {
      const std::string type = a.text(name, "NONE");
      if (type != "NONE") return c_.unsupported("{} is '{}', expected NONE", name, type);
    }
    constexpr const char* kOthers[] = {"k_scale", "v_scale", "q_norm_weight", "k_norm_weight",
                                       "query_seqlens"};
    for (size_t i = 0; i < std::size(kOthers); ++i) {
      if (c_.has(kSinks + 1 + i)) return c_.unsupported("the operand {}", kOthers[i]);
    }
    return c_.wants(3) ? c_.unsupported("the result output_qk") : ok_status();
  }

  Status read_operands() {
    const Shape& x = c_.shape(0);
    heads_ = c_.attributes().integer("num_heads", 0);
    groups_ = c_.attributes().integer("kv_num_heads", 0);
    if (x.size() != 3 || c_.has(1) != c_.has(2))
      return c_.fail("query of shape {}, expected [batch, sequence, size] and key and value {}",
                     to_string(x), c_.has(1) ? "together" : "with it");
    if (heads_ < 1 || groups_ < 1 || heads_ > x[2] || heads_ % groups_ != 0)
      return c_.fail("num_heads is {} and kv_num_heads is {}, expected a multiple of it", heads_,
                     groups_);
    batch_ = x[0], length_ = x[1];
    const int64_t parts = c_.has(1) ? heads_ : heads_ + 2 * groups_;
    size_ = x[2] / parts;
    if (size_ < 1 || x[2] % parts != 0)
      return c_.fail("query of shape {} for {} heads", to_string(x), parts);
    if (c_.has(1)) {
      const Shape expected = {batch_, length_, groups_ * size_};
      if (c_.shape(1) != expected || c_.shape(2) != expected)
        return c_.fail("key of shape {} and value of shape {}, expected {}", to_string(c_.shape(1)),
                       to_string(c_.shape(2)), to_string(expected));
      query_ = c_.input(0), key_ = c_.input(1), value_ = c_.input(2);
    } else {
      const int64_t first = heads_ * size_, second = first + groups_ * size_;
      query_ = c_.slice(c_.input(0), 2, 0, first);
      key_ = c_.slice(c_.input(0), 2, first, second);
      value_ = c_.slice(c_.input(0), 2, second, x[2]);
    }
    HONE_RETURN_IF_ERROR(check_sinks());
    query_ = by_heads(query_, heads_), key_ = by_heads(key_, groups_);
    value_ = by_heads(value_, groups_);
    return read_lengths();
  }

  [[nodiscard]] bool is_smooth() const { return c_.attributes().integer("smooth_softmax", 0) == 1; }
  [[nodiscard]] Status check_sinks() const {
    if (!c_.has(kSinks)) return ok_status();
    if (is_smooth())
      return c_.fail("smooth_softmax is 1 and head_sink is given, expected one of them");
    if (c_.shape(kSinks) == Shape{heads_} && c_.dtype(kSinks) == c_.dtype(0)) return ok_status();
    return c_.fail("head_sink {} {}, expected {} [{}]", dtype_name(c_.dtype(kSinks)),
                   to_string(c_.shape(kSinks)), dtype_name(c_.dtype(0)), heads_);
  }

  // The scores of a key of its own in each head, of which the values are zero: [heads] or [1].
  ValueId sinks() {
    if (c_.has(kSinks)) return c_.input(kSinks);
    return is_smooth() ? c_.reshape(c_.scalar(c_.dtype(0), 0), {1}) : kNoValue;
  }

  ValueId by_heads(ValueId x, int64_t heads) {
    return c_.transpose(c_.reshape(x, {batch_, length_, heads, size_}), {0, 2, 1, 3});
  }

  // How many tokens there are in all, and those of each sequence; the new ones are its last.
  Status read_lengths() {
    if (!c_.has(kLengths) || !c_.has(kTotal))
      return c_.fail("seqlens_k or total_sequence_length is missing");
    HONE_ASSIGN_OR_RETURN(const auto total, c_.integers(kTotal, "total_sequence_length"));
    if (total.size() != 1 || total[0] < length_)
      return c_.fail("total_sequence_length {} of {} new tokens", to_string(total), length_);
    if (num_elements(c_.shape(kLengths)) != batch_)
      return c_.fail("seqlens_k of shape {}, expected [{}]", to_string(c_.shape(kLengths)), batch_);
    total_ = capacity_ = total[0];
    first_ = total_ == length_;
    lengths_ = c_.cast(c_.reshape(c_.input(kLengths), {batch_}), DType::kI64);
    lengths_ = c_.binary("Add", lengths_, 1.0);
    HONE_RETURN_IF_ERROR(check_lengths());
    start_ = c_.binary("Sub", lengths_, static_cast<double>(length_));
    if (c_.has(kPastKey) != c_.has(kPastValue))
      return c_.fail("past_key and past_value must be given together");
    if (!c_.has(kPastKey)) return check_room();
    for (const size_t i : {kPastKey, kPastValue}) {
      const Shape& past = c_.shape(i);
      if (past.size() != 4 || past[2] != c_.shape(kPastKey)[2] ||
          past != Shape{batch_, groups_, past[2], size_} || c_.dtype(i) != c_.dtype(0))
        return c_.fail("past states {} {}, expected {} [{}, {}, past, {}]", dtype_name(c_.dtype(i)),
                       to_string(past), dtype_name(c_.dtype(0)), batch_, groups_, size_);
    }
    past_ = c_.shape(kPastKey)[2];
    capacity_ = std::max(total_, past_);
    return check_room();
  }

  // All tokens but the new ones come from the cache that is given.
  Status check_room() const {
    if (past_ >= total_ - length_) return ok_status();
    return c_.fail("total_sequence_length is {} for {} new tokens and {} in the past states",
                   total_, length_, past_);
  }

  // A run fails where a sequence has more tokens than total_sequence_length says, or, after a first
  // text, fewer than there are new ones.
  Status check_lengths() {
    ValueId fails = c_.binary("Greater", lengths_, static_cast<double>(total_));
    if (!first_)
      fails = c_.binary("Or", fails, c_.binary("Less", lengths_, static_cast<double>(length_)));
    const ValueId count = c_.reduce("ReduceSum", c_.cast(fails, DType::kI64), {0});
    const ValueId any = c_.reshape(c_.binary("Greater", count, 0.0), {});
    ValueId& checked = first_ && causal_ ? query_ : lengths_;
    HONE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        LoopBuilder::add_fault(
            c_, any,
            {.beyond = fmt::format("{}: seqlens_k + 1 of a sequence does not lie between {} and "
                                   "total_sequence_length, which is {}",
                                   name_and_type(c_.node()), first_ ? 0 : length_, total_)},
            {checked}));
    checked = made[0];
    return c_.status();
  }

  // Turns queries and keys by the angles of their places.
  Status turn() {
    if (!c_.has(kCos) || !c_.has(kSin) || c_.rank(kCos) != 2)
      return c_.fail("do_rotary without cos_cache and sin_cache [positions, angles]");
    const ValueId steps = numbers_from_0(c_, DType::kI64, {1, length_});
    ValueId places = c_.input(kPlaces);
    if (places != kNoValue && c_.dtype_of(places) == DType::kI64 &&
        c_.shape_of(places) != Shape{batch_, length_} && !first_)
      return c_.fail("position_ids of shape {}, expected [{}, {}]", to_string(c_.shape(kPlaces)),
                     batch_, length_);
    if (first_) {  // the first position stands for all
      const ValueId from =
          places == kNoValue
              ? c_.integers({0})
              : c_.slice(c_.reshape(places, {num_elements(c_.shape(kPlaces))}), 0, 0, 1);
      places = c_.binary("Add", steps, from);
      if (batch_ != 1) places = c_.add("Expand", {places, c_.integers({batch_, length_})});
    } else if (places == kNoValue) {
      places = c_.binary("Add", c_.reshape(start_, {batch_, 1}), steps);
    }
    const Attributes& a = c_.attributes();
    for (ValueId* x : {&query_, &key_}) {
      *x = c_.add("RotaryEmbedding", {*x, c_.input(kCos), c_.input(kSin), places},
                  {{"interleaved", a.integer("rotary_interleaved", 0)},
                   {"rotary_embedding_dim", 2 * c_.shape(kCos)[1]}});
    }
    return c_.status();
  }

  // Returns the cache with the new tokens in it, which begin where the old ones of a sequence end.
  ValueId cached(size_t past, ValueId now) {
    if (first_ && capacity_ == length_) return now;
    if (first_)
      return c_.add("Concat", {now, c_.slice(c_.input(past), 2, length_, capacity_)},
                    {{"axis", int64_t{2}}});
    const ValueId zero = c_.scalar(c_.dtype(0), 0);
    ValueId cache = past_ == 0 ? uniform(c_, c_.dtype(0), {batch_, groups_, capacity_, size_}, 0)
                               : c_.input(past);
    if (past_ != 0 && past_ < capacity_)
      cache = c_.add("Pad", {cache, c_.integers({0, 0, 0, 0, 0, 0, capacity_ - past_, 0}), zero});
    return c_.add("TensorScatter", {cache, now, start_}, {{"axis", int64_t{2}}});
  }

  ValueId attend(const std::vector<ValueId>& operands) {
    const Attributes& a = c_.attributes();
    const char* type = operands.back() == kNoValue ? "Attention" : "hone.SinkAttention";
    const int64_t window = a.integer("local_window_size", -1);
    const float scale = a.number("scale", 0);
    const double usual = 1 / std::sqrt(static_cast<double>(size_));
    return c_.add(type, operands,
                  {{"is_causal", int64_t{causal_}},
                   {"left_window_size", window < 1 ? int64_t{-1} : window - 1},
                   {"scale", scale == 0 ? static_cast<float>(usual) : scale},
                   {"softcap", a.number("softcap", 0)}});
  }

  ExpandContext& c_;
  bool causal_;  // no query sees the tokens behind it
  int64_t batch_ = 0, length_ = 0, heads_ = 0, groups_ = 0, size_ = 0;
  int64_t total_ = 0, past_ = 0, capacity_ = 0;  // tokens in all, those of before, room for them
  bool first_ = false;                           // there are no tokens of before
  ValueId query_ = kNoValue, key_ = kNoValue, value_ = kNoValue;  // [batch, heads, sequence, size]
  ValueId lengths_ = kNoValue, start_ = kNoValue;  // [batch]: tokens in all, place of the first new
};

Status expand_grouped_attention(ExpandContext& c) { return GroupedAttention(c).run(); }

}  // namespace

std::span<const Op> microsoft_grouped_ops() {
  static const Op ops[] = {
      expanded_op("com.microsoft.GroupQueryAttention", 1, {1, 17, 4},
                  "causal:i do_rotary:i k_norm_epsilon:f k_quant_type:s kv_cache_bit_width:i "
                  "kv_num_heads:i local_window_size:i num_heads:i q_norm_epsilon:f "
                  "qk_norm_epsilon:f qk_output:i rotary_interleaved:i scale:f "
                  "sliding_window_cache:i smooth_softmax:i softcap:f v_quant_type:s",
                  expand_grouped_attention),
  };
  return ops;
}

}  // namespace hone::graph
