#include "hone/search/agent/ppo_agent.h"

#include <algorithm>
#include <cmath>

namespace hone::search {
namespace {

constexpr size_t kMoves = 3;  // -1, 0, 1

// Turns each decision's three numbers into probabilities.
void apply_softmax(std::vector<float>& numbers) {
  for (size_t d = 0; d < numbers.size(); d += kMoves) {
    const float most = std::max({numbers[d], numbers[d + 1], numbers[d + 2]});
    float sum = 0;
    for (size_t m = 0; m < kMoves; ++m) sum += numbers[d + m] = std::exp(numbers[d + m] - most);
    for (size_t m = 0; m < kMoves; ++m) numbers[d + m] /= sum;
  }
}

double log_of(float probability) { return std::log(std::max(probability, 1e-8F)); }

double log_probability_of(std::span<const float> probabilities, std::span<const int> action) {
  double sum = 0;
  for (size_t d = 0; d < action.size(); ++d)
    sum += log_of(probabilities[d * kMoves + static_cast<size_t>(action[d] + 1)]);
  return sum;
}

}  // namespace

PpoAgent::PpoAgent(const PpoOptions& options, int decisions, Rng& rng)
    : options_(options),
      actor_({decisions, options.hidden, options.hidden, decisions * static_cast<int>(kMoves)},
             Activation::kTanh, rng),
      critic_({decisions, options.hidden, options.hidden, 1}, Activation::kTanh, rng) {}

std::vector<float> PpoAgent::probabilities(std::span<const float> state) const {
  std::vector<float> numbers = actor_.run(state);
  apply_softmax(numbers);
  return numbers;
}

PpoStep PpoAgent::act(std::span<const float> state, Rng& rng) const {
  PpoStep step;
  step.state.assign(state.begin(), state.end());
  const std::vector<float> chances = probabilities(state);
  for (size_t d = 0; d < state.size(); ++d) {
    const double drawn = rng.uniform();
    const float down = chances[d * kMoves], stay = chances[d * kMoves + 1];
    step.action.push_back(drawn < down ? -1 : drawn < down + stay ? 0 : 1);
  }
  step.log_probability = log_probability_of(chances, step.action);
  return step;
}

// Generalised advantages (Schulman et al., ICLR 2016), with mean 0 and variance 1.
std::vector<PpoAgent::Sample> PpoAgent::samples_of(std::span<const Walk> walks) const {
  std::vector<Sample> samples;
  for (const Walk& walk : walks) {
    double advantage = 0, next = value(walk.end);
    for (size_t i = walk.steps.size(); i-- > 0;) {
      const PpoStep& step = walk.steps[i];
      const double now = value(step.state);
      advantage =
          step.reward + options_.gamma * next - now + options_.gamma * options_.lambda * advantage;
      samples.push_back({&step, advantage, advantage + now});
      next = now;
    }
  }
  double mean = 0, variance = 0;
  for (const Sample& sample : samples)
    mean += sample.advantage / static_cast<double>(samples.size());
  for (const Sample& sample : samples) {
    variance +=
        (sample.advantage - mean) * (sample.advantage - mean) / static_cast<double>(samples.size());
  }
  for (Sample& sample : samples)
    sample.advantage = (sample.advantage - mean) / (std::sqrt(variance) + 1e-8);
  return samples;
}

void PpoAgent::add_gradient(const Sample& sample) {
  const Mlp::Trace trace = actor_.trace(sample.step->state);
  std::vector<float> chances = trace.back();
  apply_softmax(chances);
  const std::vector<int>& action = sample.step->action;
  const double ratio = std::exp(log_probability_of(chances, action) - sample.step->log_probability);
  // Outside the clip the objective does not depend on the policy.
  const bool clipped = sample.advantage > 0 ? ratio > 1 + options_.clip : ratio < 1 - options_.clip;
  const double by_log = clipped ? 0 : -sample.advantage * ratio;
  const double per_decision = options_.entropy / static_cast<double>(action.size());
  std::vector<float> by_numbers(chances.size());
  for (size_t d = 0; d < action.size(); ++d) {
    double entropy = 0;
    for (size_t m = 0; m < kMoves; ++m)
      entropy -= chances[d * kMoves + m] * log_of(chances[d * kMoves + m]);
    for (size_t m = 0; m < kMoves; ++m) {
      const float p = chances[d * kMoves + m];
      const double taken = action[d] + 1 == static_cast<int>(m) ? 1 : 0;
      const double by_entropy = p * (log_of(p) + entropy);  // minus the derivative
      by_numbers[d * kMoves + m] =
          static_cast<float>(by_log * (taken - p) + per_decision * by_entropy);
    }
  }
  actor_.backward(trace, by_numbers);
}

void PpoAgent::learn_once(std::span<const Sample> samples) {
  for (const Sample& sample : samples) {
    add_gradient(sample);
    const Mlp::Trace trace = critic_.trace(sample.step->state);
    const auto by_value = static_cast<float>(trace.back()[0] - sample.target);
    critic_.backward(trace, std::span(&by_value, 1));
  }
  actor_.step(options_.rate, static_cast<int>(samples.size()));
  critic_.step(options_.rate, static_cast<int>(samples.size()));
}

// Each pass has the samples in another order, in minibatches (Schulman et al., algorithm 1).
void PpoAgent::learn(std::span<const Walk> walks, Rng& rng) {
  std::vector<Sample> samples = samples_of(walks);
  const auto most = static_cast<size_t>(options_.minibatch);
  for (int epoch = 0; epoch < options_.epochs; ++epoch) {
    rng.shuffle(samples);
    for (size_t begin = 0; begin < samples.size(); begin += most)
      learn_once(std::span(samples).subspan(begin, std::min(most, samples.size() - begin)));
  }
}

}  // namespace hone::search
