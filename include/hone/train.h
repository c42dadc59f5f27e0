// train.h - trains cost models (AdvancedOptions::cost) on data sets: trees, and neural nets, which
// need the library libhone_torch.so of an installation. docs/user/training_cost_models.md says
// which one is for what. Messages name options as the command line does.
//
//   const auto trained = hone::train("my.model", {.data = {.db = "data.db"}, .cost = "combined"});
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/status.h"

namespace hone {

// The data that a model is trained on.
struct TrainData {
  std::string db;
  // Devices whose measurements are used, as RepresentativeOptions::device. None may be named twice.
  std::vector<std::string> devices = {"host"};
  // A file of split_dataset(): its training part is trained on, and nets are judged by its
  // validation part. Empty: everything.
  std::string split_file;
  std::set<uint64_t> only;                  // keys of tasks, as TaskList::keys(); empty: all
  std::vector<std::string> exclude_models;  // networks whose tasks are left out
  // This many of the tasks are drawn by the seed; those of a smaller number are among those of a
  // larger one. 0: all.
  int tasks = 0;
};

// One pass of the training of a net over the data, or the batches of meta-learning after which it
// is judged.
struct TrainEpoch {
  int epoch = 0;  // counts from 1
  double loss = 0, rate = 0;
  // On the schedules that it is judged by, means over their tasks: the share of pairs that are
  // ordered correctly, of all and of those whose times differ by 5 % or more.
  double pair_accuracy = 0, clear_pair_accuracy = 0;
  double seconds = 0;
  bool best = false;  // best epoch so far; the first one of meta-learning starts anew
  bool meta = false;  // an epoch of meta-learning
  // The loss of the tasks that meta-learning is judged by, before and after the net is adapted to
  // schedules of theirs; the latter chooses the best epoch. NaN if there are none.
  double plain_loss = 0, adapted_loss = 0;
};

struct TrainSummary {
  std::string kind;                  // "gbdt", "combined", "gpu" or the family of the net
  int64_t schedules = 0, tasks = 0;  // numbers that it is trained on
  int64_t trees = 0;                 // number of trees; 0 for nets
  int64_t weights = 0;               // number of weights of a net; 0 for trees
  int64_t validation_schedules = 0, validation_tasks = 0;  // numbers that a net is judged by
  int planned_epochs = 0;
  std::vector<TrainEpoch> epochs;  // of a net, those of a resumed training included
  // Returns the epoch whose weights are the result. There must be one.
  [[nodiscard]] HONE_API const TrainEpoch& best() const;
};

// How nets are trained. Where nothing is set, it is what their family's paper does or, with
// TrainOptions::from, what suits few data.
struct NetTrainOptions {
  std::string adapt;  // with TrainOptions::from, what is trained: "full" (default) or "head"
  std::string loss;   // a name of TrainChoices::losses
  std::optional<int> epochs;    // passes over the data
  std::optional<int> batch;     // number of schedules of a step, 2 or more
  std::optional<double> rate;   // learning rate at the start
  std::optional<double> decay;  // decay of the weights
  // Share of the tasks that each epoch is judged by instead of being trained on, or the networks
  // whose tasks are. Default: 0.1, but 0 with TrainData::only.
  std::optional<double> validation;
  std::vector<std::string> validation_models;  // names of these networks
  int patience = 0;  // number of epochs without a better one after which it stops; 0: never
  // It stops after the epoch in which these are spent; 0: never. With meta-learning, half of them
  // are for the training before.
  double budget_seconds = 0;
  // Meta-learning that follows, a name of TrainChoices::meta; empty: that of the family.
  std::string meta;
  std::string meta_options;  // its options, such as "steps=5,rate=0.01"
  // Number of threads; 0: all cores. The same number and seed give the same net.
  int threads = 0;
  std::string place = "cpu";  // a name of TrainChoices::places
  bool resume = false;        // continue from what an interrupted training left beside the output
  // Called by the thread that called train(): once before the first epoch and after each one.
  std::function<void(const TrainSummary&)> on_progress;
};

struct TrainOptions {
  TrainData data;
  // "gbdt", "combined", "gpu", or a family of nets. Empty: that of `from`, or "gpu" for GPUs and
  // "combined" for CPUs.
  std::string cost;
  std::string options;  // of trees or of the family, such as "leaves=32" or "hidden=64,layers=1"
  // A trained file that the training starts from: the weights of a net, or trees, which get a few
  // more that correct them.
  std::string from;
  std::string booster;  // the library that fits trees; empty: the first of TrainChoices::boosters
  uint64_t seed = 1;    // of all random choices
  NetTrainOptions net;
  // If it becomes true, the training of a net ends with Code::kCancelled. It may be null.
  const std::atomic<bool>* interrupted = nullptr;
};

// Trains a cost model and writes it: to FILE.model for trees, FILE.onnx for a net. It is an error
// if options contradict each other or a library is missing; most are found before any work is done.
[[nodiscard]] HONE_API Result<TrainSummary> train(const std::string& output,
                                                  const TrainOptions& options);
// Returns the path of what an interrupted training of the net `output` is continued from.
[[nodiscard]] HONE_API std::string train_state_file(const std::string& output);

// The names that TrainOptions takes.
struct TrainChoices {
  struct Option {
    std::string name;
    double value = 0;  // the default
    std::string help;
  };
  struct Family {
    std::string name, help;
    std::vector<Option> options;
  };
  std::vector<Family> nets;
  std::vector<std::string> tree_options, static_options;  // a line of help each
  std::vector<std::string> boosters, losses, adapt, places, meta;
  std::vector<Option> meta_options;
};
[[nodiscard]] HONE_API TrainChoices train_choices();

}  // namespace hone
