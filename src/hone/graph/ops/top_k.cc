#include "hone/graph/ops/top_k.h"

#include <algorithm>

#include "hone/base/round_up.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

constexpr int64_t kLanes = 16;
constexpr int64_t kFew = 64;         // up to which each key is compared with each
constexpr int64_t kFewGroups = 32;   // likewise of groups
constexpr int64_t kBoundSteps = 16;  // halvings that make a bound good enough

Expr number(int64_t n) { return ir::constant(n); }

Expr vectors_of(const Expr& count) { return ir::floordiv(count + (kLanes - 1), kLanes); }

// for i in vectors of lanes 0 .. count, and as far as the last vector reaches
Stmt blocks(const Expr& count, const std::function<std::vector<Stmt>(const Expr& i)>& body) {
  return count_to("block", vectors_of(count), [&](const Expr& block) {
    return std::vector{
        vectors_to("v", number(kLanes), [&](const Expr& v) { return body(block * kLanes + v); })};
  });
}

ir::BufferPtr row(const char* name, DType dtype, int64_t extent) {
  return ir::make_buffer(name, dtype, {extent}, ir::Scope::kThread);
}

Expr count_if(const Expr& condition) {
  return ir::select(condition, ir::constant_int(1, DType::kI32), ir::constant_int(0, DType::kI32));
}

}  // namespace

TopK::TopK(DType element, int64_t extent, int64_t k, bool largest)
    : extent_(extent),
      k_(k),
      groups_(std::max(kFewGroups, round_up(2 * k, kLanes))),
      largest_(largest),
      key_(sort_key_type(element)),
      number_(extent < INT32_MAX ? DType::kI32 : DType::kI64),
      best_(ir::make_buffer("best", element, {groups_},
                            groups_ <= 4 * kFewGroups ? ir::Scope::kStack : ir::Scope::kThread)),
      least_(ir::make_buffer("least", key_, {groups_},
                             groups_ <= 4 * kFewGroups ? ir::Scope::kStack : ir::Scope::kThread)),
      ranks_(row("ranks", DType::kI32, kFew)),
      found_key_(row("found", key_, extent + kLanes)),
      found_place_(row("found_place", number_, extent + kLanes)),
      equal_(row("equal", number_, extent + kLanes)),
      list_(row("list", number_, std::max(k, kFew))),
      bound_("bound", element),
      found_("count", DType::kI64),
      before_("before", DType::kI64),
      equals_("equals", DType::kI64),
      reached_("reached", DType::kI32),
      low_("low", key_),
      high_("high", key_),
      middle_("middle", key_),
      sorted_(key_, std::max<int64_t>(1, 2 * k > extent ? extent : k)) {}

Expr TopK::place(const Expr& o) const { return ir::cast(DType::kI64, ir::load(list_, {o})); }

Expr TopK::key_of(const RowElement& element, const Expr& r) const {
  return sort_key_of(element(r));
}

Expr TopK::sort_key_of(const Expr& value) const {
  return sort_key(value, largest_, largest_ ? NanOrder::kFirst : NanOrder::kLast);
}

Stmt TopK::find(const RowElement& element, std::vector<Stmt> then) const {
  std::vector<Stmt> steps;
  if (2 * k_ > extent_ && extent_ > kFew) {
    steps = {sort_all(element)};
  } else {
    steps = 2 * groups_ > extent_ ? take_all(element) : take_candidates(element);
    // Behind the last one what is never before another one.
    steps.push_back(vectors_to("v", number(kLanes), [&](const Expr& v) {
      return std::vector{ir::make_store(found_key_, {found_.get() + v}, highest(key_))};
    }));
    const Expr few = ir::less_equal(found_.get(), number(kFew));
    if (k_ <= kFew) steps.push_back(ir::make_if(few, order_few()));
    if (extent_ > kFew) {
      const Expr many = k_ <= kFew ? ir::make(ir::Op::kNot, {few}) : ir::constant_bool(true);
      steps.push_back(ir::make_if(many, order_many()));
    }
  }
  for (Stmt& s : then) steps.push_back(std::move(s));
  Stmt body = sorted_.with_memory({with_locals(
      {bound_, found_, before_, equals_, reached_, low_, high_, middle_}, std::move(steps))});
  for (const ir::BufferPtr& buffer :
       {best_, least_, ranks_, found_key_, found_place_, equal_, list_})
    body = ir::make_alloc(buffer, {body});
  return body;
}

Stmt TopK::sort_all(const RowElement& element) const {
  const compute::Axis n = compute::make_axis("n", extent_), o = compute::make_axis("o", k_);
  const Expr from = ir::variable(n.var), to = ir::variable(o.var);
  return ir::make_block(
      {found_.set(number(0)), loops_over({n}, sorted_.add(found_, key_of(element, from), from)),
       sorted_.sort(found_.get()),
       loops_over({o}, {ir::make_store(list_, {to}, ir::cast(number_, sorted_.place(to)))})});
}

std::vector<Stmt> TopK::take_all(const RowElement& element) const {
  return {vectors_to("v", number(extent_),
                     [&](const Expr& r) {
                       return std::vector{ir::make_store(found_key_, {r}, key_of(element, r)),
                                          ir::make_store(found_place_, {r}, ir::cast(number_, r))};
                     }),
          found_.set(number(extent_)), low_.set(lowest(key_)), high_.set(highest(key_))};
}

Expr TopK::reaches(const Expr& value, const Expr& other) const {
  if (!largest_) return ir::less_equal(value, other);
  if (!is_float(value->type)) return ir::less_equal(other, value);
  return ir::make(ir::Op::kNot, {ir::less(value, other)});
}

// Elements a multiple of the number of groups apart are a group. The k-th of the groups' best ones
// is a bound that k elements reach at least; more than twice as many groups as k make it a close
// one, as few elements as the groups then have.
std::vector<Stmt> TopK::take_candidates(const RowElement& element) const {
  const DType type = best_->dtype;
  const auto note = [&](const Expr& first) {
    return [&, first](const Expr& g) {
      // If the element is NaN, the second operand stays.
      const Expr x = element(first + g), best = ir::load(best_, {g});
      return std::vector{
          ir::make_store(best_, {g}, largest_ ? ir::max(x, best) : ir::min(x, best))};
    };
  };
  const Stmt clear = vectors_to("v", number(groups_), [&](const Expr& g) {
    return std::vector{ir::make_store(best_, {g}, largest_ ? lowest(type) : highest(type))};
  });
  const int64_t whole = extent_ / groups_;
  const Stmt all = count_to("n", number(whole), [&](const Expr& n) {
    return std::vector{vectors_to("v", number(groups_), note(n * groups_))};
  });
  std::vector<Stmt> steps = {clear, all};
  if (extent_ % groups_ > 0)
    steps.push_back(vectors_to("v", number(extent_ % groups_), note(number(whole * groups_))));
  steps.push_back(bound_by_groups());
  const auto take = [&](const std::function<Expr(const Expr& x)>& wanted) {
    return vectors_to("v", number(extent_), [&](const Expr& r) {
      return std::vector{ir::make_if(
          wanted(element(r)), {ir::make_store(found_place_, {found_.get()}, ir::cast(number_, r)),
                               found_.set(found_.get() + 1)})};
    });
  };
  steps.push_back(found_.set(number(0)));
  steps.push_back(take([&](const Expr& x) { return reaches(x, bound_.get()); }));
  if (is_float(type) && !largest_) {  // fewer numbers than k: NaNs fill the rest
    steps.push_back(
        ir::make_if(ir::less(found_.get(), number(k_)), {take([](const Expr& x) {
                                                           return ir::make(ir::Op::kNe, {x, x});
                                                         }),
                                                         high_.set(highest(key_))}));
  }
  steps.push_back(vectors_to("v", number(kLanes), [&](const Expr& v) {
    return std::vector{
        ir::make_store(found_place_, {found_.get() + v}, ir::constant_int(0, number_))};
  }));
  steps.push_back(blocks(found_.get(), [&](const Expr& i) {
    const Expr place = ir::cast(DType::kI64, ir::load(found_place_, {i}));
    const Local taken("taken", type);  // gathered once
    return std::vector{with_locals(
        {taken},
        {taken.set(element(place)), ir::make_store(found_key_, {i}, sort_key_of(taken.get()))})};
  }));
  return steps;
}

// Sets bound_ to a value that k groups reach, high_ to its key, and low_ to the least key of all.
Stmt TopK::bound_by_groups() const {
  const auto over_groups = [&](const auto& body) { return vectors_to("v", number(groups_), body); };
  const DType type = best_->dtype;
  const bool few = groups_ == kFewGroups;
  std::vector<Stmt> steps = {over_groups([&](const Expr& g) {
    const Expr key = sort_key_of(ir::load(best_, {g}));
    std::vector<Stmt> stores = {ir::make_store(least_, {g}, key)};
    // Candidates come later, so their memory is free; least_ stays in registers.
    if (few) stores.push_back(ir::make_store(found_key_, {g}, key));
    return stores;
  })};
  if (few) {
    // Equal keys are either all before the bound or all after it, so the result does not depend on
    // which of them comes first.
    steps.push_back(high_.set(lowest(key_)));
    steps.push_back(over_groups([&](const Expr& g) {
      const Local sum("sum", DType::kI32);
      const Expr own = ir::load(least_, {g});
      const Stmt compare = count_to("other", number(groups_), [&](const Expr& j) {
        return std::vector{sum.set(sum.get() + count_if(ir::less(ir::load(found_key_, {j}), own)))};
      });
      return std::vector{with_locals({sum}, {sum.set(ir::constant_int(0, DType::kI32)), compare,
                                             ir::make_store(ranks_, {g}, sum.get())})};
    }));
    steps.push_back(over_groups([&](const Expr& g) {
      const Expr is_first = ir::less(ir::load(ranks_, {g}), ir::constant_int(k_, DType::kI32));
      return std::vector{high_.set(
          ir::max(high_.get(), ir::select(is_first, ir::load(least_, {g}), lowest(key_))))};
    }));
  } else {
    steps.push_back(low_.set(highest(key_)));
    steps.push_back(over_groups([&](const Expr& g) {
      return std::vector{low_.set(ir::min(low_.get(), ir::load(least_, {g})))};
    }));
    steps.push_back(high_.set(lowest(key_)));
    steps.push_back(over_groups([&](const Expr& g) {
      return std::vector{high_.set(ir::max(high_.get(), ir::load(least_, {g})))};
    }));
    steps.push_back(narrow(least_, number(groups_ / kLanes), kBoundSteps));
  }
  steps.push_back(low_.set(highest(key_)));
  steps.push_back(over_groups([&](const Expr& g) {
    return std::vector{low_.set(ir::min(low_.get(), ir::load(least_, {g})))};
  }));
  const Expr best_of_all = largest_ ? highest(type) : lowest(type);
  steps.push_back(bound_.set(best_of_all));
  steps.push_back(over_groups([&](const Expr& g) {
    const Expr is_first = ir::less_equal(ir::load(least_, {g}), high_.get());
    const Expr value = ir::select(is_first, ir::load(best_, {g}), best_of_all);
    return std::vector{
        bound_.set(largest_ ? ir::min(bound_.get(), value) : ir::max(bound_.get(), value))};
  }));
  return ir::make_block(std::move(steps));
}

// Halves low_ .. high_, which holds the k-th of the keys; high_ is never before it.
Stmt TopK::narrow(const ir::BufferPtr& keys, const Expr& vectors, int64_t steps) const {
  const Expr one = ir::constant_int(1, key_);
  const auto half = [&](const Expr& e) { return ir::make(ir::Op::kShr, {e, one}); };
  const Expr odd =
      ir::make(ir::Op::kBitAnd, {ir::make(ir::Op::kBitAnd, {low_.get(), high_.get()}), one});
  const Stmt count = vectors_to("v", vectors * kLanes, [&](const Expr& i) {
    const Expr reaches = ir::less_equal(ir::load(keys, {i}), middle_.get());
    return std::vector{reached_.set(reached_.get() + count_if(reaches))};
  });
  const Expr enough = ir::less_equal(ir::constant_int(k_, DType::kI32), reached_.get());
  return count_to("step", number(steps), [&](const Expr&) {
    return std::vector{
        ir::make_if(ir::less(low_.get(), high_.get()),
                    {middle_.set(half(low_.get()) + half(high_.get()) + odd),
                     reached_.set(ir::constant_int(0, DType::kI32)), count,
                     high_.set(ir::select(enough, middle_.get(), high_.get())),
                     low_.set(ir::select(enough, low_.get(), middle_.get() + one))})};
  });
}

// Counts the keys that come before each one: those that are less, or equal and further left.
Stmt TopK::rank(const ir::BufferPtr& keys, const Expr& count, const ir::BufferPtr& ranks) const {
  const Local sum("sum", DType::kI32);
  const auto narrow = [](const Expr& e) { return ir::cast(DType::kI32, e); };  // few
  return blocks(count, [&](const Expr& i) {
    const Expr own = ir::load(keys, {i});
    const Stmt compare = count_to("other", count, [&](const Expr& j) {
      const Expr other = ir::load(keys, {j});
      const Expr further_left = ir::less(narrow(j), narrow(i));
      const Expr before = ir::make(
          ir::Op::kOr, {ir::less(other, own),
                        ir::logical_and(ir::make(ir::Op::kEq, {other, own}), further_left)});
      return std::vector{sum.set(sum.get() + count_if(before))};
    });
    return std::vector{with_locals({sum}, {sum.set(ir::constant_int(0, DType::kI32)), compare,
                                           ir::make_store(ranks, {i}, sum.get())})};
  });
}

std::vector<Stmt> TopK::order_few() const {
  const Stmt place = count_to("i", found_.get(), [&](const Expr& i) {
    const Expr to = ir::cast(DType::kI64, ir::load(ranks_, {i}));
    return std::vector{ir::make_store(list_, {to}, ir::load(found_place_, {i}))};
  });
  return {rank(found_key_, found_.get(), ranks_), place};
}

// The k-th key exactly; the candidates before it are sorted, and those equal to it follow as they
// stand, as many as are wanted.
std::vector<Stmt> TopK::order_many() const {
  const Expr bound = high_.get();
  const Stmt split = blocks(found_.get(), [&](const Expr& i) {
    return std::vector{
        ir::make_if(ir::less(ir::load(found_key_, {i}), bound),
                    sorted_.add(before_, ir::load(found_key_, {i}),
                                ir::cast(DType::kI64, ir::load(found_place_, {i}))))};
  });
  const Stmt rest = blocks(found_.get(), [&](const Expr& i) {
    return std::vector{
        ir::make_if(ir::make(ir::Op::kEq, {ir::load(found_key_, {i}), bound}),
                    {ir::make_store(equal_, {equals_.get()}, ir::load(found_place_, {i})),
                     equals_.set(equals_.get() + 1)})};
  });
  const Stmt first = count_to("o", before_.get(), [&](const Expr& o) {
    return std::vector{ir::make_store(list_, {o}, ir::cast(number_, sorted_.place(o)))};
  });
  const Stmt last = count_to("o", number(k_) - before_.get(), [&](const Expr& o) {
    return std::vector{ir::make_store(list_, {before_.get() + o}, ir::load(equal_, {o}))};
  });
  // NaN is before the best of all groups.
  const bool lower = largest_ && is_float(best_->dtype);
  const Stmt least = vectors_to("v", vectors_of(found_.get()) * kLanes, [&](const Expr& i) {
    return std::vector{low_.set(ir::min(low_.get(), ir::load(found_key_, {i})))};
  });
  return {lower ? least : ir::make_block({}),
          narrow(found_key_, vectors_of(found_.get()), 8 * dtype_bytes(key_)),
          before_.set(number(0)),
          split,
          sorted_.sort(before_.get()),
          first,
          equals_.set(number(0)),
          rest,
          last};
}

}  // namespace hone::graph
