// cost/net/net.h - a neural cost model as data: nodes in order, named parameters, inputs and
// outputs. One definition is trained (learn/torch), written as ONNX, evaluated and printed.
//
// Dimension 0 of every value is the batch, written -1, except for parameters and constants, which
// have no batch. Every operator is one of ONNX opset 17, or a few of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone::cost::net {

enum class Op : int32_t {  // the numbers are part of the interface of learn/torch
  kInput = 0,
  kParameter = 1,
  kConstant = 2,
  kMatmul = 3,  // as in numpy: batched, broadcasting
  kAdd = 4,     // these four and kGreater broadcast as in numpy, except for the batch
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
  kReduceMax = 23,   // integers: axis, keep (0 or 1)
};
inline constexpr int kNumOps = 24;
[[nodiscard]] std::string_view op_name(Op op);

using Dims = std::vector<int64_t>;
// Number of elements of one candidate: the batch counts as 1.
[[nodiscard]] int64_t element_count(const Dims& dims);

struct Node {
  Op op;
  std::vector<int> inputs;  // indices of earlier nodes
  Dims dims;                // shape of its value
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  int source = -1;  // for kInput, kParameter, kConstant: the index in Net's list
};

struct NetInput {
  std::string name;
  Dims dims;  // without the batch
};
using NetInputs = std::vector<NetInput>;

// The initial values of a parameter.
enum class Fill : uint8_t { kZeros, kOnes, kXavier, kNormal };
struct Initial {
  Fill fill = Fill::kZeros;
  double scale = 1;  // kXavier: the gain; kNormal: the standard deviation
};

struct Parameter {
  std::string name;  // such as "encoder0.query.weight"
  Dims dims;
  Initial initial;
  std::vector<float> values;  // row-major; empty until initialise() or training
};

// A constant is not trained, but some are set from the training data: "features.mean",
// "features.scale".
struct Constant {
  std::string name;
  Dims dims;
  std::vector<float> values;
};

struct NetOutput {
  std::string name;  // "score" is [-1, 1]; higher is faster within a task
  int node;
};

struct Net {
  std::string family;
  NetInputs inputs;  // only those that nodes read
  std::vector<Node> nodes;
  std::vector<Parameter> parameters;
  std::vector<Constant> constants;
  std::vector<NetOutput> outputs;

  [[nodiscard]] int64_t num_weights() const;
  [[nodiscard]] const NetOutput* find_output(std::string_view name) const;
  [[nodiscard]] Parameter* find_parameter(std::string_view name);
  [[nodiscard]] Constant* find_constant(std::string_view name);
};

// Sets the initial values of every parameter. The same seed gives the same values, whatever the
// order of parameters.
void initialise(Net& net, uint64_t seed);

// Prints a line per node, for documents and tests: "%7 = matmul(%5, encoder0.query.weight) [-1, 12,
// 64]".
[[nodiscard]] std::string print(const Net& net);

}  // namespace hone::cost::net
