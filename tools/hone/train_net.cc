#include "train_net.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "hone/base/file.h"
#include "hone/base/options.h"
#include "hone/learn/net_rows.h"
#include "hone/learn/normalisation.h"
#include "hone/learn/score_scale.h"
#include "hone/neural/net_file.h"

#include "curve.h"
#include "interrupt.h"
#include "model_card.h"
#include "option_texts.h"
#include "train_from.h"

namespace hone::tool {
namespace {

namespace net = cost::net;

constexpr double kValidation = 0.1;  // share of the tasks that each epoch is judged by

Result<net::NetTraining> parse(const NetTrainTexts& texts, net::NetTraining training) {
  if (!texts.loss.empty()) {
    HONE_ASSIGN_OR_RETURN(training.loss, net::parse_loss(texts.loss));
  }
  if (!texts.epochs.empty()) {
    HONE_ASSIGN_OR_RETURN(training.epochs, parse_count("--epochs", texts.epochs, 1, 100000));
  }
  if (!texts.batch.empty()) {
    HONE_ASSIGN_OR_RETURN(training.batch, parse_count("--batch", texts.batch, 2, 1 << 20));
  }
  if (!texts.rate.empty()) {
    HONE_ASSIGN_OR_RETURN(training.rate, of_option("--lr", parse_real(texts.rate, 1e-9, 10)));
    training.last_rate = std::min(training.last_rate, training.rate);
  }
  if (!texts.decay.empty()) {
    HONE_ASSIGN_OR_RETURN(training.decay,
                          of_option("--weight-decay", parse_real(texts.decay, 0, 10)));
  }
  if (!texts.budget.empty()) {
    HONE_ASSIGN_OR_RETURN(training.seconds, of_option("--budget", parse_duration(texts.budget)));
  }
  HONE_ASSIGN_OR_RETURN(training.patience, parse_count("--patience", texts.patience, 0, 100000));
  HONE_ASSIGN_OR_RETURN(training.seed, parse_seed(texts.seed));
  HONE_ASSIGN_OR_RETURN(training.threads, parse_threads(texts.threads));
  if (training.threads == 0)
    training.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  HONE_ASSIGN_OR_RETURN(training.place,
                        of_option("--train-on", net::parse_train_place(texts.place)));
  training.state_file = net_state_file(texts.output);
  training.resume = texts.resume;
  training.cancel = &listen_for_interrupt();
  return training;
}

struct Rows {
  net::NetRows train, validation;
  TrainedOn trained_on;
  std::set<uint64_t> validation_tasks;
};

// Whose each head of the net is: first those of the net that it starts from.
Result<std::vector<std::string>> heads_of(const std::vector<CostData>& data,
                                          const std::vector<std::string>& first, double devices) {
  std::vector<std::string> heads = first;
  if (devices == 0) return heads;
  std::set<std::string> found;
  for (const CostData& one : data) {
    for (const learn::TaskTrials& task : one.dataset.tasks)
      found.insert(cost::head_name(one.device.key, task.threads));
  }
  for (const std::string& name : found) {
    if (std::find(heads.begin(), heads.end(), name) == heads.end()) heads.push_back(name);
  }
  if (static_cast<double>(heads.size()) > devices) {
    return invalid("--options: devices={}, but there are {}: {}", devices, heads.size(),
                   join_names(heads));
  }
  return heads;
}

learn::Parts divide(const CostData& data, const NetTrainTexts& texts, double share) {
  if (data.validation) return {data.dataset, *data.validation};
  if (texts.held_out.empty()) return learn::split_tasks(data.dataset, share);
  return learn::split_models(data.dataset, {texts.held_out.begin(), texts.held_out.end()});
}

Result<Rows> make_rows(const std::vector<CostData>& data, const NetTrainTexts& texts,
                       const net::Net& model, double share, const net::NetTraining& training,
                       const std::vector<std::string>& heads) {
  std::vector<learn::Parts> parts;
  for (const CostData& one : data) parts.push_back(divide(one, texts, share));
  if (texts.tasks > 0) {
    std::vector<learn::Dataset*> trained;
    for (learn::Parts& one : parts) trained.push_back(&one.train);
    HONE_RETURN_IF_ERROR(learn::keep_tasks(trained, texts.tasks, training.seed));
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
  if (!texts.held_out.empty() && rows.validation.num_tasks() == 0)
    return invalid("--hold-out: the data have no task of {}", join_names(texts.held_out));
  return rows;
}

// "" if nothing was held out.
std::string accuracy_of(const net::NetEpoch& epoch, bool judged) {
  if (!judged) return "";
  return fmt::format(", pairs {:.3f}, clear {:.3f}", epoch.pair_accuracy,
                     epoch.clear_pair_accuracy);
}

void print(const net::NetEpoch& epoch, int epochs, bool judged) {
  fmt::print("epoch {}/{}: loss {:.4f}{}, {:.1f} s{}\n", epoch.epoch, epochs, epoch.loss,
             accuracy_of(epoch, judged), epoch.seconds, judged && epoch.best ? " *" : "");
  std::fflush(stdout);
}

std::string curve_of(const std::string& title, const std::vector<net::NetEpoch>& epochs) {
  Figure loss{"loss of training", "epoch", "loss", {{"loss", {}}}};
  Figure pairs{"pair accuracy on tasks held out", "epoch", "share", {{"all", {}}, {"clear", {}}}};
  for (const net::NetEpoch& epoch : epochs) {
    loss.lines[0].points.emplace_back(epoch.epoch, epoch.loss);
    pairs.lines[0].points.emplace_back(epoch.epoch, epoch.pair_accuracy);
    pairs.lines[1].points.emplace_back(epoch.epoch, epoch.clear_pair_accuracy);
  }
  return to_html(title, {loss, pairs});
}

const net::NetEpoch& best_of(const std::vector<net::NetEpoch>& epochs) {
  return *std::find_if(epochs.rbegin(), epochs.rend(),
                       [](const net::NetEpoch& epoch) { return epoch.best; });
}

NetCard card_of(const NetTrainTexts& texts, const net::NetTraining& training, const Rows& rows,
                const std::vector<std::string>& excluded,
                const std::vector<net::NetEpoch>& epochs) {
  const net::NetEpoch& best = best_of(epochs);
  NetCard card;
  card.notes = {
      {"options", texts.options},
      {"held_out_models", join_names(texts.held_out)},
      {"schedules", std::to_string(rows.train.batch.rows)},
      {"tasks", std::to_string(rows.trained_on.tasks.size())},
      {"validation_schedules", std::to_string(rows.validation.batch.rows)},
      {"validation_tasks", std::to_string(rows.validation_tasks.size())},
      {"loss", net::loss_names()[static_cast<size_t>(training.loss)]},
      {"epochs", std::to_string(training.epochs)},
      {"epochs_done", std::to_string(epochs.size())},
      {"best_epoch", std::to_string(best.epoch)},
      {"rate", fmt::format("{}", training.rate)},
      {"seed", std::to_string(training.seed)},
      {"pair_accuracy", fmt::format("{:.4f}", best.pair_accuracy)},
      {"clear_pair_accuracy", fmt::format("{:.4f}", best.clear_pair_accuracy)},
  };
  card.notes.merge(data_notes(rows.trained_on, excluded));
  return card;
}

}  // namespace

std::string net_state_file(const std::string& output) { return output + ".state"; }

Status train_net(const std::vector<CostData>& data, NetTrainTexts texts,
                 const std::vector<std::string>& excluded) {
  std::optional<TrainStart> start;
  if (!texts.from.empty()) {
    HONE_ASSIGN_OR_RETURN(start, read_start(texts));
  }
  HONE_ASSIGN_OR_RETURN(const net::Family* family, net::find_family(texts.family));
  HONE_ASSIGN_OR_RETURN(net::NetTraining training,
                        start ? training_from(*start) : net::training_of(family->recipe));
  HONE_ASSIGN_OR_RETURN(training, parse(texts, std::move(training)));
  double share = texts.few ? 0 : kValidation;
  if (!texts.validation.empty()) {
    HONE_ASSIGN_OR_RETURN(share, of_option("--validation", parse_real(texts.validation, 0, 0.9)));
  }
  const auto named = [](std::string_view option, const Status& status) {
    return status.ok() ? status
                       : Status(status.code(), fmt::format("{}: {}", option, status.message()));
  };
  const auto options = net::parse_options(*family, texts.options);
  HONE_RETURN_IF_ERROR(named("--options", options.status()));
  Result<net::Net> made = net::make_net(*family, net::all_inputs(), *options);
  HONE_RETURN_IF_ERROR(named("--options", made.status()));
  net::Net& model = *made;
  HONE_ASSIGN_OR_RETURN(const net::GivenOptions complete, net::complete_options(*family, *options));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> heads,
                        heads_of(data, start ? start->file.card.heads : std::vector<std::string>(),
                                 complete.at("devices")));
  HONE_ASSIGN_OR_RETURN(const Rows rows, make_rows(data, texts, model, share, training, heads));
  if (start) {
    HONE_RETURN_IF_ERROR(take_weights(*start, texts.from, model));
  } else {
    net::initialise(model, training.seed);
    learn::set_normalisation(model, rows.train.batch);
  }
  fmt::print("{}: {} weights; {} schedules of {} tasks, judged by {} of {} others\n", texts.family,
             model.num_weights(), rows.train.batch.rows, rows.trained_on.tasks.size(),
             rows.validation.batch.rows, rows.validation_tasks.size());
  const bool judged = rows.validation.num_tasks() > 0;
  training.progress = [&](const net::NetEpoch& epoch) { print(epoch, training.epochs, judged); };
  HONE_ASSIGN_OR_RETURN(const std::vector<net::NetEpoch> epochs,
                        net::train(model, rows.train, rows.validation, training));
  const net::NetEpoch& best = best_of(epochs);
  NetCard card = card_of(texts, training, rows, excluded, epochs);
  card.heads = heads;
  if (start) card.notes.merge(start_notes(*start, texts));
  card.tells_time = training.loss == net::Loss::kMultiTask;
  if (!card.tells_time) {
    HONE_ASSIGN_OR_RETURN(card.log_seconds_per_score,
                          learn::log_seconds_per_score(model, rows.train));
  }
  HONE_RETURN_IF_ERROR(write_net(texts.output, model, card));
  if (!texts.curve.empty()) {
    HONE_RETURN_IF_ERROR(
        write_file_atomic(texts.curve, curve_of(texts.output + ", " + texts.family, epochs)));
  }
  unlink(training.state_file.c_str());
  fmt::print("wrote {}: epoch {} of {}{}\n", texts.output, best.epoch, epochs.size(),
             accuracy_of(best, judged));
  return ok_status();
}

}  // namespace hone::tool
