#include "hone/cost/torch/interpreter.h"

#include "hone/cost/net/net.h"

namespace hone::cost::torch_module {
namespace {

using net::Op;

at::IntArrayRef dims_of(const HoneTorchTensor& tensor) {
  return {tensor.dims, static_cast<size_t>(tensor.rank)};
}

at::Tensor copy_of(const HoneTorchTensor& tensor) {
  return at::from_blob(tensor.values, dims_of(tensor), at::kFloat).clone();
}

at::Tensor apply(const HoneTorchNode& node, const std::vector<at::Tensor>& values, bool training) {
  const auto in = [&](int i) -> const at::Tensor& {
    return values[static_cast<size_t>(node.inputs[i])];
  };
  const at::IntArrayRef integers(node.integers, static_cast<size_t>(node.num_integers));
  switch (static_cast<Op>(node.op)) {
    case Op::kMatmul: return at::matmul(in(0), in(1));
    case Op::kAdd: return in(0) + in(1);
    case Op::kSub: return in(0) - in(1);
    case Op::kMul: return in(0) * in(1);
    case Op::kDiv: return in(0) / in(1);
    case Op::kRelu: return at::relu(in(0));
    case Op::kSigmoid: return at::sigmoid(in(0));
    case Op::kTanh: return at::tanh(in(0));
    case Op::kExp: return at::exp(in(0));
    case Op::kSoftmax: return at::softmax(in(0), -1);
    case Op::kLayerNorm:
      return at::layer_norm(in(0), in(1).sizes(), in(1), in(2), node.numbers[0], false);
    case Op::kTranspose: return in(0).permute(integers);
    case Op::kReshape: return in(0).reshape(integers);
    case Op::kReduceSum: return in(0).sum(integers[0], integers[1] != 0);
    case Op::kReduceMean: return in(0).mean(integers[0], integers[1] != 0);
    case Op::kConcat: {
      std::vector<at::Tensor> parts;
      for (int i = 0; i < node.num_inputs; ++i) parts.push_back(in(i));
      return at::cat(parts, integers[0]);
    }
    case Op::kSlice: return in(0).slice(integers[0], integers[1], integers[2]);
    case Op::kDropout: return training ? at::dropout(in(0), node.numbers[0], true) : in(0);
    case Op::kGreater: return at::gt(in(0), in(1)).to(at::kFloat);
    case Op::kClip: return at::clamp(in(0), node.numbers[0], node.numbers[1]);
    case Op::kInput:
    case Op::kParameter:
    case Op::kConstant: break;
  }
  TORCH_CHECK(false, "unknown operator ", node.op);
}

}  // namespace

Interpreter::Interpreter(const HoneTorchNet& net) : net_(net) {
  for (int i = 0; i < net.num_constants; ++i) constants_.push_back(copy_of(net.constants[i]));
}

Outputs Interpreter::run(const std::vector<at::Tensor>& inputs,
                         const std::vector<at::Tensor>& parameters, bool training) const {
  std::vector<at::Tensor> values;
  for (int i = 0; i < net_.num_nodes; ++i) {
    const HoneTorchNode& node = net_.nodes[i];
    const auto source = static_cast<size_t>(node.source);
    switch (static_cast<Op>(node.op)) {
      case Op::kInput: values.push_back(inputs[source]); break;
      case Op::kParameter: values.push_back(parameters[source]); break;
      case Op::kConstant: values.push_back(constants_[source]); break;
      default: values.push_back(apply(node, values, training));
    }
  }
  const auto output = [&](int node) {
    return node < 0 ? at::Tensor() : values[static_cast<size_t>(node)].reshape({-1});
  };
  return {output(net_.score), output(net_.time), output(net_.memory_bound),
          output(net_.core_bound)};
}

std::vector<at::Tensor> Interpreter::parameters() const {
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < net_.num_parameters; ++i) {
    parameters.push_back(copy_of(net_.parameters[i]));
    parameters.back().requires_grad_(net_.parameters[i].frozen == 0);
  }
  return parameters;
}

std::vector<at::Tensor> Interpreter::wrap(const float* const* inputs, int64_t rows) const {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < net_.num_inputs; ++i) {
    std::vector<int64_t> dims = dims_of(net_.inputs[i]).vec();
    dims.insert(dims.begin(), rows);
    tensors.push_back(at::from_blob(const_cast<float*>(inputs[i]), dims, at::kFloat));
  }
  return tensors;
}

}  // namespace hone::cost::torch_module
