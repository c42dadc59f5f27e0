// cost/net/builder.h - builds a Net. It infers shapes and asserts that they fit, as a mismatch is a
// bug of the family.
#pragma once

#include "hone/cost/net/net.h"

namespace hone::cost::net {

// A node of the net that is being built.
struct Value {
  int node = -1;
};

class NetBuilder {
 public:
  // The parameter `inputs` has all that a model may read; the net lists those for which input() was
  // called.
  NetBuilder(std::string family, NetInputs inputs);
  // Adds to a net, whose nodes are the values. It reads no more inputs.
  explicit NetBuilder(Net net);

  // Returns the same value each time. The name must be known, which is asserted.
  [[nodiscard]] Value input(std::string_view name);
  [[nodiscard]] Value parameter(std::string name, Dims dims, Initial initial);
  [[nodiscard]] Value constant(std::string name, Dims dims, std::vector<float> values);
  [[nodiscard]] Value scalar(double value);  // constant without a name

  [[nodiscard]] Value matmul(Value a, Value b);
  [[nodiscard]] Value add(Value a, Value b) { return elementwise(Op::kAdd, a, b); }
  [[nodiscard]] Value sub(Value a, Value b) { return elementwise(Op::kSub, a, b); }
  [[nodiscard]] Value mul(Value a, Value b) { return elementwise(Op::kMul, a, b); }
  [[nodiscard]] Value div(Value a, Value b) { return elementwise(Op::kDiv, a, b); }
  [[nodiscard]] Value greater(Value a, Value b) { return elementwise(Op::kGreater, a, b); }
  [[nodiscard]] Value relu(Value a) { return same(Op::kRelu, a); }
  [[nodiscard]] Value sigmoid(Value a) { return same(Op::kSigmoid, a); }
  [[nodiscard]] Value tanh(Value a) { return same(Op::kTanh, a); }
  [[nodiscard]] Value exp(Value a) { return same(Op::kExp, a); }
  [[nodiscard]] Value softmax(Value a) { return same(Op::kSoftmax, a); }
  [[nodiscard]] Value clip(Value a, double lowest, double highest);
  [[nodiscard]] Value dropout(Value a, double p);  // returns `a` itself if p is 0
  [[nodiscard]] Value layer_norm(Value a, Value gamma, Value beta, double epsilon = 1e-5);
  [[nodiscard]] Value transpose(Value a, std::vector<int64_t> permutation);
  // `dims` has all dimensions, of which the first is -1.
  [[nodiscard]] Value reshape(Value a, Dims dims);
  [[nodiscard]] Value reduce_sum(Value a, int axis, bool keep = false);
  [[nodiscard]] Value reduce_mean(Value a, int axis, bool keep = false);
  [[nodiscard]] Value reduce_max(Value a, int axis, bool keep = false);
  [[nodiscard]] Value concat(const std::vector<Value>& parts, int axis);
  [[nodiscard]] Value slice(Value a, int axis, int64_t begin, int64_t end);

  void output(std::string name, Value value);
  [[nodiscard]] const Dims& dims(Value value) const;
  // Returns the net, which must have a "score" of [-1, 1]. Parameters have no values yet.
  [[nodiscard]] Net finish();

 private:
  Value append(Node node);
  Value elementwise(Op op, Value a, Value b);
  Value same(Op op, Value a);
  Value reduce(Op op, Value a, int axis, bool keep);

  NetInputs available_;
  Net net_;
  int scalars_ = 0;
};

}  // namespace hone::cost::net
