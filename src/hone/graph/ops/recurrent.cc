#include "hone/graph/ops/recurrent.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "hone/graph/all_finite.h"

namespace hone::graph {
namespace {

struct KnownActivation {
  const char* name;
  int parameters;
  float alpha, beta;
};
constexpr std::array<KnownActivation, 11> kActivations = {{{"Relu", 0, 0, 0},
                                                           {"Tanh", 0, 0, 0},
                                                           {"Sigmoid", 0, 0, 0},
                                                           {"Softsign", 0, 0, 0},
                                                           {"Softplus", 0, 0, 0},
                                                           {"LeakyRelu", 1, 0.01F, 0},
                                                           {"ThresholdedRelu", 1, 1, 0},
                                                           {"Elu", 1, 1, 0},
                                                           {"Affine", 2, 1, 0},
                                                           {"ScaledTanh", 2, 1, 1},
                                                           {"HardSigmoid", 2, 0.2F, 0.5F}}};

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

constexpr int64_t kMaxSteps = 4096;

}  // namespace

Status Recurrent::read_activations(size_t directions) {
  auto names = c_.attributes().get<std::vector<std::string>>("activations", {});
  const auto alphas = c_.attributes().get<std::vector<float>>("activation_alpha", {});
  const auto betas = c_.attributes().get<std::vector<float>>("activation_beta", {});
  if (names.empty()) names = defaults_;
  if (names.size() == defaults_.size() && directions == 2) {
    const std::vector<std::string> once = names;
    names.insert(names.end(), once.begin(), once.end());
  }
  if (names.size() != directions * defaults_.size())
    return c_.fail("{} activations, expected {}", names.size(), directions * defaults_.size());
  size_t alpha = 0, beta = 0;
  for (const std::string& name : names) {
    const auto known = std::find_if(kActivations.begin(), kActivations.end(), [&](const auto& a) {
      return lower_case(a.name) == lower_case(name);
    });
    if (known == kActivations.end()) return c_.unsupported("the activation '{}'", name);
    Activation activation = {known->name, known->alpha, known->beta};
    if (known->parameters >= 1 && alpha < alphas.size()) activation.alpha = alphas[alpha++];
    if (known->parameters >= 2 && beta < betas.size()) activation.beta = betas[beta++];
    activations_.push_back(std::move(activation));
  }
  return ok_status();
}

Status Recurrent::read_attributes() {
  const std::string direction = c_.attributes().text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return c_.fail("direction is '{}'", direction);
  directions_ = direction == "bidirectional" ? 2 : 1;
  first_reversed_ = direction == "reverse";
  batch_first_ = c_.attributes().integer("layout", 0) != 0;
  clip_ = c_.attributes().number("clip", 0);
  if (clip_ < 0) return c_.fail("clip is {}", clip_);
  return read_activations(static_cast<size_t>(directions_));
}

Status Recurrent::check_weights() {
  const Shape &x = c_.shape(0), &w = c_.shape(1), &r = c_.shape(2);
  if (x.size() != 3 || w.size() != 3 || r.size() != 3) {
    return c_.fail("operands of shapes {}, {} and {}", to_string(x), to_string(w), to_string(r));
  }
  hidden_ = r[product_ ? 1 : 2];
  if (hidden_ < 1 || c_.attributes().integer("hidden_size", hidden_) != hidden_)
    return c_.fail("hidden_size {} and weights of shape {}",
                   c_.attributes().integer("hidden_size", hidden_), to_string(r));
  const auto expected = [&](int64_t inputs) {
    return product_ ? Shape{directions_, inputs, gates_ * hidden_}
                    : Shape{directions_, gates_ * hidden_, inputs};
  };
  if (w != expected(x[2]) || r != expected(hidden_)) {
    return c_.fail("weights of shapes {} and {} for data of shape {}", to_string(w), to_string(r),
                   to_string(x));
  }
  return ok_status();
}

Status Recurrent::check_shapes() {
  HONE_RETURN_IF_ERROR(check_weights());
  const Shape& x = c_.shape(0);
  batch_ = x[batch_first_ ? 0 : 1];
  steps_ = x[batch_first_ ? 1 : 0];
  if (steps_ < 1 || steps_ > kMaxSteps) return c_.unsupported("{} time steps", steps_);
  const auto check = [&](size_t i, const Shape& expected) {
    if (!c_.has(i) || c_.shape(i) == expected) return ok_status();
    return c_.fail("operand {} of shape {}, expected {}", i, to_string(c_.shape(i)),
                   to_string(expected));
  };
  HONE_RETURN_IF_ERROR(check(3, {directions_, 2 * gates_ * hidden_}));
  HONE_RETURN_IF_ERROR(check(4, {batch_}));
  for (size_t i = 5; i < 5 + states_; ++i) {
    HONE_RETURN_IF_ERROR(check(i, batch_first_ ? Shape{batch_, directions_, hidden_}
                                               : Shape{directions_, batch_, hidden_}));
  }
  for (size_t i = 0; i < std::min<size_t>(c_.num_inputs(), 8); ++i) {
    const bool of_weights = i == 1 || i == 2;
    if (c_.has(i) && i != 4 && !(product_ && of_weights) &&
        (c_.dtype(i) != c_.dtype(0) || !is_float(c_.dtype(0))))
      return c_.fail("operand {} of type {}", i, dtype_name(c_.dtype(i)));
  }
  return ok_status();
}

ValueId Recurrent::of_direction(size_t i, int64_t direction) {
  if (!c_.has(i)) return kNoValue;
  Shape rest = c_.shape(i);
  rest.erase(rest.begin());
  const ValueId one =
      directions_ == 1 ? c_.input(i) : c_.slice(c_.input(i), 0, direction, direction + 1);
  return c_.reshape(one, rest);
}

ValueId Recurrent::integer(int64_t number) {
  const auto [it, fresh] = integers_.try_emplace(number, kNoValue);
  if (fresh) it->second = c_.integers({number});
  return it->second;
}

ValueId Recurrent::part(ValueId x, int64_t axis, int64_t begin, int64_t end) {
  if (begin == 0 && end * hidden_ == c_.shape_of(x)[static_cast<size_t>(axis)]) return x;
  return c_.add("Slice",
                {x, integer(begin * hidden_), integer(end * hidden_), integer(axis), integer(1)});
}

ValueId Recurrent::recurrence(int64_t direction, int64_t begin, int64_t end) {
  return c_.transpose(part(of_direction(2, direction), 0, begin, end), {1, 0});
}

std::function<ValueId(ValueId)> Recurrent::recurrent_product(int64_t direction) {
  if (product_) return [this, direction](ValueId x) { return product_(x, 2, direction); };
  const ValueId weights = recurrence(direction, 0, gates_);
  return [this, weights](ValueId x) { return c_.binary("MatMul", x, weights); };
}

ValueId Recurrent::recurrent_bias(int64_t direction, int64_t begin, int64_t end) {
  if (!c_.has(3)) return kNoValue;
  return part(of_direction(3, direction), 0, gates_ + begin, gates_ + end);
}

// [steps, batch, gates * hidden], with the biases.
ValueId Recurrent::input_part(ValueId x, int64_t direction) {
  const Shape rows = {steps_ * batch_, c_.shape(0)[2]};
  ValueId all = kNoValue;
  if (product_) {
    all = product_(c_.reshape(x, rows), 1, direction);
  } else {
    const ValueId weights = c_.transpose(of_direction(1, direction), {1, 0});
    all = c_.binary("MatMul", c_.reshape(x, rows), weights);
  }
  if (c_.has(3)) {
    const ValueId biases = of_direction(3, direction);
    const int64_t joined = std::min(apart_, gates_);
    ValueId bias =
        c_.binary("Add", part(biases, 0, 0, joined), part(biases, 0, gates_, gates_ + joined));
    if (joined < gates_) {
      bias = c_.add("Concat", {bias, part(biases, 0, joined, gates_)}, {{"axis", int64_t{0}}});
    }
    all = c_.binary("Add", all, bias);
  }
  return c_.reshape(all, {steps_, batch_, gates_ * hidden_});
}

ValueId Recurrent::activate(int64_t direction, size_t k, ValueId x) {
  const Activation& a = activations_[static_cast<size_t>(direction) * defaults_.size() + k];
  const DType type = c_.dtype_of(x);
  if (clip_ > 0) x = c_.add("Clip", {x, c_.scalar(type, -clip_), c_.scalar(type, clip_)});
  if (a.name == "Affine") return c_.binary("Add", c_.binary("Mul", x, a.alpha), a.beta);
  if (a.name == "ScaledTanh")
    return c_.binary("Mul", c_.add("Tanh", {c_.binary("Mul", x, a.beta)}), a.alpha);
  if (a.name == "HardSigmoid")
    return c_.add("HardSigmoid", {x}, {{"alpha", a.alpha}, {"beta", a.beta}});
  if (a.name == "LeakyRelu" || a.name == "ThresholdedRelu" || a.name == "Elu")
    return c_.add(a.name.c_str(), {x}, {{"alpha", a.alpha}});
  return c_.add(a.name.c_str(), {x});
}

bool Recurrent::is_usual(int64_t direction) const {
  const auto first = activations_.begin() + direction * std::ssize(defaults_);
  return clip_ == 0 &&
         std::equal(defaults_.begin(), defaults_.end(), first,
                    [](const std::string& name, const Activation& a) { return name == a.name; });
}

ValueId Recurrent::at_step(ValueId of_all, int64_t step) {
  ValueId& index = step_numbers_[static_cast<size_t>(step)];
  if (index == kNoValue) index = c_.scalar(DType::kI64, static_cast<double>(step));
  return c_.add("Gather", {of_all, index}, {{"axis", int64_t{0}}});
}

// A mask of valid steps: [steps, batch, 1], or [steps, 1, 1] if rows do not differ.
ValueId Recurrent::valid_steps() {
  ValueId valid = kNoValue;
  for (const size_t of : {kStepsOfRun, size_t{4}}) {
    if (!c_.has(of)) continue;
    const ValueId times = numbers_from_0(c_, c_.dtype(of), {steps_, 1, 1});
    const ValueId end = c_.reshape(c_.input(of), {1, of == 4 ? batch_ : 1, 1});
    const ValueId before = c_.binary("Less", times, end);
    valid = valid == kNoValue ? before : c_.binary("And", valid, before);
  }
  return valid;
}

// The state that a direction begins with: [batch, hidden].
ValueId Recurrent::start(size_t state, int64_t direction) {
  const size_t i = 5 + state;
  if (!c_.has(i)) {
    zeros_.push_back(uniform(c_, c_.dtype(0), {batch_, hidden_}, 0));
    return zeros_.back();
  }
  ValueId all = c_.input(i);
  if (batch_first_) all = c_.transpose(all, {1, 0, 2});
  if (directions_ > 1) all = c_.slice(all, 0, direction, direction + 1);
  return c_.reshape(all, {batch_, hidden_});
}

ValueId Recurrent::shape_of_step() {
  if (shape_of_step_ == kNoValue) shape_of_step_ = c_.integers({1, 1, batch_, hidden_});
  return shape_of_step_;
}

bool Recurrent::chooses_last(const Steps& steps, size_t state) const {
  return steps.valid != kNoValue && !steps.reversed && c_.wants(1 + state);
}

void Recurrent::keep_step(Steps& steps, int64_t t, std::vector<ValueId> next) {
  // The output of steps that a row does not have is 0; those that a run does not have are no part
  // of the result.
  const bool masks_output = c_.has(4) && c_.wants(0);
  const bool asks = masks_output || (steps.valid != kNoValue && steps.reversed);
  const ValueId holds = asks ? at_step(steps.valid, t) : kNoValue;
  for (size_t k = 0; k < states_; ++k) {
    if (asks && steps.reversed) next[k] = c_.add("Where", {holds, next[k], steps.starts[k]});
    ValueId kept = next[k];
    if (k == 0 && masks_output) kept = c_.add("Where", {holds, kept, c_.scalar(c_.dtype(0), 0)});
    if (k == 0 || chooses_last(steps, k))
      steps.history[k][static_cast<size_t>(t)] =
          c_.add("Reshape", {kept, shape_of_step()}, {{"allowzero", int64_t{1}}});
  }
  steps.states = std::move(next);
}

// The number of steps of the run and those of the rows, as operands behind data; kNoValue for what
// is not given.
std::vector<ValueId> Recurrent::with_lengths(ValueId x) {
  std::vector<ValueId> operands = {x, kNoValue, kNoValue};
  if (c_.has(kStepsOfRun)) operands[1] = c_.input(kStepsOfRun);
  if (c_.has(4)) operands[2] = c_.input(4);
  return operands;
}

// Data of all steps, [steps, ..., batch, n], with the steps of each row in the opposite order where
// those of the direction are.
ValueId Recurrent::in_order(ValueId x, int64_t direction) {
  if (!reverses_data(direction)) return x;
  const Shape shape = c_.shape_of(x);
  const ValueId reversed =
      c_.add("hone.ReverseSteps", with_lengths(c_.reshape(x, {steps_, batch_, shape.back()})));
  return c_.reshape(reversed, shape);
}

// A state behind the last step of each row: [1, batch, hidden].
ValueId Recurrent::final_state(const Steps& steps, size_t state) {
  ValueId last = steps.states[state];
  if (chooses_last(steps, state)) {
    const ValueId all = state == 0 ? steps.output : joined(steps.history[state], 0);
    last = c_.add("hone.LastStep", with_lengths(c_.reshape(all, {steps_, batch_, hidden_})));
    if (c_.has(5 + state))
      last = c_.add("Where", {at_step(steps.valid, 0), last, steps.starts[state]});
  }
  return c_.reshape(last, {1, batch_, hidden_});
}

Status Recurrent::run_direction(int64_t direction, const Step& step, ValueId gates, ValueId valid) {
  Steps steps;
  steps.reversed = is_reversed(direction) && !reverses_data(direction);
  steps.valid = valid;
  for (size_t k = 0; k < states_; ++k) steps.starts.push_back(start(k, direction));
  steps.states = steps.starts;
  steps.history.resize(states_, std::vector<ValueId>(static_cast<size_t>(steps_)));
  for (int64_t n = 0; n < steps_; ++n) {
    const int64_t t = steps.reversed ? steps_ - 1 - n : n;
    keep_step(steps, t, step(at_step(gates, t), steps.states));
    HONE_RETURN_IF_ERROR(c_.status());
  }
  if (c_.wants(0) || chooses_last(steps, 0)) steps.output = joined(steps.history[0], 0);
  if (c_.wants(0)) sequences_.push_back(in_order(steps.output, direction));
  for (size_t k = 0; k < states_; ++k) finals_[k].push_back(final_state(steps, k));
  return ok_status();
}

ValueId Recurrent::joined(const std::vector<ValueId>& parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : c_.add("Concat", parts, {{"axis", axis}});
}

Status Recurrent::run(const Direction& make) {
  HONE_RETURN_IF_ERROR(read_attributes());
  HONE_RETURN_IF_ERROR(check_shapes());
  step_numbers_.assign(static_cast<size_t>(steps_), kNoValue);
  const Tensor* weights = product_ ? nullptr : c_.constant_of(c_.input(2));
  weights_are_finite_ = weights != nullptr && all_finite(*weights);
  const ValueId x = batch_first_ ? c_.transpose(c_.input(0), {1, 0, 2}) : c_.input(0);
  const ValueId valid = valid_steps();
  finals_.resize(states_);
  for (int64_t d = 0; d < directions_; ++d) {
    const Step step = make(d);
    HONE_RETURN_IF_ERROR(run_direction(d, step, input_part(in_order(x, d), d), valid));
  }
  if (c_.wants(0)) {
    const ValueId y = joined(sequences_, 1);
    c_.result(0, batch_first_ ? c_.transpose(y, {2, 0, 1, 3}) : y);
  }
  for (size_t k = 0; k < states_; ++k) {
    if (!c_.wants(1 + k)) continue;
    const ValueId final_state = joined(finals_[k], 0);
    c_.result(1 + k, batch_first_ ? c_.transpose(final_state, {1, 0, 2}) : final_state);
  }
  return ok_status();
}

}  // namespace hone::graph
