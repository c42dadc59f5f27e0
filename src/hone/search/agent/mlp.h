// search/agent/mlp.h - a small net of fully connected layers for the agents that learn to search.
// It learns by Adam (Kingma and Ba, ICLR 2015) and needs no other library.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/base/rng.h"
#include "hone/base/status.h"

namespace hone::search {

enum class Activation : uint8_t { kRelu, kTanh };

class Mlp {
 public:
  // `widths` are those of the input, of each hidden layer and of the output; there are two at
  // least. Hidden layers have the activation, the output has none. Weights start at random (He et
  // al., ICCV 2015), biases at 0.
  Mlp(std::vector<int> widths, Activation activation, Rng& rng);

  [[nodiscard]] int inputs() const { return widths_.front(); }
  [[nodiscard]] int outputs() const { return widths_.back(); }

  // A trace holds the values after each layer for one input: the input first, the outputs last.
  using Trace = std::vector<std::vector<float>>;
  [[nodiscard]] std::vector<float> run(std::span<const float> input) const;
  [[nodiscard]] Trace trace(std::span<const float> input) const;
  // Returns the first output for each of several inputs, which begin with the same numbers and go
  // on with different ones. What the first layer makes of the former is computed once.
  [[nodiscard]] std::vector<float> run_each(std::span<const float> begin,
                                            std::span<const std::vector<float>> rest) const;

  // Adds the gradient of a loss, whose derivatives by the outputs are given, to that of the
  // weights.
  void backward(const Trace& trace, std::span<const float> by_outputs);
  // Moves the weights along the gradient since the last step, divided by `samples` and cut to
  // length `longest`, and forgets the gradient. One that is not finite moves nothing.
  void step(double rate, int samples, double longest = 10);

  [[nodiscard]] std::span<const float> weights() const { return weights_; }
  [[nodiscard]] std::span<const double> gradient() const { return gradient_; }
  void set_weights(std::span<const float> weights);  // as many as weights() has

  // One line of text that keeps every bit of the weights. What Adam knows of earlier steps is not
  // kept. load() refuses text of a net with other widths and then changes nothing.
  [[nodiscard]] std::string save() const;
  [[nodiscard]] Status load(std::string_view text);

 private:
  [[nodiscard]] size_t matrix_at(size_t layer) const { return offsets_[layer]; }
  [[nodiscard]] size_t bias_at(size_t layer) const;
  [[nodiscard]] float activated(float sum) const;
  // Returns what a layer gives before its activation.
  [[nodiscard]] std::vector<float> sums(size_t layer, std::span<const float> from) const;

  std::vector<int> widths_;
  Activation activation_;
  std::vector<size_t> offsets_;  // where each layer's matrix begins, which its biases follow
  std::vector<float> weights_;   // matrices have a row for each output
  std::vector<double> gradient_, first_, second_;
  int64_t steps_ = 0;
};

}  // namespace hone::search
