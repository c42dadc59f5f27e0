// search/agent/dqn_agent.h - a deep Q-network that moves from schedule to schedule (Fasor, section
// 6.2; Mnih et al., Nature 2015). The net has three fully connected layers and gives the value of a
// move in a state; its targets come from a copy that follows every few steps, its samples from a
// memory of transitions. What it has learned can be kept from run to run. One thread at a time may
// use an agent; tasks that are searched at the same time have agents of their own, which note moves
// that a shared one learns from (dqn_policy.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "hone/search/agent/mlp.h"
#include "hone/search/agent/view.h"

namespace hone::search {

struct DqnOptions {
  int candidates = 64;   // schedules that one batch's walk visits
  int walks = 1;         // walks before a batch
  double sampled = 0.1;  // share of the walks that start from a random schedule
  // Weights of the reward's parts (Fasor, equation 3): the time that a move saves as a share of the
  // walk's first time, the ratio of arithmetic to memory, which is cut at `ratio_bound`, and the
  // share of the walk that is over. The last one counts against the reward: with the paper's sign a
  // longer search would be rewarded.
  double phi1 = 0.35, phi2 = 0.25, phi3 = 0.4;
  double ratio_bound = 4;
  double gamma = 0.95;
  double first_epsilon = 0.9, last_epsilon = 0.05;  // share of random moves
  int epsilon_moves = 512;  // moves after which the share has fallen to a third of its way
  int memory = 4096;        // transitions
  int minibatch = 16;
  int learn_every = 4;     // moves
  int follow_every = 128;  // moves after which the copy follows
  double rate = 1e-3;
};

// A move that was made. The state after it is needed to value the moves that were possible there.
struct Transition {
  std::shared_ptr<const std::vector<float>> from, to;
  std::vector<float> move;
  std::vector<std::vector<float>> next_moves;  // from `to`; none: the walk ended
  double reward = 0;
};

// The reward of a move between two times, both relative to the walk's first one.
[[nodiscard]] double dqn_reward(const DqnOptions& options, double before, double after,
                                const trial::BoundScores& bounds, double share_of_walk);

class DqnAgent {
 public:
  DqnAgent(const DqnOptions& options, target::Kind kind);

  // Returns the index of one of the moves, the one of the highest value or, with the share of
  // random moves that is due, any.
  [[nodiscard]] size_t choose(std::span<const float> state,
                              std::span<const std::vector<float>> moves, Rng& rng);
  // Remembers a move and, every few of them, learns.
  void remember(Transition transition, Rng& rng);
  // Counts a move and keeps it for another agent, which learns from it. At most `memory` of them
  // are kept.
  void note(Transition transition);
  // Returns the moves that were noted since the last call.
  [[nodiscard]] std::vector<Transition> take_news() { return std::exchange(news_, {}); }
  // Goes on with the nets and the count of moves of another agent.
  void follow(const DqnAgent& other);
  [[nodiscard]] double value(std::span<const float> state, std::span<const float> move) const;
  [[nodiscard]] double epsilon() const;
  [[nodiscard]] int64_t moves() const { return moves_; }

  [[nodiscard]] std::string save() const;
  // Replaces what was learned. After an error nothing has changed.
  [[nodiscard]] Status load(std::string_view text);

 private:
  [[nodiscard]] double target_of(const Transition& transition) const;
  void learn(Rng& rng);

  DqnOptions options_;
  target::Kind kind_;
  Mlp net_, followed_;
  std::vector<Transition> memory_;
  size_t oldest_ = 0;
  std::vector<Transition> news_;
  int64_t moves_ = 0;
};

}  // namespace hone::search
