#include "random_task.h"

#include <algorithm>
#include <array>
#include <set>

#include "hone/compute/dag_testing.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

#include "random_operator.h"

namespace hone::fuzz {
namespace {

using graph::AttributeList;
using graph::TestModel;

constexpr int64_t kMostWork = 400'000;  // operations of a task, about

// One more or less than whole vectors, tiles and blocks of them.
constexpr std::array<int64_t, 10> kExtents = {1, 2, 3, 7, 13, 17, 31, 33, 97, 224};

// Extents from the list, each as likely as the other at any place, whose product is small.
std::vector<int64_t> extents(Rng& rng, size_t count, int64_t most = kMostWork) {
  std::vector<size_t> choice(count);
  for (size_t& c : choice) c = static_cast<size_t>(rng.below(kExtents.size()));
  const auto product = [&] {
    int64_t n = 1;
    for (const size_t c : choice) n *= kExtents[c];
    return n;
  };
  while (product() > most) {
    size_t& c = choice[static_cast<size_t>(rng.below(static_cast<int64_t>(count)))];
    if (c > 0) c = static_cast<size_t>(rng.below(static_cast<int64_t>(c)));
  }
  std::vector<int64_t> out;
  for (const size_t c : choice) out.push_back(kExtents[c]);
  return out;
}

// Elementwise operators behind `value`, whose shape it is; the name of the result.
std::string followers(TestModel& model, Rng& rng, std::string value, const Shape& shape) {
  static const std::vector<std::string> kUnary = {"Relu",        "Sigmoid", "Tanh",    "HardSwish",
                                                  "LeakyRelu",   "Exp",     "Neg",     "Abs",
                                                  "HardSigmoid", "Erf",     "Softplus"};
  for (int64_t i = 0, n = rng.below(3); i < n; ++i) {
    const std::string next = value + "f", other = next + "_other";
    if (rng.chance(0.6)) {
      model.node(rng.choice(kUnary), {value}, {next});
    } else {
      Shape part = shape;
      for (int64_t& extent : part) {
        if (rng.chance(0.4)) extent = 1;
      }
      if (rng.chance(0.5)) {
        model.input(other, part);
      } else {
        model.constant(other, graph::random_tensor(part, rng));
      }
      model.node(rng.chance(0.5) ? "Add" : "Mul", {value, other}, {next});
    }
    value = next;
  }
  return value;
}

// An operand that is an input or a constant, perhaps the transpose of one.
std::string operand(TestModel& model, Rng& rng, const std::string& name, Shape shape,
                    double constant) {
  const bool turned = rng.chance(0.3) && shape.size() >= 2;
  if (turned) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  const std::string given = turned ? name + "_turned" : name;
  if (rng.chance(constant)) {
    model.constant(given, graph::random_tensor(shape, rng));
  } else {
    model.input(given, shape);
  }
  if (turned) {
    std::vector<int64_t> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    model.node("Transpose", {given}, {name}, {{"perm", order}});
  }
  return name;
}

void product(TestModel& model, Rng& rng) {
  const std::vector<int64_t> e = extents(rng, 4);
  const bool batched = rng.chance(0.4);
  const int64_t batch = batched ? std::min<int64_t>(e[3], 7) : 1;
  Shape a = {e[0], e[2]}, b = {e[2], e[1]}, out = {e[0], e[1]};
  if (batched) {
    a.insert(a.begin(), batch);
    out.insert(out.begin(), batch);
    if (rng.chance(0.7)) b.insert(b.begin(), batch);
  }
  const std::string left = operand(model, rng, "a", a, 0), right = operand(model, rng, "b", b, 0.6);
  model.node("MatMul", {left, right}, {"y"});
  model.output(followers(model, rng, "y", out));
}

void gemm(TestModel& model, Rng& rng) {
  std::vector<int64_t> e = extents(rng, 3);
  if (rng.chance(0.1)) e = {1, rng.choice<int64_t>({33, 64, 97}), 16384};  // sums cut into parts
  const int64_t ta = rng.below(2), tb = rng.below(2);
  model.input("a", ta != 0 ? Shape{e[2], e[0]} : Shape{e[0], e[2]});
  const Shape b = tb != 0 ? Shape{e[1], e[2]} : Shape{e[2], e[1]};
  if (rng.chance(0.6)) {
    model.constant("b", graph::random_tensor(b, rng));
  } else {
    model.input("b", b);
  }
  std::vector<std::string> inputs = {"a", "b"};
  if (rng.chance(0.6)) {
    model.constant("c", graph::random_tensor({rng.chance(0.5) ? e[1] : 1}, rng));
    inputs.emplace_back("c");
  }
  model.node("Gemm", inputs, {"y"}, {{"transA", ta}, {"transB", tb}, {"alpha", 0.5F}});
  model.output(followers(model, rng, "y", {e[0], e[1]}));
}

// Of 1 to 3 dimensions; `depthwise`: a group is a channel.
void convolution(TestModel& model, Rng& rng, bool depthwise, bool transposed) {
  const auto dims = static_cast<size_t>(rng.choice<int64_t>({1, 2, 2, 2, 3}));
  const bool plain = rng.chance(0.4);  // stride 1 and 3 taps each way: Winograd's
  Shape kernel, strides, dilations, pads, out, data = {1};
  int64_t taps = 1;
  for (size_t d = 0; d < dims; ++d) {
    kernel.push_back(plain ? 3 : rng.choice<int64_t>({1, 1, 2, 3, 3, 5, 7}));
    strides.push_back(plain ? 1 : rng.between(1, 2));
    dilations.push_back(plain ? 1 : rng.choice<int64_t>({1, 1, 2}));
    taps *= kernel.back();
  }
  const int64_t group = depthwise || plain ? 1 : rng.choice<int64_t>({1, 1, 1, 2, 3, 8});
  const std::vector<int64_t> e =
      extents(rng, dims + (depthwise ? 1 : 2), kMostWork / (taps * group));
  const int64_t ic = e[dims] * group, oc = depthwise ? ic : e[dims + 1] * group;
  data.push_back(ic);
  for (size_t d = 0; d < dims; ++d) {
    const int64_t span = (kernel[d] - 1) * dilations[d];
    data.push_back(std::max(e[d], span + 1));
    pads.push_back(rng.below(std::min<int64_t>(span, 2) + 1));
  }
  for (size_t d = 0; d < dims; ++d) {
    pads.push_back(rng.chance(0.7) ? pads[d] : 0);
    const int64_t span = (kernel[d] - 1) * dilations[d], border = pads[d] + pads[dims + d];
    out.push_back(transposed ? (data[2 + d] - 1) * strides[d] + span + 1 - border
                             : (data[2 + d] + border - span - 1) / strides[d] + 1);
  }
  const int64_t groups = depthwise ? ic : group;
  Shape weight = transposed ? Shape{ic, oc / groups} : Shape{oc, ic / groups};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  model.input("x", data).constant("w", graph::random_tensor(weight, rng));
  std::vector<std::string> inputs = {"x", "w"};
  if (rng.chance(0.5)) {
    model.constant("bias", graph::random_tensor({oc}, rng));
    inputs.emplace_back("bias");
  }
  model.node(transposed ? "ConvTranspose" : "Conv", inputs, {"y"},
             {{"kernel_shape", kernel},
              {"strides", strides},
              {"dilations", dilations},
              {"pads", pads},
              {"group", groups}});
  out.insert(out.begin(), {1, oc});
  std::string last = followers(model, rng, "y", out);
  if (depthwise && !transposed && rng.chance(0.4)) {
    Shape point = {kExtents[static_cast<size_t>(rng.below(6))], oc};
    point.resize(2 + dims, 1);
    model.constant("point", graph::random_tensor(point, rng)).node("Conv", {last, "point"}, {"z"});
    last = "z";
  }
  model.output(last);
}

void pooling(TestModel& model, Rng& rng) {
  const size_t dims = rng.chance(0.7) ? 2 : 1;
  const std::vector<int64_t> e = extents(rng, dims + 1, kMostWork / 16);
  Shape data = {1, e[dims]}, kernel, strides, pads;
  for (size_t d = 0; d < dims; ++d) {
    kernel.push_back(std::min(e[d], rng.between(1, 4)));
    strides.push_back(rng.between(1, 3));
    data.push_back(e[d]);
    pads.push_back(rng.below(kernel.back()) / 2);
  }
  pads.insert(pads.end(), pads.begin(), pads.end());
  model.input("x", data).output("y");
  const int64_t kind = rng.below(4);
  if (kind == 0) {
    model.node("GlobalAveragePool", {"x"}, {"y"});
  } else if (kind == 1) {
    model.node("AveragePool", {"x"}, {"y"},
               {{"kernel_shape", kernel},
                {"strides", strides},
                {"pads", pads},
                {"count_include_pad", rng.below(2)}});
  } else {
    model.node("MaxPool", {"x"}, {"y"},
               {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}});
  }
}

// Softmax, normalization and reductions along axes.
void rows(TestModel& model, Rng& rng) {
  const Shape shape = extents(rng, static_cast<size_t>(rng.between(2, 4)), kMostWork / 8);
  const auto rank = static_cast<int64_t>(shape.size());
  model.input("x", shape);
  const int64_t axis = rng.below(rank);
  static const std::vector<std::string> kReductions = {"ReduceMean", "ReduceMax", "ReduceL2",
                                                       "ReduceMin", "ReduceProd"};
  switch (rng.below(4)) {
    case 0: model.node("Softmax", {"x"}, {"y"}, {{"axis", axis}}); break;
    case 1: model.node("LogSoftmax", {"x"}, {"y"}, {{"axis", axis}}); break;
    case 2: {
      const Shape scale(shape.begin() + axis, shape.end());
      model.constant("scale", graph::random_tensor(scale, rng))
          .constant("shift", graph::random_tensor(scale, rng))
          .node("LayerNormalization", {"x", "scale", "shift"}, {"y"}, {{"axis", axis}});
      break;
    }
    default: {
      std::string op = rng.choice(kReductions);
      std::vector<int64_t> axes = {axis};
      if (axis + 1 < rank && rng.chance(0.5)) axes.push_back(axis + 1);
      int64_t terms = 1;
      for (const int64_t a : axes) terms *= shape[static_cast<size_t>(a)];
      if (terms > 33 && op == "ReduceProd") op = "ReduceMax";  // a product of many comes to zero
      model.node(op, {"x"}, {"y"}, {{"axes", axes}, {"keepdims", rng.below(2)}});
      model.output("y");
      return;
    }
  }
  model.output(followers(model, rng, "y", shape));
}

void elementwise(TestModel& model, Rng& rng) {
  const Shape shape = extents(rng, static_cast<size_t>(rng.between(1, 4)), kMostWork / 8);
  model.input("x", shape).node("Identity", {"x"}, {"y"});
  std::string last = followers(model, rng, "y", shape);
  last = followers(model, rng, last, shape);
  static const std::vector<std::string> kLast = {"Sqrt", "Log", "Reciprocal", "Sin", "Cos", "Sign"};
  model.node(rng.choice(kLast), {last}, {"z"});
  model.output("z");
}

void movement(TestModel& model, Rng& rng) {
  const Shape shape = extents(rng, static_cast<size_t>(rng.between(2, 5)), kMostWork / 8);
  std::vector<int64_t> order(shape.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
  rng.shuffle(order);
  model.input("x", shape).node("Transpose", {"x"}, {"y"}, {{"perm", order}});
  if (rng.chance(0.4)) {
    Shape other;
    for (const int64_t d : order) other.push_back(shape[static_cast<size_t>(d)]);
    const int64_t axis = rng.below(static_cast<int64_t>(other.size()));
    other[static_cast<size_t>(axis)] = kExtents[static_cast<size_t>(rng.below(6))];
    model.input("o", other).node("Concat", {"y", "o"}, {"z"}, {{"axis", axis}}).output("z");
  } else {
    model.output("y");
  }
}

// Dags that no small model makes, or only with more around them.
compute::Dag made_by_hand(Rng& rng) {
  using namespace compute::testing;
  const std::vector<int64_t> e = extents(rng, 4, kMostWork / 9);
  switch (rng.below(7)) {
    case 0:
      if (rng.chance(0.2))
        return attention(1, std::min<int64_t>(e[0], 9), 512, std::min<int64_t>(e[2], 9));
      return attention(std::min<int64_t>(e[3], 3), e[0], e[1], e[2]);
    case 4: return attention(std::min<int64_t>(e[3], 3), e[0], e[1], e[2], rng.below(9));
    case 1: return separable(e[0], e[1], e[2], e[3]);
    case 2: return inverted_residual(e[0], e[1], e[2], e[3], std::min<int64_t>(e[2], 13));
    case 3:
      if (rng.chance(0.4)) return running_sum(e[0], e[1]);
      return running_sum(std::min<int64_t>(e[3], 5), e[0], e[1]);
    case 6: return arg_max(std::min<int64_t>(e[3], 5), e[0], e[1]);
    default:
      return conv2d({.h = e[0] + 2, .w = e[1] + 2, .ic = e[2], .oc = e[3], .residual = true});
  }
}

}  // namespace

RandomTasks random_tasks(Rng& rng) {
  RandomTasks tasks;
  TestModel model;
  switch (rng.below(13)) {
    case 0: tasks.family = "product", product(model, rng); break;
    case 1: tasks.family = "gemm", gemm(model, rng); break;
    case 2:
    case 3:
    case 4: tasks.family = "convolution", convolution(model, rng, false, false); break;
    case 5: tasks.family = "depthwise", convolution(model, rng, true, false); break;
    case 6: tasks.family = "transposed", convolution(model, rng, rng.chance(0.2), true); break;
    case 7: tasks.family = "pooling", pooling(model, rng); break;
    case 8: tasks.family = "rows", rows(model, rng); break;
    case 9: tasks.family = "elementwise", elementwise(model, rng); break;
    case 10: tasks.family = "movement", movement(model, rng); break;
    case 11:
      tasks.family = "operator", tasks.is_any_operator = true;
      add_random_operator(model, rng);
      break;
    default:
      tasks.family = "made by hand";
      tasks.all.push_back({made_by_hand(rng), {}});
      return tasks;
  }
  Result<graph::Graph> graph = model.import();
  if (!graph.ok() || !graph::optimize(*graph).ok()) return tasks;
  const auto join = [](const auto&, const auto&, const auto&) { return true; };
  Result<graph::TaskList> list = graph::extract_tasks(*graph, {.join = join});
  if (!list.ok()) return tasks;
  std::set<uint64_t> seen;
  for (graph::TaskCall& call : list->calls) {
    if (!seen.insert(call.key).second) continue;
    RandomTask task{std::move(call.dag), {}};
    for (size_t p = 0; p < call.arguments.size(); ++p) {
      const graph::Argument& argument = call.arguments[p];
      if (argument.kind != graph::Argument::Kind::kConstant) continue;
      const Tensor& constant = list->constants[static_cast<size_t>(argument.index)];
      if (!is_float(constant.dtype())) task.indices.emplace(p, constant);
    }
    tasks.all.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace hone::fuzz
