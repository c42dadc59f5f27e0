// cost/net/train.h - trains a net on measured schedules. libtorch does it, in a library of its own
// (cost/torch) that is loaded by the first call.
#pragma once

#include <atomic>
#include <functional>

#include "hone/base/status.h"
#include "hone/cost/dataset.h"
#include "hone/cost/net/evaluate.h"
#include "hone/cost/net/family.h"

namespace hone::cost::net {

// Schedules as a net reads them, those of a task side by side.
struct NetRows {
  NetBatch batch;
  std::vector<int64_t> group_begin = {0};       // a place more than there are tasks
  std::vector<float> speed;                     // best time of the task / time
  std::vector<float> log_time;                  // log_time(), NaN where it is not known
  std::vector<float> memory_bound, core_bound;  // the same

  [[nodiscard]] int64_t num_tasks() const { return std::ssize(group_begin) - 1; }
};

// The label of a time in seconds: its logarithm relative to what the analytic model says of the
// task's default schedule, so that it is near 0 whatever the task. NaN if that is not known (0).
[[nodiscard]] float log_time(double seconds, double default_seconds);

// Sets every constant NAME.mean and NAME.scale to what makes the input NAME of mean 0 and deviation
// 1 over the rows; padding does not count. What does not vary becomes 0.
void set_normalisation(Net& net, const NetBatch& rows);

enum class Loss : uint8_t { kLambdaRank, kPairwise, kRmse, kMultiTask };
[[nodiscard]] Result<Loss> parse_loss(std::string_view name);
[[nodiscard]] std::vector<std::string> loss_names();

// Where libtorch computes: the processor; the first CUDA device; the processor by the code that
// serves other devices, for tests.
enum class TrainPlace : uint8_t { kProcessor, kCuda, kGeneric };
[[nodiscard]] Result<TrainPlace> parse_train_place(std::string_view name);
[[nodiscard]] std::vector<std::string> train_place_names();  // without that for tests

struct NetEpoch {
  int epoch = 0;  // from 1
  double loss = 0, rate = 0;
  double pair_accuracy = 0, clear_pair_accuracy = 0;  // of the validation rows, mean over tasks
  double seconds = 0;
  bool best = false;  // the best so far
};

struct NetTraining {
  Loss loss = Loss::kLambdaRank;
  int epochs = 50, batch = 512;
  int group = 64;  // at most so many schedules of one task in a batch
  double rate = 7e-4, last_rate = 1e-6;
  bool cosine = true;
  double decay = 1e-6, clip = 0.5;
  double average = 0.99;  // of the running mean of the weights, which is the result; 0: none
  double least_ratio = kReliableRatio;         // closer times get no order
  double bound_weight = 0.5, rank_weight = 1;  // of kMultiTask, beside the time
  uint64_t seed = 1;
  TrainPlace place = TrainPlace::kProcessor;
  int threads = 1;   // of the processor: each computes parts of every batch
  int patience = 0;  // epochs without a better validation before it stops; 0: never
  // It stops after the epoch with which so much time is used up, also that of a training that is
  // gone on with; 0: never.
  double seconds = 0;
  // Only parameters of these layers ("head": head.weight, head.bias), the others stay; none: all.
  std::vector<std::string> trained = {};
  std::string state_file = "";  // written after each epoch; empty: none
  bool resume = false;          // go on from state_file, if it is there
  std::string library = "";     // empty: where Hone is installed
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const NetEpoch&)> progress = nullptr;
};
// What the papers of a family say.
[[nodiscard]] Result<NetTraining> training_of(const Recipe& recipe);

// Starts from the parameters' values and leaves the best of the validation rows, or the last if
// there are none. The same inputs and number of threads give the same net, on the processor.
// kCancelled if interrupted.
[[nodiscard]] Result<std::vector<NetEpoch>> train(Net& net, const NetRows& rows,
                                                  const NetRows& validation,
                                                  const NetTraining& training);

// The loss of all rows as one batch, and its gradients by each parameter, for tests.
struct NetGradients {
  double loss = 0;
  std::vector<std::vector<float>> parameters;
};
[[nodiscard]] Result<NetGradients> torch_gradients(const Net& net, const NetRows& rows,
                                                   const NetTraining& training);

// evaluate() by libtorch, for tests.
[[nodiscard]] Result<std::vector<std::vector<float>>> torch_evaluate(const Net& net,
                                                                     const NetBatch& batch,
                                                                     const std::string& library);

}  // namespace hone::cost::net
