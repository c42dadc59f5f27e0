#include "hone/ir/passes/partition_loops.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/rng.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/linear.h"
#include "hone/ir/passes/hoist_guards.h"
#include "hone/ir/printer.h"

namespace hone::ir {
namespace {

Stmt loop(const VarPtr& v, int64_t extent, std::vector<Stmt> body, bool peel = false,
          ForKind kind = ForKind::kSerial) {
  return make_for(v, constant(0), constant(extent), kind, std::move(body), peel);
}
int64_t count(const Stmt& s, StmtKind kind) {
  int64_t n = s->kind == kind;
  for (const Stmt& child : s->body) n += count(child, kind);
  return n;
}
bool has_select(const Stmt& s) {
  bool found = false;
  if (s->value) visit(s->value, [&](const Expr& e) { found |= e->op == Op::kSelect; });
  for (const Stmt& child : s->body) found |= has_select(child);
  return found;
}

// y = x padded by p on both sides, read by a window of 3: y[o, i] = sum over k of x[4*o + i + k -
// p].
struct Window {
  int64_t n;
  BufferPtr x, y;
  VarPtr o = make_var("o"), i = make_var("i"), k = make_var("k");
  explicit Window(int64_t size)
      : n(size), x(make_buffer("x", DType::kF32, {n})), y(make_buffer("y", DType::kF32, {n})) {}
  Program program(bool peel, ForKind outer = ForKind::kSerial) const {
    const Expr at = variable(o) * 4 + variable(i);
    const Expr from = at + variable(k) - 1;
    const Expr inside = logical_and(less_equal(constant(0), from), less(from, constant(n)));
    const Expr read = select(inside, load(x, {from}), constant_float(0));
    const Stmt update = loop(k, 3, {make_store(y, {at}, load(y, {at}) + read)});
    const Stmt body = loop(
        o, (n + 3) / 4,
        {loop(i, 4,
              {make_if(less(at, constant(n)), {make_store(y, {at}, constant_float(0)), update})})},
        peel, outer);
    return {"window", {{x, Role::kInput}, {y, Role::kOutput}}, {{body}}};
  }
};

void expect_same(const Program& a, const Program& b) {
  std::vector<Tensor> left = random_arguments(a, 1);
  std::vector<Tensor> right = random_arguments(b, 1);
  ASSERT_TRUE(run(a, left).ok());
  const Status status = run(b, right);
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t p = 0; p < left.size(); ++p) {
    for (int64_t i = 0; i < left[p].size(); ++i) {
      if (std::isnan(left[p].at(i)) && std::isnan(right[p].at(i))) continue;  // never stored
      ASSERT_EQ(left[p].at(i), right[p].at(i)) << "param " << p << " at " << i;
    }
  }
}

TEST(partition_loops, the_main_part_has_no_guard) {
  for (int64_t n : {16, 17, 18, 19, 4, 3, 1, 64}) {
    const Window w(n);
    const Program split = partition_loops(w.program(true));
    expect_same(w.program(false), split);
    if (n < 16) continue;
    const std::vector<Stmt>& parts = split.phases[0].body->body;
    bool clean = false;
    for (const Stmt& part : parts) {
      const bool is_main = part->kind == StmtKind::kFor && part->var == w.o;
      clean |= is_main && count(part, StmtKind::kIf) == 0 && !has_select(part);
    }
    EXPECT_TRUE(clean) << "n = " << n;
  }
}

TEST(partition_loops, loops_without_the_mark_stay_whole) {
  const Window w(18);
  EXPECT_EQ(partition_loops(w.program(false)).phases[0].body->kind, StmtKind::kFor);
}

// out[o * 2 + i] += x[k]: tiles of 2, of which the last one has a single point if n is odd.
Program tiles_of_two(int64_t n, ForKind inner) {
  const BufferPtr x = make_buffer("x", DType::kF32, {8}),
                  out = make_buffer("out", DType::kF32, {n});
  const VarPtr o = make_var("o"), k = make_var("k"), i = make_var("i"), z = make_var("z");
  const Expr at = variable(o) * 2 + variable(i);
  const Stmt add = make_store(out, {at}, load(out, {at}) + load(x, {variable(k)}));
  const Stmt sum = loop(k, 8, {loop(i, 2, {make_if(less(at, constant(n)), {add})}, false, inner)});
  const Stmt zero = loop(z, n, {make_store(out, {variable(z)}, constant_float(0))});
  return {
      "tiles", {{x, Role::kInput}, {out, Role::kOutput}}, {{zero}, {loop(o, (n + 1) / 2, {sum})}}};
}

TEST(partition_loops, a_tile_that_tests_its_points_in_each_step_of_a_sum_is_split_off) {
  for (const int64_t n : {1, 5, 6, 7}) {
    const Program tiles = tiles_of_two(n, ForKind::kUnrolled);
    const Program made = partition_loops(tiles);
    EXPECT_EQ(count(made.phases[1].body, StmtKind::kIf), 0) << print(made);
    expect_same(tiles, made);
  }
  // A loop over points that is no tile has its own end.
  const Program serial = partition_loops(tiles_of_two(5, ForKind::kSerial));
  EXPECT_EQ(count(serial.phases[1].body, StmtKind::kIf), 1) << print(serial);
}

TEST(partition_loops, parallel_loops_stay_one_loop_from_zero) {
  const Window w(18);
  const Program split = partition_loops(w.program(true, ForKind::kParallel));
  EXPECT_EQ(split.phases[0].num_tiles(), 5);
  expect_same(w.program(false), split);
}

// One test a tile, before code without any and behind it what was there; the same with the tiles
// of several images, which are told by a remainder.
TEST(partition_loops, a_parallel_loop_tests_its_tiles_once) {
  for (const int64_t images : {1, 3}) {
    const int64_t n = 18, tiles = 5;
    const BufferPtr x = make_buffer("x", DType::kF32, {images, n});
    const BufferPtr y = make_buffer("y", DType::kF32, {images, n});
    const VarPtr t = make_var("t"), i = make_var("i");
    const Expr tile = images > 1 ? floormod(variable(t), tiles) : variable(t);
    const Expr image = images > 1 ? floordiv(variable(t), tiles) : constant(0);
    const Expr at = tile * 4 + variable(i);
    const auto program = [&](bool peel) {
      const Stmt store = make_store(y, {image, at}, load(x, {image, at}));
      const Stmt body =
          loop(t, images * tiles,
               {loop(i, 4, {make_if(less(at, constant(n)), {store})}, false, ForKind::kVectorized)},
               peel, ForKind::kParallel);
      return Program{"copy", {{x, Role::kInput}, {y, Role::kOutput}}, {{body}}};
    };
    const Program tested = partition_loops(program(true));
    expect_same(program(false), tested);
    EXPECT_EQ(tested.phases[0].num_tiles(), images * tiles);
    const std::vector<Stmt>& parts = tested.phases[0].body->body;
    ASSERT_EQ(parts.size(), 2U);
    ASSERT_EQ(parts[0]->kind, StmtKind::kIf);
    EXPECT_EQ(count(parts[0], StmtKind::kIf), 1) << "the tile's own";
    EXPECT_TRUE(is_const_int(parts[0]->body[0]->extent, 4)) << "of the full tile";
    EXPECT_EQ(print(partition_loops(tested)), print(tested)) << "the mark is gone";
    EXPECT_EQ(count(partition_loops(program(false)).phases[0].body, StmtKind::kIf), 1);
    EXPECT_EQ(
        count(partition_loops(program(true), {.max_statements = 5}).phases[0].body, StmtKind::kIf),
        1);
  }
}

TEST(partition_loops, growth_is_limited) {
  const Window w(18);
  EXPECT_EQ(partition_loops(w.program(true), {.max_statements = 10}).phases[0].body->kind,
            StmtKind::kFor);
}

TEST(partition_loops, first_iteration_is_split_off) {
  const BufferPtr y = make_buffer("y", DType::kF32, {});
  const VarPtr k = make_var("k");
  const Stmt body = loop(
      k, 8,
      {make_if(make(Op::kEq, {variable(k), constant(0)}), {make_store(y, {}, constant_float(0))}),
       make_store(y, {}, load(y, {}) + cast(DType::kF32, variable(k)))},
      true);
  const Program program{"sum", {{y, Role::kOutput}}, {{body}}};
  const Program split = partition_loops(program);
  expect_same(program, split);
  EXPECT_EQ(count(split.phases[0].body, StmtKind::kIf), 0);
  EXPECT_EQ(count(split.phases[0].body, StmtKind::kFor), 1);
}

TEST(partition_loops, tightens_loops_under_their_own_guard) {
  const BufferPtr y = make_buffer("y", DType::kF32, {32});
  const VarPtr i = make_var("i"), n = make_var("n");
  const Expr vi = variable(i);
  const auto tight = [&](const Expr& condition, ForKind kind) {
    const Stmt body =
        loop(i, 16, {make_if(condition, {make_store(y, {vi}, constant_float(1))})}, false, kind);
    const Program program{"p", {{y, Role::kWorkspace}}, {{body}}};
    return partition_loops(program).phases[0].body;
  };
  for (ForKind kind :
       {ForKind::kSerial, ForKind::kVectorized, ForKind::kUnrolled, ForKind::kParallel}) {
    const Stmt upper = tight(less(vi + 3, constant(8)), kind);
    ASSERT_EQ(upper->kind, StmtKind::kFor);
    EXPECT_TRUE(is_const_int(upper->extent, 5));
    EXPECT_EQ(upper->body[0]->kind, StmtKind::kStore);
  }
  const Stmt lower = tight(less_equal(constant(9), vi * 2), ForKind::kVectorized);
  EXPECT_TRUE(is_const_int(lower->min, 5) && is_const_int(lower->extent, 11));
  const Stmt parallel = tight(less_equal(constant(9), vi * 2), ForKind::kParallel);
  EXPECT_TRUE(is_const_int(parallel->min, 0));
  EXPECT_EQ(parallel->body[0]->kind, StmtKind::kIf);
}

// A guard that other terms decide as well is no bound, even if those terms have known ranges.
TEST(partition_loops, guards_with_other_terms_stay) {
  const BufferPtr y = make_buffer("y", DType::kF32, {8});
  const VarPtr o = make_var("o"), i = make_var("i");
  const Expr limit = floormod(variable(o), 4) + 2;
  const Stmt store = make_store(y, {variable(i)}, load(y, {variable(i)}) + 1);
  const Stmt body = loop(o, 8, {loop(i, 8, {make_if(less(variable(i), limit), {store})})});
  const Stmt clear = loop(i, 8, {make_store(y, {variable(i)}, constant_float(0))});
  const Program program{"p", {{y, Role::kOutput}}, {{make_block({clear, body})}}};
  expect_same(program, partition_loops(program));
}

// The last part's inner loop is shorter, which makes the window's loop worth splitting.
TEST(partition_loops, tight_loops_decide_where_to_split) {
  const Window w(18);
  const Program window = w.program(true);
  const Stmt outer = window.phases[0].body;
  const Stmt inner = outer->body[0];
  const Stmt update = inner->body[0]->body[1];
  const Expr guard = inner->body[0]->condition;
  const Stmt swapped = make_for(w.k, constant(0), constant(3), ForKind::kSerial,
                                {loop(w.i, 4, {make_if(guard, update->body)})}, true);
  const Stmt clear = loop(w.i, 4, {make_if(guard, {inner->body[0]->body[0]})});
  const Program program{"window", window.params, {{loop(w.o, 5, {clear, swapped}, true)}}};
  const Program split = partition_loops(program);
  expect_same(program, split);
  EXPECT_EQ(count(split.phases[0].body, StmtKind::kIf), 0);
}

TEST(partition_loops, random_guards_keep_the_result) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    const std::vector<VarPtr> vars = {make_var("a"), make_var("b"), make_var("c")};
    const BufferPtr y = make_buffer("y", DType::kI64, {});
    const auto linear = [&] {
      Expr e = constant(rng.between(-6, 6));
      for (const VarPtr& v : vars) e = e + variable(v) * rng.between(-2, 4);
      return e;
    };
    const auto condition = [&] {
      const Op ops[] = {Op::kLt, Op::kLe, Op::kEq, Op::kNe};
      Expr c = make(ops[rng.below(4)], {linear(), linear()});
      if (rng.chance(0.3))
        c = logical_and(c, less(variable(rng.choice(vars)), constant(rng.between(0, 6))));
      return c;
    };
    // A hash of every iteration that runs, in order.
    const auto touch = [&] {
      return make_store(
          y, {},
          floormod(load(y, {}) * 31 + linear() + select(condition(), constant(7), constant(3)),
                   1000003));
    };
    std::vector<Stmt> body = {make_if(condition(), {touch()}), touch()};
    if (rng.chance(0.5)) body = {make_if(condition(), body)};
    for (size_t v = vars.size(); v-- > 0;) {
      const auto kind = static_cast<ForKind>(rng.chance(0.5) ? 0 : 3);
      body = {make_for(vars[v], constant(rng.between(-2, 2)), constant(rng.between(1, 7)), kind,
                       body, rng.chance(0.7))};
      if (rng.chance(0.3))
        body = {make_if(less(variable(vars[v == 0 ? 0 : v - 1]), constant(3)), body)};
      if (v == 0 && body[0]->kind == StmtKind::kIf) body = body[0]->body;
    }
    body.insert(body.begin(), make_store(y, {}, constant(1)));
    const Program program{"p", {{y, Role::kOutput}}, {{make_block(body)}}};
    SCOPED_TRACE(seed);
    expect_same(program, partition_loops(program));
    expect_same(program, hoist_guards(program));
    if (HasFatalFailure()) return;
  }
}

TEST(hoist_guards, splits_conjuncts_by_what_they_depend_on) {
  const BufferPtr y = make_buffer("y", DType::kF32, {32});
  const VarPtr o = make_var("o"), i = make_var("i");
  const Expr outer = less(variable(o), constant(5)), inner = less(variable(i), constant(3));
  const Stmt store = make_store(y, {variable(i)}, constant_float(1));
  const Stmt s =
      hoist_guards(loop(o, 8, {loop(i, 8, {make_if(logical_and(outer, inner), {store})})}));
  const Stmt expected = loop(o, 8, {make_if(outer, {loop(i, 8, {make_if(inner, {store})})})});
  EXPECT_TRUE(equal(s, expected));
}

TEST(hoist_guards, conditions_with_loads_stay) {
  const BufferPtr y = make_buffer("y", DType::kF32, {32});
  const VarPtr i = make_var("i");
  const Expr condition = make(Op::kLt, {load(y, {constant(0)}), constant_float(1)});
  const Stmt s =
      loop(i, 8, {make_if(condition, {make_store(y, {variable(i)}, constant_float(1))})});
  EXPECT_TRUE(equal(hoist_guards(s), s));
}

// y[t, i, j] = x[16*t + 4*i + j], if there is one.
struct Tiles {
  BufferPtr x = make_buffer("x", DType::kF32, {21}), y = make_buffer("y", DType::kF32, {2, 4, 4});
  VarPtr t = make_var("t"), i = make_var("i"), j = make_var("j");
  Program program(bool peel) const {
    const Expr from = variable(t) * 16 + variable(i) * 4 + variable(j);
    const Stmt store = make_store(y, {variable(t), variable(i), variable(j)}, load(x, {from}));
    const Stmt rows = loop(i, 4, {loop(j, 4, {make_if(less(from, constant(21)), {store})})}, peel);
    return {"tiles",
            {{x, Role::kInput}, {y, Role::kOutput}},
            {{loop(t, 2, {rows}, peel, ForKind::kParallel)}}};
  }
};

TEST(partition_loops, leaves_out_iterations_that_store_nothing) {
  const Tiles tiles;
  const Program done = partition_loops(tiles.program(true));
  expect_same(tiles.program(false), done);
  // The last tile has 5 elements: a whole row and one of the next, none of the last two rows. That
  // it is the second tile is known, so its rows are.
  const std::string text = print(done);
  EXPECT_EQ(count(done.phases[0].body, StmtKind::kStore), 3) << text;
  EXPECT_EQ(count(done.phases[0].body, StmtKind::kIf), 2) << text;  // which tile it is
  EXPECT_EQ(text.find("1..4"), std::string::npos) << text;
}

}  // namespace
}  // namespace hone::ir
