// ConvTranspose as ordinary convolutions. Of the results along a dimension with stride s, those at
// places o with (o + pad) mod s = r, phase r, are a convolution with every s-th weight, flipped.
// The phases' results are interleaved: each convolution writes its own where it lies in the whole.
#include <algorithm>
#include <map>
#include <numeric>

#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

// One dimension of the window.
struct Extent {
  int64_t input, kernel, stride, dilation, output, pad_low;
};

// One phase of one dimension: the weights first, first + step, ... (`taps` of them). With
// o + pad_low = stride * v + r, its results are v = from, from + 1, ... (`count` of them), and v
// reads the inputs v - delay, v - delay - spread, ...
struct Phase {
  int64_t first = 0, step = 1, taps = 0, delay = 0, spread = 1, from = 0, count = 0;
};

// The phase of result o = at.
Phase phase_at(const Extent& e, int64_t at) {
  Phase phase;
  const int64_t common = std::gcd(e.stride, e.dilation);
  const int64_t r = (at + e.pad_low) % e.stride;
  phase.step = e.stride / common;
  phase.spread = e.dilation / common;
  phase.from = (at + e.pad_low) / e.stride;
  phase.count = (e.output - 1 - at) / e.stride + 1;
  // Weights `step` apart are of one phase, so those behind the first `step` tell nothing new.
  const int64_t distinct = std::min(e.kernel, phase.step);
  while (phase.first < distinct && (phase.first * e.dilation) % e.stride != r) ++phase.first;
  if (phase.first >= distinct) return phase;
  phase.taps = (e.kernel - 1 - phase.first) / phase.step + 1;
  phase.delay = (phase.first * e.dilation - r) / e.stride;
  return phase;
}

// Phases are convolutions of their own.
constexpr int64_t kMaxPhases = 4096;

Result<std::vector<Extent>> extents_of(const InferContext& c) {
  const Shape& x = c.shape(0);
  const Shape& w = c.shape(1);
  if (x.size() < 3 || w.size() != x.size() || x[1] != w[0])
    return c.fail("data of shape {} and weights of shape {}", to_string(x), to_string(w));
  const size_t rank = x.size() - 2;
  const auto given = [&](const char* name, size_t count, int64_t otherwise) {
    Shape values = c.attributes().integers(name);
    if (values.empty()) values.assign(count, otherwise);
    return values;
  };
  const Shape kernel = given("kernel_shape", rank, 0), stride = given("strides", rank, 1),
              dilation = given("dilations", rank, 1), pads = given("pads", 2 * rank, 0),
              extra = given("output_padding", rank, 0), wanted = given("output_shape", rank, 0);
  const std::string mode = c.attributes().text("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID") return c.fail("auto_pad is '{}'", mode);
  const size_t skipped = wanted.size() == rank + 2 ? 2 : 0;  // batch and channels, too
  if (kernel.size() != rank || stride.size() != rank || dilation.size() != rank ||
      pads.size() != 2 * rank || extra.size() != rank || wanted.size() != rank + skipped)
    return c.fail("attributes for another rank than {}", rank);
  std::vector<Extent> extents;
  int64_t phases = 1;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t taps = w[d + 2];
    const bool fits = taps >= 1 && (kernel[d] == 0 || kernel[d] == taps) && stride[d] >= 1 &&
                      dilation[d] >= 1 && pads[d] >= 0 && pads[rank + d] >= 0 && extra[d] >= 0 &&
                      std::max({stride[d], dilation[d], pads[d], pads[rank + d]}) < 1 << 24 &&
                      extra[d] < std::max(stride[d], dilation[d]);
    if (!fits) return c.fail("attributes of dimension {} do not fit the weights", d);
    const int64_t whole = stride[d] * (x[d + 2] - 1) + extra[d] + (taps - 1) * dilation[d] + 1;
    int64_t output = wanted[d + skipped], low = mode == "VALID" ? 0 : pads[d];
    if (output == 0 && same) output = x[d + 2] * stride[d];
    if (output == 0) {
      output = whole - low - (mode == "VALID" ? 0 : pads[rank + d]);
    } else {
      const int64_t total = std::max<int64_t>(0, whole - output);
      low = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    if (output < 1) return c.fail("the result has {} elements along dimension {}", output, d + 2);
    phases *= std::min(stride[d], output);
    if (phases > kMaxPhases)
      return c.unsupported("strides {}, at most {} results between two of the data",
                           to_string(stride), kMaxPhases);
    extents.push_back({x[d + 2], taps, stride[d], dilation[d], output, low});
  }
  return extents;
}

// This many channels leave vector lanes empty, so phases with equal windows become one convolution.
constexpr int64_t kFewChannels = 8;

class Builder {
 public:
  Builder(ExpandContext& c, std::vector<Extent> extents)
      : c_(c),
        extents_(std::move(extents)),
        rank_(extents_.size()),
        group_(c.attributes().integer("group", 1)) {
    const Shape& w = c.shape(1);
    channels_ = group_ * w[1];
    // Weights as a convolution's: [group * channels, inputs, kernel].
    Shape apart = {group_, w[0] / group_, w[1]}, joined = {channels_, w[0] / group_};
    std::vector<int64_t> perm = {0, 2, 1};
    for (size_t d = 0; d < rank_; ++d) {
      apart.push_back(w[d + 2]);
      joined.push_back(w[d + 2]);
      perm.push_back(static_cast<int64_t>(d) + 3);
    }
    weights_ = c.reshape(c.transpose(c.reshape(c.input(1), apart), perm), joined);
    steps_ = {1, 1};
    // Phases of all dimensions together, the last one's fastest.
    phases_ = {{}};
    for (const Extent& e : extents_) {
      std::vector<std::vector<Phase>> more;
      steps_.push_back(std::min(e.stride, e.output));
      for (const auto& before : phases_) {
        for (int64_t at = 0; at < steps_.back(); ++at) {
          more.push_back(before);
          more.back().push_back(phase_at(e, at));
        }
      }
      phases_ = std::move(more);
    }
  }

  ValueId run() {
    if (channels_ <= kFewChannels && phases_.size() > 1 && align_phases()) return merged();
    std::vector<ValueId> parts;
    for (const auto& phase : phases_) parts.push_back(results_of(phase, weights_of(phase)));
    if (parts.size() == 1) return parts[0];
    return c_.add("hone.Interleave", parts, {{"steps", steps_}});
  }

 private:
  // The flipped weights of one phase.
  ValueId weights_of(const std::vector<Phase>& phase) {
    if (std::any_of(phase.begin(), phase.end(), [](const Phase& p) { return p.taps == 0; }))
      return weights_;
    std::vector<int64_t> begins, ends, steps, axes;
    bool whole = true;
    for (size_t d = 0; d < rank_; ++d) {
      const Phase& p = phase[d];
      const int64_t last = p.first + (p.taps - 1) * p.step;
      begins.push_back(last);
      ends.push_back(p.first - 1 < 0 ? INT64_MIN : p.first - 1);
      steps.push_back(-p.step);
      axes.push_back(static_cast<int64_t>(d) + 2);
      whole = whole && extents_[d].kernel == 1;
    }
    if (whole) return weights_;
    return c_.add("Slice", {weights_, c_.integers(begins), c_.integers(ends), c_.integers(axes),
                            c_.integers(steps)});
  }

  ValueId results_of(const std::vector<Phase>& phase, ValueId weights) {
    ValueId x = c_.input(0);
    std::vector<int64_t> pads(2 * rank_), dilations;
    Shape shape = {c_.shape(0)[0], c_.shape_of(weights)[0]};
    bool reaches = true;
    for (size_t d = 0; d < rank_; ++d) {
      const Extent& e = extents_[d];
      const Phase& p = phase[d];
      shape.push_back(p.count);
      dilations.push_back(p.spread);
      const int64_t reach = p.delay + (p.taps - 1) * p.spread;  // the furthest input read
      const int64_t low = reach - p.from;
      const int64_t high = p.from + p.count - 1 - p.delay - (e.input - 1);
      const int64_t begin = std::max<int64_t>(0, -low);
      const int64_t end = std::min(e.input, e.input + high);
      reaches = reaches && p.taps > 0 && begin < end;
      if (!reaches) continue;
      if (begin > 0 || end < e.input) x = c_.slice(x, static_cast<int64_t>(d) + 2, begin, end);
      pads[d] = std::max<int64_t>(0, low);
      pads[rank_ + d] = std::max<int64_t>(0, high);
    }
    if (reaches) {
      std::vector<ValueId> operands = {x, weights};
      if (c_.has(2) && c_.shape_of(weights)[0] == channels_) operands.push_back(c_.input(2));
      return c_.add("Conv", operands,
                    {{"dilations", dilations}, {"group", group_}, {"pads", pads}});
    }
    return results_of_nothing(shape);
  }

  // Phases of one shape share them.
  ValueId results_of_nothing(const Shape& shape) {
    const auto [known, is_new] = nothing_.try_emplace(shape, kNoValue);
    if (!is_new) return known->second;
    const ValueId zeros = uniform(c_, c_.dtype(0), shape, 0);
    return known->second = shape[1] == channels_ ? biased(zeros) : zeros;
  }

  ValueId biased(ValueId y) {
    if (!c_.has(2)) return y;
    Shape shape(rank_ + 1, 1);
    shape[0] = channels_;
    return c_.binary("Add", y, c_.reshape(c_.input(2), shape));
  }

  // The phases by r instead, from the first v to the last of all results, if all have the same
  // window: then they can be one convolution.
  bool align_phases() {
    // Phases that a result does not have, as it has fewer elements than its stride, would be added.
    const auto is_short = [](const Extent& e) { return e.output < e.stride; };
    if (group_ != 1 || std::any_of(extents_.begin(), extents_.end(), is_short)) return false;
    std::vector<std::vector<Phase>> aligned = {{}};
    for (const Extent& e : extents_) {
      std::vector<std::vector<Phase>> more;
      const int64_t from = e.pad_low / e.stride;
      for (const auto& before : aligned) {
        for (int64_t r = 0; r < e.stride; ++r) {
          Phase phase = phase_at({e.input, e.kernel, e.stride, e.dilation, e.output, 0}, r);
          phase.from = from;
          phase.count = (e.pad_low + e.output - 1) / e.stride - from + 1;
          more.push_back(before);
          more.back().push_back(phase);
        }
      }
      aligned = std::move(more);
    }
    for (const auto& phase : aligned) {
      for (size_t d = 0; d < rank_; ++d) {
        const Phase &a = phase[d], &b = aligned[0][d];
        if (a.taps != b.taps || a.delay != b.delay || a.spread != b.spread || a.taps == 0)
          return false;
      }
    }
    phases_ = std::move(aligned);
    return true;
  }

  // [N, phases * channels, v...] from one convolution, then interleaved and cropped by copies.
  ValueId merged() {
    std::vector<ValueId> weights;
    for (const auto& phase : phases_) weights.push_back(weights_of(phase));
    ValueId y = results_of(phases_[0], c_.add("Concat", weights, {{"axis", int64_t{0}}}));
    Shape apart = {c_.shape(0)[0]}, joined = {c_.shape(0)[0], channels_};
    const auto rank = static_cast<int64_t>(rank_);
    for (const Extent& e : extents_) apart.push_back(e.stride);
    std::vector<int64_t> perm = {0, rank + 1};
    apart.push_back(channels_);
    for (size_t d = 0; d < rank_; ++d) {
      apart.push_back(phases_[0][d].count);
      perm.push_back(rank + 2 + static_cast<int64_t>(d));
      perm.push_back(1 + static_cast<int64_t>(d));
      joined.push_back(phases_[0][d].count * extents_[d].stride);
    }
    y = c_.reshape(c_.transpose(c_.reshape(y, apart), perm), joined);
    for (size_t d = 0; d < rank_; ++d) {
      const Extent& e = extents_[d];
      const int64_t begin = e.pad_low % e.stride;
      if (begin > 0 || e.output < joined[d + 2])
        y = c_.slice(y, static_cast<int64_t>(d) + 2, begin, begin + e.output);
    }
    return biased(y);
  }

  ExpandContext& c_;
  std::vector<Extent> extents_;
  size_t rank_;
  int64_t group_, channels_ = 1;
  ValueId weights_ = kNoValue;
  Shape steps_;  // how many phases each dimension of the result has
  std::vector<std::vector<Phase>> phases_;
  std::map<Shape, ValueId> nothing_;  // results that read no data
};

Status expand_conv_transpose(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(std::vector<Extent> extents, extents_of(c));
  const Shape& w = c.shape(1);
  const int64_t group = c.attributes().integer("group", 1);
  if (group < 1 || w[0] % group != 0 || group > 1 << 24)
    return c.fail("{} groups for {} channels", group, c.shape(0)[1]);
  if (!is_float(c.dtype(0)) || c.dtype(1) != c.dtype(0))
    return c.fail("data of type {} and weights of type {}", dtype_name(c.dtype(0)),
                  dtype_name(c.dtype(1)));
  int64_t phases = 1;
  for (const Extent& e : extents) phases *= std::min(e.stride, e.output);
  if (phases > 4096) return c.unsupported("strides with {} phases", phases);
  if (c.has(2) && c.shape(2) != Shape{w[1] * group})
    return c.fail("bias of shape {}, expected [{}]", to_string(c.shape(2)), w[1] * group);
  c.result(0, Builder(c, std::move(extents)).run());
  return ok_status();
}

}  // namespace

std::span<const Op> conv_transpose_ops() {
  static const Op ops[] = {
      {.name = "ConvTranspose",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = "auto_pad:s dilations:is group:i kernel_shape:is output_padding:is "
                     "output_shape:is pads:is strides:is",
       .expand = expand_conv_transpose},
  };
  return ops;
}

}  // namespace hone::graph
