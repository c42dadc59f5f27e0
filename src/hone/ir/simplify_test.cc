#include "hone/ir/simplify.h"

#include <gtest/gtest.h>

#include "hone/base/rng.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/scalar.h"

namespace hone::ir {
namespace {

// Integer expressions at one point, by the definition of each operator.
struct Point {
  std::vector<std::pair<VarPtr, int64_t>> vars;
  int64_t eval(const Expr& e) const {
    switch (e->op) {
      case Op::kInt: return e->int_value;
      case Op::kVar:
        for (const auto& [v, x] : vars) {
          if (v == e->var) return x;
        }
        break;
      case Op::kLoad: {
        int64_t flat = 0;
        for (size_t d = 0; d < e->args.size(); ++d)
          flat = flat * e->buffer->shape[d] + eval(e->args[d]);
        return static_cast<int64_t>(e->buffer->values.at(static_cast<size_t>(flat)));
      }
      case Op::kSelect: return eval(e->args[eval(e->args[0]) != 0 ? 1 : 2]);
      default:
        if (e->args.size() == 1) return apply_unary(e->op, eval(e->args[0]));
        if (is_compare(e->op)) return apply_compare(e->op, eval(e->args[0]), eval(e->args[1]));
        if (e->args.size() == 2) return apply_binary(e->op, eval(e->args[0]), eval(e->args[1]));
    }
    ADD_FAILURE() << "no value for " << op_info(e->op).name;
    return 0;
  }
};

constexpr Interval kBounds[] = {{0, 7}, {0, 4}, {-3, 3}, {2, 2}};

struct Space {
  std::vector<VarPtr> vars = {make_var("i"), make_var("j"), make_var("k"), make_var("p")};
  BufferPtr table = [] {
    Buffer b{"table", DType::kI64, {2, 3}};
    b.values = {1, 0, 4, -2, 5, 3};
    return std::make_shared<const Buffer>(b);
  }();
  Ranges ranges;
  std::vector<Point> points;
  Space() {
    for (size_t d = 0; d < vars.size(); ++d) ranges.bind(vars[d], kBounds[d]);
    for (int64_t i = kBounds[0].lo; i <= kBounds[0].hi; ++i) {
      for (int64_t j = kBounds[1].lo; j <= kBounds[1].hi; ++j) {
        for (int64_t k = kBounds[2].lo; k <= kBounds[2].hi; ++k) {
          points.push_back({{{vars[0], i}, {vars[1], j}, {vars[2], k}, {vars[3], 2}}});
        }
      }
    }
  }

  Expr index(Rng& rng, int depth) const {
    if (depth == 0 || rng.chance(0.1)) {
      if (rng.chance(0.2)) return constant(rng.between(-9, 9));
      return variable(vars[rng.below(static_cast<int64_t>(vars.size()))]);
    }
    const Expr a = index(rng, depth - 1);
    const int64_t divisors[] = {2, 3, 4, 6, 8, 12};
    const int64_t d = divisors[rng.below(6)];
    switch (rng.below(12)) {
      case 0: return a + index(rng, depth - 1);
      case 1: return a - index(rng, depth - 1);
      case 2: return a * rng.between(-4, 8);
      case 3: return floordiv(a, d);
      case 4: return floormod(a, d);
      case 5: return min(a, index(rng, depth - 1));
      case 6: return max(a, constant(rng.between(-5, 9)));
      case 7: return select(condition(rng, depth - 1), a, index(rng, depth - 1));
      case 8: return a * d + index(rng, depth - 1);
      case 9: {  // what fusing and splitting leave behind
        const Expr fused = variable(vars[0]) * 5 + variable(vars[1]);
        if (rng.chance(0.3)) return floormod(fused, 5 * rng.between(2, 7));
        return rng.chance(0.5) ? floordiv(fused, d) * d + floormod(fused, d)
                               : floordiv(a * 5 + variable(vars[1]), 5);
      }
      case 10: return load(table, {floormod(a, 2), floormod(index(rng, 0), 3)});
      default:
        return min(min(a, constant(rng.between(0, 9))) + rng.between(-2, 2),
                   constant(rng.between(0, 9)));
    }
  }
  Expr condition(Rng& rng, int depth) const {
    if (depth > 0 && rng.chance(0.5)) {
      const Expr a = condition(rng, depth - 1);
      const Expr b = condition(rng, depth - 1);
      switch (rng.below(5)) {
        case 0: return make(Op::kOr, {a, b});
        case 1: return make(Op::kNot, {make(rng.chance(0.5) ? Op::kAnd : Op::kOr, {a, b})});
        case 2: return select(a, constant_bool(true), constant_bool(false));
        default: return logical_and(a, b);
      }
    }
    const Op ops[] = {Op::kLt, Op::kLe, Op::kEq, Op::kNe};
    return make(
        ops[rng.below(4)],
        {index(rng, depth), rng.chance(0.5) ? constant(rng.between(-4, 20)) : index(rng, depth)});
  }
};

int64_t size_of(const Expr& e) {
  int64_t n = 0;
  visit(e, [&](const Expr&) { ++n; });
  return n;
}

TEST(simplify, random_expressions_keep_their_values_and_every_rule_fires) {
  const Space space;
  std::array<int64_t, kNumRules> fired = {};
  const SimplifyOptions options = {.finite_math = true, .fired = &fired};
  int64_t before = 0, after = 0;
  for (uint64_t seed = 0; seed < 8000; ++seed) {
    Rng rng(seed);
    const Expr e = seed % 3 == 0 ? space.condition(rng, 2) : space.index(rng, 3);
    const Expr s = simplify(e, space.ranges, options);
    before += size_of(e), after += size_of(s);
    ASSERT_EQ(s->type, e->type);
    for (const Point& p : space.points) ASSERT_EQ(p.eval(e), p.eval(s)) << "seed " << seed;
    const Interval i = space.ranges.of(s);
    for (const Point& p : space.points) {
      ASSERT_LE(i.lo, p.eval(s)) << "seed " << seed;
      ASSERT_GE(i.hi, p.eval(s)) << "seed " << seed;
    }
  }
  EXPECT_LT(after * 2, before);
  const BufferPtr x = make_buffer("x", DType::kF32, {});
  EXPECT_EQ(simplify(load(x, {}) * 0, {}, options)->op, Op::kFloat);
  for (int r = 0; r < kNumRules; ++r) {
    EXPECT_GE(fired[r], r == static_cast<int>(Rule::kFiniteZero) ? 1 : 20)
        << rule_name(static_cast<Rule>(r));
  }
}

TEST(simplify, facts_keep_values_where_they_hold) {
  const Space space;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const Expr fact = space.condition(rng, 1);
    const Expr e = seed % 2 == 0 ? space.condition(rng, 2) : space.index(rng, 2);
    Ranges ranges = space.ranges;
    ranges.assume(fact);
    const Expr s = simplify(e, ranges);
    for (const Point& p : space.points) {
      if (p.eval(fact) != 0) {
        ASSERT_EQ(p.eval(e), p.eval(s)) << "seed " << seed;
      }
    }
  }
}

struct Case {
  Expr from, to;
};

TEST(simplify, index_forms) {
  const VarPtr vx = make_var("x"), vy = make_var("y"), vo = make_var("o"), vi = make_var("i");
  const Expr x = variable(vx), y = variable(vy), o = variable(vo), i = variable(vi);
  Ranges ranges;
  ranges.bind(vx, {0, 95});
  ranges.bind(vy, {0, 63});
  ranges.bind(vo, {0, 11});
  ranges.bind(vi, {0, 7});
  const Expr fused = o * 8 + i;
  const std::vector<Case> cases = {
      {floordiv(fused, 8), o},
      {floormod(fused, 8), i},
      {floordiv(fused, 4), o * 2 + floordiv(i, 4)},
      {floordiv(fused, 16), floordiv(o, 2)},
      {floormod(fused, 16), i + floormod(o, 2) * 8},
      {floordiv(x, 8) * 8 + floormod(x, 8), x},
      {floordiv(floordiv(x, 4), 3), floordiv(x, 12)},
      {floormod(floormod(x, 24), 8), floormod(x, 8)},
      {floordiv(floordiv(x, 4), 3) * 3 + floormod(floordiv(x, 4), 3), floordiv(x, 4)},
      // Each digit of a number was simplified before they are put together.
      {floordiv(x * 64 + y, 20) * 5 + floormod(x * 16 + floordiv(y, 4), 5),
       x * 16 + floordiv(y, 4)},
      {floordiv(x * 64 + y - 40, 20) * 5 + floormod(x * 16 + floordiv(y, 4), 5),
       x * 16 + floordiv(y, 4) - 10},
      {min(i, constant(7)), i},
      {min(i + 3, constant(20)) - i, constant(3)},
      {less(fused, constant(96)), constant_bool(true)},
      {less(fused + 1, o * 8), constant_bool(false)},
      {less(i * 4, constant(10)), less(i, constant(3))},
      {less_equal(constant(9), i * 2), less_equal(constant(5), i)},
      {less(i + 2, o + 3), less_equal(i, o)},
      {make(Op::kNot, {less(i, constant(3))}), less_equal(constant(3), i)},
      {logical_and(less(i, constant(5)), less(i, constant(3))), less(i, constant(3))},
      {logical_and(less(i, constant(3)), less_equal(constant(5), i)), constant_bool(false)},
      {make(Op::kEq, {i * 2, constant(5)}), constant_bool(false)},
      {select(less(i, constant(8)), i, o), i},
  };
  for (size_t c = 0; c < cases.size(); ++c) {
    EXPECT_TRUE(equal(simplify(cases[c].from, ranges), cases[c].to)) << "case " << c;
  }
}

TEST(simplify, is_idempotent_on_random_expressions) {
  const Space space;
  int64_t changed = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const Expr once = simplify(space.index(rng, 3), space.ranges);
    changed += !equal(once, simplify(once, space.ranges));
  }
  EXPECT_LE(changed, 60) << "a second run should rarely find more";
}

TEST(simplify, floats_are_not_reassociated) {
  const BufferPtr b = make_buffer("b", DType::kF32, {4});
  const VarPtr v = make_var("i");
  const Expr x = load(b, {variable(v) + 1 - 1});
  const Expr e = (x + constant_float(1e8)) - constant_float(1e8);
  const Expr s = simplify(e, {});
  EXPECT_EQ(s->op, Op::kSub);
  EXPECT_TRUE(equal(s->args[0]->args[0], load(b, {variable(v)})))
      << "but indices inside are simplified";
  EXPECT_EQ(simplify(x * 0, {})->op, Op::kMul);
}

// ---- statements ----

const BufferPtr kOut = make_buffer("y", DType::kF32, {64});
Stmt store(const Expr& index, double value = 1) {
  return make_store(kOut, {index}, constant_float(value));
}
Stmt loop(const VarPtr& v, int64_t extent, std::vector<Stmt> body) {
  return make_for(v, constant(0), constant(extent), ForKind::kSerial, std::move(body));
}

TEST(simplify_stmt, guards_that_ranges_prove_vanish) {
  const VarPtr o = make_var("o"), i = make_var("i");
  const Expr index = variable(o) * 8 + variable(i);
  const auto program = [&](int64_t limit) {
    return loop(o, 4, {loop(i, 8, {make_if(less(index, constant(limit)), {store(index)})})});
  };
  EXPECT_EQ(simplify(program(32), Ranges())->body[0]->body[0]->kind, StmtKind::kStore);
  EXPECT_EQ(simplify(program(31), Ranges())->body[0]->body[0]->kind, StmtKind::kIf);
  EXPECT_TRUE(simplify(program(0), Ranges())->body.empty());
}

TEST(simplify_stmt, conditions_are_facts_inside) {
  const VarPtr i = make_var("i"), n = make_var("n");
  Ranges ranges;
  ranges.bind(n, {0, 50});
  const Expr inside = less(variable(i) + variable(n), constant(9));
  const Stmt s = make_if(
      inside, {make_if(less(variable(i) + variable(n), constant(10)), {store(variable(i))})});
  const Stmt simple = simplify(s, ranges);
  ASSERT_EQ(simple->kind, StmtKind::kIf);
  EXPECT_EQ(simple->body[0]->kind, StmtKind::kStore);
}

TEST(simplify_stmt, loops_of_one_or_no_iteration) {
  const VarPtr i = make_var("i");
  EXPECT_TRUE(equal(
      simplify(make_for(i, constant(3), constant(1), ForKind::kVectorized, {store(variable(i))}),
               Ranges()),
      store(constant(3))));
  EXPECT_TRUE(simplify(loop(i, 0, {store(variable(i))}), Ranges())->body.empty());
  EXPECT_TRUE(simplify(loop(i, 5, {}), Ranges())->body.empty());
}

TEST(simplify_stmt, a_loop_over_threads_stays_even_with_one_iteration) {
  const VarPtr t = make_var("t");
  const auto one_thread = [&](const Stmt& body) {
    return make_for(t, constant(0), constant(1), ForKind::kThread, {body});
  };
  const Stmt simple = simplify(one_thread(store(variable(t) + 2)), Ranges());
  EXPECT_TRUE(equal(simple, one_thread(store(constant(2)))));
}

TEST(simplify_stmt, neighbouring_ifs_join_and_nested_ifs_merge) {
  const Expr n = variable(make_var("n"));
  const Expr c = less(n, constant(3));
  const Stmt s = simplify(
      make_block({make_if(c, {store(constant(0))}), make_if(c, {store(constant(1))})}), Ranges());
  ASSERT_EQ(s->kind, StmtKind::kIf);
  EXPECT_EQ(s->body.size(), 2U);
  const Stmt nested =
      simplify(make_if(c, {make_if(less_equal(constant(0), n), {store(constant(0))})}), Ranges());
  EXPECT_EQ(nested->condition->op, Op::kAnd);
  const Expr loaded = make(Op::kLt, {load(kOut, {n}), constant_float(0)});
  EXPECT_EQ(simplify(make_if(c, {make_if(loaded, {store(n)})}), Ranges())->body[0]->kind,
            StmtKind::kIf)
      << "a load stays behind its guard";
}

TEST(simplify_stmt, dead_allocations_go) {
  const BufferPtr t = make_buffer("t", DType::kF32, {4}, Scope::kStack);
  const Stmt fill = make_store(t, {constant(0)}, constant_float(1));
  EXPECT_EQ(simplify(make_alloc(t, {fill, store(constant(0))}), Ranges())->kind, StmtKind::kStore);
  const Stmt used = make_alloc(t, {fill, make_store(kOut, {constant(0)}, load(t, {constant(0)}))});
  EXPECT_EQ(simplify(used, Ranges())->kind, StmtKind::kAlloc);
}

TEST(simplify_stmt, a_store_of_the_own_value_goes) {
  const Expr n = variable(make_var("n"));
  EXPECT_TRUE(simplify(make_store(kOut, {n}, load(kOut, {n + 1 - 1}) + 0), Ranges())->body.empty());
}

}  // namespace
}  // namespace hone::ir
