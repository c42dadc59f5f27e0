#include "hone/search/agent/mlp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "hone/base/assert.h"

namespace hone::search {
namespace {

constexpr double kFirstDecay = 0.9, kSecondDecay = 0.999, kTiny = 1e-8;  // of Adam

// In four parts, which the compiler turns into vectors.
float dot(const float* a, const float* b, size_t size) {
  float parts[4] = {};
  size_t i = 0;
  for (; i + 4 <= size; i += 4) {
    for (size_t j = 0; j < 4; ++j) parts[j] += a[i + j] * b[i + j];
  }
  for (; i < size; ++i) parts[0] += a[i] * b[i];
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

}  // namespace

Mlp::Mlp(std::vector<int> widths, Activation activation, Rng& rng)
    : widths_(std::move(widths)), activation_(activation) {
  HONE_ASSERT(widths_.size() >= 2, "a net has an input and an output");
  for (size_t layer = 0; layer + 1 < widths_.size(); ++layer) {
    offsets_.push_back(weights_.size());
    const double scale = std::sqrt(2.0 / widths_[layer]);
    for (int i = 0; i < widths_[layer] * widths_[layer + 1]; ++i)
      weights_.push_back(static_cast<float>(scale * rng.normal()));
    weights_.resize(weights_.size() + static_cast<size_t>(widths_[layer + 1]));
  }
  gradient_.resize(weights_.size());
  first_.resize(weights_.size());
  second_.resize(weights_.size());
}

size_t Mlp::bias_at(size_t layer) const {
  return offsets_[layer] + static_cast<size_t>(widths_[layer]) * widths_[layer + 1];
}

float Mlp::activated(float sum) const {
  return activation_ == Activation::kRelu ? std::max(sum, 0.0F) : std::tanh(sum);
}

std::vector<float> Mlp::sums(size_t layer, std::span<const float> from) const {
  const auto outputs = static_cast<size_t>(widths_[layer + 1]);
  const auto bias = weights_.begin() + static_cast<std::ptrdiff_t>(bias_at(layer));
  std::vector<float> to(bias, bias + static_cast<std::ptrdiff_t>(outputs));
  for (size_t o = 0; o < outputs; ++o)
    to[o] += dot(&weights_[matrix_at(layer) + o * from.size()], from.data(), from.size());
  return to;
}

Mlp::Trace Mlp::trace(std::span<const float> input) const {
  HONE_ASSERT(std::ssize(input) == inputs(), "the input has as many numbers as the net reads");
  Trace values = {{input.begin(), input.end()}};
  for (size_t layer = 0; layer < offsets_.size(); ++layer) {
    std::vector<float> to = sums(layer, values.back());
    if (layer + 1 < offsets_.size())
      std::ranges::transform(to, to.begin(), [this](float sum) { return activated(sum); });
    values.push_back(std::move(to));
  }
  return values;
}

std::vector<float> Mlp::run_each(std::span<const float> begin,
                                 std::span<const std::vector<float>> rest) const {
  const auto width = static_cast<size_t>(widths_[0]), hidden = static_cast<size_t>(widths_[1]);
  std::vector<float> common(hidden);
  for (size_t o = 0; o < hidden; ++o)
    common[o] = weights_[bias_at(0) + o] + dot(&weights_[o * width], begin.data(), begin.size());
  std::vector<float> results;
  for (const std::vector<float>& end : rest) {
    HONE_ASSERT(begin.size() + end.size() == width, "both parts are a whole input");
    std::vector<float> values = common;
    for (size_t o = 0; o < hidden; ++o)
      values[o] += dot(&weights_[o * width + begin.size()], end.data(), end.size());
    for (size_t layer = 1; layer < offsets_.size(); ++layer) {
      std::ranges::transform(values, values.begin(), [this](float sum) { return activated(sum); });
      values = sums(layer, values);
    }
    results.push_back(values[0]);
  }
  return results;
}

std::vector<float> Mlp::run(std::span<const float> input) const {
  return std::move(trace(input).back());
}

void Mlp::backward(const Trace& trace, std::span<const float> by_outputs) {
  std::vector<double> by_sums(by_outputs.begin(), by_outputs.end());
  for (size_t layer = offsets_.size(); layer-- > 0;) {
    const std::vector<float>& from = trace[layer];
    std::vector<double> by_from(from.size());
    for (size_t o = 0; o < by_sums.size(); ++o) {
      const size_t row = matrix_at(layer) + o * from.size();
      gradient_[bias_at(layer) + o] += by_sums[o];
      for (size_t i = 0; i < from.size(); ++i) {
        gradient_[row + i] += by_sums[o] * from[i];
        by_from[i] += by_sums[o] * weights_[row + i];
      }
    }
    if (layer > 0) {
      for (size_t i = 0; i < from.size(); ++i) {
        if (activation_ == Activation::kTanh) {
          by_from[i] *= 1 - static_cast<double>(from[i]) * from[i];
        } else if (from[i] <= 0) {
          by_from[i] = 0;
        }
      }
    }
    by_sums = std::move(by_from);
  }
}

void Mlp::step(double rate, int samples, double longest) {
  double length = 0;
  for (double& g : gradient_) {
    g /= samples;
    length += g * g;
  }
  if (!std::isfinite(length)) {
    std::ranges::fill(gradient_, 0);
    return;
  }
  const double cut = std::min(1.0, longest / std::max(std::sqrt(length), kTiny));
  ++steps_;
  const double first_rest = 1 - std::pow(kFirstDecay, static_cast<double>(steps_));
  const double second_rest = 1 - std::pow(kSecondDecay, static_cast<double>(steps_));
  for (size_t i = 0; i < weights_.size(); ++i) {
    const double g = gradient_[i] * cut;
    first_[i] = kFirstDecay * first_[i] + (1 - kFirstDecay) * g;
    second_[i] = kSecondDecay * second_[i] + (1 - kSecondDecay) * g * g;
    weights_[i] -= static_cast<float>(rate * (first_[i] / first_rest) /
                                      (std::sqrt(second_[i] / second_rest) + kTiny));
  }
  std::ranges::fill(gradient_, 0);
}

void Mlp::set_weights(std::span<const float> weights) {
  HONE_ASSERT(weights.size() == weights_.size(), "nets of the same widths");
  weights_.assign(weights.begin(), weights.end());
}

std::string Mlp::save() const {
  std::string text = "net";
  for (const int width : widths_) fmt::format_to(std::back_inserter(text), " {}", width);
  text += " weights ";
  for (const float weight : weights_)
    fmt::format_to(std::back_inserter(text), "{:08x}", std::bit_cast<uint32_t>(weight));
  return text;
}

Status Mlp::load(std::string_view text) {
  const std::string own = save();
  const size_t head = own.rfind(' ') + 1;
  if (text.size() != own.size() || text.substr(0, head) != std::string_view(own).substr(0, head))
    return invalid("it has a net of another shape than '{}'", own.substr(0, head - 9));
  std::vector<float> loaded;
  for (size_t at = head; at < text.size(); at += 8) {
    uint32_t bits = 0;
    const char* const end = text.data() + at + 8;
    const auto [stopped, fault] = std::from_chars(text.data() + at, end, bits, 16);
    if (fault != std::errc() || stopped != end || !std::isfinite(std::bit_cast<float>(bits)))
      return invalid("'{}' is no weight of a net", text.substr(at, 8));
    loaded.push_back(std::bit_cast<float>(bits));
  }
  weights_ = std::move(loaded);
  return ok_status();
}

}  // namespace hone::search
