#include "hone/search/agent/dqn_policy.h"

#include <algorithm>

#include "hone/base/option_fields.h"
#include "hone/search/agent/dqn_searcher.h"
#include "hone/search/agent/dqn_walk.h"

namespace hone::search {
namespace {

constexpr double kMost = 1 << 20;  // of what is counted
// Moves that a task's own agent notes at most until the shared one learns from them; each takes
// some kilobytes.
constexpr int kOwnMemory = 1024;

constexpr OptionField<DqnOptions> kFields[] = {
    {"candidates", "schedules that a walk visits", 2, kMost, &DqnOptions::candidates},
    {"walks", "walks before a batch", 1, kMost, &DqnOptions::walks},
    {"sampled", "share of the walks that start from a random schedule", 0, 1, &DqnOptions::sampled},
    {"phi1", "weight of the time that a move saves in the reward", 0, 100, &DqnOptions::phi1},
    {"phi2", "weight of the ratio of arithmetic to memory", 0, 100, &DqnOptions::phi2},
    {"phi3", "what the whole walk costs", 0, 100, &DqnOptions::phi3},
    {"ratio_bound", "the ratio of arithmetic to memory counts up to here", 0, 1e6,
     &DqnOptions::ratio_bound},
    {"gamma", "discount of the next move's value", 0, 1, &DqnOptions::gamma},
    {"first_epsilon", "share of random moves at the start", 0, 1, &DqnOptions::first_epsilon},
    {"last_epsilon", "share of random moves in the end", 0, 1, &DqnOptions::last_epsilon},
    {"epsilon_moves", "moves after which the share has fallen to a third of its way", 1, kMost,
     &DqnOptions::epsilon_moves},
    {"memory", "moves that are remembered", 1, kMost, &DqnOptions::memory},
    {"minibatch", "moves that are learned from at once", 1, kMost, &DqnOptions::minibatch},
    {"learn_every", "moves from one step of learning to the next", 1, kMost,
     &DqnOptions::learn_every},
    {"follow_every", "moves after which the net that gives targets follows", 1, kMost,
     &DqnOptions::follow_every},
    {"rate", "rate of learning", 0, 1, &DqnOptions::rate}};

}  // namespace

DqnAgent& DqnPolicy::shared(target::Kind kind) {
  return shared_.try_emplace(kind, options_, kind).first->second;
}

std::unique_ptr<Searcher> DqnPolicy::make(const SearchTask& task, const space::Subspace* part) {
  const target::Kind kind = task.target->kind();
  DqnOptions own = options_;
  own.memory = std::min(own.memory, kOwnMemory);
  auto agent = std::make_shared<DqnAgent>(own, kind);
  agent->follow(shared(kind));
  agents_[task.key] = agent;
  return std::make_unique<DqnSearcher>(std::make_shared<Guide>(task, kOptimism, nullptr, part),
                                       options_, std::move(agent));
}

void DqnPolicy::observe(const SearchTask& task, std::span<const space::Point> /*points*/,
                        std::span<const double> /*seconds*/) {
  const auto found = agents_.find(task.key);
  if (found == agents_.end()) return;
  const std::shared_ptr<DqnAgent> agent = found->second.lock();
  if (agent == nullptr) return;
  DqnAgent& common = shared(task.target->kind());
  for (Transition& made : agent->take_news()) common.remember(std::move(made), rng_);
  agent->follow(common);
}

void DqnPolicy::rehearse(const SearchTask& task, std::span<const space::Point> points,
                         std::span<const double> seconds) {
  Guide guide(task);
  guide.observe(points, seconds);
  guide.fit();
  if (guide.measured().empty()) return;
  DqnAgent& agent = shared(task.target->kind());
  const auto choose = [&](const DqnPlace& place) {
    std::vector<size_t> stored;
    for (size_t i = 0; i < place.neighbours.size(); ++i) {
      if (guide.seconds_of(place.neighbours[i]) != nullptr) stored.push_back(i);
    }
    return stored.empty() ? agent.choose(*place.state, place.moves, rng_) : rng_.choice(stored);
  };
  const auto learn = [&](Transition made) { agent.remember(std::move(made), rng_); };
  const auto walks = std::max<int64_t>(std::ssize(points) / options_.candidates, 1);
  for (int64_t i = 0; i < walks; ++i) {
    std::vector<space::Point> visited;
    dqn_walk(guide, options_, rng_.choice(guide.measured()).point, {choose, learn}, visited);
  }
}

Result<std::string> DqnPolicy::save() const {
  std::string text;
  for (const auto& [kind, agent] : shared_) text += agent.save();
  return text;
}

// Each agent is two lines.
Status DqnPolicy::load(std::string_view state) {
  std::map<target::Kind, DqnAgent> loaded;
  while (!state.empty()) {
    const size_t first = state.find('\n');
    const size_t second = first == std::string_view::npos ? first : state.find('\n', first + 1);
    if (second == std::string_view::npos) return invalid("its last line is cut off");
    const std::string_view text = state.substr(0, second + 1);
    const target::Kind kind = text.substr(0, first).find(" gpu ") == std::string_view::npos
                                  ? target::Kind::kCpu
                                  : target::Kind::kGpu;
    DqnAgent agent(options_, kind);
    HONE_RETURN_IF_ERROR(agent.load(text));
    if (!loaded.emplace(kind, std::move(agent)).second) return invalid("it has an agent twice");
    state.remove_prefix(second + 1);
  }
  shared_ = std::move(loaded);
  return ok_status();
}

Result<std::unique_ptr<Policy>> make_dqn_policy(std::string_view name, std::string_view options) {
  HONE_ASSIGN_OR_RETURN(const DqnOptions parsed, parse_fields<DqnOptions>(options, kFields, {}));
  return std::unique_ptr<Policy>(new DqnPolicy(name, parsed));
}

std::vector<std::string> dqn_policy_help() { return fields_help<DqnOptions>(kFields, {}); }

}  // namespace hone::search
