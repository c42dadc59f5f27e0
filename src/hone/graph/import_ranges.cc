#include "hone/graph/import_ranges.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <span>

#include "hone/base/log.h"
#include "hone/graph/equal_symbols.h"
#include "hone/graph/import_steps.h"
#include "hone/graph/some_names.h"

namespace hone::graph {
namespace {

class RangeImporter {
 public:
  RangeImporter(const ImportOptions& options, std::string file, const ReadModel& read)
      : options_(options), file_(std::move(file)), read_(read) {
    start_anew();
  }

  Result<Graph> run() {
    Result<Graph> first = read_(tried_, ImportPart::kAll, failure_);
    const std::string taken = taken_;
    if (first.ok() || !failure_.at_sizes) return told(std::move(first));
    const std::vector<EqualSymbols> equal = equal_symbols(options_, failure_, read_);
    for (const EqualSymbols& pair : equal) {
      if (pair.have_common_size()) failure_.ties.push_back({pair.one.name, pair.other.name});
    }
    const RangeFailure failure = failure_;
    std::optional<Graph> other;
    if (failure.may_batch_states) {
      tried_.batched_states = true;
      Result<Graph> batched = read_(tried_, ImportPart::kAll, failure_);
      if (batched.ok()) {
        other = std::move(batched).value();
      } else if (failure_.at_sizes) {
        other = elsewhere();
      }
    }
    if (!other) {
      start_anew();
      failure_ = failure;
      other = elsewhere();
    }
    if (other) return told(*std::move(other));
    taken_ = taken;
    if (advice_.empty()) advice_ = advice_for_equal(equal);
    return told(advised(first.status(), failure));
  }

 private:
  void start_anew() {
    tried_ = options_;
    tried_.taken = &taken_;
  }

  // Returns the error with what was found out in place of the general advice.
  [[nodiscard]] Status advised(const Status& status, const RangeFailure& failure) const {
    const std::string& message = status.message();
    if (advice_.empty() || failure.advice.empty() || !message.ends_with(failure.advice))
      return status;
    const size_t end = message.size() - failure.advice.size();
    return {status.code(), message.substr(0, end) + advice_};
  }

  Result<Graph> told(Result<Graph> graph) const {
    if (options_.taken != nullptr) *options_.taken = taken_;
    if (graph.ok()) {
      const std::set<std::string> warnings(graph->warnings.begin(), graph->warnings.end());
      for (const std::string& warning : warnings) log_warning("{}", warning);
    }
    return graph;
  }

  // Returns the graph of these ranges, or nothing if the model is not valid there either.
  std::optional<Graph> attempt(RangeFailure& failure) {
    Result<Graph> graph = read_(tried_, ImportPart::kAllIfSmallest, failure);
    return graph.ok() ? std::optional<Graph>(std::move(graph).value()) : std::nullopt;
  }
  std::optional<Graph> attempt() {
    RangeFailure ignored;
    return attempt(ignored);
  }

  // Returns the graph of the first other ranges at which the model is valid.
  std::optional<Graph> elsewhere() {
    for (const auto other :
         {&RangeImporter::in_steps, &RangeImporter::tied, &RangeImporter::in_other_steps,
          &RangeImporter::shorter, &RangeImporter::longer, &RangeImporter::larger_batch}) {
      std::optional<Graph> graph = (this->*other)();
      if (graph) return graph;
    }
    return std::nullopt;
  }

  void say(const std::string& line) { taken_ += (taken_.empty() ? "" : "; ") + line; }

  // The least power of two that divides all ends and at whose multiples the model is valid. What is
  // valid at those of one is valid at those of its double, so each attempt rules half of them out.
  std::optional<Graph> in_steps() {
    constexpr int kMostExponent = 7;
    const int64_t divisor = failure_.is_valid_at_largest ? failure_.side_divisor : 0;
    if (divisor == 0) return std::nullopt;
    int least = 1, found = 0;
    int end = std::min(std::countr_zero(static_cast<uint64_t>(divisor)), kMostExponent) + 1;
    std::optional<Graph> best;
    while (least < end) {
      const int middle = (least + end) / 2;
      tried_.side_step = int64_t{1} << middle;
      std::optional<Graph> graph = attempt();
      if (graph) {
        best = std::move(graph);
        end = found = middle;
      } else {
        least = middle + 1;
      }
    }
    tried_.side_step = 1;
    if (best) {
      say(fmt::format("{}: sides are multiples of {}, as the model is not valid at others", file_,
                      int64_t{1} << found));
    }
    return best;
  }

  // Sets the ranges of symbols in steps; those of the rule begin with so many of them. Returns what
  // there is to say; nothing if a symbol would have one size.
  struct SaidSteps {
    std::string ranges;
    std::string options;  // for ranges that were given and begin with no multiple
  };
  std::optional<SaidSteps> set_steps(const std::vector<SymbolStep>& steps, int64_t first) {
    SaidSteps said;
    for (SymbolStep step : steps) {
      if (!step.is_given) step.range.min = first * step.step;
      if (step.range.min >= step.range.max) return std::nullopt;
      tried_.steps[step.name] = step.step;
      set_symbol_range(tried_, failure_, step.name, step.range);
      said.ranges +=
          fmt::format("{}{} is {}..{} in multiples of {}", said.ranges.empty() ? "" : ", ",
                      step.name, step.range.min, step.range.max, step.step);
      if (!step.is_whole)
        said.options += " " + range_option({step.name, step.range.min, step.range.max},
                                           failure_.symbols, failure_.inputs);
    }
    return said;
  }

  // Other symbols than sides, each in its own steps. A range of the rule begins with one of them,
  // or a few if the model is not valid there.
  std::optional<Graph> in_other_steps() {
    const std::vector<SymbolStep> steps = symbol_steps(tried_, failure_, read_);
    if (steps.empty()) return std::nullopt;
    const ImportOptions before = tried_;
    const bool by_rule = !std::ranges::all_of(steps, &SymbolStep::is_given);
    for (int64_t first = 1; first <= (by_rule ? 4 : 1); first *= 2) {
      tried_ = before;
      const std::optional<SaidSteps> said = set_steps(steps, first);
      std::optional<Graph> graph = said ? attempt() : std::nullopt;
      if (!graph) continue;
      if (said->options.empty()) {
        say(fmt::format("{}: {}, as the model is not valid at others", file_, said->ranges));
        return graph;
      }
      advice_ = fmt::format("give ranges that begin with a multiple, as {}:{}", said->ranges,
                            said->options);
      break;
    }
    tried_ = before;
    return std::nullopt;
  }

  [[nodiscard]] bool is_by_rule(const std::string& name) const {
    return std::ranges::count(failure_.batches, name) +
               std::ranges::count(failure_.sequences, name) >
           0;
  }

  // Symbols that are one in all that the model takes: where operators combine elements of two
  // inputs, they have to be equal. Those that the rule gave a range get that of one of them, or of
  // the one that an option gave a range.
  std::optional<Graph> tied() {
    std::vector<std::string> lines;
    for (std::vector<std::string> names : failure_.ties) {
      std::ranges::stable_partition(names, [&](const auto& name) { return !is_by_rule(name); });
      std::vector<std::string> others(names.begin() + 1, names.end());
      if (!std::ranges::all_of(others, [&](const auto& name) { return is_by_rule(name); }))
        return untied();
      for (const std::string& name : others) tried_.ranges[name] = {{0, 0, names[0]}};
      lines.push_back(fmt::format("{}: {} {} equal to '{}', as the model is not valid otherwise",
                                  file_, some_names(others), others.size() == 1 ? "is" : "are",
                                  names[0]));
    }
    std::optional<Graph> graph = lines.empty() ? std::nullopt : attempt();
    if (!graph) return untied();
    for (const std::string& line : lines) say(line);
    return graph;
  }
  std::optional<Graph> untied() {
    for (const auto& names : failure_.ties) {
      for (const std::string& name : names)
        if (is_by_rule(name)) tried_.ranges.erase(name);
    }
    return std::nullopt;
  }

  std::optional<Graph> shorter() {
    constexpr int64_t kLeastSequence = 16;
    std::vector<int64_t> batches = {options_.most_batch}, lengths = {options_.most_sequence};
    if (!failure_.batches.empty() && options_.most_batch > 1) batches.push_back(1);
    if (!failure_.sequences.empty()) {
      for (int64_t most = options_.most_sequence / 2; most >= kLeastSequence; most /= 2)
        lengths.push_back(most);
    }
    for (const int64_t batch : batches) {
      for (const int64_t most : lengths) {
        if (batch == options_.most_batch && most == options_.most_sequence) continue;
        tried_.most_batch = batch;
        tried_.most_sequence = most;
        std::optional<Graph> graph = attempt();
        if (graph) return graph;
      }
    }
    tried_.most_batch = options_.most_batch;
    tried_.most_sequence = options_.most_sequence;
    return std::nullopt;
  }

  // A sound has to be as long as the window of a model, which is often hundreds of samples; others
  // need the elements that they take by constant places, or the largest of.
  std::optional<Graph> longer() {
    const int64_t most = options_.most_sequence;
    std::vector<DimRange> ranges;
    const bool is_valid = failure_.is_valid_at_largest;
    if (is_valid) ranges = {{most / 64, most, {}}, {most / 8, most, {}}, {most / 4, most, {}}};
    // Models of sound may take one block, with some samples of the block before it.
    ranges.push_back({most / 2, most + most / 4, {}});
    if (is_valid) ranges.push_back({most / 2, most, {}});
    ranges.push_back({most, 8 * most, {}});
    ranges.push_back({most, most + most / 4, {}});
    ranges.push_back({2 * most, 8 * most, {}});
    return raised(failure_.sequences, ranges);
  }

  std::optional<Graph> larger_batch() {
    const int64_t most = options_.most_batch;
    std::vector<DimRange> ranges;
    if (failure_.is_valid_at_largest) ranges.push_back({most / 2, most, {}});
    for (const int64_t factor : {1, 2, 8, 32})
      ranges.push_back({factor * most, 2 * factor * most, {}});
    return raised(failure_.batches, ranges);
  }

  // Returns the graph of the first of these ranges of all the symbols at which the model is valid.
  // Each symbol then gets the least size at which it is, or the range of the rule.
  std::optional<Graph> raised(const std::vector<std::string>& names,
                              const std::vector<DimRange>& ranges) {
    for (const DimRange& range : ranges) {
      if (names.empty() || range.min < 2) continue;
      // Mostly a model that is valid at two sizes is so between them.
      for (const bool one_size : {true, false}) {
        std::optional<Graph> graph = raised_to(names, range, one_size);
        if (graph) return graph;
      }
    }
    for (const std::string& name : names) tried_.ranges.erase(name);
    return std::nullopt;
  }

  // Returns the graph of this range of all the symbols, or of what is left of it for those that
  // need it. With `one_size`, sizes of a symbol are tried alone, which takes the least time; the
  // graph is of the whole range.
  std::optional<Graph> raised_to(const std::vector<std::string>& names, const DimRange& range,
                                 bool one_size) {
    const auto set_all = [&](const DimRange& all) {
      for (const std::string& name : names) tried_.ranges[name] = {all};
    };
    RangeFailure found;
    if (one_size) {
      for (const int64_t size : {range.max, range.min}) {
        set_all({size, size, {}});
        if (!is_valid_at_largest(found)) return std::nullopt;
      }
    }
    set_all(range);
    if (!one_size && !attempt(found)) return std::nullopt;
    std::string said, first;
    for (const std::string& name : names) {
      if (!lower(name, one_size)) continue;
      const DimRange& least = tried_.ranges[name][0];
      said += fmt::format("{}{} is {}..{}", said.empty() ? "" : ", ", name, least.min, least.max);
      if (first.empty()) first = name;
    }
    if (first.empty()) return std::nullopt;
    std::optional<Graph> graph = attempt(found);
    if (!graph) return std::nullopt;
    const std::string taken = taken_;
    const std::string advice = advice_beside(first, found);
    taken_ = taken;
    say(fmt::format("{}: {}, as the model is not valid at fewer{}", file_, said, advice));
    return graph;
  }

  // Returns whether the model is valid at the largest sizes.
  bool is_valid_at_largest(RangeFailure& failure) {
    return read_(tried_, ImportPart::kLargest, failure).ok();
  }

  // Gives a symbol the range of the rule, or else the least size at which the model is valid: where
  // the symbol has that alone, with `one_size`. Returns whether it needs that.
  bool lower(const std::string& name, bool one_size) {
    const DimRange range = tried_.ranges[name][0];
    const auto is_valid = [&](int64_t size) {
      tried_.ranges[name] = {{size, size, {}}};
      RangeFailure ignored;
      return one_size ? is_valid_at_largest(ignored) : attempt().has_value();
    };
    tried_.ranges.erase(name);
    if (one_size ? is_valid(1) : attempt().has_value()) {
      tried_.ranges.erase(name);
      return false;
    }
    int64_t invalid = one_size ? 1 : 0, valid = range.min;
    while (invalid + 1 < valid) {
      const int64_t middle = invalid + (valid - invalid) / 2;
      (is_valid(middle) ? valid : invalid) = middle;
    }
    tried_.ranges[name] = {{valid, range.max, {}}};
    if (!one_size && !attempt()) tried_.ranges[name] = {range};
    return true;
  }

  // Returns how a symbol may get more than the range that was found for it or, if the model is not
  // valid at twice as much, one size of it. Between the two, no size is looked at.
  std::string advice_beside(const std::string& name, const RangeFailure& found) {
    const DimRange range = tried_.ranges[name][0];
    const int64_t twice = 2 * range.max;
    const auto option = [&](int64_t min, int64_t max) {
      return range_option({name, min, max}, found.symbols, found.inputs);
    };
    tried_.ranges[name] = {{twice, twice, {}}};
    RangeFailure ignored;
    const bool takes_twice = is_valid_at_largest(ignored);
    tried_.ranges[name] = {range};
    if (takes_twice) {
      return fmt::format("; more may be valid, as {} is: {}", twice, option(range.min, twice));
    }
    return fmt::format(", nor at up to {}; one size: {}", twice, option(range.max, range.max));
  }

  const ImportOptions& options_;
  const std::string file_;
  const ReadModel& read_;
  ImportOptions tried_;
  std::string taken_, advice_;
  RangeFailure failure_;
};

}  // namespace

Result<Graph> import_ranges(const ImportOptions& options, const std::string& file,
                            const ReadModel& read) {
  return RangeImporter(options, file, read).run();
}

}  // namespace hone::graph
