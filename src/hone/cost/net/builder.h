// cost/net/builder.h - puts a Net together: infers shapes, and stops (a bug of the family) where
// they do not fit.
#pragma once

#include "hone/cost/net/net.h"

namespace hone::cost::net {

// A node of the net being built.
struct Value {
  int node = -1;
};

class NetBuilder {
 public:
  // `inputs` is all that a model may read; the net lists those that input() was called for.
  NetBuilder(std::string family, NetInputs inputs);
  // Adds to a net; its values are those of its nodes. It reads no more inputs.
  explicit NetBuilder(Net net);

  // The same value each time; asserts that the name is known.
  [[nodiscard]] Value input(std::string_view name);
  [[nodiscard]] bool has_input(std::string_view name) const;
  [[nodiscard]] Value parameter(std::string name, Dims dims, Initial initial);
  [[nodiscard]] Value constant(std::string name, Dims dims, std::vector<float> values);
  [[nodiscard]] Value scalar(double value);  // a constant without a name of its own

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
  [[nodiscard]] Value dropout(Value a, double p);  // `a` itself if p is 0
  [[nodiscard]] Value layer_norm(Value a, Value gamma, Value beta, double epsilon = 1e-5);
  [[nodiscard]] Value transpose(Value a, std::vector<int64_t> permutation);
  [[nodiscard]] Value reshape(Value a, Dims dims);  // all dimensions, -1 first
  [[nodiscard]] Value reduce_sum(Value a, int axis, bool keep = false);
  [[nodiscard]] Value reduce_mean(Value a, int axis, bool keep = false);
  [[nodiscard]] Value concat(const std::vector<Value>& parts, int axis);
  [[nodiscard]] Value slice(Value a, int axis, int64_t begin, int64_t end);

  void output(std::string name, Value value);
  [[nodiscard]] const Dims& dims(Value value) const;
  // The net; asserts that it has a "score" of [-1, 1]. Parameters have no values yet.
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
