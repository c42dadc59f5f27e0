#include "hone/search/policy.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hone/base/assert.h"
#include "hone/base/option_fields.h"
#include "hone/search/agent/dqn_policy.h"
#include "hone/search/agent/ppo_searcher.h"
#include "hone/search/annealing_searcher.h"
#include "hone/search/bayes_searcher.h"
#include "hone/search/beam_searcher.h"
#include "hone/search/coordinate_searcher.h"
#include "hone/search/es_searcher.h"
#include "hone/search/evolutionary_searcher.h"
#include "hone/search/mixed_searcher.h"
#include "hone/search/random_searcher.h"
#include "hone/search/recall.h"

namespace hone::search {
namespace {

constexpr double kMost = 1 << 20;  // of what is counted

constexpr std::string_view kRecallHelp =
    "share of what earlier tasks showed of the model's errors that predictions are corrected by";

constexpr OptionField<MixedOptions> kMixed[] = {
    {"samples", "points among which the best predicted ones are chosen at the start", 1, kMost,
     &MixedOptions::samples},
    {"starts", "best predicted points that are measured first", 0, kMost, &MixedOptions::starts},
    {"climb", "steps from each sample to a better predicted neighbour", 0, kMost,
     &MixedOptions::climb},
    {"descent_after", "measurements before descent along single decisions begins", 0, kMost,
     &MixedOptions::descent_after},
    {"least_share", "share of a batch that evolution and descent each keep", 0, 0.5,
     &MixedOptions::least_share},
    {"hopeless", "a sketch whose default point is predicted so many times slower is not tried", 1,
     1e6, &MixedOptions::hopeless},
    {"memory", "what a measurement's gain still counts one batch later", 0, 1,
     &MixedOptions::memory},
    {"recall", kRecallHelp, 0, 1, &MixedOptions::recall}};

constexpr OptionField<EvolutionOptions> kEvolution[] = {
    {"first_population", "samples before the first generation", 1, kMost,
     &EvolutionOptions::first_population},
    {"population", "points of a generation", 2, kMost, &EvolutionOptions::population},
    {"generations", "generations before a batch", 1, kMost, &EvolutionOptions::generations},
    {"crossover", "share of the children with two parents; the others are mutations", 0, 1,
     &EvolutionOptions::crossover},
    {"descent_share", "share of a batch that are neighbours of the best measured points", 0, 1,
     &EvolutionOptions::descent_share},
    {"descent_after", "measurements before these neighbours are proposed", 0, kMost,
     &EvolutionOptions::descent_after},
    {"recall", kRecallHelp, 0, 1, &EvolutionOptions::recall}};

constexpr OptionField<AnnealingOptions> kAnnealing[] = {
    {"chains", "chains that live side by side", 1, kMost, &AnnealingOptions::chains},
    {"steps", "steps of each chain before a batch", 1, kMost, &AnnealingOptions::steps},
    {"temperature", "at the start, in logarithms of seconds", 0, 1e3,
     &AnnealingOptions::temperature},
    {"cooling", "factor of the temperature per measurement", 0, 1, &AnnealingOptions::cooling},
    {"coldest", "the lowest temperature", 0, 1e3, &AnnealingOptions::coldest},
    {"elite_share", "share of the chains, the worst, that move to measured points before a batch",
     0, 1, &AnnealingOptions::elite_share}};

constexpr OptionField<CoordinateOptions> kCoordinate[] = {
    {"significance", "gains below this share of the time are noise", 0, 1,
     &CoordinateOptions::significance},
    {"confidence", "standard deviations of the model's correction that a hope may reach", 0, 100,
     &CoordinateOptions::confidence},
    {"descent_after", "measurements before the first descent", 0, kMost,
     &CoordinateOptions::descent_after},
    {"samples", "points among which a new start is chosen", 1, kMost, &CoordinateOptions::samples},
    {"kicks", "mutations from the best point to a new start, every second time", 0, kMost,
     &CoordinateOptions::kicks}};

constexpr OptionField<BeamOptions> kBeam[] = {
    {"width", "partial choices that go on to the next decision", 1, kMost, &BeamOptions::width},
    {"incumbents", "measured points that complete the partial choices, in turns", 1, kMost,
     &BeamOptions::incumbents},
    {"random_completion", "share of the searches that start from a sample instead", 0, 1,
     &BeamOptions::random_completion}};

constexpr OptionField<BayesOptions> kBayes[] = {
    {"acquisition", "by which a point of the pool is chosen", 0, 2, &BayesOptions::acquisition,
     kAcquisitions},
    {"batch", "what keeps the points of a batch apart", 0, 1, &BayesOptions::batch, kBatchRules},
    {"inputs", "what the process is over; embedding: of the net that is the cost model", 0, 1,
     &BayesOptions::inputs, kProcessInputs},
    {"prior", "what the process corrects", 0, 1, &BayesOptions::prior, kPriors},
    {"kappa", "standard deviations below the mean that ucb hopes for", 0, 100,
     &BayesOptions::kappa},
    {"pool", "samples and mutations that a batch is chosen from", 1, kMost, &BayesOptions::pool},
    {"refined", "best points of the pool, whose neighbours join it", 0, kMost,
     &BayesOptions::refined},
    {"first", "measurements before the process is asked", 1, kMost, &BayesOptions::first}};

constexpr OptionField<EsOptions> kEs[] = {
    {"population", "samples of a generation, half of them mirrored", 2, kMost,
     &EsOptions::population},
    {"generations", "generations before a batch", 1, kMost, &EsOptions::generations},
    {"rate", "learning rate of the means", 0, 10, &EsOptions::rate},
    {"sigma", "standard deviation at the start, of decisions between 0 and 1", 1e-3, 1,
     &EsOptions::sigma},
    {"sigma_rate", "learning rate of the logarithm of the deviation", 0, 10,
     &EsOptions::sigma_rate},
    {"least_sigma", "least standard deviation", 1e-3, 1, &EsOptions::least_sigma}};

constexpr OptionField<PpoOptions> kPpo[] = {
    {"chains", "walks before a batch", 1, kMost, &PpoOptions::chains},
    {"steps", "steps of each walk", 1, kMost, &PpoOptions::steps},
    {"rate", "rate of learning", 0, 1, &PpoOptions::rate},
    {"gamma", "discount of later rewards", 0, 1, &PpoOptions::gamma},
    {"lambda", "decay of the generalised advantage", 0, 1, &PpoOptions::lambda},
    {"clip", "most change of an action's probability", 0, 1, &PpoOptions::clip},
    {"entropy", "weight of the policy's entropy", 0, 10, &PpoOptions::entropy},
    {"epochs", "passes over what the walks saw", 1, 1000, &PpoOptions::epochs},
    {"minibatch", "steps that are learned from at once", 1, kMost, &PpoOptions::minibatch},
    {"hidden", "width of both hidden layers", 1, 4096, &PpoOptions::hidden},
    {"top", "share of the visited points, the best predicted, that is clustered", 0, 1,
     &PpoOptions::top},
    {"knee", "clusters of visited points grow while their loss falls by this factor", 1, 1e6,
     &PpoOptions::knee}};

template <typename Options>
double recall_of(const Options& options) {
  if constexpr (requires { options.recall; }) return options.recall;
  return 0;
}

template <typename Options>
bool embeds(const Options& options) {
  if constexpr (requires { options.embeds(); }) return options.embeds();
  return false;
}

// Each searcher starts from the options and, if they have `recall`, from what was learned.
template <typename Strategy, typename Options>
class GuidedPolicy : public Policy {
 public:
  GuidedPolicy(std::string_view name, const Options& options) : Policy(name), options_(options) {
    if (recall_of(options) > 0) recall_.emplace(recall_of(options));
  }
  [[nodiscard]] Status prepare(cost::CostModel& model) override {
    if (!embeds(options_)) return ok_status();
    const Status started = cost::start_embedding(model);
    if (started.ok()) return started;
    return invalid("search strategy '{}': inputs=embedding: {}", name(), started.message());
  }
  void observe(const SearchTask& task, std::span<const space::Point> points,
               std::span<const double> seconds) override {
    if (recall_) recall_->observe(task, points, seconds);
  }
  [[nodiscard]] Result<std::string> save() const override {
    if (!recall_) return Policy::save();
    return recall_->save();
  }
  [[nodiscard]] Status load(std::string_view state) override {
    return recall_ ? recall_->load(state) : Policy::load(state);
  }

 private:
  [[nodiscard]] std::unique_ptr<Searcher> make(const SearchTask& task,
                                               const space::Subspace* part) override {
    return std::make_unique<Strategy>(
        std::make_shared<Guide>(task, kOptimism, recall_ ? &*recall_ : nullptr, part), options_);
  }

  Options options_;
  std::optional<Recall> recall_;
};

class RandomPolicy : public Policy {
 public:
  using Policy::Policy;

 private:
  [[nodiscard]] std::unique_ptr<Searcher> make(const SearchTask& task,
                                               const space::Subspace* part) override {
    return std::make_unique<RandomSearcher>(task, part);
  }
};

using PolicyPtr = std::unique_ptr<Policy>;
using Made = Result<PolicyPtr>;

struct Entry {
  std::string_view name;
  Made (*make)(std::string_view name, std::string_view options);
  std::vector<std::string> (*help)();
};

template <typename Strategy, typename Options, const auto& kFields>
constexpr Entry guided(std::string_view name) {
  return {name,
          [](std::string_view own_name, std::string_view text) -> Made {
            HONE_ASSIGN_OR_RETURN(const Options options, parse_fields<Options>(text, kFields, {}));
            return PolicyPtr(new GuidedPolicy<Strategy, Options>(own_name, options));
          },
          [] { return fields_help<Options>(kFields, {}); }};
}

Made make_random(std::string_view name, std::string_view text) {
  if (!text.empty()) return invalid("it has no options");
  return PolicyPtr(new RandomPolicy(name));
}

const Entry kStrategies[] = {
    guided<MixedSearcher, MixedOptions, kMixed>("mixed"),
    guided<EvolutionarySearcher, EvolutionOptions, kEvolution>("evolutionary"),
    guided<AnnealingSearcher, AnnealingOptions, kAnnealing>("annealing"),
    guided<CoordinateSearcher, CoordinateOptions, kCoordinate>("coordinate"),
    guided<BeamSearcher, BeamOptions, kBeam>("beam"),
    guided<BayesSearcher, BayesOptions, kBayes>("bayes"),
    guided<EsSearcher, EsOptions, kEs>("es"),
    guided<PpoSearcher, PpoOptions, kPpo>("ppo"),
    {"dqn", make_dqn_policy, dqn_policy_help},
    {"random", make_random, [] { return std::vector<std::string>(); }}};

const Entry* find(std::string_view name) {
  for (const Entry& entry : kStrategies) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

// The options that every strategy takes, and what is left of the text for its own.
struct CommonOptions {
  std::optional<std::string> movable, powers_of_two;
  std::string own;
};

Result<CommonOptions> take_common(std::string_view text) {
  CommonOptions options;
  const std::pair<std::string_view, std::optional<std::string>*> common[] = {
      {"movable=", &options.movable}, {"powers_of_two=", &options.powers_of_two}};
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view option = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto found = std::ranges::find_if(
        common, [&](const auto& known) { return option.starts_with(known.first); });
    if (found == std::end(common)) {
      options.own += (options.own.empty() ? "" : ",") + std::string(option);
      continue;
    }
    const std::string_view name = found->first.substr(0, found->first.size() - 1);
    if (*found->second) return invalid("option '{}' is there twice", name);
    *found->second = option.substr(found->first.size());
  }
  return options;
}

Result<MovableDecisions> parse_movable(const CommonOptions& options) {
  const std::string powers = options.powers_of_two.value_or("0");
  if (powers != "0" && powers != "1")
    return invalid("powers_of_two: found '{}', expected 0 or 1", powers);
  Result<MovableDecisions> movable =
      MovableDecisions::parse(options.movable.value_or("all"), powers == "1");
  if (!movable.ok()) return invalid("movable: {}", movable.status().message());
  return movable;
}

Status learns_nothing(std::string_view name) {
  return invalid(
      "search strategy '{}' learns nothing that could be kept, expected dqn or one with "
      "recall as in {}:recall=1",
      name, kDefaultStrategy);
}

}  // namespace

void Policy::observe(const SearchTask& /*task*/, std::span<const space::Point> /*points*/,
                     std::span<const double> /*seconds*/) {}

Result<std::string> Policy::save() const { return learns_nothing(name_); }

Status Policy::load(std::string_view /*state*/) { return learns_nothing(name_); }

Result<std::unique_ptr<Policy>> make_policy(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const Entry* const entry = find(name);
  if (entry == nullptr)
    return invalid("unknown search strategy '{}', expected one of {}", name,
                   fmt::join(strategy_names(), ", "));
  if (colon + 1 == text.size())
    return invalid("search strategy '{}': expected options such as samples=100 after ':'", name);
  const auto refuse = [&](const Status& why) {
    return invalid("search strategy '{}': {}", name, why.message());
  };
  const Result<CommonOptions> options =
      take_common(colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1));
  if (!options.ok()) return refuse(options.status());
  Result<MovableDecisions> movable = parse_movable(*options);
  if (!movable.ok()) return refuse(movable.status());
  Made made = entry->make(entry->name, options->own);
  if (!made.ok()) return refuse(made.status());
  (*made)->movable() = *std::move(movable);
  return made;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kStrategies) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> strategy_options(std::string_view name) {
  const Entry* const entry = find(name);
  HONE_ASSERT(entry != nullptr, "the name is one of strategy_names()");
  return entry->help();
}

}  // namespace hone::search
