// cost/net/train.h - trains a net on measured schedules by libtorch, which is used by a separate
// library (learn/torch) that the first call loads.
#pragma once

#include <atomic>
#include <functional>

#include "hone/base/status.h"
#include "hone/cost/net/evaluate.h"
#include "hone/cost/net/family.h"
#include "hone/cost/net/meta.h"
#include "hone/dataset.h"
#include "hone/train.h"

namespace hone::cost::net {

// Schedules as inputs of a net; those of a task are side by side.
struct NetRows {
  NetBatch batch;
  std::vector<int64_t> group_begin = {0};       // one more element than there are tasks
  std::vector<float> speed;                     // best time of the task / time
  std::vector<float> log_time;                  // as log_time() returns it; NaN if it is not known
  std::vector<float> memory_bound, core_bound;  // NaN if it is not known

  [[nodiscard]] int64_t num_tasks() const { return std::ssize(group_begin) - 1; }
};
[[nodiscard]] NetRows no_rows(const Net& net);

// Returns the label of a time in seconds: its logarithm relative to the analytic model's time of
// the task's default schedule, so that it is near 0 for every task. It is NaN if that time is not
// known (0).
[[nodiscard]] float log_time(double seconds, double default_seconds);

enum class Loss : uint8_t { kLambdaRank, kPairwise, kRmse, kMultiTask };
[[nodiscard]] Result<Loss> parse_loss(std::string_view name);
[[nodiscard]] std::vector<std::string> loss_names();

// Where libtorch computes: on the processor, on the first CUDA device, or (for tests) on the
// processor with the code that serves other devices.
enum class TrainPlace : uint8_t { kProcessor, kCuda, kGeneric };
[[nodiscard]] Result<TrainPlace> parse_train_place(std::string_view name);
[[nodiscard]] std::vector<std::string> train_place_names();  // without kGeneric, which is for tests

struct NetTraining {
  Loss loss = Loss::kLambdaRank;
  int epochs = 50, batch = 512;
  int group = 64;  // most schedules of one task in a batch
  double rate = 7e-4, last_rate = 1e-6;
  bool cosine = true;
  double decay = 1e-6, clip = 0.5;
  // Decay of the running mean of the weights, which is the result; 0 for none.
  double average = 0.99;
  double least_ratio = kReliableRatio;         // pairs whose times are closer are not ordered
  double bound_weight = 0.5, rank_weight = 1;  // for kMultiTask, relative to the time
  uint64_t seed = 1;
  TrainPlace place = TrainPlace::kProcessor;
  int threads = 1;   // number of threads of the processor; each computes parts of every batch
  int patience = 0;  // epochs without a better validation before it stops; 0: never
  // It stops after the epoch in which this time is used up, including that of a training that is
  // resumed; 0: never.
  double seconds = 0;
  // Only parameters of these layers are trained ("head": head.weight, head.bias); empty: all.
  std::vector<std::string> trained = {};
  MetaTraining meta = {};
  std::vector<std::string> meta_trained = {};  // layers that meta-learning and adaptation change
  std::string state_file = "";                 // written after each epoch; empty: none
  bool resume = false;                         // resumes from state_file, if it is there
  std::string library = "";  // path of libhone_torch.so; if empty, where Hone is installed
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const TrainEpoch&)> progress = nullptr;
};
// Returns the training that the papers of a family use.
[[nodiscard]] Result<NetTraining> training_of(const Recipe& recipe);

// Starts from the parameters' values and leaves those that are best on the validation rows, or the
// last ones if there are none. On the processor, the same inputs and number of threads give the
// same net. The error is kCancelled if it was interrupted.
[[nodiscard]] Result<std::vector<TrainEpoch>> train(Net& net, const NetRows& rows,
                                                    const NetRows& validation,
                                                    const NetTraining& training);

// Returns whether a loss compares schedules, so that it needs two of a task.
[[nodiscard]] bool compares(Loss loss);
// Returns an error if there are too few rows for the training's meta-learning.
[[nodiscard]] Status check_meta(const NetRows& rows, const NetRows& validation,
                                const NetTraining& training);
// Adapts the net to the rows by the inner loop of the training's meta-learning: `steps` steps
// against the gradient of their loss.
[[nodiscard]] Status adapt(Net& net, const NetRows& rows, const NetTraining& training);
// Returns the loss of all rows as one batch.
[[nodiscard]] Result<double> loss_of(const Net& net, const NetRows& rows,
                                     const NetTraining& training);

// The loss of all rows as one batch, and its gradient with respect to each parameter, for tests.
struct NetGradients {
  double loss = 0;
  std::vector<std::vector<float>> parameters;
};
[[nodiscard]] Result<NetGradients> torch_gradients(const Net& net, const NetRows& rows,
                                                   const NetTraining& training);

// Computes evaluate() by libtorch.
[[nodiscard]] Result<std::vector<std::vector<float>>> torch_evaluate(const Net& net,
                                                                     const NetBatch& batch,
                                                                     const std::string& library);

}  // namespace hone::cost::net
