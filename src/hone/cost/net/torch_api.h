// cost/net/torch_api.h - the interface of libhone_torch.so, the only part of Hone that uses
// libtorch: it trains a net. It consists of plain structs and functions, so that it is loaded at
// run time and nothing else needs libtorch. The caller owns everything that is pointed to, which
// must outlive the call.
#pragma once

#include <cstdint>

extern "C" {

// This version changes with everything below; a library with another one is refused.
inline constexpr int32_t kHoneTorchVersion = 6;

struct HoneTorchNode {
  int32_t op;      // as in hone::cost::net::Op
  int32_t source;  // for an input, a parameter or a constant: its index in HoneTorchNet's list
  int32_t num_inputs;
  const int32_t* inputs;  // indices of nodes
  int32_t num_integers;
  const int64_t* integers;
  int32_t num_numbers;
  const double* numbers;
  // For a reshape, per integer: the index in HoneTorchNet's inputs of the mask whose number of
  // tokens it is, or -1. Null if there are none.
  const int32_t* tokens;
};

struct HoneTorchTensor {
  int32_t rank;
  const int64_t* dims;  // for an input: of one row
  float* values;        // null for an input
  int32_t frozen;       // for a parameter: not 0 if training must not change it
  int32_t meta_frozen;  // not 0 if meta-learning and adaptation must not change it
  // For an input this is the index of the mask that is 1 where there is a token along the first
  // axis (its own if it is that mask); tokens after a row's last one can be left out. -1 if none
  // can.
  int32_t mask;
  int32_t square;  // for an input: not 0 if these tokens lie along its second axis, too
};

struct HoneTorchNet {
  int32_t num_nodes;
  const HoneTorchNode* nodes;
  int32_t num_inputs;
  const HoneTorchTensor* inputs;
  int32_t num_parameters;
  const HoneTorchTensor* parameters;  // initial values, replaced by the trained values
  int32_t num_constants;
  const HoneTorchTensor* constants;
  // Indices of nodes; -1 for those that a net does not have.
  int32_t score, time, memory_bound, core_bound;
};

// Schedules; those of a task are side by side.
struct HoneTorchRows {
  int64_t num_rows;
  const float* const* inputs;  // row-major, one per input of the net
  int64_t num_groups;
  const int64_t* group_begin;  // num_groups + 1 indices
  const float* speed;          // best time of the task / time, in (0, 1]
  const float* log_time;       // target of the output `time`; NaN if it is not known
  const float* memory_bound;   // NaN if it is not known
  const float* core_bound;
};

enum HoneTorchLoss : int32_t {
  kHoneTorchLambdaRank = 0,  // pairs are weighted by the change of NDCG if they are swapped
  kHoneTorchPairwise = 1,    // all pairs have the same weight (RankNet)
  kHoneTorchRmse = 2,        // between score and speed
  kHoneTorchMultiTask = 3,   // log_time, the bounds, and pairs
};

// The meta-learning that follows the training (cost/net/meta.h).
enum HoneTorchMeta : int32_t {
  kHoneTorchNoMeta = 0,
  kHoneTorchMaml = 1,
  kHoneTorchFomaml = 2,
  kHoneTorchReptile = 3,
};

struct HoneTorchMetaOptions {
  int32_t kind;  // a HoneTorchMeta
  int32_t steps;
  double rate;
  int32_t ways, shots, queries;  // numbers of tuning tasks in a task, and of schedules of each
  int32_t tasks;                 // in a batch
  int32_t batches;               // in an epoch
  int32_t epochs;                // most epochs
  int32_t patience;              // epochs without a better one before it stops; 0: never
  double outer;                  // rate of each batch
};

enum HoneTorchPlace : int32_t {
  kHoneTorchProcessor = 0,
  kHoneTorchCuda = 1,     // the first CUDA device, if libtorch supports it
  kHoneTorchGeneric = 2,  // for tests: the processor with the code that serves other devices
};

struct HoneTorchEpoch {
  int32_t epoch;                              // counts from 1
  double loss;                                // mean over the epoch's batches
  double rate;                                // learning rate of the last batch
  double pair_accuracy, clear_pair_accuracy;  // mean over the tasks of the validation rows
  double seconds;                             // time of this epoch
  int32_t best;                               // 1 for the best epoch so far of its kind
  int32_t meta;                               // 1 for an epoch of meta-learning
  // For meta-learning: the loss of the tasks held out before they are adapted to and after, which
  // chooses the best epoch; NaN if there are none.
  double plain_loss, adapted_loss;
};

struct HoneTorchOptions {
  int32_t loss;    // a HoneTorchLoss
  int32_t epochs;  // most epochs
  int32_t batch;   // in schedules
  int32_t group;   // most schedules of one task in a batch
  double rate, last_rate;
  int32_t cosine;      // 0: the rate decreases linearly
  double decay;        // weight decay (AdamW), per unit of rate
  double clip;         // largest norm of a gradient; 0: no limit
  double average;      // share of the running mean of parameters that is kept per batch; 0: no mean
  double least_ratio;  // pairs whose times are closer are not ordered
  double bound_weight, rank_weight;  // for kHoneTorchMultiTask
  uint64_t seed;
  int32_t place;  // a HoneTorchPlace
  // Threads of the processor. Each computes parts of a batch, and another number rounds
  // differently.
  int32_t threads;
  int32_t patience;  // epochs without a better validation before it stops; 0: never
  // It stops after the epoch in which they are used up; 0: never. The training before
  // meta-learning may use up half of them.
  double seconds;
  HoneTorchMetaOptions meta;

  void* user;                   // argument of the functions
  int32_t (*stop)(void* user);  // called before each batch; if not 0, training stops
  // Called for each epoch, also for those in `state`.
  void (*progress)(void* user, const HoneTorchEpoch* done);
  // Called after each epoch; may be null.
  void (*save)(void* user, const void* state, int64_t size);
  const void* state;  // what a training of the same net, rows and options has saved, or null
  int64_t state_size;
};

enum HoneTorchResult : int32_t {
  kHoneTorchDone = 0,
  kHoneTorchStopped = 1,  // parameters are unchanged
  kHoneTorchFailed = 2,   // `message` has the reason
};

using HoneTorchVersion = int32_t();
// Trains the net. If `validation` has no rows, the last parameters are the result, else the best.
using HoneTorchTrain = int32_t(const HoneTorchNet* net, const HoneTorchRows* train,
                               const HoneTorchRows* validation, const HoneTorchOptions* options,
                               char* message, int64_t message_size);
// Computes the loss of all rows as one batch, and its gradient with respect to each parameter, for
// tests.
using HoneTorchGradients = int32_t(const HoneTorchNet* net, const HoneTorchRows* rows,
                                   const HoneTorchOptions* options, double* loss,
                                   float* const* gradients, char* message, int64_t message_size);
// Replaces the parameters by those that options->meta adapts to the rows, and writes the loss of
// all rows before, or with no steps only that.
using HoneTorchAdapt = int32_t(const HoneTorchNet* net, const HoneTorchRows* rows,
                               const HoneTorchOptions* options, double* loss, char* message,
                               int64_t message_size);
// Evaluates the net. `outputs` has score, time, memory_bound and core_bound, num_rows each; null
// for those that are not wanted.
using HoneTorchForward = int32_t(const HoneTorchNet* net, int64_t num_rows,
                                 const float* const* inputs, float* const* outputs, char* message,
                                 int64_t message_size);

}  // extern "C"
