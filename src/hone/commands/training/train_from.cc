#include "hone/commands/training/train_from.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "hone/base/assert.h"
#include "hone/base/options.h"

namespace hone {
namespace {

namespace net = cost::net;

// Steps are as few as the data: a higher rate than one that ends a long training, all weights at a
// lower one than the last layers (docs/user/training_cost_models.md).
constexpr int kEpochs = 20, kBatch = 128;
constexpr double kFullRate = 5e-4, kHeadRate = 2e-3;

Result<net::GivenOptions> complete(const net::Family& family, std::string_view text) {
  HONE_ASSIGN_OR_RETURN(const net::GivenOptions given, net::parse_options(family, text));
  return net::complete_options(family, given);
}

Status check_options(const TrainOptions& options, const net::Family& family,
                     const std::string& trained) {
  HONE_ASSIGN_OR_RETURN(const net::GivenOptions given,
                        of_option("--options", complete(family, options.options)));
  HONE_ASSIGN_OR_RETURN(const net::GivenOptions its, complete(family, trained));
  for (const auto& [name, value] : its) {
    const double other = given.at(name);
    if (other != value) {
      return invalid("--options: {} was trained with {}={}, not {}: expected '{}', or no --options",
                     options.from, name, value, other, trained);
    }
  }
  return ok_status();
}

}  // namespace

std::vector<std::string> adapt_names() { return {"full", "head"}; }

Result<TrainStart> read_start(TrainOptions& options) {
  const std::vector<std::string> names = adapt_names();
  const std::string& adapt = options.net.adapt;
  if (!adapt.empty() && std::find(names.begin(), names.end(), adapt) == names.end())
    return invalid("--adapt: '{}', expected {}", adapt, fmt::join(names, ", "));
  TrainStart start;
  start.head = adapt == "head";
  HONE_ASSIGN_OR_RETURN(start.file, read_net(options.from));
  const std::string& family = start.file.family;
  if (!options.cost.empty() && options.cost != family) {
    return invalid("--cost: {} is a net of family {}, not {}: expected {}, or no --cost",
                   options.from, family, options.cost, family);
  }
  options.cost = family;
  HONE_ASSIGN_OR_RETURN(start.family, net::find_family(family));
  const std::string trained = options_of(start.file, *start.family);
  if (!options.options.empty())
    HONE_RETURN_IF_ERROR(check_options(options, *start.family, trained));
  options.options = trained;
  return start;
}

Result<net::NetTraining> training_from(const TrainStart& start) {
  HONE_ASSIGN_OR_RETURN(net::NetTraining training, net::training_of(start.family->recipe));
  if (const std::string loss = note_of(start.file, "loss"); !loss.empty()) {
    HONE_ASSIGN_OR_RETURN(training.loss, net::parse_loss(loss));
  }
  training.epochs = kEpochs;
  training.batch = kBatch;
  training.decay = 0;  // what few rows do not speak against stays
  training.rate = start.head ? kHeadRate : kFullRate;
  training.last_rate = std::min(training.last_rate, training.rate);
  if (start.head) training.trained.assign(start.family->last.begin(), start.family->last.end());
  return training;
}

Status take_weights(const TrainStart& start, const std::string& path, net::Net& model) {
  HONE_RETURN_IF_ERROR(load_weights(start.file, path, model));
  const size_t known = start.file.card.heads.size();
  if (known == 0) return ok_status();
  HONE_ASSIGN_OR_RETURN(const net::GivenOptions options,
                        complete(*start.family, options_of(start.file, *start.family)));
  const auto devices = static_cast<size_t>(options.at("devices"));
  for (const char* name : {"head.weight", "head.bias"}) {
    net::Parameter* parameter = model.find_parameter(name);
    HONE_ASSERT(parameter != nullptr && parameter->values.size() % devices == 0, "a family's head");
    // Each output has a column for each device, side by side.
    for (size_t begin = 0; begin < parameter->values.size(); begin += devices) {
      const auto values = std::span(parameter->values).subspan(begin, devices);
      const float sum = std::accumulate(values.begin(), values.begin() + known, 0.0F);
      std::fill(values.begin() + known, values.end(), sum / static_cast<float>(known));
    }
  }
  return ok_status();
}

Notes start_notes(const TrainStart& start, const std::string& path) {
  Notes notes = from_notes(path, start.file.bytes, start.file.card.notes);
  notes["adapt"] = start.head ? "head" : "full";
  return notes;
}

}  // namespace hone
