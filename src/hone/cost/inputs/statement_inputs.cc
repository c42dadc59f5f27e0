#include <algorithm>
#include <numeric>

#include "hone/analysis/features.h"
#include "hone/cost/inputs/input_parts.h"
#include "hone/cost/inputs/model_inputs.h"

namespace hone::cost {
namespace {

using analysis::Nest;

// Returns the heaviest statements in the order of the program.
std::vector<size_t> chosen(std::span<const Nest> nests) {
  std::vector<size_t> places(nests.size());
  std::iota(places.begin(), places.end(), size_t{0});
  if (places.size() <= static_cast<size_t>(kMaxStatements)) return places;
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    return statement_weight(nests[a]) > statement_weight(nests[b]);
  });
  places.resize(kMaxStatements);
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

double statement_weight(const Nest& nest) {
  return nest.operations() +
         0.25 * nest.iterations() * nest.useful * static_cast<double>(nest.accesses.size());
}

std::vector<bool> winograd_stages(const space::Candidate& candidate) {
  const std::vector<schedule::StageState>& stages = candidate.state.stages;
  std::vector<bool> found(stages.size(), false);
  for (const schedule::Step& step : candidate.steps) {
    const auto* winograd = std::get_if<schedule::Winograd>(&step);
    if (winograd == nullptr) continue;
    const std::string& name = winograd->stage;
    for (size_t s = 0; s < stages.size(); ++s) {
      const std::string_view stage = stages[s].name();
      if (stage.starts_with(name) && (stage.size() == name.size() || stage[name.size()] == '.'))
        found[s] = true;
    }
  }
  return found;
}

void write_statements(std::span<const Nest> nests, const Query& query, float* statements,
                      float* tags, float* mask) {
  if (mask) mask[0] = 1;  // attention over nothing would be a division by zero
  const analysis::MachineRow machine = analysis::machine_features(query.cpu(), query.threads);
  const std::vector<bool> winograd = winograd_stages(*query.candidate);
  const std::vector<size_t> places = chosen(nests);
  for (size_t i = 0; i < places.size(); ++i) {
    const Nest& nest = nests[places[i]];
    if (mask) mask[i] = 1;
    if (statements) {
      const analysis::FeatureRow row = analysis::features_of(nest, query.cpu(), machine);
      std::copy(row.begin(), row.end(), statements + i * analysis::kNumFeatures);
    }
    if (tags) {
      const auto s = static_cast<size_t>(nest.stage);
      const OperatorTag tag =
          tag_of(query.candidate->state.stages[s].info->stage, static_cast<bool>(winograd[s]));
      tags[i * kNumTags + static_cast<size_t>(tag)] = 1;
    }
  }
}

}  // namespace hone::cost
