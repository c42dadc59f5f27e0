#include "hone/cost/net/train.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "hone/base/cancel.h"
#include "hone/base/file.h"
#include "hone/base/named.h"
#include "hone/cost/net/torch_library.h"

namespace hone::cost::net {
namespace {

constexpr Named<Loss> kLosses[] = {{"lambdarank", Loss::kLambdaRank},
                                   {"pairwise", Loss::kPairwise},
                                   {"rmse", Loss::kRmse},
                                   {"multitask", Loss::kMultiTask}};

constexpr Named<TrainPlace> kPlaces[] = {{"cpu", TrainPlace::kProcessor},
                                         {"cuda", TrainPlace::kCuda}};

constexpr int64_t kEvaluatedRows = 1024;  // at a time
// The outputs in the order of the library.
constexpr std::string_view kOutputs[] = {"score", "time", "memory_bound", "core_bound"};

// The functions that the library calls while it trains.
struct Listener {
  const NetTraining& training;
  std::vector<TrainEpoch> epochs;
  Status saved;

  static int32_t stop(void* self) {
    const auto& listener = *static_cast<Listener*>(self);
    return !listener.saved.ok() || is_cancelled(listener.training.cancel) ? 1 : 0;
  }
  static void progress(void* self, const HoneTorchEpoch* done) {
    auto& listener = *static_cast<Listener*>(self);
    listener.epochs.push_back({done->epoch, done->loss, done->rate, done->pair_accuracy,
                               done->clear_pair_accuracy, done->seconds, done->best != 0,
                               done->meta != 0, done->plain_loss, done->adapted_loss});
    if (listener.training.progress) listener.training.progress(listener.epochs.back());
  }
  static void save(void* self, const void* state, int64_t size) {
    auto& listener = *static_cast<Listener*>(self);
    listener.saved = write_file_atomic(
        listener.training.state_file,
        std::string_view(static_cast<const char*>(state), static_cast<size_t>(size)));
  }
};

struct PlainRows {
  std::vector<const float*> inputs;
  HoneTorchRows plain{};
  explicit PlainRows(const NetRows& rows) {
    for (const std::vector<float>& input : rows.batch.inputs) inputs.push_back(input.data());
    plain = {rows.batch.rows,          inputs.data(),         rows.num_tasks(),
             rows.group_begin.data(),  rows.speed.data(),     rows.log_time.data(),
             rows.memory_bound.data(), rows.core_bound.data()};
  }
};

Status check(const Net& net, const NetRows& rows) {
  HONE_ASSERT(rows.batch.inputs.size() == net.inputs.size(), "rows for another net");
  const auto count = static_cast<size_t>(rows.batch.rows);
  for (const std::vector<float>* labels :
       {&rows.speed, &rows.log_time, &rows.memory_bound, &rows.core_bound})
    HONE_ASSERT(labels->size() == count, "labels are missing");
  HONE_ASSERT(rows.group_begin.back() == rows.batch.rows, "rows of no task");
  for (const float speed : rows.speed) {
    if (!(speed > 0 && speed <= 1))
      return invalid("a schedule of speed {}, expected 0 to 1", speed);
  }
  return ok_status();
}

HoneTorchOptions plain_options(const NetTraining& training) {
  HoneTorchOptions plain{};
  plain.loss = static_cast<int32_t>(training.loss);
  plain.epochs = training.epochs;
  plain.batch = training.batch;
  plain.group = training.group;
  plain.rate = training.rate;
  plain.last_rate = training.last_rate;
  plain.cosine = training.cosine ? 1 : 0;
  plain.decay = training.decay;
  plain.clip = training.clip;
  plain.average = training.average;
  plain.least_ratio = training.least_ratio;
  plain.bound_weight = training.bound_weight;
  plain.rank_weight = training.rank_weight;
  plain.seed = training.seed;
  plain.place = static_cast<int32_t>(training.place);
  plain.threads = training.threads;
  plain.patience = training.patience;
  plain.seconds = training.seconds;
  const MetaTraining& meta = training.meta;
  plain.meta = {static_cast<int32_t>(meta.kind),
                meta.steps,
                meta.rate,
                meta.ways,
                meta.shots,
                meta.queries,
                meta.tasks,
                meta.batches,
                meta.epochs,
                meta.patience,
                meta.outer};
  return plain;
}

}  // namespace

float log_time(double seconds, double default_seconds) {
  return default_seconds > 0 ? static_cast<float>(std::log(seconds / default_seconds)) : NAN;
}

NetRows no_rows(const Net& net) {
  NetRows rows;
  rows.batch.inputs.resize(net.inputs.size());
  return rows;
}

Result<Loss> parse_loss(std::string_view name) {
  if (const std::optional<Loss> loss = find_named(kLosses, name)) return *loss;
  return invalid("unknown loss '{}', expected one of {}", name, fmt::join(loss_names(), ", "));
}

std::vector<std::string> loss_names() { return names_of(kLosses); }

Result<TrainPlace> parse_train_place(std::string_view name) {
  if (const std::optional<TrainPlace> place = find_named(kPlaces, name)) return *place;
  return invalid("cannot train on '{}', expected one of {}", name,
                 fmt::join(train_place_names(), ", "));
}

std::vector<std::string> train_place_names() { return names_of(kPlaces); }

Result<NetTraining> training_of(const Recipe& recipe) {
  NetTraining training;
  HONE_ASSIGN_OR_RETURN(training.loss, parse_loss(recipe.loss));
  training.epochs = recipe.epochs;
  training.batch = recipe.batch;
  training.rate = recipe.rate;
  training.last_rate = recipe.last_rate;
  training.cosine = recipe.cosine;
  training.decay = recipe.decay;
  training.clip = recipe.clip;
  HONE_ASSIGN_OR_RETURN(training.meta, parse_meta(recipe.meta, recipe.meta_options, ""));
  return training;
}

Result<std::vector<TrainEpoch>> train(Net& net, const NetRows& rows, const NetRows& validation,
                                      const NetTraining& training) {
  HONE_ASSIGN_OR_RETURN(const TorchLibrary library, load_torch(training.library));
  HONE_RETURN_IF_ERROR(check(net, rows));
  HONE_RETURN_IF_ERROR(check(net, validation));
  HONE_RETURN_IF_ERROR(check_meta(rows, validation, training));
  std::string state;
  if (training.resume && !training.state_file.empty() && file_exists(training.state_file)) {
    HONE_ASSIGN_OR_RETURN(state, read_file(training.state_file));
  }
  Listener listener{training, {}, ok_status()};
  HoneTorchOptions options = plain_options(training);
  options.user = &listener;
  options.stop = Listener::stop;
  options.progress = Listener::progress;
  if (!training.state_file.empty()) options.save = Listener::save;
  options.state = state.empty() ? nullptr : state.data();
  options.state_size = std::ssize(state);
  const PlainNet plain(net, training.trained, training.meta_trained);
  const PlainRows plain_rows(rows), plain_validation(validation);
  std::array<char, 500> message{};
  const int32_t result = library.train(&plain.get(), &plain_rows.plain, &plain_validation.plain,
                                       &options, message.data(), std::ssize(message));
  HONE_RETURN_IF_ERROR(listener.saved);
  if (result == kHoneTorchStopped)
    return error(Code::kCancelled, "interrupted after {} epochs{}", listener.epochs.size(),
                 training.state_file.empty() ? "; nothing was written" : ", which were kept");
  if (result == kHoneTorchFailed) {
    const std::string where = state.empty() ? "" : fmt::format("{}: ", training.state_file);
    return error(Code::kInvalid, "{}{}", where, message.data());
  }
  return listener.epochs;
}

bool compares(Loss loss) { return loss == Loss::kLambdaRank || loss == Loss::kPairwise; }

Status check_meta(const NetRows& rows, const NetRows& validation, const NetTraining& training) {
  if (!training.meta.wanted()) return ok_status();
  const auto check_rows = [&](const NetRows& some, std::string_view what) {
    std::vector<int64_t> sizes;
    for (size_t i = 1; i < some.group_begin.size(); ++i)
      sizes.push_back(some.group_begin[i] - some.group_begin[i - 1]);
    return check_tasks(training.meta, sizes, what, compares(training.loss));
  };
  HONE_RETURN_IF_ERROR(check_rows(rows, "tasks"));
  return validation.batch.rows == 0 ? ok_status() : check_rows(validation, "tasks held out");
}

namespace {

// Adapts `net` by `training`. Returns the loss of the rows before.
Result<double> adapt_plain(Net& net, const NetRows& rows, const NetTraining& training) {
  HONE_ASSIGN_OR_RETURN(const TorchLibrary library, load_torch(training.library));
  HONE_RETURN_IF_ERROR(check(net, rows));
  const PlainNet plain(net, training.trained, training.meta_trained);
  const PlainRows plain_rows(rows);
  const HoneTorchOptions options = plain_options(training);
  double loss = 0;
  std::array<char, 500> message{};
  if (library.adapt(&plain.get(), &plain_rows.plain, &options, &loss, message.data(),
                    std::ssize(message)) != kHoneTorchDone)
    return error(Code::kInvalid, "{}", message.data());
  return loss;
}

}  // namespace

Status adapt(Net& net, const NetRows& rows, const NetTraining& training) {
  return adapt_plain(net, rows, training).status();
}

Result<double> loss_of(const Net& net, const NetRows& rows, const NetTraining& training) {
  Net copy = net;
  NetTraining none = training;
  none.meta.steps = 0;
  return adapt_plain(copy, rows, none);
}

Result<NetGradients> torch_gradients(const Net& net, const NetRows& rows,
                                     const NetTraining& training) {
  HONE_ASSIGN_OR_RETURN(const TorchLibrary library, load_torch(training.library));
  HONE_RETURN_IF_ERROR(check(net, rows));
  Net copy = net;
  const PlainNet plain(copy, training.trained);
  const PlainRows plain_rows(rows);
  const HoneTorchOptions options = plain_options(training);
  NetGradients result;
  std::vector<float*> places;
  for (const Parameter& parameter : net.parameters)
    result.parameters.emplace_back(parameter.values.size());
  for (std::vector<float>& gradient : result.parameters) places.push_back(gradient.data());
  std::array<char, 500> message{};
  if (library.gradients(&plain.get(), &plain_rows.plain, &options, &result.loss, places.data(),
                        message.data(), std::ssize(message)) != kHoneTorchDone)
    return error(Code::kInternal, "{}", message.data());
  return result;
}

Result<std::vector<std::vector<float>>> torch_evaluate(const Net& net, const NetBatch& batch,
                                                       const std::string& library) {
  HONE_ASSIGN_OR_RETURN(const TorchLibrary torch, load_torch(library));
  Net copy = net;
  const PlainNet plain(copy, {});
  std::vector<std::vector<float>> outputs(net.outputs.size(),
                                          std::vector<float>(static_cast<size_t>(batch.rows)));
  for (int64_t begin = 0; begin < batch.rows; begin += kEvaluatedRows) {
    std::vector<const float*> inputs;
    for (size_t i = 0; i < net.inputs.size(); ++i)
      inputs.push_back(
          &batch.inputs[i][static_cast<size_t>(begin * element_count(net.inputs[i].dims))]);
    std::array<float*, std::size(kOutputs)> places{};
    for (size_t i = 0; i < net.outputs.size(); ++i) {
      const auto* const place =
          std::find(std::begin(kOutputs), std::end(kOutputs), net.outputs[i].name);
      HONE_ASSERT(place != std::end(kOutputs), "an output that training does not know");
      places[static_cast<size_t>(place - std::begin(kOutputs))] =
          &outputs[i][static_cast<size_t>(begin)];
    }
    std::array<char, 500> message{};
    const int64_t rows = std::min(kEvaluatedRows, batch.rows - begin);
    if (torch.forward(&plain.get(), rows, inputs.data(), places.data(), message.data(),
                      std::ssize(message)) != kHoneTorchDone)
      return error(Code::kInternal, "{}", message.data());
  }
  return outputs;
}

}  // namespace hone::cost::net
