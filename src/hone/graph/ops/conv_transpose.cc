// ConvTranspose as ordinary convolutions. Of the results along a dimension with stride s, those at
// places o with (o + pad) mod s = r, phase r, are a convolution with every s-th weight, flipped.
// Phases with equal windows are one convolution with more channels; the results are interleaved.
#include <algorithm>
#include <numeric>

#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

// One dimension of the window.
struct Extent {
  int64_t input, kernel, stride, dilation, output, pad_low;
  // With u = o + pad_low = stride * v + r: the v of all results.
  [[nodiscard]] int64_t first() const { return pad_low / stride; }
  [[nodiscard]] int64_t count() const { return (pad_low + output - 1) / stride - first() + 1; }
};

// The weights of one phase of one dimension: first, first + step, ... (`taps` of them); result v
// reads the inputs v - delay, v - delay - spread, ...
struct Phase {
  int64_t first = 0, step = 1, taps = 0, delay = 0, spread = 1;
  bool operator==(const Phase&) const = default;
};

Phase phase_of(const Extent& e, int64_t r) {
  Phase phase;
  const int64_t common = std::gcd(e.stride, e.dilation);
  phase.step = e.stride / common;
  phase.spread = e.dilation / common;
  while (phase.first < e.kernel && (phase.first * e.dilation) % e.stride != r) ++phase.first;
  if (phase.first >= e.kernel) return {};
  phase.taps = (e.kernel - 1 - phase.first) / phase.step + 1;
  phase.delay = (phase.first * e.dilation - r) / e.stride;
  return phase;
}

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
    extents.push_back({x[d + 2], taps, stride[d], dilation[d], output, low});
  }
  return extents;
}

class Builder {
 public:
  Builder(ExpandContext& c, std::vector<Extent> extents)
      : c_(c),
        extents_(std::move(extents)),
        rank_(extents_.size()),
        group_(c.attributes().integer("group", 1)) {
    const Shape& w = c.shape(1);
    channels_ = w[1];
    // Weights as a convolution's: [group * channels, inputs, kernel].
    Shape apart = {group_, w[0] / group_, w[1]}, joined = {group_ * w[1], w[0] / group_};
    std::vector<int64_t> perm = {0, 2, 1};
    for (size_t d = 0; d < rank_; ++d) {
      apart.push_back(w[d + 2]);
      joined.push_back(w[d + 2]);
      perm.push_back(static_cast<int64_t>(d) + 3);
    }
    weights_ = c.reshape(c.transpose(c.reshape(c.input(1), apart), perm), joined);
    // Phases of all dimensions together, the last one's fastest.
    phases_ = {{}};
    for (const Extent& e : extents_) {
      std::vector<std::vector<Phase>> more;
      for (const auto& before : phases_) {
        for (int64_t r = 0; r < e.stride; ++r) {
          more.push_back(before);
          more.back().push_back(phase_of(e, r));
        }
      }
      phases_ = std::move(more);
    }
  }

  ValueId run() {
    const auto same_window = [&](const std::vector<Phase>& phase) {
      for (size_t d = 0; d < rank_; ++d) {
        const Phase &a = phase[d], &b = phases_[0][d];
        if (a.taps != b.taps || a.delay != b.delay || a.spread != b.spread || a.taps == 0)
          return false;
      }
      return true;
    };
    const bool merge = (group_ == 1 || channels_ == 1) && phases_.size() > 1 &&
                       std::all_of(phases_.begin(), phases_.end(), same_window);
    const ValueId parts = merge ? merged() : separate();
    return cropped(interleaved(parts, merge && group_ > 1));
  }

 private:
  // The flipped weights of one phase.
  ValueId weights_of(const std::vector<Phase>& phase) {
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

  // The results v of one phase, or of all phases with this window.
  ValueId convolved(const std::vector<Phase>& phase, ValueId weights) {
    ValueId x = c_.input(0);
    std::vector<int64_t> pads(2 * rank_), dilations;
    Shape nothing = {c_.shape(0)[0], c_.shape_of(weights)[0]};
    bool reaches = true;
    for (size_t d = 0; d < rank_; ++d) {
      const Extent& e = extents_[d];
      const Phase& p = phase[d];
      nothing.push_back(e.count());
      dilations.push_back(p.spread);
      const int64_t reach = p.delay + (p.taps - 1) * p.spread;  // the furthest input read
      const int64_t low = reach - e.first();
      const int64_t high = e.first() + e.count() - 1 - p.delay - (e.input - 1);
      const int64_t begin = std::max<int64_t>(0, -low);
      const int64_t end = std::min(e.input, e.input + high);
      reaches = reaches && p.taps > 0 && begin < end;
      if (!reaches) continue;
      if (begin > 0 || end < e.input) x = c_.slice(x, static_cast<int64_t>(d) + 2, begin, end);
      pads[d] = std::max<int64_t>(0, low);
      pads[rank_ + d] = std::max<int64_t>(0, high);
    }
    if (!reaches) return c_.constant(Tensor(c_.dtype(0), nothing));
    return c_.add("Conv", {x, weights},
                  {{"dilations", dilations}, {"group", group_}, {"pads", pads}});
  }

  // [N, phases * channels, v...]; [N, channels * phases, v...] with one channel per group.
  ValueId merged() {
    std::vector<ValueId> weights;
    for (const auto& phase : phases_) weights.push_back(weights_of(phase));
    const Shape one = c_.shape_of(weights[0]);
    if (group_ == 1)
      return convolved(phases_[0], c_.add("Concat", weights, {{"axis", int64_t{0}}}));
    Shape joined = one;
    joined[0] *= static_cast<int64_t>(phases_.size());
    Shape apart = one;
    apart.insert(apart.begin() + 1, 1);
    for (ValueId& w : weights) w = c_.reshape(w, apart);
    return convolved(phases_[0],
                     c_.reshape(c_.add("Concat", weights, {{"axis", int64_t{1}}}), joined));
  }

  // [N, phases * channels, v...]
  ValueId separate() {
    std::vector<ValueId> parts;
    for (const auto& phase : phases_) {
      const bool none =
          std::any_of(phase.begin(), phase.end(), [](const Phase& p) { return p.taps == 0; });
      parts.push_back(convolved(phase, none ? weights_ : weights_of(phase)));
    }
    return parts.size() == 1 ? parts[0] : c_.add("Concat", parts, {{"axis", int64_t{1}}});
  }

  // [N, channels, stride * v...]
  ValueId interleaved(ValueId parts, bool channels_first) {
    if (phases_.size() == 1) return parts;
    const int64_t channels = group_ * channels_;
    Shape apart = {c_.shape(0)[0]};
    Shape joined = {c_.shape(0)[0], channels};
    std::vector<int64_t> of_phase(rank_, -1);
    if (channels_first) apart.push_back(channels);
    for (size_t d = 0; d < rank_; ++d) {
      if (extents_[d].stride == 1) continue;
      of_phase[d] = static_cast<int64_t>(apart.size());
      apart.push_back(extents_[d].stride);
    }
    std::vector<int64_t> perm = {0, channels_first ? 1 : static_cast<int64_t>(apart.size())};
    if (!channels_first) apart.push_back(channels);
    for (size_t d = 0; d < rank_; ++d) {
      perm.push_back(static_cast<int64_t>(apart.size()));
      apart.push_back(extents_[d].count());
      if (of_phase[d] >= 0) perm.push_back(of_phase[d]);
      joined.push_back(extents_[d].count() * extents_[d].stride);
    }
    return c_.reshape(c_.transpose(c_.reshape(parts, apart), perm), joined);
  }

  ValueId cropped(ValueId y) {
    for (size_t d = 0; d < rank_; ++d) {
      const Extent& e = extents_[d];
      const int64_t begin = e.pad_low - e.first() * e.stride;
      if (begin > 0 || e.output < e.count() * e.stride)
        y = c_.slice(y, static_cast<int64_t>(d) + 2, begin, begin + e.output);
    }
    return y;
  }

  ExpandContext& c_;
  std::vector<Extent> extents_;
  size_t rank_;
  int64_t group_, channels_ = 1;
  ValueId weights_ = kNoValue;
  std::vector<std::vector<Phase>> phases_;
};

Status expand_conv_transpose(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(std::vector<Extent> extents, extents_of(c));
  const Shape& w = c.shape(1);
  const int64_t group = c.attributes().integer("group", 1);
  if (group < 1 || w[0] % group != 0)
    return c.fail("{} groups for {} channels", group, c.shape(0)[1]);
  if (!is_float(c.dtype(0)) || c.dtype(1) != c.dtype(0))
    return c.fail("data of type {} and weights of type {}", dtype_name(c.dtype(0)),
                  dtype_name(c.dtype(1)));
  int64_t phases = 1;
  for (const Extent& e : extents) phases *= e.stride;
  if (phases > 4096) return c.unsupported("strides with {} phases", phases);
  if (c.has(2) && c.shape(2) != Shape{w[1] * group})
    return c.fail("bias of shape {}, expected [{}]", to_string(c.shape(2)), w[1] * group);
  const size_t rank = extents.size();
  ValueId y = Builder(c, std::move(extents)).run();
  if (c.has(2)) {
    Shape shape(rank + 1, 1);
    shape[0] = w[1] * group;
    y = c.binary("Add", y, c.reshape(c.input(2), shape));
  }
  c.result(0, y);
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
