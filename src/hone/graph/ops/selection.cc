// The k largest or least elements and their places: TopK.
#include "hone/graph/ops/pointwise.h"
#include "hone/graph/ops/sort_pairs.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

Status infer_top_k(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, -1));
  if (c.dtype(0) == DType::kBool) return c.fail("data of type bool");
  int64_t k = c.attributes().integer("k", 0);
  if (c.num_inputs() > 1) {
    HONE_ASSIGN_OR_RETURN(const auto given, c.integers(1, "k"));
    if (given.size() != 1) return c.fail("k has {} elements, expected 1", given.size());
    k = given[0];
  }
  Shape shape = c.shape(0);
  int64_t& extent = shape[axis];
  if (k < 0 || k > extent) return c.fail("k is {} of {} elements", k, extent);
  extent = k;
  HONE_RETURN_IF_ERROR(c.set(0, c.dtype(0), shape));
  return c.set(1, DType::kI64, std::move(shape));
}

using Row = std::function<std::vector<Expr>(const Expr& r)>;  // where its element r is

// A row's largest or smallest elements if they are many: the best are sorted and cut off to k each
// time when so many have come together, and what is no better than the last of k is left out.
Stmt top_of_many(EmitContext& c, bool largest, int64_t extent, int64_t k, const Row& at) {
  constexpr int64_t kRoom = 512;  // so that a sort's fixed cost is shared
  const int64_t most = std::min(extent, 2 * k + kRoom);
  const DType type = sort_key_type(compute_type(c.input(0).dtype));
  const SortPairs best(type, most);
  const Local count("count", DType::kI64), last("last", type), key("next_key", type);
  const compute::Axis n = compute::make_axis("n", extent), o = compute::make_axis("o", k);
  const Expr from = ir::variable(n.var), to = ir::variable(o.var), all = ir::constant(k);
  const Expr better =
      ir::make(ir::Op::kOr, {ir::less(count.get(), all), ir::less(key.get(), last.get())});
  std::vector<Stmt> take = best.add(count, key.get(), from);
  if (most < extent) {
    take.push_back(
        ir::make_if(ir::make(ir::Op::kEq, {count.get(), ir::constant(most)}),
                    {best.sort(count.get()), last.set(best.key(all + -1)), count.set(all)}));
  }
  const Stmt scan = loops_over({n}, {key.set(sort_key(c.read(0, "data", at(from)), largest)),
                                     ir::make_if(better, std::move(take))});
  std::vector<Stmt> write = {c.store(0, at(to), c.read(0, "data", at(best.place(to)))),
                             c.store(1, at(to), best.place(to))};
  std::erase(write, nullptr);
  return best.with_memory({with_locals(
      {count, last, key}, {count.set(ir::constant(0)), last.set(highest(type)), scan,
                           best.sort(count.get()), loops_over({o}, std::move(write))})});
}

// A row's elements one after the other into a sorted list of k: an element that stands before the
// last of the list pushes those behind its place on. Equal values stay in order, and what is not a
// number comes last (sort_key).
void emit_top_k(EmitContext& c) {
  const size_t axis = axis_of(c, -1);
  const bool largest = c.node().attributes.integer("largest", 1) != 0;
  const Shape& shape = c.input(0).shape;
  const int64_t k = c.result_at(c.node().outputs[0] != kNoValue ? 0 : 1).shape[axis];
  std::vector<compute::Axis> rows;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != axis) rows.push_back(compute::make_axis(fmt::format("i{}", d), shape[d]));
  }
  const DType type = sort_key_type(compute_type(c.input(0).dtype));
  // (key, place) pairs: the list, the element on its way, the one it displaces.
  struct Pair {
    ir::BufferPtr key, place;
    [[nodiscard]] std::vector<Stmt> set(const Expr& i, const Expr& k, const Expr& p) const {
      return {ir::make_store(key, {i}, k), ir::make_store(place, {i}, p)};
    }
    [[nodiscard]] std::vector<Stmt> set(const Expr& i, const Pair& from, const Expr& j) const {
      return set(i, ir::load(from.key, {j}), ir::load(from.place, {j}));
    }
  };
  const auto pair = [&](const char* name, int64_t extent) {
    const ir::Scope scope = extent > 1 ? ir::Scope::kThread : ir::Scope::kStack;
    return Pair{ir::make_buffer(name, type, {extent}, scope),
                ir::make_buffer(fmt::format("{}_place", name), DType::kI64, {extent}, scope)};
  };
  const auto before = [&](const Pair& a, const Expr& i, const Pair& b, const Expr& j) {
    const Expr v = ir::load(a.key, {i}), w = ir::load(b.key, {j});
    const Expr earlier = ir::less(ir::load(a.place, {i}), ir::load(b.place, {j}));
    return ir::make(ir::Op::kOr,
                    {ir::less(v, w), ir::logical_and(ir::make(ir::Op::kEq, {v, w}), earlier)});
  };
  c.body("top_k", rows, [&](const std::vector<Expr>& row) {
    const auto at = [&](const Expr& r) {
      std::vector<Expr> index = row;
      index.insert(index.begin() + static_cast<long>(axis), r);
      return index;
    };
    constexpr int64_t kMany = 48;  // from here on, in time
    if (k >= kMany) return std::vector{top_of_many(c, largest, shape[axis], k, at)};
    const Pair list = pair("list", k), next = pair("next", 1), old = pair("old", 1);
    const Expr zero = ir::constant(0), last = ir::constant(k - 1);
    const auto loop = [](const char* name, int64_t extent, const auto& body) {
      const compute::Axis axis = compute::make_axis(name, extent);
      return loops_over({axis}, body(ir::variable(axis.var)));
    };
    const auto join = [](std::vector<Stmt> a, const std::vector<Stmt>& b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    const Stmt fill = loop(
        "f", k, [&](const Expr& i) { return list.set(i, highest(type), ir::constant(INT64_MAX)); });
    const Stmt insert = loop("j", k, [&](const Expr& j) {
      return std::vector{ir::make_if(
          before(next, zero, list, j),
          join(join(old.set(zero, list, j), list.set(j, next, zero)), next.set(zero, old, zero)))};
    });
    const Stmt scan = loop("n", shape[axis], [&](const Expr& n) {
      return join(next.set(zero, sort_key(c.read(0, "data", at(n)), largest), n),
                  {ir::make_if(before(next, zero, list, last), {insert})});
    });
    const Stmt write = loop("o", k, [&](const Expr& o) {
      const Expr place = ir::load(list.place, {o});
      std::vector<Stmt> stores = {c.store(0, at(o), c.read(0, "data", at(place))),
                                  c.store(1, at(o), place)};
      std::erase(stores, nullptr);
      return stores;
    });
    Stmt all = ir::make_block({fill, scan, write});
    for (const Pair& p : {list, next, old})
      all = ir::make_alloc(p.key, {ir::make_alloc(p.place, {all})});
    return std::vector{all};
  });
}

Op top_k(int since, int until, int inputs, std::string_view attributes) {
  return {.name = "TopK",
          .since = since,
          .until = until,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .max_outputs = 2,
          .attributes = attributes,
          .infer = infer_top_k,
          .fold = evaluate_node,
          .emit = emit_top_k};
}

}  // namespace

std::span<const Op> selection_ops() {
  static const std::vector<Op> ops = {
      top_k(1, 9, 1, "axis:i k:i"),
      top_k(10, 10, 2, "axis:i"),
      top_k(11, kMaxOpset, 2, "axis:i largest:i sorted:i"),
  };
  return ops;
}

}  // namespace hone::graph
