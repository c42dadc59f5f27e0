#include "hone/space/likeness.h"

#include <algorithm>
#include <string_view>

namespace hone::space {
namespace {

// Words of a step's text: names and numbers.
std::vector<std::string> words(const schedule::Step& step) {
  std::vector<std::string> out(1);
  for (const char c : schedule::to_string(step)) {
    if (std::string_view("(), []@/%").find(c) == std::string_view::npos) {
      out.back() += c;
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
  }
  return out;
}

}  // namespace

Likeness::Likeness(const schedule::Steps& wanted) : wanted_(wanted) {
  for (const schedule::Step& step : wanted) words_.push_back(words(step));
}

int Likeness::of(const schedule::Steps& steps) {
  if (steps.size() > known_.size()) known_.resize(steps.size());
  int total = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    auto known = std::find_if(known_[i].begin(), known_[i].end(),
                              [&](const auto& k) { return k.first == steps[i]; });
    if (known == known_[i].end()) known = known_[i].insert(known, {steps[i], of_step(steps[i])});
    total += known->second;
  }
  return total;
}

int Likeness::of_step(const schedule::Step& step) const {
  const std::vector<std::string> mine = words(step);
  int best = 0;
  for (const std::vector<std::string>& other : words_) {
    if (other[0] != mine[0] || other[1] != mine[1]) continue;
    int same = other.size() == mine.size() ? 1 : 0;
    for (size_t i = 2; i < std::min(mine.size(), other.size()); ++i)
      same += static_cast<int>(mine[i] == other[i]);
    best = std::max(best, same);
  }
  const bool equal = std::count(wanted_.begin(), wanted_.end(), step) > 0;
  return best + (equal ? 16 : -4);
}

}  // namespace hone::space
