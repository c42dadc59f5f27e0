// Attention: softmax(Q K^T scale + bias) V by heads, as the products that passes recognize. Heads
// that share keys and values (grouped queries) are rows of one product. hone.SinkAttention has one
// more operand, the sinks [heads] or [1]: the score of a key of its own, whose value is zero.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/type_code.h"
#include "hone/tensor/fill.h"

namespace hone::graph {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

struct Heads {
  int64_t batch, heads, groups, queries, keys, depth, values;
};

class Attention {
 public:
  explicit Attention(ExpandContext& c) : c_(c), type_(c.dtype(0)) {}

  Status run() {
    HONE_RETURN_IF_ERROR(read_operands());
    const int64_t rows = h_.heads / h_.groups * h_.queries;
    const Shape by_head = {h_.batch, h_.heads, h_.queries, h_.keys};
    const Shape by_group = {h_.batch, h_.groups, rows, h_.keys};
    const ValueId query = c_.reshape(query_, {h_.batch, h_.groups, rows, h_.depth});
    const ValueId products = c_.binary("MatMul", query, c_.transpose(key_, {0, 1, 3, 2}));
    const double scale = c_.attributes().number(
        "scale", static_cast<float>(1 / std::sqrt(static_cast<double>(h_.depth))));
    ValueId scores = c_.binary("Mul", c_.reshape(products, by_head), scale);
    std::vector<ValueId> stages = {scores};
    const double cap = c_.attributes().number("softcap", 0);
    if (cap > 0) {
      const ValueId capped = c_.add("Tanh", {c_.binary("Div", scores, cap)});
      scores = c_.binary("Mul", capped, cap);
    }
    stages.push_back(scores);
    HONE_RETURN_IF_ERROR(make_bias());
    if (bias_ != kNoValue) {
      if (broadcast(c_.shape_of(bias_), by_head) != by_head) {
        return c_.fail("attn_mask of shape {} for scores of shape {}",
                       to_string(c_.shape_of(bias_)), to_string(by_head));
      }
      scores = c_.binary("Add", scores, bias_);
    }
    stages.push_back(scores);
    HONE_ASSIGN_OR_RETURN(const DType precision, softmax_type());
    scores = c_.cast(scores, precision);
    ValueId weights = c_.has(kSinks) ? softmax_with_sinks(scores, precision)
                                     : c_.add("Softmax", {scores}, {{"axis", int64_t{-1}}});
    if (bias_ != kNoValue && rows_may_be_masked_) {
      // A query that may see no key has the result zero.
      const ValueId most = c_.reduce("ReduceMax", bias_, {c_.rank_of(bias_) - 1});
      const ValueId none = c_.binary("Equal", most, kMasked);
      weights = c_.add("Where", {none, c_.scalar(precision, 0), weights});
    }
    weights = c_.cast(weights, type_);
    stages.push_back(weights);
    const ValueId sums = c_.binary("MatMul", c_.reshape(weights, by_group), c_.cast(value_, type_));
    ValueId y = c_.reshape(sums, {h_.batch, h_.heads, h_.queries, h_.values});
    if (packed_)
      y = c_.reshape(c_.transpose(y, {0, 2, 1, 3}), {h_.batch, h_.queries, h_.heads * h_.values});
    c_.result(0, y);
    c_.result(1, key_);
    c_.result(2, value_);
    const int64_t mode = c_.attributes().integer("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) return c_.fail("qk_matmul_output_mode is {}", mode);
    c_.result(3, stages[static_cast<size_t>(mode)]);
    return ok_status();
  }

 private:
  static constexpr size_t kSinks = 7;

  // The sink of a head counts in the sum by which its weights are divided.
  ValueId softmax_with_sinks(ValueId scores, DType precision) {
    const ValueId sinks =
        c_.reshape(c_.cast(c_.input(kSinks), precision), {1, num_elements(c_.shape(kSinks)), 1, 1});
    const ValueId most = c_.binary("Max", c_.reduce("ReduceMax", scores, {3}), sinks);
    const ValueId shares = c_.add("Exp", {c_.binary("Sub", scores, most)});
    const ValueId others = c_.add("Exp", {c_.binary("Sub", sinks, most)});
    const ValueId total = c_.binary("Add", c_.reduce("ReduceSum", shares, {3}), others);
    return c_.binary("Div", shares, total);
  }

  Status read_operands() {
    const size_t rank = c_.shape(0).size();
    packed_ = rank == 3;
    if ((rank != 3 && rank != 4) || c_.shape(1).size() != rank || c_.shape(2).size() != rank) {
      return c_.fail("operands of shapes {}, {} and {}", to_string(c_.shape(0)),
                     to_string(c_.shape(1)), to_string(c_.shape(2)));
    }
    if (!is_float(type_) || c_.dtype(1) != type_ || !is_float(c_.dtype(2)))
      return c_.fail("operands of types {}, {} and {}", dtype_name(type_), dtype_name(c_.dtype(1)),
                     dtype_name(c_.dtype(2)));
    const int64_t heads = c_.attributes().integer("q_num_heads", 0);
    const int64_t groups = c_.attributes().integer("kv_num_heads", 0);
    HONE_ASSIGN_OR_RETURN(query_, by_heads(0, heads));
    HONE_ASSIGN_OR_RETURN(key_, by_heads(1, groups));
    HONE_ASSIGN_OR_RETURN(value_, by_heads(2, groups));
    if (c_.has(4) != c_.has(5)) return c_.fail("past_key and past_value must be given together");
    if (c_.has(4)) {
      if (c_.rank(4) != 4 || c_.rank(5) != 4) return c_.fail("past states are not of rank 4");
      past_ = c_.shape(4)[2];
      key_ = c_.add("Concat", {c_.input(4), key_}, {{"axis", int64_t{2}}});
      value_ = c_.add("Concat", {c_.input(5), value_}, {{"axis", int64_t{2}}});
    }
    HONE_RETURN_IF_ERROR(c_.status());
    const Shape &q = c_.shape_of(query_), &k = c_.shape_of(key_), &v = c_.shape_of(value_);
    h_ = {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
    if (k[0] != q[0] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2] || k[3] != q[3] || k[1] < 1 ||
        q[1] % k[1] != 0) {
      return c_.fail("queries, keys and values of shapes {}, {} and {} by heads", to_string(q),
                     to_string(k), to_string(v));
    }
    return ok_status();
  }

  // [batch, heads, sequence, size]
  Result<ValueId> by_heads(size_t i, int64_t heads) {
    if (!packed_) return c_.input(i);
    const Shape& x = c_.shape(i);
    if (heads < 1 || x[2] % heads != 0)
      return c_.fail("{} heads in operand {} of shape {}", heads, i, to_string(x));
    const ValueId apart = c_.reshape(c_.input(i), {x[0], x[1], heads, x[2] / heads});
    return c_.transpose(apart, {0, 2, 1, 3});
  }

  Result<DType> softmax_type() {
    const int64_t code = c_.attributes().integer("softmax_precision", 0);
    if (code == 0) return type_;
    const auto dtype = type_of_code(code);
    if (!dtype || !is_float(*dtype))
      return c_.fail("softmax_precision is {}", type_code_text(code));
    return *dtype;
  }

  void add_bias(ValueId bias) { bias_ = bias_ == kNoValue ? bias : c_.binary("Add", bias_, bias); }
  // 0 where a condition holds, else minus infinity.
  ValueId bias_where(ValueId allowed) {
    return c_.add("Where", {allowed, c_.scalar(type_, 0), c_.scalar(type_, kMasked)});
  }

  Status make_bias() {
    if (c_.has(3)) {
      ValueId mask = c_.input(3);
      mask = c_.dtype_of(mask) == DType::kBool ? bias_where(mask) : c_.cast(mask, type_);
      if (c_.rank_of(mask) < 1) return c_.fail("attn_mask is a scalar");
      const int64_t missing = h_.keys - c_.shape_of(mask).back();
      if (missing > 0) {
        std::vector<int64_t> pads(2 * c_.shape_of(mask).size(), 0);
        pads.back() = missing;
        mask = c_.add("Pad", {mask, c_.integers(pads), c_.scalar(type_, kMasked)});
      }
      add_bias(mask);
      rows_may_be_masked_ = true;
    }
    const bool causal = c_.attributes().integer("is_causal", 0) != 0;
    const int64_t left = c_.attributes().integer("left_window_size", -1);
    const int64_t right = c_.attributes().integer("right_window_size", -1);
    if (left < -1 || right < -1) return c_.fail("windows of {} and {}", left, right);
    const ValueId lengths = c_.input(6);
    if (lengths != kNoValue && (c_.shape(6) != Shape{h_.batch} || c_.has(4)))
      return c_.fail("nonpad_kv_seqlen of shape {}{}", to_string(c_.shape(6)),
                     c_.has(4) ? " together with past states" : "");
    if (causal || left >= 0 || right >= 0) {
      if (lengths == kNoValue) {
        HONE_RETURN_IF_ERROR(fixed_bias(causal, left, right));
      } else {
        HONE_RETURN_IF_ERROR(moving_bias(lengths, causal, left, right));
        rows_may_be_masked_ = true;
      }
    }
    if (lengths != kNoValue) {
      HONE_ASSIGN_OR_RETURN(const ValueId places, counting(1, h_.keys));
      add_bias(bias_where(c_.binary("Less", places, c_.reshape(lengths, {h_.batch, 1, 1, 1}))));
      rows_may_be_masked_ = true;
    }
    return ok_status();
  }

  // [rows, columns] of column - row.
  Result<ValueId> counting(int64_t rows, int64_t columns) {
    HONE_ASSIGN_OR_RETURN(Tensor tensor, c_.new_constant(DType::kI64, {rows, columns}));
    for (int64_t i = 0; i < rows * columns; ++i)
      tensor.as<int64_t>()[static_cast<size_t>(i)] = i % columns - i / columns;
    return c_.constant(std::move(tensor));
  }

  // Masks the keys that a query cannot see by its position, if positions are known.
  Status fixed_bias(bool causal, int64_t left, int64_t right) {
    HONE_ASSIGN_OR_RETURN(Tensor bias, c_.new_constant(type_, {h_.queries, h_.keys}));
    Tensor masked(type_, {});
    masked.set(0, kMasked);
    fill_with(bias, masked);
    for (int64_t i = 0; i < h_.queries; ++i) {
      const int64_t here = i + past_;
      const int64_t first = left >= 0 && left < here ? here - left : 0;
      int64_t end = causal ? std::min(h_.keys, here + 1) : h_.keys;
      if (right >= 0 && right < h_.keys) end = std::min(end, here + right + 1);
      rows_may_be_masked_ |= first >= end;
      if (first >= end) continue;
      auto* const seen = static_cast<char*>(bias.data()) +
                         static_cast<size_t>((i * h_.keys + first) * dtype_bytes(type_));
      std::memset(seen, 0, static_cast<size_t>((end - first) * dtype_bytes(type_)));
    }
    add_bias(c_.constant(std::move(bias)));
    return ok_status();
  }

  // Does this if the first query's position follows from the number of valid keys.
  Status moving_bias(ValueId lengths, bool causal, int64_t left, int64_t right) {
    const ValueId place =
        c_.reshape(c_.add("Sub", {lengths, c_.integers({h_.queries})}), {h_.batch, 1, 1, 1});
    HONE_ASSIGN_OR_RETURN(const ValueId fixed, counting(h_.queries, h_.keys));
    const ValueId ahead = c_.binary("Sub", fixed, place);
    const auto at_most = [&](ValueId x, int64_t bound) {
      add_bias(bias_where(c_.binary("LessOrEqual", x, static_cast<double>(bound))));
    };
    if (causal) at_most(ahead, 0);
    if (right >= 0) at_most(ahead, right);
    if (left >= 0) at_most(c_.add("Neg", {ahead}), left);
    return ok_status();
  }

  ExpandContext& c_;
  DType type_;
  bool packed_ = false;
  Heads h_ = {};
  int64_t past_ = 0;
  ValueId query_ = kNoValue, key_ = kNoValue, value_ = kNoValue, bias_ = kNoValue;
  bool rows_may_be_masked_ = false;
};

Status expand_attention(ExpandContext& c) { return Attention(c).run(); }

}  // namespace

std::span<const Op> attention_ops() {
  const auto op = [](int since, int until, int max_inputs, std::string_view attributes) {
    return Op{.name = "Attention",
              .since = since,
              .until = until,
              .min_inputs = 3,
              .max_inputs = max_inputs,
              .max_outputs = 4,
              .attributes = attributes,
              .expand = expand_attention};
  };
  static const Op ops[] = {
      op(23, 23, 6,
         "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f "
         "softmax_precision:i"),
      op(24, 24, 7,
         "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f "
         "softmax_precision:i"),
      op(25, kMaxOpset, 7,
         "is_causal:i kv_num_heads:i left_window_size:i q_num_heads:i qk_matmul_output_mode:i "
         "right_window_size:i scale:f softcap:f softmax_precision:i"),
      expanded_op("hone.SinkAttention", 1, {3, 8, 4},
                  "is_causal:i left_window_size:i scale:f softcap:f", expand_attention),
  };
  return ops;
}

}  // namespace hone::graph
