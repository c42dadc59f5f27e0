// Tests that the gradient of the loss after adaptation is the slope of that loss, for every
// operator of nets, every family and every loss, and that an operator without a second derivative
// says so.
#include "hone/learn/torch/inner_loop.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>

#include "hone/cost/net/builder.h"
#include "hone/cost/net/net_testing.h"
#include "hone/learn/torch/guarded.h"
#include "hone/learn/torch/inner_loop_testing.h"
#include "hone/learn/torch/raw_gradient.h"

namespace hone::learn::torch_module {
namespace {

using cost::net::Dims;
using cost::net::Fill;
using cost::net::Net;
using cost::net::NetBuilder;
using cost::net::Op;
using cost::net::Value;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kClose = 1e-3;  // of the slope
constexpr double kFar = 1e-2;    // what the derivative of the inner gradient is worth at least

Value weight(NetBuilder& b, const std::string& name, Dims dims) {
  return b.parameter(name, std::move(dims), {Fill::kNormal, 0.6});
}

// A value of which `op` makes another one, from a net whose parameters come before it.
Value result_of(Op op, NetBuilder& b) {
  const Value x = b.input("x");  // [-1, 3, 4]
  const Value h = b.tanh(b.matmul(x, weight(b, "h", {4, 4})));
  const Value g = b.tanh(b.matmul(x, weight(b, "g", {4, 4})));
  switch (op) {
    case Op::kInput: return b.mul(h, x);
    case Op::kParameter: return b.mul(h, weight(b, "scale", {4}));
    case Op::kConstant: return b.mul(h, b.constant("factors", {4}, {1, -2, 0.5, 3}));
    case Op::kMatmul:
      return b.matmul(b.reshape(h, {-1, 1, 3, 4}),
                      b.transpose(b.reshape(g, {-1, 1, 3, 4}), {0, 1, 3, 2}));
    case Op::kAdd: return b.add(h, g);
    case Op::kSub: return b.sub(h, g);
    case Op::kMul: return b.mul(h, g);
    case Op::kDiv: return b.div(h, b.exp(g));
    case Op::kRelu: return b.relu(h);
    case Op::kSigmoid: return b.sigmoid(h);
    case Op::kTanh: return h;
    case Op::kExp: return b.exp(h);
    case Op::kSoftmax: return b.softmax(h);
    case Op::kLayerNorm: return b.layer_norm(h, weight(b, "gamma", {4}), weight(b, "beta", {4}));
    case Op::kTranspose: return b.mul(b.transpose(h, {0, 2, 1}), b.transpose(g, {0, 2, 1}));
    case Op::kReshape: return b.mul(b.reshape(h, {-1, 12}), b.reshape(g, {-1, 12}));
    case Op::kReduceSum: return b.mul(b.reduce_sum(h, 1), b.reduce_sum(g, 1));
    case Op::kReduceMean: return b.mul(b.reduce_mean(h, 2, true), g);
    case Op::kReduceMax: return b.mul(b.reduce_max(h, 1), b.reduce_max(g, 1));
    case Op::kConcat: return b.concat({h, b.mul(h, g)}, 1);
    case Op::kSlice: return b.mul(b.slice(h, 2, 1, 3), b.slice(g, 2, 0, 2));
    case Op::kDropout: return b.dropout(h, 0.3);
    case Op::kGreater: return b.mul(b.greater(h, g), b.mul(h, g));
    case Op::kClip: return b.clip(h, -0.6, 0.6);
  }
  ADD_FAILURE() << "no case of the operator " << cost::net::op_name(op);
  return h;
}

Net net_of(Op op) {
  NetBuilder b("one", {{"x", {3, 4}}});
  const Value value = result_of(op, b);
  const int64_t count = cost::net::element_count(b.dims(value));
  b.output("score", b.matmul(b.reshape(value, {-1, count}), weight(b, "head", {count, 1})));
  Net net = b.finish();
  cost::net::initialise(net, 11);
  return net;
}

// An operator that is added to nets needs a case above: without one its derivative is not proved.
TEST(inner_loop, gradients_of_every_operator_are_the_slope_of_the_loss) {
  for (int i = 0; i < cost::net::kNumOps; ++i) {
    const Op op = static_cast<Op>(i);
    SCOPED_TRACE(cost::net::op_name(op));
    const Net net = net_of(op);
    EXPECT_TRUE(std::any_of(net.nodes.begin(), net.nodes.end(),
                            [&](const cost::net::Node& node) { return node.op == op; }));
    for (const bool generic : {false, true}) {
      const Problem problem(net, kHoneTorchMultiTask, generic);
      const Comparison found =
          compare(problem.parameters(), problem.support(), problem.query(), {2, 0.1, true});
      EXPECT_GT(found.size, 1e-3);
      EXPECT_LT(found.second_order, kClose);
      EXPECT_GT(found.first_order, kFar);
    }
  }
}

TEST(inner_loop, gradients_of_every_family_are_the_slope_of_the_loss) {
  for (const cost::net::Family* family : cost::net::families()) {
    SCOPED_TRACE(family->name);
    Net net = make_net(*family, cost::net::small_inputs(), cost::net::narrow(*family)).value();
    cost::net::initialise(net, 3);
    const Problem problem(std::move(net), kHoneTorchMultiTask, false);
    const Comparison found =
        compare(problem.parameters(), problem.support(), problem.query(), {1, 0.02, true});
    EXPECT_LT(found.second_order, kClose);
    EXPECT_GT(found.first_order, kClose);
  }
}

TEST(inner_loop, gradients_of_every_loss_are_the_slope_of_the_loss) {
  for (const int32_t loss :
       {kHoneTorchLambdaRank, kHoneTorchPairwise, kHoneTorchRmse, kHoneTorchMultiTask}) {
    SCOPED_TRACE(loss);
    Net net =
        make_net(cost::net::kFasor, cost::net::small_inputs(), cost::net::narrow(cost::net::kFasor))
            .value();
    cost::net::initialise(net, 3);
    const Problem problem(std::move(net), loss, false);
    const Comparison found =
        compare(problem.parameters(), problem.support(), problem.query(), {2, 0.02, true});
    EXPECT_LT(found.second_order, kClose);
    EXPECT_GT(found.first_order, kFar);
  }
}

// Three ways to write the exponential function, each with a first derivative.
struct Recorded {
  static variable_list gradient(const at::Tensor& value, const at::Tensor& g) {
    return {g * value};
  }
};
struct Hidden {  // reads memory and says nothing
  static variable_list gradient(const at::Tensor& value, const at::Tensor& g) {
    return {(g.detach() * value.detach())};
  }
};
struct Refused {
  static variable_list gradient(const at::Tensor& value, const at::Tensor& g) {
    refuse_second_derivative("raw_exp");
    return Hidden::gradient(value, g);
  }
};

template <typename Kind>
class Exponential : public torch::autograd::Function<Exponential<Kind>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a) {
    const at::Tensor value = at::exp(a);
    context->save_for_backward({value});
    return value;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return Kind::gradient(context->get_saved_variables()[0], gradients[0]);
  }
};

std::vector<at::Tensor> two_numbers() {
  return {at::full({1}, 0.7, at::kDouble).requires_grad_(true),
          at::full({1}, 0.4, at::kDouble).requires_grad_(true)};
}

// The parameters reach the loss through the operator, and `beside` also without it.
template <typename Kind>
LossOf loss_with(double aim, bool beside) {
  return [aim, beside](const std::vector<at::Tensor>& p, int) {
    at::Tensor said = Exponential<Kind>::apply(beside ? p[0] * p[1] : p[0]);
    if (beside) said = said + p[0] + p[1];
    return ((said - aim) * (said - aim)).sum();
  };
}

TEST(inner_loop, an_operator_that_hides_its_gradient_is_found) {
  const InnerLoop loop{2, 0.05, true};
  const Comparison good =
      compare(two_numbers(), loss_with<Recorded>(2, true), loss_with<Recorded>(3, true), loop);
  EXPECT_LT(good.second_order, kClose);
  const Comparison bad =
      compare(two_numbers(), loss_with<Hidden>(2, true), loss_with<Hidden>(3, true), loop);
  EXPECT_GT(bad.second_order, kFar);
  // Where no other way leads to the loss, nothing is left to differentiate.
  EXPECT_THROW((void)maml_gradient(two_numbers(), loss_with<Hidden>(2, false),
                                   loss_with<Hidden>(3, false), loop),
               c10::Error);
}

TEST(inner_loop, an_operator_without_a_second_derivative_says_so) {
  std::array<char, 300> message{};
  const auto train = [&](bool second_order) {
    return guarded(message.data(), std::ssize(message), [&] {
      const MetaGradient found =
          maml_gradient(two_numbers(), loss_with<Refused>(2, true), loss_with<Refused>(3, true),
                        {2, 0.05, second_order});
      EXPECT_NE(found.parameters[0].item<double>(), 0);
      return static_cast<int32_t>(kHoneTorchDone);
    });
  };
  EXPECT_EQ(train(true), kHoneTorchFailed);
  EXPECT_STREQ(message.data(),
               "the operator raw_exp has no second derivative: expected first-order "
               "meta-learning, or none");
  EXPECT_EQ(train(false), kHoneTorchDone);
}

TEST(inner_loop, parameters_without_gradients_stay) {
  std::vector<at::Tensor> parameters = two_numbers();
  parameters[1].requires_grad_(false);
  const LossOf support = loss_with<Recorded>(2, true), query = loss_with<Recorded>(3, true);
  const std::vector<at::Tensor> adapted = adapt(parameters, support, {3, 0.05, true});
  EXPECT_NE(adapted[0].item<double>(), 0.7);
  EXPECT_EQ(adapted[1].item<double>(), 0.4);
  const MetaGradient found = maml_gradient(parameters, support, query, {3, 0.05, true});
  EXPECT_TRUE(found.parameters[0].defined());
  EXPECT_FALSE(found.parameters[1].defined());
}

// One step of Reptile is the gradient itself; more are the mean of the gradients on the way.
TEST(inner_loop, reptile_goes_where_the_steps_went) {
  const std::vector<at::Tensor> parameters = two_numbers();
  const LossOf loss = loss_with<Recorded>(2, true);
  const variable_list slope =
      torch::autograd::grad({loss(parameters, 0)}, parameters, {}, false, false, false);
  EXPECT_NEAR(reptile_gradient(parameters, loss, {1, 0.05}).parameters[0].item<double>(),
              slope[0].item<double>(), 1e-9);
  const MetaGradient far = reptile_gradient(parameters, loss, {5, 0.05});
  const std::vector<at::Tensor> adapted = adapt(parameters, loss, {5, 0.05, false});
  EXPECT_NEAR(far.parameters[0].item<double>(), (0.7 - adapted[0].item<double>()) / 0.25, 1e-9);
  EXPECT_LT(far.loss, loss(parameters, 0).item<double>());
}

}  // namespace
}  // namespace hone::learn::torch_module
