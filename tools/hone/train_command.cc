#include <algorithm>
#include <cmath>
#include <cstdio>

#include "hone/base/file.h"
#include "hone/base/options.h"
#include "hone/dataset.h"
#include "hone/train.h"

#include "command.h"
#include "command_files.h"
#include "curve.h"
#include "interrupt.h"
#include "option_texts.h"
#include "unused_options.h"

namespace hone::tool {
namespace {

// Groups of options that only one kind of model has.
constexpr const char* kTrees = "Trees";
constexpr const char* kNeural = "Neural";

struct TrainTexts {
  std::string output, cost = "combined", only, tasks, curve;
  std::string seed = "1", threads = "0", epochs, rate, batch, decay, validation, patience = "0",
              budget;
  TrainOptions options;
};

template <typename T>
Status take(std::optional<T>& number, Result<T> parsed) {
  HONE_ASSIGN_OR_RETURN(number, std::move(parsed));
  return ok_status();
}

Status parse_net_options(const TrainTexts& texts, NetTrainOptions& net) {
  if (!texts.epochs.empty())
    HONE_RETURN_IF_ERROR(take(net.epochs, parse_count("--epochs", texts.epochs, 1, 100000)));
  if (!texts.batch.empty())
    HONE_RETURN_IF_ERROR(take(net.batch, parse_count("--batch", texts.batch, 2, 1 << 20)));
  if (!texts.rate.empty())
    HONE_RETURN_IF_ERROR(take(net.rate, of_option("--lr", parse_real(texts.rate, 1e-9, 10))));
  if (!texts.decay.empty()) {
    HONE_RETURN_IF_ERROR(
        take(net.decay, of_option("--weight-decay", parse_real(texts.decay, 0, 10))));
  }
  if (!texts.validation.empty()) {
    HONE_RETURN_IF_ERROR(
        take(net.validation, of_option("--validation", parse_real(texts.validation, 0, 0.9))));
  }
  if (!texts.budget.empty()) {
    HONE_ASSIGN_OR_RETURN(net.budget_seconds, of_option("--budget", parse_duration(texts.budget)));
  }
  HONE_ASSIGN_OR_RETURN(net.patience, parse_count("--patience", texts.patience, 0, 100000));
  return ok_status();
}

// Returns the text for what is held out: "" if nothing is.
std::string accuracy_of(const TrainEpoch& epoch, bool judged) {
  if (!judged) return "";
  std::string text =
      fmt::format(", pairs {:.3f}, clear {:.3f}", epoch.pair_accuracy, epoch.clear_pair_accuracy);
  if (epoch.meta)
    text += fmt::format(", held out {:.4f} before adaptation and {:.4f} after", epoch.plain_loss,
                        epoch.adapted_loss);
  return text;
}

void print(const TrainSummary& so_far) {
  const bool judged = so_far.validation_schedules > 0;
  if (so_far.epochs.empty()) {
    fmt::print("{}: {} weights; {} schedules of {} tasks, judged by {} of {} others\n", so_far.kind,
               so_far.weights, so_far.schedules, so_far.tasks, so_far.validation_schedules,
               so_far.validation_tasks);
    return;
  }
  const TrainEpoch& epoch = so_far.epochs.back();
  fmt::print("epoch {}/{}: {} {:.4f}{}, {:.1f} s{}\n", epoch.epoch, so_far.planned_epochs,
             epoch.meta ? "loss after adaptation" : "loss", epoch.loss, accuracy_of(epoch, judged),
             epoch.seconds, judged && epoch.best ? " *" : "");
  std::fflush(stdout);
}

std::string curve_of(const std::string& title, const std::vector<TrainEpoch>& epochs) {
  Figure loss{"loss of training", "epoch", "loss", {{"loss", {}}}};
  Figure pairs{"pair accuracy on tasks held out", "epoch", "share", {{"all", {}}, {"clear", {}}}};
  Figure adapted{"loss of meta-learning on tasks held out",
                 "epoch",
                 "loss",
                 {{"before adaptation", {}}, {"after", {}}}};
  for (const TrainEpoch& epoch : epochs) {
    if (epoch.meta && !std::isnan(epoch.adapted_loss)) {
      adapted.lines[0].points.emplace_back(epoch.epoch, epoch.plain_loss);
      adapted.lines[1].points.emplace_back(epoch.epoch, epoch.adapted_loss);
    }
    loss.lines[0].points.emplace_back(epoch.epoch, epoch.loss);
    pairs.lines[0].points.emplace_back(epoch.epoch, epoch.pair_accuracy);
    pairs.lines[1].points.emplace_back(epoch.epoch, epoch.clear_pair_accuracy);
  }
  if (adapted.lines[1].points.empty()) return to_html(title, {loss, pairs});
  return to_html(title, {loss, pairs, adapted});
}

Status check_options_of_nets(const CLI::App& app, const TrainOptions& options,
                             const std::string& what) {
  HONE_RETURN_IF_ERROR(
      check_unused(app, options_of_group(app, kTrees), "fitting trees", what + " trains a net"));
  constexpr const char* kChoosing = "choosing the tasks that epochs are judged by";
  // The validation part of a split is trained on with --only.
  if (!options.data.split_file.empty() && app.count("--only") == 0) {
    HONE_RETURN_IF_ERROR(
        check_unused(app, {"--validation", "--hold-out"}, kChoosing,
                     fmt::format("--split-file {} says which they are", options.data.split_file)));
  }
  if (options.net.validation_models.empty()) return ok_status();
  return check_unused(app, {"--validation"}, kChoosing, "--hold-out says which they are");
}

// Refuses options that would do nothing for the model that is trained.
Status check_options(const CLI::App& app, const TrainTexts& texts) {
  const std::string& from = texts.options.from;
  const std::string what = from.empty() ? "--cost " + texts.cost : "--from " + from;
  const std::vector<TrainChoices::Family> nets = train_choices().nets;
  const bool net = std::any_of(nets.begin(), nets.end(), [&](const TrainChoices::Family& family) {
    return family.name == texts.cost;
  });
  const bool from_trees = from.ends_with(".model"), from_net = !from.empty() && !from_trees;
  if (from_net || (net && !from_trees)) return check_options_of_nets(app, texts.options, what);
  const bool score = from.empty() && texts.cost == "static";
  const bool known = score || from_trees || texts.cost == "gbdt" || texts.cost == "combined" ||
                     texts.cost == "gpu";
  if (!known) return ok_status();  // train() says that there is no such model
  const std::string found = what + (score ? " fits a score of machine code" : " fits trees");
  HONE_RETURN_IF_ERROR(check_unused(app, options_of_group(app, kNeural), "training nets", found));
  if (!score) return ok_status();
  return check_unused(app, options_of_group(app, kTrees), "fitting trees", found);
}

Status train(const TrainTexts& texts, const CLI::App& app) {
  TrainOptions options = texts.options;
  if (!texts.tasks.empty()) {
    HONE_ASSIGN_OR_RETURN(options.data.tasks, parse_count("--tasks", texts.tasks, 1, 1 << 30));
  }
  HONE_ASSIGN_OR_RETURN(options.seed, parse_seed(texts.seed));
  HONE_ASSIGN_OR_RETURN(options.net.threads, parse_threads(texts.threads));
  HONE_RETURN_IF_ERROR(check_options(app, texts));
  HONE_RETURN_IF_ERROR(parse_net_options(texts, options.net));
  if (app.count("--cost") > 0) options.cost = texts.cost;
  if (!texts.only.empty()) {
    HONE_ASSIGN_OR_RETURN(const TaskList list, read_task_list(texts.only));
    options.data.only = list.keys();
  }
  options.net.on_progress = print;
  options.interrupted = &listen_for_interrupt();
  HONE_ASSIGN_OR_RETURN(const TrainSummary summary, hone::train(texts.output, options));
  if (summary.kind == "static") {
    fmt::print("wrote {}: {} coefficients from {} schedules of {} tasks\n", texts.output,
               summary.weights, summary.schedules, summary.tasks);
    return ok_status();
  }
  if (summary.epochs.empty()) {
    fmt::print("wrote {}: {} trees from {} schedules of {} tasks\n", texts.output, summary.trees,
               summary.schedules, summary.tasks);
    return ok_status();
  }
  if (!texts.curve.empty()) {
    HONE_RETURN_IF_ERROR(write_file_atomic(
        texts.curve, curve_of(texts.output + ", " + summary.kind, summary.epochs)));
  }
  fmt::print("wrote {}: epoch {} of {}{}\n", texts.output, summary.best().epoch,
             summary.epochs.size(), accuracy_of(summary.best(), summary.validation_schedules > 0));
  return ok_status();
}

// Returns the options of trees and of the static score, and each family of nets with its options, a
// line each.
std::string describe_models(const TrainChoices& choices) {
  std::string text = "Options of trees (--options NAME=NUMBER,..):";
  for (const std::string& line : choices.tree_options) text += "\n    " + line;
  text += "\nOptions of --cost static (--options NAME=NUMBER,..):";
  for (const std::string& line : choices.static_options) text += "\n    " + line;
  text += "\nNeural cost models (--cost), and their options:";
  for (const TrainChoices::Family& family : choices.nets) {
    text += fmt::format("\n  {}: {}", family.name, family.help);
    for (const TrainChoices::Option& option : family.options)
      text += fmt::format("\n    {}={}: {}", option.name, option.value, option.help);
  }
  text += "\nOptions of meta-learning (--meta-options NAME=NUMBER,..):";
  for (const TrainChoices::Option& option : choices.meta_options)
    text += fmt::format("\n    {}={}: {}", option.name, option.value, option.help);
  return text;
}

}  // namespace

Command train_command(CLI::App& root) {
  const auto texts = std::make_shared<TrainTexts>();
  TrainOptions& options = texts->options;
  NetTrainOptions& net = options.net;
  const TrainChoices choices = train_choices();
  std::vector<std::string> families;
  for (const TrainChoices::Family& family : choices.nets) families.push_back(family.name);
  CLI::App* app =
      root.add_subcommand("train", "Train a cost model on the measured schedules of a database");
  add_db(*app, options.data.db);
  app->add_option("--device", options.data.devices,
                  measured_device_help() + "; repeat to train one model for several machines")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->default_str("host");
  app->add_option("-o,--output", texts->output,
                  "The file to write: FILE.model for trees, FILE.onnx for a net")
      ->type_name("FILE")
      ->required();
  app->add_option(
         "--cost", texts->cost,
         fmt::format(
             "gbdt: trees over features of statements; combined: trees that also use the analytic "
             "model; gpu: the same for GPUs, and the default for them; static: coefficients of what "
             "machine code tells without running; neural: {}",
             join_names(families)))
      ->type_name("NAME")
      ->capture_default_str();
  add_booster(*app, options.booster);
  app->get_option("--booster")->group(kTrees);
  app->add_option(
         "--split-file", options.data.split_file,
         "Train on the training part of a file of hone dataset split; neural models are judged by "
         "its validation part")
      ->type_name("FILE");
  app->add_option("--only", texts->only,
                  "Train on the tasks in a file of hone dataset representatives")
      ->type_name("FILE");
  add_excluded_networks(*app, options.data.exclude_models);
  app->add_option(
         "--tasks", texts->tasks,
         "Train on this many of the tasks, drawn by --seed; those of a smaller number are among "
         "those of a larger one. Default: all")
      ->type_name("N");
  add_seed(*app, texts->seed);
  app->add_option(
         "--threads", texts->threads,
         "Number of threads that train a net, each on parts of every batch; 0: all cores. The "
         "same number and seed give the same net; another number rounds differently. Trees are "
         "fitted by one thread")
      ->type_name("N")
      ->capture_default_str();
  const auto add = [&](const char* name, std::string& text, const char* type,
                       const std::string& help) {
    CLI::Option* option = app->add_option(name, text, help)->type_name(type)->group(kNeural);
    if (!text.empty()) option->capture_default_str();
  };
  app->add_option(
         "--from", options.from,
         "Continue from this trained file: the family, options and weights of FILE.onnx, or the "
         "trees of FILE.model, which get a few more trees that correct them")
      ->type_name("FILE");
  add("--adapt", net.adapt, "WHAT",
      fmt::format("With --from, the weights to train: {}: all, at a low rate; only the last "
                  "layers; "
                  "default: full",
                  join_names(choices.adapt)));
  add("--options", options.options, "TEXT",
      "Options of trees, of the static score or of the family of nets, as listed below: leaves=32, "
      "mca=0 or hidden=64,layers=1");
  app->get_option("--options")->group(app->get_option("--cost")->get_group());
  add("--loss", net.loss, "NAME",
      fmt::format("The loss: {}; default: the family's", join_names(choices.losses)));
  add("--epochs", texts->epochs, "N",
      "Number of passes over the data; default: the family's, also for the next three options");
  add("--batch", texts->batch, "N", "Number of schedules in a batch");
  add("--lr", texts->rate, "X", "Learning rate at the start");
  add("--weight-decay", texts->decay, "X", "Weight decay, per unit of the learning rate");
  add("--validation", texts->validation, "SHARE",
      "Share of the tasks that are held out to judge each epoch; default: 0.1, or 0 with --only");
  app->add_option(
         "--hold-out", net.validation_models,
         "Judge each epoch on all tasks of this network instead of a share; repeat per network")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->group(kNeural);
  add("--patience", texts->patience, "N",
      "Stop after this many epochs without a better one; 0: never");
  add("--budget", texts->budget, "TIME",
      "Stop after the epoch in which this time is used up, such as 10m; the learning rate "
      "decreases as for all epochs. With --resume, time that was used before counts");
  add("--meta", net.meta, "NAME",
      fmt::format("Meta-learning that follows, so that few schedules of a new task teach more: {}; "
                  "default: the family's",
                  join_names(choices.meta)));
  add("--meta-options", net.meta_options, "TEXT",
      "Options of meta-learning, as listed below: steps=5,rate=0.01");
  add("--train-on", net.place, "WHERE",
      fmt::format(
          "The device that trains: {}; the latter is the first CUDA device, if Hone was built "
          "with a "
          "libtorch that has CUDA, and rounds differently each time",
          join_names(choices.places)));
  add("--curve", texts->curve, "FILE.html", "Draw the loss and the accuracy of each epoch");
  app->add_flag("--resume", net.resume, "Continue where an interrupted training of FILE stopped")
      ->group(kNeural);
  app->footer(describe_models(choices));
  return {app, [texts, app] { return train(*texts, *app); },
          [texts](FileRoles& files) {
            const TrainOptions& options = texts->options;
            add_database_files("--db", options.data.db, DatabaseUse::kRead, files);
            files.read("--from", options.from);
            files.read("--split-file", options.data.split_file);
            files.read("--only", texts->only);
            files.written("--output", texts->output);
            if (texts->output.ends_with(".onnx"))
              files.written("--output", train_state_file(texts->output));
            files.written("--curve", texts->curve);
          }};
}

}  // namespace hone::tool
