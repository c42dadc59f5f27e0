// DeformConv: a convolution whose taps lie where offsets, which are data, move them. It is a
// product of the weights and of samples that GridSample takes of the data.
#include <algorithm>
#include <bit>

#include "hone/graph/emit.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/window.h"
#include "hone/tensor/tensor.h"

namespace hone::graph {
namespace {

class DeformConv {
 public:
  explicit DeformConv(ExpandContext& c) : c_(c) {}

  Status run() {
    HONE_RETURN_IF_ERROR(read_shapes());
    const DType type = compute_type(c_.dtype(0));
    const int64_t batch = c_.shape(0)[0], channels = c_.shape(0)[1], outputs = c_.shape(1)[0];
    const int64_t places = window_.output[0] * window_.output[1];
    const int64_t terms = channels / groups_ * taps_;
    HONE_ASSIGN_OR_RETURN(const ValueId taken, sampled(type));
    ValueId samples =
        c_.reshape(taken, {batch, offset_groups_, channels / offset_groups_, taps_, places});
    if (c_.has(4)) {
      const ValueId mask = c_.cast(c_.input(4), type);
      samples =
          c_.binary("Mul", samples, c_.reshape(mask, {batch, offset_groups_, 1, taps_, places}));
    }
    const ValueId columns = c_.reshape(samples, {batch, groups_, terms, places});
    const ValueId weights =
        c_.reshape(c_.cast(c_.input(1), type), {groups_, outputs / groups_, terms});
    ValueId y = c_.reshape(c_.binary("MatMul", weights, columns),
                           {batch, outputs, window_.output[0], window_.output[1]});
    if (c_.has(3)) {
      const ValueId bias = c_.reshape(c_.cast(c_.input(3), type), {1, outputs, 1, 1});
      y = c_.binary("Add", y, bias);
    }
    c_.result(0, c_.cast(y, c_.dtype(0)));
    return ok_status();
  }

 private:
  Status read_shapes() {
    for (size_t i = 0; i < c_.num_inputs(); ++i) {
      if (c_.has(i) && c_.extents_of(c_.input(i)) != kNoValue)
        return c_.unsupported("operands whose shape depends on data");
    }
    if (c_.rank(0) != 4 || c_.rank(1) != 4 || !is_float(c_.dtype(0)))
      return c_.unsupported("data {} {} and weights {}, expected floats of rank 4",
                            dtype_name(c_.dtype(0)), to_string(c_.shape(0)),
                            to_string(c_.shape(1)));
    groups_ = c_.attributes().integer("group", 1);
    offset_groups_ = c_.attributes().integer("offset_group", 1);
    const int64_t channels = c_.shape(0)[1], outputs = c_.shape(1)[0];
    if (groups_ < 1 || offset_groups_ < 1 || channels % groups_ != 0 ||
        channels / groups_ != c_.shape(1)[1] || outputs % groups_ != 0 ||
        channels % offset_groups_ != 0)
      return c_.fail(
          "group {} and offset_group {} of data {} and weights {}, expected weights [outputs, "
          "channels / group, height, width], where group divides both and offset_group the "
          "channels",
          groups_, offset_groups_, to_string(c_.shape(0)), to_string(c_.shape(1)));
    const Shape kernel(c_.shape(1).begin() + 2, c_.shape(1).end());
    Result<Window> window = make_window(c_.attributes(), c_.shape(0), kernel);
    if (!window.ok()) return c_.fail("{}", window.status().message());
    window_ = std::move(window).value();
    taps_ = kernel[0] * kernel[1];  // at most 2^48, as the window has been checked
    constexpr auto kMost = static_cast<int64_t>(kMaxElements);
    if (std::max(groups_, offset_groups_) > kMost / (2 * taps_))
      return c_.unsupported("group {} and offset_group {} with {} taps, expected at most {}",
                            groups_, offset_groups_, taps_, kMost / (2 * taps_));
    const int64_t batch = c_.shape(0)[0];
    HONE_RETURN_IF_ERROR(check(
        2, "offsets", {batch, offset_groups_ * taps_ * 2, window_.output[0], window_.output[1]}));
    if (c_.has(3)) HONE_RETURN_IF_ERROR(check(3, "a bias", {outputs}));
    if (!c_.has(4)) return ok_status();
    return check(4, "a mask",
                 {batch, offset_groups_ * taps_, window_.output[0], window_.output[1]});
  }

  [[nodiscard]] Status check(size_t i, const char* what, const Shape& expected) const {
    if (c_.shape(i) == expected) return ok_status();
    return c_.fail("{} of shape {}, expected {}", what, to_string(c_.shape(i)),
                   to_string(expected));
  }

  // Where the taps are without offsets, along a dimension: [taps, oh, ow].
  [[nodiscard]] Result<Tensor> undeformed(size_t d) {
    HONE_ASSIGN_OR_RETURN(
        Tensor places, c_.new_constant(DType::kF32, {taps_, window_.output[0], window_.output[1]}));
    int64_t i = 0;
    for (int64_t tap = 0; tap < taps_; ++tap) {
      const int64_t k = d == 0 ? tap / window_.kernel[1] : tap % window_.kernel[1];
      for (int64_t h = 0; h < window_.output[0]; ++h) {
        for (int64_t w = 0; w < window_.output[1]; ++w) {
          const int64_t at =
              (d == 0 ? h : w) * window_.stride[d] - window_.pad_low[d] + k * window_.dilation[d];
          places.set(i++, static_cast<double>(at));
        }
      }
    }
    return places;
  }

  [[nodiscard]] int64_t side(size_t d) const {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(window_.input[d])));
  }

  // The data at the taps, 0 outside: [batch * offset groups, channels of one, taps * oh, ow].
  // GridSample wants places as numbers from -1 to 1, at which the borders of the data are. Zeros
  // behind the data make its sides powers of two, so that whole places stay exact.
  Result<ValueId> sampled(DType type) {
    const int64_t batch = c_.shape(0)[0], all = batch * offset_groups_;
    const int64_t high = window_.output[0], wide = window_.output[1];
    const ValueId offsets = c_.reshape(c_.cast(c_.input(2), type), {all, taps_, 2, high, wide});
    std::vector<ValueId> places;
    for (const size_t d : {1, 0}) {  // across first
      const auto at = static_cast<int64_t>(d);
      HONE_ASSIGN_OR_RETURN(Tensor taps, undeformed(d));
      const ValueId moved =
          c_.binary("Add", c_.reshape(c_.slice(offsets, 2, at, at + 1), {all, taps_, high, wide}),
                    c_.cast(c_.constant(std::move(taps)), type));
      const auto extent = static_cast<double>(side(d));
      const ValueId share = c_.binary("Mul", c_.binary("Add", moved, 0.5), 2 / extent);
      places.push_back(c_.reshape(c_.binary("Add", share, -1.0), {all, taps_ * high, wide, 1}));
    }
    const ValueId grid = c_.add("Concat", places, {{"axis", int64_t{3}}});
    const Shape shape = {all, c_.shape(0)[1] / offset_groups_, c_.shape(0)[2], c_.shape(0)[3]};
    ValueId data = c_.reshape(c_.cast(c_.input(0), type), shape);
    if (side(0) != shape[2] || side(1) != shape[3])
      data = c_.add(
          "Pad", {data, c_.integers({0, 0, 0, 0, 0, 0, side(0) - shape[2], side(1) - shape[3]})});
    return c_.add("GridSample", {data, grid},
                  {{"align_corners", int64_t{0}},
                   {"mode", std::string("linear")},
                   {"padding_mode", std::string("zeros")}});
  }

  ExpandContext& c_;
  Window window_;
  int64_t groups_ = 1, offset_groups_ = 1, taps_ = 1;
};

Status expand_deform_conv(ExpandContext& c) { return DeformConv(c).run(); }

}  // namespace

std::span<const Op> deform_conv_ops() {
  static const Op ops[] = {
      expanded_op("DeformConv", 19, {3, 5, 1},
                  "dilations:is group:i kernel_shape:is offset_group:i pads:is strides:is",
                  expand_deform_conv)};
  return ops;
}

}  // namespace hone::graph
