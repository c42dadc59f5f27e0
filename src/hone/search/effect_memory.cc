#include "hone/search/effect_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "hone/base/options.h"

namespace hone::search {
namespace {

// Variances, in squared logarithms of seconds: of an effect of which nothing is known, and of what
// the effects do not explain of a measurement.
constexpr double kPriorVariance = 0.05;
constexpr double kNoiseVariance = 0.1;
constexpr size_t kMostEffects = 20000;  // no further effects are learned, so a state stays small
constexpr double kMostMean = 100;

// Names are separated by spaces.
std::string one_word(std::string_view text) {
  std::string word = text.empty() ? "-" : std::string(text);
  std::replace_if(
      word.begin(), word.end(), [](unsigned char c) { return c <= ' '; }, '_');
  return word;
}

// The part of the text up to the separator, which is removed with it.
std::string_view take_until(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

}  // namespace

std::vector<std::string> EffectMemory::names_of(const SearchTask& task, const space::Point& point) {
  const std::string algorithm =
      fmt::format("{} {} {}", one_word(task.model->name()), one_word(task.family),
                  one_word(task.space->algorithm(point.sketch)));
  std::vector<std::string> names = {algorithm + " algorithm"};
  const std::vector<space::Decision>& decisions = task.space->decisions(point.sketch);
  for (size_t i = 0; i < decisions.size(); ++i) {
    const space::Decision& decision = decisions[i];
    names.push_back(fmt::format("{} {}={}", algorithm, one_word(decision.role_name()),
                                decision.options[static_cast<size_t>(point.choices[i])]));
  }
  // Two stages may have decisions of one role: their common effect counts once.
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

double EffectMemory::expected_error(const SearchTask& task, const space::Point& point) const {
  if (effects_.empty()) return 0;
  double sum = 0;
  for (const std::string& name : names_of(task, point)) {
    const auto effect = effects_.find(name);
    if (effect != effects_.end()) sum += effect->second.mean;
  }
  return sum;
}

void EffectMemory::learn(const SearchTask& task, const space::Point& point, double error) {
  std::vector<Effect*> active;
  double mean = 0, variance = kNoiseVariance;
  for (const std::string& name : names_of(task, point)) {
    auto place = effects_.find(name);
    if (place == effects_.end()) {
      if (effects_.size() >= kMostEffects) continue;
      place = effects_.emplace(name, Effect{0, kPriorVariance}).first;
    }
    active.push_back(&place->second);
    mean += place->second.mean;
    variance += place->second.variance;
  }
  for (Effect* effect : active) {
    const double gain = effect->variance / variance;
    effect->mean = std::clamp(effect->mean + gain * (error - mean), -kMostMean, kMostMean);
    effect->variance *= 1 - gain;
  }
}

std::string EffectMemory::to_text() const {
  std::string text;
  for (const auto& [name, effect] : effects_)
    text += fmt::format("{} {:.17g} {:.17g}\n", name, effect.mean, effect.variance);
  return text;
}

Result<EffectMemory> EffectMemory::parse(std::string_view text) {
  EffectMemory memory;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = take_until(text, '\n');
    std::string name;
    for (int word = 0; word < 4; ++word) {
      const std::string_view part = take_until(line, ' ');
      if (part.empty()) return invalid("line {}: expected the four names of an effect", number);
      name += (word > 0 ? " " : "") + std::string(part);
    }
    const Result<double> mean = parse_real(take_until(line, ' '), -kMostMean, kMostMean);
    const Result<double> variance = parse_real(line, 0, kPriorVariance);
    if (!mean.ok()) return invalid("line {}: mean: {}", number, mean.status().message());
    if (!variance.ok())
      return invalid("line {}: variance: {}", number, variance.status().message());
    if (!memory.effects_.emplace(name, Effect{*mean, *variance}).second)
      return invalid("line {}: '{}' is there twice", number, name);
  }
  if (memory.size() > kMostEffects)
    return invalid("{} effects, expected at most {}", memory.size(), kMostEffects);
  return memory;
}

}  // namespace hone::search
