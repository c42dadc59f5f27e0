// cost/torch/api.h - the interface of libhone_torch.so, the only part of Hone that uses libtorch:
// it trains a net. Plain structs and functions, so that it is loaded at run time and nothing else
// needs libtorch. Everything pointed to stays the caller's and must outlive the call.
#pragma once

#include <cstdint>

extern "C" {

// Changes with anything below: another library is refused.
inline constexpr int32_t kHoneTorchVersion = 5;

struct HoneTorchNode {
  int32_t op;      // hone::cost::net::Op
  int32_t source;  // of an input, a parameter, a constant: its place in HoneTorchNet's list
  int32_t num_inputs;
  const int32_t* inputs;  // nodes
  int32_t num_integers;
  const int64_t* integers;
  int32_t num_numbers;
  const double* numbers;
  // Of a reshape, for each integer: not -1 if it is how many tokens there are, by the mask at this
  // place in HoneTorchNet's inputs. Null: none is.
  const int32_t* tokens;
};

struct HoneTorchTensor {
  int32_t rank;
  const int64_t* dims;  // of an input: of one row
  float* values;        // of an input: null
  int32_t frozen;       // of a parameter: not 0 if training must leave it as it is
  // Of an input: the place of the one that is 1 where there is a token along the first axis (its
  // own if it is that); those after a row's last token can be left out. -1: none can.
  int32_t mask;
};

struct HoneTorchNet {
  int32_t num_nodes;
  const HoneTorchNode* nodes;
  int32_t num_inputs;
  const HoneTorchTensor* inputs;
  int32_t num_parameters;
  const HoneTorchTensor* parameters;  // first values in, trained values out
  int32_t num_constants;
  const HoneTorchTensor* constants;
  // Nodes; those that a net does not have are -1.
  int32_t score, time, memory_bound, core_bound;
};

// Schedules, those of a task side by side.
struct HoneTorchRows {
  int64_t num_rows;
  const float* const* inputs;  // per input of the net, row-major
  int64_t num_groups;
  const int64_t* group_begin;  // num_groups + 1 places
  const float* speed;          // best time of the task / time, above 0, at most 1
  const float* log_time;       // what the output `time` is to be; NaN where it is not known
  const float* memory_bound;   // the same
  const float* core_bound;
};

enum HoneTorchLoss : int32_t {
  kHoneTorchLambdaRank = 0,  // pairs weigh what swapping them changes in NDCG
  kHoneTorchPairwise = 1,    // all pairs weigh the same (RankNet)
  kHoneTorchRmse = 2,        // of score and speed
  kHoneTorchMultiTask = 3,   // log_time, the bounds, and pairs
};

enum HoneTorchPlace : int32_t {
  kHoneTorchProcessor = 0,
  kHoneTorchCuda = 1,     // the first CUDA device, if libtorch has it
  kHoneTorchGeneric = 2,  // for tests: the processor, by the code that serves other devices
};

struct HoneTorchEpoch {
  int32_t epoch;                              // from 1
  double loss;                                // mean of the epoch's batches
  double rate;                                // of the last batch
  double pair_accuracy, clear_pair_accuracy;  // mean over the tasks of the validation rows
  double seconds;                             // this epoch
  int32_t best;                               // 1: the best so far
};

struct HoneTorchOptions {
  int32_t loss;    // HoneTorchLoss
  int32_t epochs;  // at most
  int32_t batch;   // schedules
  int32_t group;   // at most so many of one task in a batch
  double rate, last_rate;
  int32_t cosine;      // 0: the rate falls by a straight line
  double decay;        // of weights (AdamW), per unit of rate
  double clip;         // the greatest norm of a gradient; 0: any
  double average;      // share of the running mean of parameters that is kept per batch; 0: no mean
  double least_ratio;  // times closer than this get no order
  double bound_weight, rank_weight;  // of kHoneTorchMultiTask
  uint64_t seed;
  int32_t place;     // HoneTorchPlace
  int32_t threads;   // of the processor, each has parts of a batch; another number rounds otherwise
  int32_t patience;  // epochs without a better validation before it stops; 0: never
  double seconds;    // it stops after the epoch with which they are used up; 0: never

  void* user;                                                 // passed to the functions
  int32_t (*stop)(void* user);                                // before each batch: not 0 gives up
  void (*progress)(void* user, const HoneTorchEpoch* done);   // also of the epochs in `state`
  void (*save)(void* user, const void* state, int64_t size);  // after each epoch; may be null
  const void* state;  // what was saved by a training of the same net, rows and options, or null
  int64_t state_size;
};

enum HoneTorchResult : int32_t {
  kHoneTorchDone = 0,
  kHoneTorchStopped = 1,  // parameters are as they were
  kHoneTorchFailed = 2,   // `message` says why
};

using HoneTorchVersion = int32_t();
// `validation` may have no rows: then the last parameters are the result, else the best.
using HoneTorchTrain = int32_t(const HoneTorchNet* net, const HoneTorchRows* train,
                               const HoneTorchRows* validation, const HoneTorchOptions* options,
                               char* message, int64_t message_size);
// For tests: the loss of all rows as one batch, and its gradients by each parameter.
using HoneTorchGradients = int32_t(const HoneTorchNet* net, const HoneTorchRows* rows,
                                   const HoneTorchOptions* options, double* loss,
                                   float* const* gradients, char* message, int64_t message_size);
// outputs: score, time, memory_bound and core_bound, num_rows each; null where none is wanted.
using HoneTorchForward = int32_t(const HoneTorchNet* net, int64_t num_rows,
                                 const float* const* inputs, float* const* outputs, char* message,
                                 int64_t message_size);

}  // extern "C"
