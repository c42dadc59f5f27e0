#include "hone/cost/net/layers.h"

#include <algorithm>
#include <cmath>

#include "hone/base/assert.h"

namespace hone::cost::net {
namespace {

constexpr int kProjections = 8;  // steps to the threshold of sparsemax; it is seldom not exact

}  // namespace

Value linear(NetBuilder& b, const std::string& name, Value value, int64_t to, double gain) {
  const int64_t from = b.dims(value).back();
  const Value weight = b.parameter(name + ".weight", {from, to}, {Fill::kXavier, gain});
  const Value bias = b.parameter(name + ".bias", {to}, {Fill::kZeros});
  return b.add(b.matmul(value, weight), bias);
}

Value linear_relu(NetBuilder& b, const std::string& name, Value value, int64_t to) {
  return b.relu(linear(b, name, value, to, std::sqrt(2.0)));
}

Value residual(NetBuilder& b, const std::string& name, Value value) {
  return b.add(value, linear_relu(b, name, value, b.dims(value).back()));
}

Value layer_norm(NetBuilder& b, const std::string& name, Value value) {
  const int64_t width = b.dims(value).back();
  const Value gamma = b.parameter(name + ".gamma", {width}, {Fill::kOnes});
  const Value beta = b.parameter(name + ".beta", {width}, {Fill::kZeros});
  return b.layer_norm(value, gamma, beta);
}

Value normalised(NetBuilder& b, std::string_view input) {
  const Value value = b.input(input);
  const int64_t width = b.dims(value).back();
  const auto size = static_cast<size_t>(width);
  const std::string name(input);
  const Value mean = b.constant(name + ".mean", {width}, std::vector<float>(size, 0.0F));
  const Value scale = b.constant(name + ".scale", {width}, std::vector<float>(size, 1.0F));
  return b.clip(b.mul(b.sub(value, mean), scale), -kFarthest, kFarthest);
}

Value statements(NetBuilder& b, const Options& options) {
  Value rows = normalised(b, "statements");
  if (!options.has("tags") || options.flag("tags")) rows = b.concat({rows, b.input("tags")}, 2);
  return masked(b, rows, b.input("mask"));
}

Value context(NetBuilder& b, const Options& options) {
  std::vector<Value> parts;
  for (const char* input : {"task", "measure", "decisions", "device"}) {
    if (options.has(input) && options.flag(input)) parts.push_back(normalised(b, input));
  }
  return parts.empty() ? Value() : b.concat(parts, 1);
}

Value with_context(NetBuilder& b, Value tokens, Value context, int64_t hidden) {
  if (context.node < 0) return tokens;
  return add_to_each(b, tokens, linear(b, "context", context, hidden));
}

Value attention_mask(NetBuilder& b, Value mask) {
  const int64_t length = b.dims(mask)[1];
  const Value wide = b.reshape(mask, {-1, 1, 1, length});
  return b.mul(b.sub(wide, b.scalar(1)), b.scalar(1e9));
}

Value attention(NetBuilder& b, const std::string& name, Value tokens, int64_t heads,
                Value mask_term, double dropout) {
  const int64_t length = b.dims(tokens)[1], width = b.dims(tokens)[2];
  const int64_t part = width / heads;
  HONE_ASSERT(part * heads == width, "the heads do not divide the width");
  const auto split = [&](const char* which, std::vector<int64_t> permutation) {
    const Value projected = linear(b, name + which, tokens, width);
    return b.transpose(b.reshape(projected, {-1, length, heads, part}), std::move(permutation));
  };
  const Value query = split(".query", {0, 2, 1, 3});
  const Value key = split(".key", {0, 2, 3, 1});
  const Value value = split(".value", {0, 2, 1, 3});
  Value scores = b.mul(b.matmul(query, key), b.scalar(1 / std::sqrt(static_cast<double>(part))));
  if (mask_term.node >= 0) scores = b.add(scores, mask_term);
  const Value weights = b.dropout(b.softmax(scores), dropout);
  const Value joined = b.transpose(b.matmul(weights, value), {0, 2, 1, 3});
  return linear(b, name + ".output", b.reshape(joined, {-1, length, width}), width);
}

namespace {

Value encoder_layer(NetBuilder& b, const std::string& name, Value tokens, Value mask_term,
                    const EncoderOptions& options) {
  const Value attended =
      attention(b, name + ".attention", tokens, options.heads, mask_term, options.dropout);
  const Value first =
      layer_norm(b, name + ".norm1", b.add(tokens, b.dropout(attended, options.dropout)));
  const Value inner =
      b.dropout(linear_relu(b, name + ".inner", first, options.inner), options.dropout);
  const Value outer =
      b.dropout(linear(b, name + ".outer", inner, b.dims(tokens)[2]), options.dropout);
  return layer_norm(b, name + ".norm2", b.add(first, outer));
}

}  // namespace

Value encoder(NetBuilder& b, Value tokens, Value mask_term, const EncoderOptions& options) {
  for (int64_t i = 0; i < options.layers; ++i)
    tokens = encoder_layer(b, fmt::format("encoder{}", i), tokens, mask_term, options);
  return tokens;
}

Value masked(NetBuilder& b, Value tokens, Value mask) {
  if (b.dims(tokens).size() == 2) return b.mul(tokens, mask);
  return b.mul(tokens, b.reshape(mask, {-1, b.dims(mask)[1], 1}));
}

Value masked_sum(NetBuilder& b, Value tokens, Value mask) {
  return b.reduce_sum(masked(b, tokens, mask), 1);
}

Value masked_mean(NetBuilder& b, Value tokens, Value mask) {
  const Value count = b.clip(b.reduce_sum(mask, 1, true), 1, 1e9);
  return b.div(masked_sum(b, tokens, mask), count);
}

Value add_to_each(NetBuilder& b, Value tokens, Value vector) {
  return b.add(tokens, b.reshape(vector, {-1, 1, b.dims(vector)[1]}));
}

Value graph_convolution(NetBuilder& b, const std::string& name, Value tokens, Value edges,
                        int64_t to) {
  const int64_t from = b.dims(tokens).back();
  const Value weight = b.parameter(name + ".weight", {from, to}, {Fill::kXavier, std::sqrt(2.0)});
  const Value bias = b.parameter(name + ".bias", {to}, {Fill::kZeros});
  const Value products = b.matmul(tokens, weight);
  const Value sums =
      b.dims(edges).size() == 3
          ? b.matmul(edges, products)
          : b.transpose(b.matmul(b.transpose(products, {0, 2, 1}), edges), {0, 2, 1});
  return b.relu(b.add(sums, bias));
}

Value weighted_sum_and_max(NetBuilder& b, const std::string& name, Value tokens, Value mask) {
  const Value weighed = b.mul(tokens, b.sigmoid(linear(b, name, tokens, 1)));
  if (mask.node < 0) return b.concat({b.reduce_sum(weighed, 1), b.reduce_max(tokens, 1)}, 1);
  const Value there = b.reshape(mask, {-1, b.dims(mask)[1], 1});
  const Value hidden = b.mul(b.sub(there, b.scalar(1)), b.scalar(1e9));
  const Value most = b.reduce_max(b.add(masked(b, tokens, mask), hidden), 1);
  return b.concat({masked_sum(b, weighed, mask), most}, 1);
}

// Michelot 1986: those above a threshold less the threshold; those below it leave, until none does.
std::vector<Value> heads(NetBuilder& b, Value value, int64_t devices, int64_t outputs, Value mask) {
  const int64_t columns = std::max<int64_t>(devices, 1);
  Value all = linear(b, "head", value, outputs * columns);
  if (mask.node >= 0) all = masked_sum(b, all, mask);
  std::vector<Value> each;
  for (int64_t i = 0; i < outputs; ++i) {
    Value one = outputs > 1 ? b.slice(all, 1, i * columns, (i + 1) * columns) : all;
    if (devices > 0)
      one = b.reduce_sum(b.mul(one, b.slice(b.input("head"), 1, 0, devices)), 1, true);
    each.push_back(one);
  }
  return each;
}

Value with_analytic(NetBuilder& b, Value score, const Options& options) {
  if (!options.flag("analytic")) return score;
  // Scores are compared on a logistic scale, on which a tenth of the time should count.
  constexpr double kSteepness = 4;
  const Value weight = b.parameter("analytic.weight", {1}, {Fill::kOnes});
  const Value less = b.mul(b.input("analytic"), b.scalar(-kSteepness));
  return b.add(score, b.mul(less, weight));
}

Value program_score(NetBuilder& b, Value sum, const Options& options, int64_t hidden) {
  const Value known = context(b, options);
  if (known.node >= 0) sum = b.add(sum, linear(b, "context", known, hidden));
  sum = residual(b, "residual0", sum);
  sum = residual(b, "residual1", sum);
  return with_analytic(b, heads(b, sum, options.integer("devices"))[0], options);
}

Value sparsemax(NetBuilder& b, Value value) {
  const int axis = static_cast<int>(b.dims(value).size()) - 1;
  const double size = static_cast<double>(b.dims(value).back());
  const Value one = b.scalar(1);
  Value threshold = b.mul(b.sub(b.reduce_sum(value, axis, true), one), b.scalar(1 / size));
  for (int i = 0; i < kProjections; ++i) {
    const Value support = b.greater(value, threshold);
    const Value sum = b.reduce_sum(b.mul(value, support), axis, true);
    const Value count = b.clip(b.reduce_sum(support, axis, true), 1, size);
    threshold = b.div(b.sub(sum, one), count);
  }
  return b.relu(b.sub(value, threshold));
}

}  // namespace hone::cost::net
