#include <optional>
#include <set>

#include "hone/base/file.h"
#include "hone/cost/gbdt_model.h"
#include "hone/cost/net/train.h"
#include "hone/cost/registry.h"
#include "hone/db/registry.h"
#include "hone/learn/train_trees.h"

#include "command.h"
#include "command_files.h"
#include "model_card.h"
#include "option_texts.h"
#include "train_net.h"
#include "unused_options.h"

namespace hone::tool {
namespace {

// Groups of options that only one kind of model has.
constexpr const char* kTrees = "Trees";
constexpr const char* kNeural = "Neural";

struct TrainOptions {
  std::string db, cost = "combined", split_file, only, tasks;
  std::string booster = cost::tree_library_names().front();
  bool cost_given = false;
  std::vector<std::string> devices = {"host"}, excluded;
  NetTrainTexts net;
};

Result<cost::FeatureSet> tree_model(const std::string& name) {
  for (const auto set : cost::kTreeFeatures) {
    if (name == cost::model_name(set)) return set;
  }
  return invalid("--cost: '{}' cannot be trained, expected gbdt, combined, {}", name,
                 join_names(cost::net::family_names()));
}

// What a file of trees says, to start from.
Result<cost::TrainedTrees> read_trees(const TrainOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(options.net.from));
  HONE_ASSIGN_OR_RETURN(cost::TrainedTrees known, cost::parse_trained(text, options.net.from));
  auto loss = known.card.extract("loss");  // of most of its trees still
  known.card = from_notes(options.net.from, text, known.card);
  known.card.insert(std::move(loss));
  const std::string_view kind = cost::model_name(known.features);
  if (options.cost_given && options.cost != kind) {
    return invalid("--cost: {} has trees of kind {}, not {}: expected {}, or no --cost",
                   options.net.from, kind, options.cost, kind);
  }
  return known;
}

// `known`: what to start from.
Status train_trees(std::vector<CostData> data, std::optional<cost::TrainedTrees> known,
                   cost::FeatureSet features, const cost::BoostOptions& boosting, uint64_t seed,
                   const NetTrainTexts& texts, const std::vector<std::string>& excluded) {
  if (texts.tasks > 0) {
    std::vector<learn::Dataset*> all;
    for (CostData& device : data) all.push_back(&device.dataset);
    HONE_RETURN_IF_ERROR(learn::keep_tasks(all, texts.tasks, seed));
  }
  std::vector<learn::DeviceTrials> devices;
  TrainedOn trained_on;
  for (const CostData& device : data) {
    devices.push_back({&device.dataset, &device.target});
    trained_on.add(device.device, device.dataset);
  }
  HONE_ASSIGN_OR_RETURN(cost::TrainedTrees trained,
                        known ? learn::adapt_trees(*std::move(known), devices, boosting.library)
                              : learn::train_trees(devices, features, boosting));
  trained.card.merge(tree_notes(trained_on, excluded, boosting.library, seed));
  if (!texts.options.empty()) trained.card["options"] = texts.options;
  HONE_RETURN_IF_ERROR(write_file_atomic(texts.output, cost::format(trained)));
  fmt::print("wrote {}: {} trees from {} schedules of {} tasks\n", texts.output,
             trained.trees.size(), trained.card["schedules"], trained.card["tasks"]);
  return ok_status();
}

// The data of each device, without the networks that are left out.
Result<std::vector<CostData>> load(const TrainOptions& options) {
  std::vector<CostData> all;
  std::set<std::string> models;
  std::vector<std::string> devices;
  std::set<uint64_t> only;
  if (!options.only.empty()) {
    HONE_ASSIGN_OR_RETURN(only, read_task_keys(options.only));
  }
  MeasuredStore store(options.db);
  for (const std::string& device : options.devices) {
    HONE_ASSIGN_OR_RETURN(const MeasuredDevice measured, parse_measured_device("--device", device));
    for (const CostData& other : all) {
      if (measured.overlaps(other.device))
        return invalid("--device: {} and {} have the same schedules", other.device.text(),
                       measured.text());
    }
    HONE_ASSIGN_OR_RETURN(CostData data, load_cost_data(store, device));
    models.merge(data.dataset.models());
    devices.push_back(data.device.text());
    if (!options.split_file.empty()) {
      HONE_ASSIGN_OR_RETURN(learn::SplitData parts, parts_of(data, options.split_file));
      data.dataset = std::move(parts.train);
      data.validation = std::move(parts.validation);
    }
    if (!options.only.empty()) {
      // What is not among them was not measured yet, so that nothing is chosen by it either.
      if (data.validation) learn::append(data.dataset, *data.validation);
      data.validation.reset();
      data.dataset = learn::tasks_among(data.dataset, only);
    }
    const std::set<std::string> excluded(options.excluded.begin(), options.excluded.end());
    data.dataset = learn::without_models(data.dataset, excluded);
    if (data.validation) data.validation = learn::without_models(*data.validation, excluded);
    if (data.dataset.tasks.empty())
      return invalid("{}: no trials on device {} to train on", db::store_name(options.db),
                     data.device.text());
    all.push_back(std::move(data));
  }
  const std::string names = join_names(devices);
  HONE_RETURN_IF_ERROR(check_networks("--exclude-model", options.excluded, models, names));
  HONE_RETURN_IF_ERROR(check_networks("--hold-out", options.net.held_out, models, names));
  return all;
}

Status check_name(const std::string& output, const char* ending) {
  if (output.ends_with(ending)) return ok_status();
  return invalid("--output {}: --cost would not take it for a file, expected a name ending in {}",
                 output, ending);
}

std::string what_is_trained(const TrainOptions& options) {
  if (!options.net.from.empty()) return "--from " + options.net.from;
  return "--cost " + options.cost;
}

Status check_options_of_trees(const CLI::App& app, const TrainOptions& options) {
  return check_unused(app, options_of_group(app, kNeural), "training nets",
                      what_is_trained(options) + " fits trees");
}

Status check_options_of_nets(const CLI::App& app, const TrainOptions& options) {
  HONE_RETURN_IF_ERROR(check_unused(app, options_of_group(app, kTrees), "fitting trees",
                                    what_is_trained(options) + " trains a net"));
  constexpr const char* kChoosing = "choosing the tasks that epochs are judged by";
  // The validation part of a split is trained on with --only.
  if (!options.split_file.empty() && options.only.empty()) {
    HONE_RETURN_IF_ERROR(
        check_unused(app, {"--validation", "--hold-out"}, kChoosing,
                     fmt::format("--split-file {} says which they are", options.split_file)));
  }
  if (options.net.held_out.empty()) return ok_status();
  return check_unused(app, {"--validation"}, kChoosing, "--hold-out says which they are");
}

Status train(const TrainOptions& options, const CLI::App& app) {
  NetTrainTexts texts = options.net;
  if (!options.tasks.empty()) {
    HONE_ASSIGN_OR_RETURN(texts.tasks, parse_count("--tasks", options.tasks, 1, 1 << 30));
  }
  HONE_ASSIGN_OR_RETURN(const uint64_t seed, parse_seed(texts.seed));
  HONE_RETURN_IF_ERROR(parse_threads(texts.threads).status());
  const bool from_trees = texts.from.ends_with(".model");
  const bool adapts = !texts.from.empty() && !from_trees;
  const bool names_net = cost::net::find_family(options.cost).ok();
  if (from_trees && names_net) {
    return invalid("--cost: {} has trees, expected gbdt or combined, or no --cost, not {}",
                   texts.from, options.cost);
  }
  if (adapts || names_net) {
    HONE_RETURN_IF_ERROR(check_options_of_nets(app, options));
    if (texts.from.empty() && !texts.adapt.empty())
      return invalid("--adapt {}: needs a net to start from, expected --from", texts.adapt);
    HONE_RETURN_IF_ERROR(check_name(texts.output, ".onnx"));
    if (const std::string state = net_state_file(texts.output); !texts.resume && file_exists(state))
      return invalid("{}: left by an interrupted training; go on with --resume, or remove it",
                     state);
    HONE_ASSIGN_OR_RETURN(const std::vector<CostData> data, load(options));
    texts.family = adapts && !options.cost_given ? "" : options.cost;
    texts.few = !options.only.empty();
    return train_net(data, texts, options.excluded);
  }
  HONE_ASSIGN_OR_RETURN(const cost::FeatureSet features, tree_model(options.cost));
  HONE_RETURN_IF_ERROR(check_options_of_trees(app, options));
  HONE_ASSIGN_OR_RETURN(cost::BoostOptions boosting, parse_booster(options.booster));
  std::optional<cost::TrainedTrees> known;
  if (from_trees) {
    HONE_RETURN_IF_ERROR(check_unused(app, {"--options"}, "fitting trees anew",
                                      what_is_trained(options) + " adds a few that correct them"));
    HONE_ASSIGN_OR_RETURN(known, read_trees(options));
  }
  HONE_ASSIGN_OR_RETURN(boosting,
                        of_option("--options", cost::parse_boost_options(texts.options, boosting)));
  HONE_RETURN_IF_ERROR(cost::boosting_status(boosting.library));
  HONE_RETURN_IF_ERROR(check_name(texts.output, ".model"));
  HONE_ASSIGN_OR_RETURN(std::vector<CostData> data, load(options));
  return train_trees(std::move(data), std::move(known), features, boosting, seed, texts,
                     options.excluded);
}

// NAME: what it is, and its options, a line each.
std::string describe_models() {
  std::string text = "Options of trees (--options NAME=NUMBER,..):";
  for (const std::string& line : cost::boost_option_help()) text += "\n    " + line;
  text += "\nNeural cost models (--cost), and their options:";
  for (const cost::net::Family* family : cost::net::families()) {
    text += fmt::format("\n  {}: {}", family->name, family->help);
    for (const cost::net::FamilyOption& option : family->options)
      text += fmt::format("\n    {}={}: {}", option.name, option.value, option.help);
  }
  return text;
}

}  // namespace

Command train_command(CLI::App& root) {
  const auto options = std::make_shared<TrainOptions>();
  NetTrainTexts& net = options->net;
  CLI::App* app =
      root.add_subcommand("train", "Train a cost model on the measured schedules of a database");
  add_db(*app, options->db);
  app->add_option("--device", options->devices,
                  measured_device_help() + "; repeat to train one model for several machines")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->default_str("host");
  app->add_option("-o,--output", net.output,
                  "The file to write: FILE.model for trees, FILE.onnx for a net")
      ->type_name("FILE")
      ->required();
  app->add_option(
         "--cost", options->cost,
         fmt::format(
             "gbdt: trees over features of statements; combined: trees that also use the analytic "
             "model; neural: {}",
             join_names(cost::net::family_names())))
      ->type_name("NAME")
      ->capture_default_str();
  add_booster(*app, options->booster);
  app->get_option("--booster")->group(kTrees);
  app->add_option(
         "--split-file", options->split_file,
         "Train on the training part of a file of hone dataset split; neural models are judged by "
         "its validation part")
      ->type_name("FILE");
  app->add_option("--only", options->only,
                  "Train on the tasks in a file of hone dataset representatives")
      ->type_name("FILE");
  add_excluded_networks(*app, options->excluded);
  app->add_option(
         "--tasks", options->tasks,
         "Train on this many of the tasks, drawn by --seed; those of a smaller number are among "
         "those of a larger one. Default: all")
      ->type_name("N");
  add_seed(*app, net.seed);
  app->add_option(
         "--threads", net.threads,
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
         "--from", net.from,
         "Continue from this trained file: the family, options and weights of FILE.onnx, or the "
         "trees of FILE.model, which get a few more trees that correct them")
      ->type_name("FILE");
  add("--adapt", net.adapt, "WHAT",
      fmt::format("With --from, the weights to train: {}: all, at a low rate; only the last "
                  "layers; "
                  "default: full",
                  join_names(adapt_names())));
  add("--options", net.options, "TEXT",
      "Options of trees or of the family of nets, as listed below: leaves=32 or "
      "hidden=64,layers=1");
  app->get_option("--options")->group(app->get_option("--cost")->get_group());
  add("--loss", net.loss, "NAME",
      fmt::format("The loss: {}; default: the family's", join_names(cost::net::loss_names())));
  add("--epochs", net.epochs, "N",
      "Number of passes over the data; default: the family's, also for the next three options");
  add("--batch", net.batch, "N", "Number of schedules in a batch");
  add("--lr", net.rate, "X", "Learning rate at the start");
  add("--weight-decay", net.decay, "X", "Weight decay, per unit of the learning rate");
  add("--validation", net.validation, "SHARE",
      "Share of the tasks that are held out to judge each epoch; default: 0.1, or 0 with --only");
  app->add_option(
         "--hold-out", net.held_out,
         "Judge each epoch on all tasks of this network instead of a share; repeat per network")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->group(kNeural);
  add("--patience", net.patience, "N",
      "Stop after this many epochs without a better one; 0: never");
  add("--budget", net.budget, "TIME",
      "Stop after the epoch in which this time is used up, such as 10m; the learning rate "
      "decreases as for all epochs. With --resume, time that was used before counts");
  add("--train-on", net.place, "WHERE",
      fmt::format(
          "The device that trains: {}; the latter is the first CUDA device, if Hone was built "
          "with a "
          "libtorch that has CUDA, and rounds differently each time",
          join_names(cost::net::train_place_names())));
  add("--curve", net.curve, "FILE.html", "Draw the loss and the accuracy of each epoch");
  app->add_flag("--resume", net.resume, "Continue where an interrupted training of FILE stopped")
      ->group(kNeural);
  app->footer(describe_models());
  return {app,
          [options, app] {
            options->cost_given = app->count("--cost") > 0;
            return train(*options, *app);
          },
          [options](FileRoles& files) {
            const NetTrainTexts& net = options->net;
            add_database_files("--db", options->db, DatabaseUse::kRead, files);
            files.read("--from", net.from);
            files.read("--split-file", options->split_file);
            files.read("--only", options->only);
            files.written("--output", net.output);
            if (net.output.ends_with(".onnx"))
              files.written("--output", net_state_file(net.output));
            files.written("--curve", net.curve);
          }};
}

}  // namespace hone::tool
