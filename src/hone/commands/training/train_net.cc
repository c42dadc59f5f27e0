#include "hone/commands/training/train_net.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "hone/base/log.h"
#include "hone/base/options.h"
#include "hone/commands/training/train_from.h"
#include "hone/learn/net_rows.h"
#include "hone/learn/normalisation.h"
#include "hone/learn/readable_tasks.h"
#include "hone/learn/score_scale.h"

namespace hone {
namespace {

namespace net = cost::net;

constexpr double kValidation = 0.1;  // share of the tasks that each epoch is judged by

// Returns the meta-learning that the options want: by default that of the family, or none for a net
// that few data adapt.
Result<net::MetaTraining> meta_of(const TrainOptions& options, const net::Family& family) {
  const NetTrainOptions& wanted = options.net;
  const std::string_view usual = options.from.empty() ? family.recipe.meta : "none";
  const std::string name(wanted.meta.empty() ? usual : wanted.meta);
  // Options of a recipe are those of its own kind.
  const std::string_view own = name == family.recipe.meta ? family.recipe.meta_options : "";
  const Result<net::MetaTraining> named = of_option("--meta", net::parse_meta(name, own, ""));
  if (!named.ok()) return named;
  return of_option("--meta-options", net::parse_meta(name, own, wanted.meta_options));
}

// Returns `training`, the default, with what the options change.
Result<net::NetTraining> apply(const TrainOptions& options, const std::string& output,
                               net::NetTraining training) {
  const NetTrainOptions& wanted = options.net;
  if (!wanted.loss.empty()) {
    HONE_ASSIGN_OR_RETURN(training.loss, net::parse_loss(wanted.loss));
  }
  training.epochs = wanted.epochs.value_or(training.epochs);
  training.batch = wanted.batch.value_or(training.batch);
  training.rate = wanted.rate.value_or(training.rate);
  training.last_rate = std::min(training.last_rate, training.rate);
  training.decay = wanted.decay.value_or(training.decay);
  const bool good = training.epochs >= 1 && training.batch >= 2 && training.rate > 0 &&
                    training.decay >= 0 && wanted.threads >= 0;
  if (!good) {
    return invalid(
        "{} epochs, batches of {}, a rate of {}, a decay of {} and {} threads, expected at least 1 "
        "epoch, batches of 2, a rate above 0, and no negative number",
        training.epochs, training.batch, training.rate, training.decay, wanted.threads);
  }
  training.seconds = wanted.budget_seconds;
  training.patience = wanted.patience;
  training.seed = options.seed;
  training.threads = wanted.threads > 0
                         ? wanted.threads
                         : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  HONE_ASSIGN_OR_RETURN(training.place,
                        of_option("--train-on", net::parse_train_place(wanted.place)));
  training.state_file = train_state_file(output);
  training.resume = wanted.resume;
  training.cancel = options.interrupted;
  return training;
}

struct Rows {
  net::NetRows train, validation;
  TrainedOn trained_on;
  std::set<uint64_t> validation_tasks;
};

// Whose each head of the net is: first those of the net that it starts from.
Result<std::vector<std::string>> heads_of(const std::vector<MeasuredData>& data,
                                          const std::vector<std::string>& first, double devices) {
  std::vector<std::string> heads = first;
  if (devices == 0) return heads;
  std::set<std::string> found;
  for (const MeasuredData& one : data) {
    for (const learn::TaskTrials& task : one.dataset.tasks)
      found.insert(cost::head_name(one.device.key, task.threads));
  }
  for (const std::string& name : found) {
    if (std::find(heads.begin(), heads.end(), name) == heads.end()) heads.push_back(name);
  }
  if (static_cast<double>(heads.size()) > devices) {
    return invalid("--options: devices={}, but there are {}: {}", devices, heads.size(),
                   fmt::join(heads, ", "));
  }
  return heads;
}

learn::Parts divide(const MeasuredData& data, const TrainOptions& options, double share) {
  if (data.validation) return {data.dataset, *data.validation};
  if (options.net.validation_models.empty()) return learn::split_tasks(data.dataset, share);
  return learn::split_models(
      data.dataset, {options.net.validation_models.begin(), options.net.validation_models.end()});
}

// Leaves out the tasks that the net cannot read, and says how many.
Status leave_out_unreadable(std::vector<learn::Parts>& parts, const std::vector<MeasuredData>& data,
                            const net::Net& model, int threads) {
  learn::UnreadableTasks all;
  int64_t left = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (learn::Dataset* part : {&parts[i].train, &parts[i].validation}) {
      HONE_ASSIGN_OR_RETURN(const learn::UnreadableTasks found,
                            learn::remove_unreadable(*part, data[i].target, model, threads));
      all.merge(found);
    }
    left += std::ssize(parts[i].train.tasks);
  }
  if (all.keys.empty()) return ok_status();
  if (left == 0)
    return invalid("no task is left to train on, {} that the net cannot read are left out: {}",
                   all.keys.size(), all.why);
  log_warning("{} tasks with {} schedules that the net cannot read are left out: {}",
              all.keys.size(), all.schedules, all.why);
  return ok_status();
}

Result<Rows> make_rows(const std::vector<MeasuredData>& data, const TrainOptions& options,
                       const net::Net& model, double share, const net::NetTraining& training,
                       const std::vector<std::string>& heads) {
  std::vector<learn::Parts> parts;
  for (const MeasuredData& one : data) parts.push_back(divide(one, options, share));
  HONE_RETURN_IF_ERROR(leave_out_unreadable(parts, data, model, training.threads));
  if (options.data.tasks > 0) {
    std::vector<learn::Dataset*> trained;
    for (learn::Parts& one : parts) trained.push_back(&one.train);
    HONE_RETURN_IF_ERROR(learn::keep_tasks(trained, options.data.tasks, training.seed));
  }
  Rows rows;
  rows.train = rows.validation = net::no_rows(model);
  for (size_t i = 0; i < data.size(); ++i) {
    const auto add = [&](const learn::Dataset& part, net::NetRows& to) -> Status {
      HONE_ASSIGN_OR_RETURN(const net::NetRows more,
                            learn::make_rows(part, data[i].target, model,
                                             {training.threads, heads, training.cancel}));
      learn::append(to, more);
      return ok_status();
    };
    HONE_RETURN_IF_ERROR(add(parts[i].train, rows.train));
    HONE_RETURN_IF_ERROR(add(parts[i].validation, rows.validation));
    rows.trained_on.add(data[i].device, parts[i].train);
    rows.validation_tasks.merge(parts[i].validation.keys());
  }
  if (rows.train.num_tasks() == 0)
    return invalid("no task is left to train on, {} are held out", rows.validation.num_tasks());
  if (!options.net.validation_models.empty() && rows.validation.num_tasks() == 0)
    return invalid("--hold-out: the data have no task of {}",
                   fmt::join(options.net.validation_models, ", "));
  return rows;
}

NetCard card_of(const TrainOptions& options, const net::NetTraining& training, const Rows& rows,
                const TrainSummary& summary) {
  const TrainEpoch& best = summary.best();
  NetCard card;
  card.notes = {
      {"options", options.options},
      {"held_out_models", fmt::format("{}", fmt::join(options.net.validation_models, ", "))},
      {"schedules", std::to_string(summary.schedules)},
      {"tasks", std::to_string(summary.tasks)},
      {"validation_schedules", std::to_string(summary.validation_schedules)},
      {"validation_tasks", std::to_string(summary.validation_tasks)},
      {"loss", net::loss_names()[static_cast<size_t>(training.loss)]},
      {"epochs", std::to_string(training.epochs)},
      {"epochs_done", std::to_string(summary.epochs.size())},
      {"best_epoch", std::to_string(best.epoch)},
      {"rate", fmt::format("{}", training.rate)},
      {"seed", std::to_string(training.seed)},
      {"pair_accuracy", fmt::format("{:.4f}", best.pair_accuracy)},
      {"clear_pair_accuracy", fmt::format("{:.4f}", best.clear_pair_accuracy)},
  };
  if (training.meta.wanted()) {
    card.notes["meta"] = net::meta_names()[static_cast<size_t>(training.meta.kind)];
    card.notes["meta_options"] = net::format_options(training.meta);
    if (!std::isnan(best.adapted_loss)) {
      card.notes["plain_loss"] = fmt::format("{:.4f}", best.plain_loss);
      card.notes["adapted_loss"] = fmt::format("{:.4f}", best.adapted_loss);
    }
  }
  card.notes.merge(data_notes(rows.trained_on, options.data.exclude_models));
  return card;
}

}  // namespace

Result<TrainSummary> train_net(const std::string& output, const std::vector<MeasuredData>& data,
                               TrainOptions options) {
  std::optional<TrainStart> start;
  if (!options.from.empty()) {
    HONE_ASSIGN_OR_RETURN(start, read_start(options));
  }
  HONE_ASSIGN_OR_RETURN(const net::Family* family, net::find_family(options.cost));
  HONE_ASSIGN_OR_RETURN(net::NetTraining training,
                        start ? training_from(*start) : net::training_of(family->recipe));
  HONE_ASSIGN_OR_RETURN(training, apply(options, output, std::move(training)));
  HONE_ASSIGN_OR_RETURN(training.meta, meta_of(options, *family));
  if (training.meta.last) training.meta_trained.assign(family->last.begin(), family->last.end());
  const double share = options.net.validation.value_or(options.data.only.empty() ? kValidation : 0);
  HONE_ASSIGN_OR_RETURN(const net::GivenOptions given,
                        of_option("--options", net::parse_options(*family, options.options)));
  HONE_ASSIGN_OR_RETURN(net::Net model,
                        of_option("--options", net::make_net(*family, net::all_inputs(), given)));
  HONE_ASSIGN_OR_RETURN(const net::GivenOptions complete, net::complete_options(*family, given));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> heads,
                        heads_of(data, start ? start->file.card.heads : std::vector<std::string>(),
                                 complete.at("devices")));
  HONE_ASSIGN_OR_RETURN(const Rows rows, make_rows(data, options, model, share, training, heads));
  if (const Status found = net::check_meta(rows.train, rows.validation, training); !found.ok())
    return invalid("--meta: {}", found.message());
  if (start) {
    HONE_RETURN_IF_ERROR(take_weights(*start, options.from, model));
  } else {
    net::initialise(model, training.seed);
    learn::set_normalisation(model, rows.train.batch);
  }
  TrainSummary summary{
      .kind = options.cost,
      .schedules = rows.train.batch.rows,
      .tasks = std::ssize(rows.trained_on.tasks),
      .weights = model.num_weights(),
      .validation_schedules = rows.validation.batch.rows,
      .validation_tasks = std::ssize(rows.validation_tasks),
      .planned_epochs = training.epochs + (training.meta.wanted() ? training.meta.epochs : 0),
      .epochs = {}};
  const auto tell = [&] {
    if (options.net.on_progress) options.net.on_progress(summary);
  };
  tell();
  training.progress = [&](const TrainEpoch& epoch) {
    summary.epochs.push_back(epoch);
    tell();
  };
  HONE_ASSIGN_OR_RETURN(summary.epochs, net::train(model, rows.train, rows.validation, training));
  NetCard card = card_of(options, training, rows, summary);
  card.heads = heads;
  if (start) card.notes.merge(start_notes(*start, options.from));
  card.tells_time = training.loss == net::Loss::kMultiTask;
  if (!card.tells_time) {
    HONE_ASSIGN_OR_RETURN(card.log_seconds_per_score,
                          learn::log_seconds_per_score(model, rows.train));
  }
  HONE_RETURN_IF_ERROR(write_net(output, model, card));
  unlink(training.state_file.c_str());
  return summary;
}

}  // namespace hone
