// search/agent/ppo_agent.h - proximal policy optimisation over the decisions of one sketch
// (Schulman et al., 2017; as a search over schedules: Chameleon, ICLR 2020). A state is the options
// that were chosen. An action moves every decision at once, to the next option, to the one before,
// or not.
#pragma once

#include "hone/search/agent/mlp.h"

namespace hone::search {

// Defaults are Chameleon's, but for the walks, of which it has 128 of 500 steps, and the passes
// over them: the fewer steps a batch has, the more often each is learned from.
struct PpoOptions {
  int chains = 16;       // walks before a batch
  int steps = 24;        // the length of each walk
  double rate = 1e-3;    // rate of learning
  double gamma = 0.9;    // discount
  double lambda = 0.99;  // decay of the generalised advantage
  double clip = 0.2;     // most change of an action's probability
  double entropy = 0.3;  // weight of the policy's entropy
  int epochs = 8;        // passes over what the walks saw
  int minibatch = 32;    // steps that are learned from at once
  int hidden = 20;       // width of both hidden layers
  double top = 0.25;     // share of what the walks visited, the best predicted, that is clustered
  double knee = 2.5;     // clusters grow while their loss falls by this factor
};

// One step of a walk.
struct PpoStep {
  std::vector<float> state;
  std::vector<int> action;  // for each decision -1, 0 or 1
  double log_probability = 0;
  double reward = 0;
};

class PpoAgent {
 public:
  PpoAgent(const PpoOptions& options, int decisions, Rng& rng);
  // Chooses an action at random by the policy.
  [[nodiscard]] PpoStep act(std::span<const float> state, Rng& rng) const;
  // Returns the probabilities of -1, 0 and 1 of each decision.
  [[nodiscard]] std::vector<float> probabilities(std::span<const float> state) const;
  [[nodiscard]] double value(std::span<const float> state) const { return critic_.run(state)[0]; }
  // Learns from walks, each of which ended in a state that no action was chosen in.
  struct Walk {
    std::vector<PpoStep> steps;
    std::vector<float> end;
  };
  void learn(std::span<const Walk> walks, Rng& rng);

 private:
  struct Sample {
    const PpoStep* step;
    double advantage, target;
  };
  [[nodiscard]] std::vector<Sample> samples_of(std::span<const Walk> walks) const;
  // Adds the gradient of one sample to that of the policy.
  void add_gradient(const Sample& sample);
  void learn_once(std::span<const Sample> samples);

  PpoOptions options_;
  Mlp actor_, critic_;
};

}  // namespace hone::search
