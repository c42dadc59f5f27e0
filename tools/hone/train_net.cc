#include "train_net.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "hone/base/file.h"
#include "hone/base/options.h"
#include "hone/cost/net/rows.h"
#include "hone/cost/net/scale.h"
#include "hone/net_file.h"

#include "curve.h"
#include "interrupt.h"
#include "option_texts.h"

namespace hone::tool {
namespace {

namespace net = cost::net;

Result<double> parse_number(std::string_view option, std::string_view text, double low,
                            double high) {
  const Result<double> value = parse_real(text, low, high);
  if (!value.ok()) return invalid("{}: {}", option, value.status().message());
  return value;
}

Result<net::NetTraining> parse(const NetTrainTexts& texts, const net::Recipe& recipe) {
  HONE_ASSIGN_OR_RETURN(net::NetTraining training, net::training_of(recipe));
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
    HONE_ASSIGN_OR_RETURN(training.rate, parse_number("--lr", texts.rate, 1e-9, 10));
    training.last_rate = std::min(training.last_rate, training.rate);
  }
  if (!texts.decay.empty()) {
    HONE_ASSIGN_OR_RETURN(training.decay, parse_number("--weight-decay", texts.decay, 0, 10));
  }
  HONE_ASSIGN_OR_RETURN(training.patience, parse_count("--patience", texts.patience, 0, 100000));
  HONE_ASSIGN_OR_RETURN(training.seed, parse_seed(texts.seed));
  HONE_ASSIGN_OR_RETURN(training.threads, parse_threads(texts.threads));
  if (training.threads == 0)
    training.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  training.state_file = texts.output + ".state";
  training.resume = texts.resume;
  training.cancel = &listen_for_interrupt();
  return training;
}

struct Rows {
  net::NetRows train, validation;
};

Result<Rows> make_rows(const std::vector<CostData>& data, const NetTrainTexts& texts,
                       const net::Net& model, double share, const net::NetTraining& training) {
  Rows rows;
  rows.train = rows.validation = net::no_rows(model);
  for (const CostData& one : data) {
    const std::set<std::string> held_out(texts.held_out.begin(), texts.held_out.end());
    const net::Parts parts = one.validation     ? net::Parts{one.dataset, *one.validation}
                             : held_out.empty() ? net::split_tasks(one.dataset, share)
                                                : net::split_models(one.dataset, held_out);
    const auto add = [&](const cost::Dataset& part, net::NetRows& to) -> Status {
      HONE_ASSIGN_OR_RETURN(
          const net::NetRows more,
          net::make_rows(part, one.target, model, training.threads, training.cancel));
      net::append(to, more);
      return ok_status();
    };
    HONE_RETURN_IF_ERROR(add(parts.train, rows.train));
    HONE_RETURN_IF_ERROR(add(parts.validation, rows.validation));
  }
  if (rows.train.num_tasks() == 0)
    return invalid("no task is left to train on, {} are held out", rows.validation.num_tasks());
  if (!texts.held_out.empty() && rows.validation.num_tasks() == 0)
    return invalid("--hold-out: the data have no task of {}", join_names(texts.held_out));
  return rows;
}

void print(const net::NetEpoch& epoch, int epochs) {
  fmt::print("epoch {}/{}: loss {:.4f}, pairs {:.3f}, clear {:.3f}, {:.1f} s{}\n", epoch.epoch,
             epochs, epoch.loss, epoch.pair_accuracy, epoch.clear_pair_accuracy, epoch.seconds,
             epoch.best ? " *" : "");
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

NetCard card_of(const std::vector<CostData>& data, const NetTrainTexts& texts,
                const net::NetTraining& training, const Rows& rows,
                const std::vector<std::string>& excluded, const net::NetEpoch& best) {
  std::vector<std::string> devices;
  std::set<std::string> models;
  for (const CostData& one : data) {
    devices.push_back(target::device_key(one.target));
    models.merge(one.dataset.models());
  }
  NetCard card;
  card.notes = {
      {"options", texts.options},
      {"devices", join_names(devices)},
      {"models", fmt::format("{}", fmt::join(models, ", "))},
      {"excluded_models", join_names(excluded)},
      {"held_out_models", join_names(texts.held_out)},
      {"schedules", std::to_string(rows.train.batch.rows)},
      {"tasks", std::to_string(rows.train.num_tasks())},
      {"validation_schedules", std::to_string(rows.validation.batch.rows)},
      {"validation_tasks", std::to_string(rows.validation.num_tasks())},
      {"loss", net::loss_names()[static_cast<size_t>(training.loss)]},
      {"epochs", std::to_string(training.epochs)},
      {"best_epoch", std::to_string(best.epoch)},
      {"rate", fmt::format("{}", training.rate)},
      {"seed", std::to_string(training.seed)},
      {"pair_accuracy", fmt::format("{:.4f}", best.pair_accuracy)},
      {"clear_pair_accuracy", fmt::format("{:.4f}", best.clear_pair_accuracy)},
  };
  return card;
}

}  // namespace

Status train_net(const std::vector<CostData>& data, const NetTrainTexts& texts,
                 const std::vector<std::string>& excluded) {
  HONE_ASSIGN_OR_RETURN(const net::Family* family, net::find_family(texts.family));
  HONE_ASSIGN_OR_RETURN(net::NetTraining training, parse(texts, family->recipe));
  HONE_ASSIGN_OR_RETURN(const double share, parse_number("--validation", texts.validation, 0, 0.9));
  const auto named = [](std::string_view option, const Status& status) {
    return status.ok() ? status
                       : Status(status.code(), fmt::format("{}: {}", option, status.message()));
  };
  const auto options = net::parse_options(*family, texts.options);
  HONE_RETURN_IF_ERROR(named("--options", options.status()));
  Result<net::Net> made = net::make_net(*family, net::all_inputs(), *options);
  HONE_RETURN_IF_ERROR(named("--options", made.status()));
  net::Net& model = *made;
  HONE_ASSIGN_OR_RETURN(const Rows rows, make_rows(data, texts, model, share, training));
  net::initialise(model, training.seed);
  net::set_normalisation(model, rows.train.batch);
  fmt::print("{}: {} weights; {} schedules of {} tasks, judged by {} of {} others\n", texts.family,
             model.num_weights(), rows.train.batch.rows, rows.train.num_tasks(),
             rows.validation.batch.rows, rows.validation.num_tasks());
  training.progress = [&](const net::NetEpoch& epoch) { print(epoch, training.epochs); };
  HONE_ASSIGN_OR_RETURN(const std::vector<net::NetEpoch> epochs,
                        net::train(model, rows.train, rows.validation, training));
  const net::NetEpoch best = *std::find_if(epochs.rbegin(), epochs.rend(),
                                           [](const net::NetEpoch& epoch) { return epoch.best; });
  NetCard card = card_of(data, texts, training, rows, excluded, best);
  HONE_ASSIGN_OR_RETURN(card.log_seconds_per_score, net::log_seconds_per_score(model, rows.train));
  HONE_RETURN_IF_ERROR(write_net(texts.output, model, card));
  if (!texts.curve.empty()) {
    HONE_RETURN_IF_ERROR(
        write_file_atomic(texts.curve, curve_of(texts.output + ", " + texts.family, epochs)));
  }
  unlink(training.state_file.c_str());
  fmt::print("wrote {}: epoch {} of {}, pairs {:.3f}, clear {:.3f}\n", texts.output, best.epoch,
             epochs.size(), best.pair_accuracy, best.clear_pair_accuracy);
  return ok_status();
}

}  // namespace hone::tool
