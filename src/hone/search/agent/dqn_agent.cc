#include "hone/search/agent/dqn_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hone/base/options.h"

namespace hone::search {
namespace {

constexpr int kHidden = 64;
constexpr uint64_t kFirstWeights = 1;  // seed

Mlp make_net(target::Kind kind) {
  Rng rng(kFirstWeights);
  return {{state_size(kind) + move_size(), kHidden, kHidden, 1}, Activation::kRelu, rng};
}

std::vector<float> joined(std::span<const float> state, std::span<const float> move) {
  std::vector<float> input(state.begin(), state.end());
  input.insert(input.end(), move.begin(), move.end());
  return input;
}

std::string header(target::Kind kind) {
  return fmt::format("agent dqn view {} {}", kViewVersion,
                     kind == target::Kind::kGpu ? "gpu" : "cpu");
}

}  // namespace

double dqn_reward(const DqnOptions& options, double before, double after,
                  const trial::BoundScores& bounds, double share_of_walk) {
  const double ratio = std::min(bounds.core / std::max(bounds.memory, 1e-9), options.ratio_bound);
  return options.phi1 * (before - after) + options.phi2 * ratio - options.phi3 * share_of_walk;
}

DqnAgent::DqnAgent(const DqnOptions& options, target::Kind kind)
    : options_(options), kind_(kind), net_(make_net(kind)), followed_(net_) {}

double DqnAgent::value(std::span<const float> state, std::span<const float> move) const {
  return net_.run(joined(state, move))[0];
}

double DqnAgent::epsilon() const {
  const double left = std::exp(-static_cast<double>(moves_) / options_.epsilon_moves);
  return options_.last_epsilon + (options_.first_epsilon - options_.last_epsilon) * left;
}

size_t DqnAgent::choose(std::span<const float> state, std::span<const std::vector<float>> moves,
                        Rng& rng) {
  HONE_ASSERT(!moves.empty(), "there is a move to choose");
  if (rng.chance(epsilon())) return static_cast<size_t>(rng.below(std::ssize(moves)));
  const std::vector<float> values = net_.run_each(state, moves);
  return static_cast<size_t>(std::ranges::max_element(values) - values.begin());
}

double DqnAgent::target_of(const Transition& transition) const {
  if (transition.next_moves.empty()) return transition.reward;
  const std::vector<float> values = followed_.run_each(*transition.to, transition.next_moves);
  return transition.reward + options_.gamma * *std::ranges::max_element(values);
}

void DqnAgent::learn(Rng& rng) {
  const int count = std::min(options_.minibatch, static_cast<int>(memory_.size()));
  for (int i = 0; i < count; ++i) {
    const Transition& transition = rng.choice(memory_);
    const Mlp::Trace trace = net_.trace(joined(*transition.from, transition.move));
    // The gradient of the squared error, cut at 1 as in Huber's loss.
    const auto error = static_cast<float>(trace.back()[0] - target_of(transition));
    const float by_value = std::clamp(error, -1.0F, 1.0F);
    net_.backward(trace, std::span(&by_value, 1));
  }
  net_.step(options_.rate, count);
}

void DqnAgent::remember(Transition transition, Rng& rng) {
  if (std::ssize(memory_) < options_.memory) {
    memory_.push_back(std::move(transition));
  } else {
    memory_[oldest_] = std::move(transition);
    oldest_ = (oldest_ + 1) % memory_.size();
  }
  ++moves_;
  if (moves_ % options_.learn_every == 0) learn(rng);
  if (moves_ % options_.follow_every == 0) followed_ = net_;
}

void DqnAgent::note(Transition transition) {
  if (std::ssize(news_) < options_.memory) news_.push_back(std::move(transition));
  ++moves_;
}

void DqnAgent::follow(const DqnAgent& other) {
  net_ = other.net_;
  followed_ = other.followed_;
  moves_ = other.moves_;
}

std::string DqnAgent::save() const {
  return fmt::format("{} moves {}\n{}\n", header(kind_), moves_, net_.save());
}

Status DqnAgent::load(std::string_view text) {
  const std::string expected = header(kind_) + " moves ";
  const size_t end = text.find('\n');
  if (!text.starts_with(expected) || end == std::string_view::npos || !text.ends_with('\n'))
    return invalid("it was learned with another view of schedules than '{}'", header(kind_));
  HONE_ASSIGN_OR_RETURN(
      const int64_t moves,
      parse_int(text.substr(expected.size(), end - expected.size()), 0, int64_t{1} << 60));
  HONE_RETURN_IF_ERROR(net_.load(text.substr(end + 1, text.size() - end - 2)));
  followed_ = net_;
  moves_ = moves;
  return ok_status();
}

}  // namespace hone::search
