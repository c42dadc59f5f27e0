// cost/net/net.h - a neural cost model as data: nodes in order, named parameters, inputs and
// outputs. One definition is trained (cost/torch), written as ONNX, evaluated and printed.
//
// Dimension 0 of every value is the batch, written -1, except of parameters and constants, which
// have none. Every operator is one of ONNX opset 17, or a few of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone::cost::net {

enum class Op : int32_t {  // the numbers are part of the interface of cost/torch
  kInput = 0,
  kParameter = 1,
  kConstant = 2,
  kMatmul = 3,  // numpy's: batched, broadcasting
  kAdd = 4,     // these four and kGreater broadcast as numpy does, but never the batch
  kSub = 5,
  kMul = 6,
  kDiv = 7,
  kRelu = 8,
  kSigmoid = 9,
  kTanh = 10,
  kExp = 11,
  kSoftmax = 12,     // over the last axis
  kLayerNorm = 13,   // value, gamma, beta: over the last axis; numbers: epsilon
  kTranspose = 14,   // integers: the permutation, 0 first
  kReshape = 15,     // integers: all dimensions, -1 first
  kReduceSum = 16,   // integers: axis, keep (0 or 1)
  kReduceMean = 17,  // integers: axis, keep (0 or 1)
  kConcat = 18,      // integers: axis
  kSlice = 19,       // integers: axis, begin, end
  kDropout = 20,     // numbers: p; the identity outside training
  kGreater = 21,     // a > b as 1 or 0; no gradient (ONNX: Greater, Cast)
  kClip = 22,        // numbers: lowest, highest
};
inline constexpr int kNumOps = 23;
[[nodiscard]] std::string_view op_name(Op op);

using Dims = std::vector<int64_t>;
[[nodiscard]] int64_t element_count(const Dims& dims);  // of one candidate: a batch counts as 1

struct Node {
  Op op;
  std::vector<int> inputs;  // nodes before this one
  Dims dims;                // of its value
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  int source = -1;  // of kInput, kParameter, kConstant: the place in Net's list
};

struct NetInput {
  std::string name;
  Dims dims;  // without the batch
};
using NetInputs = std::vector<NetInput>;

// How a parameter begins.
enum class Fill : uint8_t { kZeros, kOnes, kXavier, kNormal };
struct Initial {
  Fill fill = Fill::kZeros;
  double scale = 1;  // kXavier: the gain; kNormal: the deviation
};

struct Parameter {
  std::string name;  // "encoder0.query.weight"
  Dims dims;
  Initial initial;
  std::vector<float> values;  // row-major; empty until initialise() or training
};

// Not trained, but some are set from the training data: "features.mean", "features.scale".
struct Constant {
  std::string name;
  Dims dims;
  std::vector<float> values;
};

struct NetOutput {
  std::string name;  // "score": [-1, 1], higher is faster within a task
  int node;
};

struct Net {
  std::string family;
  NetInputs inputs;  // only those that are read
  std::vector<Node> nodes;
  std::vector<Parameter> parameters;
  std::vector<Constant> constants;
  std::vector<NetOutput> outputs;

  [[nodiscard]] int64_t num_weights() const;
  [[nodiscard]] const NetOutput* find_output(std::string_view name) const;
  [[nodiscard]] Parameter* find_parameter(std::string_view name);
  [[nodiscard]] Constant* find_constant(std::string_view name);
};

// Gives every parameter its first values: the same seed gives the same ones, whatever the order.
void initialise(Net& net, uint64_t seed);

// A line a node, for documents and tests: "%7 = matmul(%5, encoder0.query.weight) [-1, 12, 64]".
[[nodiscard]] std::string print(const Net& net);

}  // namespace hone::cost::net
