#include "hone/graph/ops/axis_samples.h"

#include <algorithm>
#include <utility>

#include "hone/base/round_up.h"
#include "hone/graph/integer_at.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

constexpr int64_t kVectorBytes = 64;  // bytes of the results that are computed together
constexpr int64_t kWindow = 2;        // vectors that their taps are chosen from
constexpr int64_t kLeast = 4;         // shorter rows are no vectors

// total, if there is one, + the sum over taps of element(k) * factor(k), or of the elements alone.
Expr with_taps(Expr total, int64_t taps, const std::function<Expr(size_t k)>& element,
               bool weighted, const std::function<Expr(size_t k)>& factor) {
  for (size_t k = 0; std::cmp_less(k, taps); ++k) {
    Expr term = element(k);
    if (weighted) term = term * factor(k);
    total = total ? total + term : term;
  }
  return total;
}

}  // namespace

Stmt vector_loops(const std::vector<compute::Axis>& axes, std::vector<Stmt> body) {
  std::vector<compute::Axis> outer = axes;
  if (!outer.empty()) {
    const compute::Axis& inner = outer.back();
    body = {ir::make_for(inner.var, ir::constant(0), ir::constant(inner.extent),
                         ir::ForKind::kVectorized, std::move(body))};
    outer.pop_back();
  }
  return loops_over(outer, std::move(body));
}

AxisSamples::AxisSamples(EmitContext& c, size_t i, int64_t extent)
    : c_(c),
      operand_(i),
      extent_(extent),
      taps_(c.input(i).shape[1]),
      results_(c.input(i).shape[0]),
      weighted_(c.node().has_input(i + 1)) {
  if (c.input(i).constant) index_ = &*c.input(i).constant;
  if (!weighted_) return;
  adds_ = true;
  if (!c.input(i + 1).constant) return;
  weights_ = &*c.input(i + 1).constant;
  adds_ = false;
  for (int64_t o = 0; o < results_; ++o)
    adds_ = adds_ || weights_->at(o * (taps_ + 1) + taps_) != 0;
}

std::pair<int64_t, int64_t> AxisSamples::span(int64_t begin, int64_t end) const {
  if (index_ == nullptr) return {0, extent_ - 1};
  std::pair<int64_t, int64_t> found = {extent_ - 1, 0};
  for (int64_t i = begin * taps_; i < end * taps_; ++i) {
    const int64_t place = integer_at(*index_, i);
    found = {std::min(found.first, place), std::max(found.second, place)};
  }
  return found;
}

Expr AxisSamples::place(const Expr& o, const Expr& k) const {
  // A table of a task that is measured by itself holds any small numbers.
  return ir::min(ir::cast(DType::kI64, c_.read(operand_, "index", {o, k})),
                 ir::constant(extent_ - 1));
}

Expr AxisSamples::weight(const Expr& o, const Expr& k) const {
  return c_.read(operand_ + 1, "weight", {o, k});
}

Stmt AxisSamples::at(const Expr& o, const Moved& moved,
                     const std::function<std::vector<Stmt>(const Sum& sum)>& body) const {
  HONE_ASSERT(taps_ <= kFewTaps, "few taps are written out");
  std::vector<Local> places, factors;
  std::vector<Stmt> steps;
  for (int64_t k = 0; k < taps_; ++k) {
    const Expr tap = ir::constant(k);
    // These have the type of the table.
    places.emplace_back("place", DType::kI32);
    const Expr there = moved ? moved(place(o, tap)) : place(o, tap);
    steps.push_back(places.back().set(ir::cast(DType::kI32, there)));
    if (!weighted_) continue;
    factors.emplace_back("factor", c_.input(operand_ + 1).dtype);
    steps.push_back(factors.back().set(weight(o, tap)));
  }
  if (adds_) {
    factors.emplace_back("added", c_.input(operand_ + 1).dtype);
    steps.push_back(factors.back().set(added(o)));
  }
  const Sum sum = [&](const Element& element) {
    return with_taps(
        adds_ ? factors.back().get() : nullptr, taps_,
        [&](size_t k) { return element(ir::cast(DType::kI64, places[k].get())); }, weighted_,
        [&](size_t k) { return factors[k].get(); });
  };
  for (Stmt& s : body(sum)) steps.push_back(std::move(s));
  places.insert(places.end(), factors.begin(), factors.end());
  return with_locals(places, std::move(steps));
}

// Vectors of results and the windows of data that they read.
struct AxisSamples::Windows {
  // Lanes of a vector, number of vectors, extent of a window.
  int64_t lanes = 0, count = 0, extent = 0;
  Tensor first{DType::kI32, {}};   // [count], where a window begins
  Tensor within{DType::kI32, {}};  // [taps, count * lanes], places in the window
  Tensor factor{DType::kF32, {}};  // [taps + 1, count * lanes]
};

// False if a vector of results reads more than a window.
bool AxisSamples::make_windows(Windows& w) const {
  const DType type = weighted_ ? c_.input(operand_ + 1).dtype : compute_type(c_.input(0).dtype);
  if (index_ == nullptr || (weighted_ && weights_ == nullptr) || taps_ > kFewTaps ||
      dtype_bytes(type) < 4 || extent_ < kLeast || results_ < kLeast)
    return false;
  w.lanes = kVectorBytes / dtype_bytes(type);
  w.count = ceil_div(results_, w.lanes);
  w.extent = std::min(extent_, kWindow * w.lanes);
  w.first = Tensor(DType::kI32, {w.count});
  w.within = Tensor(DType::kI32, {taps_, w.count * w.lanes});
  w.factor = Tensor(type, {taps_ + 1, w.count * w.lanes});
  for (int64_t o = 0; o < results_; ++o) {
    const int64_t begin = o / w.lanes * w.lanes;
    const auto [low, high] = span(begin, std::min(begin + w.lanes, results_));
    const int64_t first = std::min(low, extent_ - w.extent);
    if (high - first >= w.extent) return false;
    w.first.set(o / w.lanes, static_cast<double>(first));
    for (int64_t k = 0; k < taps_; ++k) {
      w.within.set(k * w.count * w.lanes + o,
                   index_->at(o * taps_ + k) - static_cast<double>(first));
    }
    for (int64_t k = 0; weighted_ && k <= taps_; ++k)
      w.factor.set(k * w.count * w.lanes + o, weights_->at(o * (taps_ + 1) + k));
  }
  return true;
}

// The sums of windows: what across() makes where each vector of results reads one window.
class AxisSamples::WindowSums {
 public:
  WindowSums(const AxisSamples& samples, const Windows& windows, const Rows& rows,
             const Element& element, const Store& store)
      : samples_(samples), w_(windows), rows_(rows), element_(element), store_(store) {
    const Expr none = ir::constant(0);
    first_ = samples.c_.constant("first", w_.first, {none})->buffer;
    within_ = samples.c_.constant("within", w_.within, {none, none})->buffer;
    if (samples.weighted_) factor_ = samples.c_.constant("factor", w_.factor, {none, none})->buffer;
    for (int64_t k = 0; k < samples.taps_; ++k) places_.push_back(lanes_of("place", DType::kI32));
    const int64_t factors = samples.weighted_ ? samples.taps_ + (samples.adds_ ? 1 : 0) : 0;
    for (int64_t k = 0; k < factors; ++k) factors_.push_back(lanes_of("factor", type()));
  }

  [[nodiscard]] Stmt all() const {
    const int64_t whole = samples_.results_ / w_.lanes, rest = samples_.results_ % w_.lanes;
    std::vector<Stmt> steps;
    if (whole > 0) {
      steps.push_back(count_to("o", ir::constant(whole),
                               [&](const Expr& number) { return vector(number, w_.lanes); }));
    }
    if (rest > 0) {
      for (Stmt& s : vector(ir::constant(whole), rest)) steps.push_back(std::move(s));
    }
    Stmt made = with_locals({start_}, std::move(steps));
    for (const auto* buffers : {&places_, &factors_}) {
      for (const ir::BufferPtr& buffer : *buffers) made = ir::make_alloc(buffer, {made});
    }
    return made;
  }

 private:
  [[nodiscard]] DType type() const { return w_.factor.dtype(); }
  [[nodiscard]] ir::BufferPtr lanes_of(const char* name, DType dtype) const {
    return ir::make_buffer(name, dtype, {w_.lanes}, ir::Scope::kStack);
  }

  // The first `lanes` results of a vector, in all rows.
  [[nodiscard]] std::vector<Stmt> vector(const Expr& number, int64_t lanes) const {
    const ir::BufferPtr window = ir::make_buffer("window", type(), {w_.extent}, ir::Scope::kStack);
    const Expr begin = ir::min(ir::load(first_, {number}),
                               ir::constant_int(samples_.extent_ - w_.extent, DType::kI32));
    return {start_.set(begin), read_tables(number),
            rows_({ir::make_alloc(window, {fill(window), sum(window, number, lanes)})})};
  }

  // Reads the parts of the tables that a vector of results needs; they stay in registers for all
  // rows.
  [[nodiscard]] Stmt read_tables(const Expr& number) const {
    return vectors_to("v", ir::constant(w_.lanes), [&](const Expr& v) {
      std::vector<Stmt> stores;
      const auto copy = [&](const std::vector<ir::BufferPtr>& to, const ir::BufferPtr& from) {
        for (size_t k = 0; k < to.size(); ++k) {
          const Expr row = ir::constant(static_cast<int64_t>(k));
          stores.push_back(
              ir::make_store(to[k], {v}, ir::load(from, {row, number * w_.lanes + v})));
        }
      };
      copy(places_, within_);
      copy(factors_, factor_);
      return stores;
    });
  }

  [[nodiscard]] Stmt fill(const ir::BufferPtr& window) const {
    return vectors_to("v", ir::constant(w_.extent), [&](const Expr& v) {
      const Expr place = ir::cast(DType::kI64, start_.get()) + v;
      return std::vector{ir::make_store(window, {v}, element_(place))};
    });
  }

  [[nodiscard]] Stmt sum(const ir::BufferPtr& window, const Expr& number, int64_t lanes) const {
    return vectors_to("v", ir::constant(lanes), [&](const Expr& v) {
      const Expr total = with_taps(
          samples_.adds_ ? ir::load(factors_.back(), {v}) : nullptr, samples_.taps_,
          [&](size_t k) {
            return ir::load(window, {ir::cast(DType::kI64, ir::load(places_[k], {v}))});
          },
          samples_.weighted_, [&](size_t k) { return ir::load(factors_[k], {v}); });
      return std::vector{store_(number * w_.lanes + v, total)};
    });
  }

  const AxisSamples& samples_;
  const Windows& w_;
  const Rows& rows_;
  const Element& element_;
  const Store& store_;
  const Local start_ = Local("start", DType::kI32);
  ir::BufferPtr first_, within_, factor_;        // the tables
  std::vector<ir::BufferPtr> places_, factors_;  // by tap, what they say of a vector
};

std::vector<Stmt> AxisSamples::across(const Rows& rows, const Element& element,
                                      const Store& store) const {
  Windows windows;
  if (make_windows(windows)) return {WindowSums(*this, windows, rows, element, store).all()};
  const Stmt all = vectors_to("o", ir::constant(results_), [&](const Expr& o) {
    return std::vector{
        at(o, nullptr, [&](const Sum& sum) { return std::vector{store(o, sum(element))}; })};
  });
  return {rows({all})};
}

}  // namespace hone::graph
