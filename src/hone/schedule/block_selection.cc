#include "hone/schedule/block_selection.h"

#include <algorithm>
#include <bit>

#include "hone/base/round_up.h"
#include "hone/schedule/block_statements.h"
#include "hone/schedule/selection_pattern.h"

namespace hone::schedule {
namespace {

using ir::Expr;
using ir::Op;
using ir::Stmt;

constexpr int64_t kSortedWhole = 256;  // elements from which on halving takes fewer steps
constexpr int64_t kMostKept = 20;      // keys of a thread that stay in registers

Expr count(int64_t n) { return ir::constant_int(n, DType::kI32); }
Expr equals(const Expr& a, const Expr& b) { return ir::make(Op::kEq, {a, b}); }
Expr either(const Expr& a, const Expr& b) { return ir::make(Op::kOr, {a, b}); }
Expr narrow(const Expr& e) { return ir::cast(DType::kI32, e); }
Expr lowest(DType type) {
  return ir::constant_int(type == DType::kI32 ? INT32_MIN : INT64_MIN, type);
}
Expr highest(DType type) {
  return ir::constant_int(type == DType::kI32 ? INT32_MAX : INT64_MAX, type);
}

int64_t pairs_of(const Selection& selection) {
  const bool is_whole = selection.extent <= kSortedWhole || 2 * selection.count > selection.extent;
  const int64_t sorted = is_whole ? selection.extent : selection.count;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(sorted, 2))));
}
bool sorts_whole(const Selection& selection) { return pairs_of(selection) >= selection.extent; }

class BlockSelection {
 public:
  BlockSelection(Selection selection, int64_t threads)
      : s_(std::move(selection)),
        threads_(threads),
        pairs_(pairs_of(s_)),
        each_(ceil_div(s_.extent, threads)),
        key_(s_.key->type),
        sorted_key_(ir::make_buffer("sorted_key", key_, {pairs_}, ir::Scope::kShared)),
        sorted_place_(ir::make_buffer("sorted_place", DType::kI32, {pairs_}, ir::Scope::kShared)),
        counts_(ir::make_buffer("counts", DType::kI32, {threads}, ir::Scope::kShared)),
        joined_(ir::make_buffer("joined", DType::kI32, {kJoiners}, ir::Scope::kShared)),
        low_(fragment("low", key_)),
        high_(fragment("high", key_)),
        first_(fragment("first", DType::kI32)),
        last_(fragment("last", DType::kI32)),
        keys_(ir::make_buffer("keys", key_, {threads, each_}, ir::Scope::kFragment)) {}

  Stmt body() const {
    Stmts steps = sorts_whole(s_) ? Stmts{load_whole()} : select();
    for (Stmt& step : sort()) steps.push_back(std::move(step));
    steps.push_back(write());
    std::vector<ir::BufferPtr> memory = {sorted_key_, sorted_place_};
    if (!sorts_whole(s_)) {
      memory.insert(memory.end(), {counts_, joined_, low_, high_, first_, last_});
      if (keeps_keys()) memory.push_back(keys_);
    }
    return ir::make_block(with(memory, std::move(steps)));
  }

 private:
  [[nodiscard]] bool keeps_keys() const { return each_ <= kMostKept; }
  [[nodiscard]] ir::BufferPtr fragment(const char* name, DType type) const {
    return ir::make_buffer(name, type, {threads_}, ir::Scope::kFragment);
  }
  [[nodiscard]] Expr key_at(const Expr& element) const {
    return ir::substitute(s_.key, {{s_.element, element}});
  }

  // A thread's share of `extent` numbers, neighbours of which belong to neighbouring threads.
  template <typename F>
  [[nodiscard]] Stmt shared(int64_t extent, const F& body) const {
    const int64_t threads = std::min(threads_, extent);
    return on_threads(threads, [&](const Expr& t) {
      const int64_t rounds = ceil_div(extent, threads);
      if (rounds == 1) return body(t);
      return Stmts{repeat(rounds, ir::ForKind::kSerial, [&](const Expr& j) {
        const Expr i = j * threads + t;
        Stmts inside = body(i);
        if (extent % threads != 0) inside = {ir::make_if(ir::less(i, number(extent)), inside)};
        return inside;
      })};
    });
  }
  // A loop over the elements of the row that a thread has, with their keys. Behind the last one
  // the keys are the greatest.
  template <typename F>
  [[nodiscard]] Stmt own_elements(const Expr& t, const F& body) const {
    return repeat(
        each_, keeps_keys() ? ir::ForKind::kUnrolled : ir::ForKind::kSerial, [&](const Expr& j) {
          const Expr i = j * threads_ + t;
          return body(i, keeps_keys() ? ir::load(keys_, {t, j}) : guarded_key(i, each_ * threads_));
        });
  }
  // The key of one of `all` numbers.
  [[nodiscard]] Expr guarded_key(const Expr& i, int64_t all) const {
    return all == s_.extent ? key_at(i)
                            : ir::select(ir::less(i, number(s_.extent)), key_at(i), highest(key_));
  }

  [[nodiscard]] Stmt load_whole() const {
    return shared(pairs_, [&](const Expr& i) {
      return Stmts{ir::make_store(sorted_key_, {i}, guarded_key(i, pairs_)),
                   ir::make_store(sorted_place_, {i}, narrow(i))};
    });
  }

  // ---- selection ----

  [[nodiscard]] Stmts select() const {
    Stmts steps;
    steps.push_back(on_threads(threads_, [&](const Expr& t) {
      Stmts begin = {
          ir::make_store(low_, {t}, lowest(key_)), ir::make_store(high_, {t}, highest(key_)),
          ir::make_store(first_, {t}, count(0)), ir::make_store(last_, {t}, count(s_.extent - 1))};
      if (!keeps_keys()) return begin;
      begin.push_back(repeat(each_, ir::ForKind::kUnrolled, [&](const Expr& j) {
        return Stmts{
            ir::make_store(keys_, {t, j}, guarded_key(j * threads_ + t, each_ * threads_))};
      }));
      return begin;
    }));
    // The bound lies in low .. high, and the last element of those equal to it in first .. last.
    steps.push_back(halve(low_, high_, 8 * dtype_bytes(key_),
                          [](const Expr& key, const Expr&, const Expr& middle, const Expr&) {
                            return ir::less_equal(key, middle);
                          }));
    const auto bits = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(s_.extent - 1)));
    steps.push_back(halve(first_, last_, bits, is_before));
    for (Stmt& step : collect()) steps.push_back(std::move(step));
    return steps;
  }

  // Whether an element is among those up to a number of those equal to the bound.
  static Expr is_before(const Expr& key, const Expr& i, const Expr& last, const Expr& bound) {
    return either(ir::less(key, bound),
                  ir::logical_and(equals(key, bound), ir::less_equal(narrow(i), last)));
  }

  // Makes low = high the least value up to which there are as many elements as are selected.
  template <typename F>
  [[nodiscard]] Stmt halve(const ir::BufferPtr& low, const ir::BufferPtr& high, int64_t steps,
                           const F& reaches) const {
    const DType type = low->dtype;
    const Expr one = ir::constant_int(1, type);
    const auto middle = [&](const Expr& t) {
      const Expr a = ir::load(low, {t}), b = ir::load(high, {t});
      const auto half = [&](const Expr& e) { return ir::make(Op::kShr, {e, one}); };
      return half(a) + half(b) + ir::make(Op::kBitAnd, {ir::make(Op::kBitAnd, {a, b}), one});
    };
    Stmts step = count_if([&](const Expr& t, const Expr& i, const Expr& key) {
      return reaches(key, i, middle(t), ir::load(high_, {t}));
    });
    step.push_back(on_threads(threads_, [&](const Expr& t) {
      const OwnValue total("total", DType::kI32), at("at", type);
      const Expr enough = ir::less_equal(count(s_.count), total.get());
      const Expr a = ir::load(low, {t}), b = ir::load(high, {t});
      return with({total.buffer, at.buffer},
                  {at.set(middle(t)), sum(total, joined_, kJoiners, number(0)),
                   ir::make_store(low, {t}, ir::select(enough, a, at.get() + one)),
                   ir::make_store(high, {t}, ir::select(enough, at.get(), b))});
    }));
    return ir::make_for(ir::make_var("step"), number(0), number(steps), ir::ForKind::kSerial, step);
  }

  // Counts the elements for which a condition holds: those of each thread, then kJoiners sums.
  template <typename F>
  [[nodiscard]] Stmts count_if(const F& condition) const {
    const Stmt own = on_threads(threads_, [&](const Expr& t) {
      const OwnValue total("total", DType::kI32);
      const Stmt all = own_elements(t, [&](const Expr& i, const Expr& key) {
        return Stmts{total.set(total.get() + ir::select(condition(t, i, key), count(1), count(0)))};
      });
      return with({total.buffer},
                  {total.set(count(0)), all, ir::make_store(counts_, {t}, total.get())});
    });
    const Stmt join = on_threads(kJoiners, [&](const Expr& t) {
      const OwnValue total("total", DType::kI32);
      return with({total.buffer}, {sum(total, counts_, threads_ / kJoiners, t),
                                   ir::make_store(joined_, {t}, total.get())});
    });
    return {own, join};
  }

  // total = the sum of every kJoiners-th element of a list, or of neighbours from the first on.
  static Stmt sum(const OwnValue& total, const ir::BufferPtr& list, int64_t terms,
                  const Expr& first) {
    const Stmt add = repeat(terms, ir::ForKind::kUnrolled, [&](const Expr& j) {
      const Expr step = terms == list->shape[0] ? j : j * kJoiners;
      return Stmts{total.set(total.get() + ir::load(list, {step + first}))};
    });
    return ir::make_block({total.set(count(0)), add});
  }

  // Moves what is selected to shared memory: behind what threads before this one have.
  [[nodiscard]] Stmts collect() const {
    const auto is_taken = [&](const Expr& t, const Expr& i, const Expr& key) {
      return is_before(key, i, ir::load(last_, {t}), ir::load(high_, {t}));
    };
    Stmts steps = count_if(is_taken);
    // Every kJoiners-th count becomes the sum of those before it.
    steps.push_back(on_threads(kJoiners, [&](const Expr& t) {
      const OwnValue before("before", DType::kI32), own("own", DType::kI32);
      const Stmt all = repeat(threads_ / kJoiners, ir::ForKind::kSerial, [&](const Expr& j) {
        const Expr at = j * kJoiners + t;
        return Stmts{own.set(ir::load(counts_, {at})), ir::make_store(counts_, {at}, before.get()),
                     before.set(before.get() + own.get())};
      });
      return with({before.buffer, own.buffer}, {before.set(count(0)), all});
    }));
    steps.push_back(on_threads(threads_, [&](const Expr& t) {
      const OwnValue to("to", DType::kI32);
      const Stmt earlier = repeat(kJoiners, ir::ForKind::kUnrolled, [&](const Expr& j) {
        const Expr is_earlier = ir::less(j, ir::floormod(t, kJoiners));
        return Stmts{to.set(to.get() + ir::select(is_earlier, ir::load(joined_, {j}), count(0)))};
      });
      const Expr place = ir::cast(DType::kI64, to.get());
      const Stmt take = own_elements(t, [&](const Expr& i, const Expr& key) {
        return Stmts{ir::make_if(
            is_taken(t, i, key),
            {ir::make_store(sorted_key_, {place}, key),
             ir::make_store(sorted_place_, {place}, narrow(i)), to.set(to.get() + count(1))})};
      });
      return with({to.buffer}, {to.set(ir::load(counts_, {t})), earlier, take});
    }));
    if (pairs_ > s_.count) {  // what is never before another one
      steps.push_back(shared(pairs_ - s_.count, [&](const Expr& i) {
        return Stmts{ir::make_store(sorted_key_, {i + s_.count}, highest(key_)),
                     ir::make_store(sorted_place_, {i + s_.count}, highest(DType::kI32))};
      }));
    }
    return steps;
  }

  // ---- sort and results ----

  [[nodiscard]] Stmts sort() const {
    Stmts steps;
    for (int64_t size = 2; size <= pairs_; size *= 2) {
      for (int64_t stride = size / 2; stride > 0; stride /= 2)
        steps.push_back(
            shared(pairs_ / 2, [&](const Expr& c) { return exchange(c, size, stride); }));
    }
    return steps;
  }

  // Puts two pairs in order, which ascends in every other run of `size` pairs.
  [[nodiscard]] Stmts exchange(const Expr& c, int64_t size, int64_t stride) const {
    const Expr i = ir::floordiv(c, stride) * (2 * stride) + ir::floormod(c, stride);
    const Expr j = i + stride;
    const OwnValue key_i("key_i", key_), key_j("key_j", key_);
    const OwnValue place_i("place_i", DType::kI32), place_j("place_j", DType::kI32);
    const Expr a = key_i.get(), b = key_j.get();
    const Expr is_behind = either(
        ir::less(b, a), ir::logical_and(equals(a, b), ir::less(place_j.get(), place_i.get())));
    Expr is_wrong = is_behind;
    if (size < pairs_) {
      const Expr ascends = equals(ir::floormod(ir::floordiv(c, size / 2), 2), number(0));
      is_wrong = equals(ir::select(is_behind, count(1), count(0)),
                        ir::select(ascends, count(1), count(0)));
    }
    return with(
        {key_i.buffer, key_j.buffer, place_i.buffer, place_j.buffer},
        {key_i.set(ir::load(sorted_key_, {i})), key_j.set(ir::load(sorted_key_, {j})),
         place_i.set(ir::load(sorted_place_, {i})), place_j.set(ir::load(sorted_place_, {j})),
         ir::make_if(is_wrong,
                     {ir::make_store(sorted_key_, {i}, b), ir::make_store(sorted_key_, {j}, a),
                      ir::make_store(sorted_place_, {i}, place_j.get()),
                      ir::make_store(sorted_place_, {j}, place_i.get())})});
  }

  [[nodiscard]] Stmt write() const {
    return shared(s_.count, [&](const Expr& o) {
      Stmts stores;
      for (const Stmt& store : s_.write->body) {
        const Stmt placed = ir::substitute(store, {{s_.write->var, o}});
        stores.push_back(ir::rewrite_exprs(placed, [&](const Expr& e) -> Expr {
          if (e->op != Op::kLoad || e->buffer != s_.places) return nullptr;
          return ir::cast(e->type, ir::load(sorted_place_, {o}));
        }));
      }
      return stores;
    });
  }

  Selection s_;
  int64_t threads_, pairs_, each_;
  DType key_;
  ir::BufferPtr sorted_key_, sorted_place_;
  ir::BufferPtr counts_, joined_;            // of each thread, of every kJoiners-th thread
  ir::BufferPtr low_, high_, first_, last_;  // each thread has the same
  ir::BufferPtr keys_;
};

}  // namespace

std::optional<compute::Stage> block_selection(const compute::Stage& stage, int64_t threads) {
  std::optional<Selection> selection = find_selection(stage);
  if (!selection) return std::nullopt;
  compute::Stage made = stage;
  made.body = {BlockSelection(*std::move(selection), threads).body()};
  return made;
}

int64_t selection_bytes(const compute::Stage& stage, int64_t threads) {
  const std::optional<Selection> selection = find_selection(stage);
  if (!selection) return 0;
  const int64_t pair = dtype_bytes(selection->key->type) + dtype_bytes(DType::kI32);
  return pairs_of(*selection) * pair + (threads + kJoiners) * dtype_bytes(DType::kI32);
}

int64_t selection_row(const compute::Stage& stage) {
  const std::optional<Selection> selection = find_selection(stage);
  return selection ? selection->extent : 0;
}

}  // namespace hone::schedule
