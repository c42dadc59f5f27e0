// Linear models and support vector machines of ai.onnx.ml, as products of matrices.
#include "hone/graph/ops/ml.h"
#include "hone/graph/ops/ml_coupling.h"

namespace hone::graph {
namespace {

using Floats = std::vector<float>;

Floats floats(const ExpandContext& c, const char* name) {
  return c.attributes().get<Floats>(name, {});
}

// A constant [rows, columns] of a list, or [columns, rows] of its transpose.
ValueId matrix(ExpandContext& c, const Floats& list, int64_t rows, int64_t columns,
               bool transposed) {
  Tensor tensor(DType::kF32, transposed ? Shape{columns, rows} : Shape{rows, columns});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < columns; ++k)
      tensor.as<float>()[static_cast<size_t>(transposed ? k * rows + r : r * columns + k)] =
          list[static_cast<size_t>(r * columns + k)];
  }
  return given_constant(c, std::move(tensor));
}

// x C^T + b, with the coefficients [targets, features] of the attributes.
Result<ValueId> linear_scores(ExpandContext& c, int64_t targets) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, ml_rows(c));
  const Floats coefficients = floats(c, "coefficients"), intercepts = floats(c, "intercepts");
  const int64_t features = c.shape_of(x)[1];
  if (targets < 1 || targets > 1 << 24 || std::ssize(coefficients) % targets != 0 ||
      std::ssize(coefficients) / targets != features)
    return c.fail("{} coefficients for {} targets of {} features", coefficients.size(), targets,
                  features);
  ValueId y = c.binary("MatMul", x, matrix(c, coefficients, targets, features, true));
  if (std::ssize(intercepts) == targets)
    y = c.binary("Add", y, given_constant(c, ml_list(intercepts, DType::kF32)));
  else if (!intercepts.empty())
    return c.fail("{} intercepts for {} targets", intercepts.size(), targets);
  return y;
}

Status expand_linear_regressor(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId scores,
                        linear_scores(c, c.attributes().integer("targets", 1)));
  HONE_ASSIGN_OR_RETURN(const ValueId y, ml_transformed(c, scores));
  c.result(0, y);
  return ok_status();
}

Status expand_linear_classifier(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto labels, ml_labels(c, "classlabels_ints"));
  HONE_ASSIGN_OR_RETURN(const ValueId x, ml_rows(c));
  const int64_t features = std::max<int64_t>(1, c.shape_of(x)[1]);
  const int64_t targets = std::ssize(floats(c, "coefficients")) / features;
  HONE_ASSIGN_OR_RETURN(const ValueId scores, linear_scores(c, targets));
  if (targets == 1 && labels.size() == 2)
    return ml_set_binary(c, {.score = scores, .is_share = true}, labels);
  return ml_set_classes(c, scores, labels);
}

// A kernel function of data [N, features] and vectors [vectors, features]: [N, vectors].
Result<ValueId> kernel(ExpandContext& c, ValueId x, const Floats& vectors, int64_t count) {
  const std::string type = c.attributes().text("kernel_type", "LINEAR");
  Floats parameters = floats(c, "kernel_params");
  parameters.resize(3, 0);
  const auto gamma = static_cast<double>(parameters[0]), coef0 = static_cast<double>(parameters[1]);
  const int64_t features = c.shape_of(x)[1], rows = c.shape_of(x)[0];
  if (type == "RBF") {
    const ValueId apart = c.binary("Sub", c.reshape(x, {rows, 1, features}),
                                   matrix(c, vectors, count, features, false));
    const ValueId distance = c.reduce("ReduceSumSquare", apart, {2}, false);
    return c.add("Exp", {c.binary("Mul", distance, -gamma)});
  }
  const ValueId product = c.binary("MatMul", x, matrix(c, vectors, count, features, true));
  if (type == "LINEAR") return product;
  const ValueId inner = c.binary("Add", c.binary("Mul", product, gamma), coef0);
  if (type == "POLY") return c.binary("Pow", inner, static_cast<double>(parameters[2]));
  if (type == "SIGMOID") return c.add("Tanh", {inner});
  return c.unsupported("kernel_type '{}', expected LINEAR, POLY, RBF or SIGMOID", type);
}

Status expand_svm_regressor(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, ml_rows(c));
  const int64_t features = c.shape_of(x)[1], count = c.attributes().integer("n_supports", 0);
  const Floats vectors = floats(c, "support_vectors"), rho = floats(c, "rho");
  const Floats coefficients = floats(c, "coefficients");
  const int64_t terms = count > 0 ? count : features;
  if (std::ssize(coefficients) != terms || std::ssize(vectors) != count * features || count < 0 ||
      rho.empty())
    return c.fail(
        "{} support vectors, {} coefficients, {} numbers of vectors and {} of rho for {} features",
        count, coefficients.size(), vectors.size(), rho.size(), features);
  ValueId terms_of_row = x;  // without support vectors the coefficients are the features'
  if (count > 0) {
    HONE_ASSIGN_OR_RETURN(terms_of_row, kernel(c, x, vectors, count));
  }
  ValueId y = c.binary("MatMul", terms_of_row, matrix(c, coefficients, terms, 1, false));
  y = c.binary("Add", y, static_cast<double>(rho[0]));
  if (c.attributes().integer("one_class", 0) != 0) {
    const ValueId inside = c.binary("Greater", y, 0.0);
    y = c.add("Where", {inside, c.scalar(DType::kF32, 1), c.scalar(DType::kF32, -1)});
  }
  HONE_ASSIGN_OR_RETURN(y, ml_transformed(c, y));
  c.result(0, y);
  return ok_status();
}

// A classifier of support vectors: each pair of classes has a decision value and a vote.
class Svc {
 public:
  explicit Svc(ExpandContext& c) : c_(c), rho_(floats(c, "rho")) {}

  Status run() {
    HONE_ASSIGN_OR_RETURN(labels_, ml_labels(c_, "classlabels_ints"));
    HONE_ASSIGN_OR_RETURN(const ValueId x, ml_rows(c_));
    per_class_ = c_.attributes().integers("vectors_per_class");
    classes_ = std::ssize(labels_);
    if (per_class_.empty()) return run_linear(x);
    int64_t count = 0;
    for (const int64_t n : per_class_) {
      if (n < 0 || n > 1 << 24) return c_.fail("vectors_per_class is {}", to_string(per_class_));
      count += n;
    }
    const Floats vectors = floats(c_, "support_vectors");
    coefficients_ = floats(c_, "coefficients");
    pairs_ = classes_ * (classes_ - 1) / 2;
    const int64_t features = c_.shape_of(x)[1];
    if (std::ssize(per_class_) != classes_ || classes_ < 2 ||
        std::ssize(vectors) != count * features || std::ssize(rho_) != pairs_ ||
        std::ssize(coefficients_) != (classes_ - 1) * count)
      return c_.fail(
          "{} classes with {} vectors, {} numbers of vectors, {} coefficients and {} of rho for {} "
          "features",
          classes_, count, vectors.size(), coefficients_.size(), rho_.size(), features);
    HONE_ASSIGN_OR_RETURN(const ValueId kernels, kernel(c_, x, vectors, count));
    const ValueId decisions = c_.binary("Add", c_.binary("MatMul", kernels, pair_weights(count)),
                                        given_constant(c_, ml_list(rho_, DType::kF32)));
    return set_results(decisions);
  }

 private:
  // Without support vectors the coefficients are those of a linear model.
  Status run_linear(ValueId x) {
    const Floats coefficients = floats(c_, "coefficients");
    const int64_t features = c_.shape_of(x)[1];
    if (std::ssize(coefficients) != classes_ * features || rho_.empty())
      return c_.fail("{} coefficients for {} classes and {} features", coefficients.size(),
                     classes_, features);
    HONE_ASSIGN_OR_RETURN(const ValueId products, kernel(c_, x, coefficients, classes_));
    return ml_set_classes(c_, c_.binary("Add", products, static_cast<double>(rho_[0])), labels_);
  }

  // [vectors, pairs]: what each vector adds to the decision of a pair, as libsvm lays it out.
  ValueId pair_weights(int64_t count) {
    Tensor weights(DType::kF32, {count, pairs_});
    std::vector<int64_t> first = {0};
    for (const int64_t n : per_class_) first.push_back(first.back() + n);
    int64_t pair = 0;
    for (int64_t i = 0; i < classes_; ++i) {
      for (int64_t j = i + 1; j < classes_; ++j, ++pair) {
        const auto put = [&](int64_t of, int64_t row) {
          for (int64_t v = first[static_cast<size_t>(of)]; v < first[static_cast<size_t>(of) + 1];
               ++v)
            weights.as<float>()[static_cast<size_t>(v * pairs_ + pair)] =
                coefficients_[static_cast<size_t>(row * count + v)];
        };
        put(i, j - 1);
        put(j, i);
      }
    }
    return given_constant(c_, std::move(weights));
  }

  // [N, classes]: how many pairs each class wins.
  ValueId votes(ValueId decisions) {
    Tensor win(DType::kF32, {pairs_, classes_}), lose(DType::kF32, {pairs_, classes_});
    int64_t pair = 0;
    for (int64_t i = 0; i < classes_; ++i) {
      for (int64_t j = i + 1; j < classes_; ++j, ++pair) {
        win.as<float>()[static_cast<size_t>(pair * classes_ + i)] = 1;
        lose.as<float>()[static_cast<size_t>(pair * classes_ + j)] = 1;
      }
    }
    const ValueId positive = c_.binary("Greater", decisions, 0.0);
    const ValueId negative = c_.add("Not", {positive});
    return c_.binary(
        "Add",
        c_.binary("MatMul", c_.cast(positive, DType::kF32), given_constant(c_, std::move(win))),
        c_.binary("MatMul", c_.cast(negative, DType::kF32), given_constant(c_, std::move(lose))));
  }

  Status set_results(ValueId decisions) {
    const std::string transform = c_.attributes().text("post_transform", "NONE");
    const Floats a = floats(c_, "prob_a"), b = floats(c_, "prob_b");
    // A positive decision is the first class's. Transforms other than NONE take it for a share.
    if (a.empty() && classes_ == 2)
      return ml_set_binary(c_, {.score = decisions, .is_share = transform != "NONE"},
                           {labels_[1], labels_[0]});
    // The label is that of the most votes, also where another class is more probable.
    const ValueId best =
        c_.add("ArgMax", {votes(decisions)}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
    ml_set_labels(c_, best, labels_);
    ValueId scores = decisions;
    if (!a.empty()) {
      HONE_ASSIGN_OR_RETURN(scores, probabilities(decisions, a, b));
    }
    HONE_ASSIGN_OR_RETURN(scores, ml_transformed(c_, scores, transform));
    c_.result(1, scores);
    return ok_status();
  }

  // Platt's scaling: 1 / (1 + e^(a f + b)) is the first class's of a pair, within [1e-7, 1 - 1e-7].
  Result<ValueId> probabilities(ValueId decisions, const Floats& a, const Floats& b) {
    if (std::ssize(a) != pairs_ || std::ssize(b) != pairs_)
      return c_.fail(
          "{} numbers of prob_a and {} of prob_b, expected {}, one for each pair of {} classes",
          a.size(), b.size(), pairs_, classes_);
    const ValueId inner =
        c_.binary("Add", c_.binary("Mul", decisions, given_constant(c_, ml_list(a, DType::kF32))),
                  given_constant(c_, ml_list(b, DType::kF32)));
    const ValueId first =
        c_.add("Clip", {c_.add("Sigmoid", {c_.add("Neg", {inner})}), c_.scalar(DType::kF32, 1e-7),
                        c_.scalar(DType::kF32, 1 - 1e-7)});
    return coupled_probabilities(c_, first, classes_);
  }

  ExpandContext& c_;
  Floats rho_, coefficients_;
  std::vector<int64_t> labels_, per_class_;
  int64_t classes_ = 0, pairs_ = 0;
};

Status expand_svm_classifier(ExpandContext& c) { return Svc(c).run(); }

}  // namespace

std::span<const Op> ml_linear_ops() {
  static const Op ops[] = {
      expanded_op("ai.onnx.ml.LinearRegressor", 1, {1, 1, 1},
                  "coefficients:fs intercepts:fs post_transform:s targets:i",
                  expand_linear_regressor),
      expanded_op(
          "ai.onnx.ml.LinearClassifier", 1, {1, 1, 2},
          "classlabels_ints:is classlabels_strings:ss coefficients:fs intercepts:fs multi_class:i "
          "post_transform:s",
          expand_linear_classifier),
      expanded_op(
          "ai.onnx.ml.SVMRegressor", 1, {1, 1, 1},
          "coefficients:fs kernel_params:fs kernel_type:s n_supports:i one_class:i post_transform:s "
          "rho:fs support_vectors:fs",
          expand_svm_regressor),
      expanded_op("ai.onnx.ml.SVMClassifier", 1, {1, 1, 2},
                  "classlabels_ints:is classlabels_strings:ss coefficients:fs kernel_params:fs "
                  "kernel_type:s post_transform:s prob_a:fs prob_b:fs rho:fs support_vectors:fs "
                  "vectors_per_class:is",
                  expand_svm_classifier),
  };
  return ops;
}

}  // namespace hone::graph
