// Random small networks: layouts, borders, windows, fusion and shared memory must not show.
#include <gtest/gtest.h>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

struct Piece {
  std::string name;
  Shape shape;
};

class Network {
 public:
  explicit Network(uint64_t seed) : rng_(seed) {
    values_.push_back(
        {"x", {rng_.between(1, 2), rng_.between(1, 4), rng_.between(3, 6), rng_.between(3, 6)}});
    model_.input("x", values_[0].shape);
    inputs_.push_back(random_tensor(values_[0].shape, rng_));
    const int64_t count = rng_.between(3, 12);
    for (int64_t i = 0; i < count; ++i) add_node();
    model_.output(values_.back().name);
    for (size_t i = 0; i + 1 < values_.size(); ++i) {
      if (rng_.chance(0.1)) model_.output(values_[i].name);
    }
  }
  [[nodiscard]] Graph graph() const { return model_.graph(); }
  [[nodiscard]] const std::vector<Tensor>& inputs() const { return inputs_; }

 private:
  // Mostly a recent value, so that the networks get deep.
  Piece pick() {
    const auto size = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(rng_.chance(0.6) ? size - 1 : rng_.below(size))];
  }
  std::string fresh() { return fmt::format("v{}", next_++); }
  void add(const std::string& type, const std::vector<std::string>& inputs, const Shape& shape,
           const AttributeList& attributes = {}) {
    const std::string name = fresh();
    model_.node(type, inputs, {name}, attributes);
    values_.push_back({name, shape});
  }
  std::string weight(const Shape& shape) {
    const std::string name = fresh();
    model_.constant(name, random_tensor(shape, rng_));
    return name;
  }

  void add_node() {
    const Piece a = pick();
    if (a.shape.size() != 4) return add_flat(a);
    const int64_t n = a.shape[0], c = a.shape[1], h = a.shape[2], w = a.shape[3];
    switch (rng_.below(10)) {
      case 0:
      case 1: {
        const int64_t pad = rng_.below(3), k = std::min({rng_.between(1, 3), h, w}),
                      group = rng_.chance(0.3) ? c : 1;
        const int64_t oc = group * rng_.between(1, 3), stride = rng_.between(1, 2);
        const auto out = [&](int64_t in) { return (in + 2 * pad - k) / stride + 1; };
        return add("Conv", {a.name, weight({oc, c / group, k, k}), weight({oc})},
                   {n, oc, out(h), out(w)},
                   {{"pads", Shape{pad, pad, pad, pad}},
                    {"strides", Shape{stride, stride}},
                    {"group", group}});
      }
      case 2: {
        if (h < 2 || w < 2) return add("Relu", {a.name}, a.shape);
        return add(rng_.chance(0.5) ? "MaxPool" : "AveragePool", {a.name}, {n, c, h + 1, w + 1},
                   {{"kernel_shape", Shape{2, 2}}, {"pads", Shape{1, 1, 1, 1}}});
      }
      case 3: return add("Relu", {a.name}, a.shape);
      case 4: return add("Sigmoid", {a.name}, a.shape);
      case 5: {
        const Piece b = same_shape(a);
        return add(rng_.chance(0.5) ? "Add" : "Mul", {a.name, b.name}, a.shape);
      }
      case 6: {
        const auto axis = static_cast<size_t>(rng_.between(1, 3));
        const Piece b = same_shape(a);
        Shape shape = a.shape;
        shape[axis] *= 2;
        if (num_elements(shape) > 4000) return add("Tanh", {a.name}, a.shape);
        return add("Concat", {a.name, b.name}, shape, {{"axis", static_cast<int64_t>(axis)}});
      }
      case 7: return add("Add", {weight({c, 1, 1}), a.name}, a.shape);
      case 8: return add("Transpose", {a.name}, {n, w, c, h}, {{"perm", Shape{0, 3, 1, 2}}});
      default: return add("Flatten", {a.name}, {n, c * h * w});
    }
  }

  void add_flat(const Piece& a) {
    const int64_t rows = a.shape[0], columns = a.shape[1];
    switch (rng_.below(4)) {
      case 0:
        return add("Gemm", {a.name, weight({7, columns}), weight({7})}, {rows, 7},
                   {{"transB", int64_t{1}}});
      case 1: return add("Tanh", {a.name}, a.shape);
      case 2: return add("Softmax", {a.name}, a.shape);
      default: {
        const std::string shape = fresh();
        model_.constant(shape, ints({rows, columns, 1, 1}));
        return add("Reshape", {a.name, shape}, {rows, columns, 1, 1});
      }
    }
  }

  Piece same_shape(const Piece& a) {
    std::vector<Piece> fitting;
    for (const Piece& v : values_) {
      if (v.shape == a.shape) fitting.push_back(v);
    }
    return rng_.choice(fitting);
  }

  Rng rng_;
  TestModel model_;
  std::vector<Piece> values_;
  std::vector<Tensor> inputs_;
  int next_ = 0;
};

TEST(random_graphs, give_the_same_results_optimized_and_plain) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const Network network(seed);
    const Graph graph = network.graph();
    if (HasFailure()) return;
    const auto expected = run_plainly(graph, network.inputs()),
               actual = run_optimized(graph, network.inputs());
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_LT(relative_error(actual[i], expected[i]), 1e-4) << graph.output_names[i] << "\n"
                                                              << describe(graph);
    }
  }
}

}  // namespace
}  // namespace hone::graph
