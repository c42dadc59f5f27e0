#include "hone/learn/torch/interpreter.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "hone/cost/net/net.h"
#include "hone/learn/torch/batched_matmul.h"

namespace hone::learn::torch_module {
namespace {

using cost::net::Op;

at::IntArrayRef dims_of(const HoneTorchTensor& tensor) {
  return {tensor.dims, static_cast<size_t>(tensor.rank)};
}

at::Tensor copy_of(const HoneTorchTensor& tensor, const Place& place) {
  return at::from_blob(tensor.values, dims_of(tensor), at::kFloat)
      .to(place.device, place.type, false, true);
}

// By libtorch's own generator, which was seeded for this run.
at::Tensor generic_dropout(const at::Tensor& in, double share) {
  const at::Tensor mask = at::empty(in.sizes(), in.options()).bernoulli_(1 - share);
  return in * mask.div_(1 - share);
}

// Four values a draw: on a processor libtorch's generator takes longer than the products of a net.
at::Tensor dropout(const at::Tensor& in, double share, Rng& rng) {
  const auto least = static_cast<uint64_t>(std::lround(share * 0x1p16));
  const auto scale = static_cast<float>(0x1p16 / (0x1p16 - static_cast<double>(least)));
  at::Tensor mask = at::empty(in.sizes(), at::kFloat);
  float* values = mask.data_ptr<float>();
  const int64_t count = mask.numel();
  for (int64_t i = 0; i < count; i += 4) {
    uint64_t draw = rng.next();
    for (int64_t k = i; k < std::min(i + 4, count); ++k, draw >>= 16)
      values[k] = (draw & 0xffff) < least ? 0.0F : scale;
  }
  return in * mask;
}

void seed_generator(const at::Device& device, uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

std::vector<int64_t> new_dims(const HoneTorchNode& node, const std::vector<int64_t>& tokens) {
  std::vector<int64_t> dims(node.integers, node.integers + node.num_integers);
  for (size_t i = 0; node.tokens != nullptr && i < dims.size(); ++i) {
    if (node.tokens[i] >= 0) dims[i] = tokens[static_cast<size_t>(node.tokens[i])];
  }
  return dims;
}

at::Tensor apply(const HoneTorchNode& node, const std::vector<at::Tensor>& values,
                 const std::vector<int64_t>& tokens, bool generic, Rng* dropped) {
  const auto in = [&](int i) -> const at::Tensor& {
    return values[static_cast<size_t>(node.inputs[i])];
  };
  const at::IntArrayRef integers(node.integers, static_cast<size_t>(node.num_integers));
  switch (static_cast<Op>(node.op)) {
    case Op::kMatmul: return generic ? at::matmul(in(0), in(1)) : batched_matmul(in(0), in(1));
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
    case Op::kReshape: return in(0).reshape(new_dims(node, tokens));
    case Op::kReduceSum: return in(0).sum(integers[0], integers[1] != 0);
    case Op::kReduceMean: return in(0).mean(integers[0], integers[1] != 0);
    case Op::kReduceMax: return at::amax(in(0), integers[0], integers[1] != 0);
    case Op::kConcat: {
      std::vector<at::Tensor> parts;
      for (int i = 0; i < node.num_inputs; ++i) parts.push_back(in(i));
      return at::cat(parts, integers[0]);
    }
    case Op::kSlice: return in(0).slice(integers[0], integers[1], integers[2]);
    case Op::kDropout:
      if (dropped == nullptr) return in(0);
      return generic ? generic_dropout(in(0), node.numbers[0])
                     : dropout(in(0), node.numbers[0], *dropped);
    case Op::kGreater: return at::gt(in(0), in(1)).to(in(0).scalar_type());
    case Op::kClip: return at::clamp(in(0), node.numbers[0], node.numbers[1]);
    case Op::kInput:
    case Op::kParameter:
    case Op::kConstant: break;
  }
  TORCH_CHECK(false, "unknown operator ", node.op);
}

}  // namespace

Interpreter::Interpreter(const HoneTorchNet& net, const Place& place) : net_(net), place_(place) {
  for (int i = 0; i < net.num_constants; ++i)
    constants_.push_back(copy_of(net.constants[i], place));
}

Outputs Interpreter::run(const RowInputs& rows, const std::vector<at::Tensor>& parameters,
                         Rng* dropped) const {
  if (place_.generic && dropped != nullptr) seed_generator(place_.device, dropped->next());
  std::vector<at::Tensor> values;
  for (int i = 0; i < net_.num_nodes; ++i) {
    const HoneTorchNode& node = net_.nodes[i];
    const auto source = static_cast<size_t>(node.source);
    switch (static_cast<Op>(node.op)) {
      case Op::kInput: values.push_back(rows.inputs[source].to(place_.device, place_.type)); break;
      case Op::kParameter: values.push_back(parameters[source]); break;
      case Op::kConstant: values.push_back(constants_[source]); break;
      default: values.push_back(apply(node, values, rows.tokens, place_.generic, dropped));
    }
  }
  const auto output = [&](int node) {
    return node < 0 ? at::Tensor() : values[static_cast<size_t>(node)].reshape({-1});
  };
  return {output(net_.score), output(net_.time), output(net_.memory_bound),
          output(net_.core_bound)};
}

std::vector<at::Tensor> make_parameters(const HoneTorchNet& net, const Place& place) {
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < net.num_parameters; ++i) {
    parameters.push_back(copy_of(net.parameters[i], place));
    parameters.back().requires_grad_(net.parameters[i].frozen == 0);
  }
  return parameters;
}

}  // namespace hone::learn::torch_module
