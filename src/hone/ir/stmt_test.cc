#include "hone/ir/stmt.h"

#include <gtest/gtest.h>

namespace hone::ir {
namespace {

const BufferPtr kBuffer = make_buffer("b", DType::kF32, {8});

Stmt store_at(int64_t i) { return make_store(kBuffer, {constant(i)}, constant_float(0)); }

TEST(stmt, blocks_flatten) {
  const Stmt s = make_block({make_block({store_at(0), store_at(1)}), store_at(2)});
  EXPECT_EQ(s->body.size(), 3U);
  EXPECT_EQ(make_block({make_block({store_at(0)})})->kind, StmtKind::kStore);
  EXPECT_TRUE(make_block({})->body.empty());
  EXPECT_EQ(make_if(constant_bool(true), {s})->body.size(), 3U);
}

TEST(stmt, equality_compares_everything) {
  const VarPtr i = make_var("i");
  const auto loop = [&](int64_t extent, ForKind kind) {
    return make_for(i, constant(0), constant(extent), kind, {store_at(1)});
  };
  EXPECT_TRUE(equal(loop(4, ForKind::kSerial), loop(4, ForKind::kSerial)));
  EXPECT_FALSE(equal(loop(4, ForKind::kSerial), loop(5, ForKind::kSerial)));
  EXPECT_FALSE(equal(loop(4, ForKind::kSerial), loop(4, ForKind::kUnrolled)));
  EXPECT_FALSE(equal(store_at(1), store_at(2)));
}

TEST(stmt, substitution_reaches_every_expression) {
  const VarPtr n = make_var("n");
  const VarPtr i = make_var("i");
  const Expr ni = variable(n) + variable(i);
  const auto build = [&](const Expr& value) {
    return make_for(i, value, value + 1, ForKind::kSerial,
                    {make_if(less(value, constant(5)),
                             {make_store(kBuffer, {value + variable(i)}, load(kBuffer, {value})),
                              make_prefetch(kBuffer, {value})})});
  };
  EXPECT_TRUE(equal(substitute(build(variable(n)), {{n, constant(3)}}), build(constant(3))));
}

TEST(stmt, only_a_parallel_loop_from_zero_makes_tiles) {
  const VarPtr t = make_var("t");
  const auto phase = [&](int64_t min, ForKind kind) {
    return Phase{make_for(t, constant(min), constant(6), kind, {store_at(0)})};
  };
  EXPECT_EQ(phase(0, ForKind::kParallel).num_tiles(), 6);
  EXPECT_EQ(phase(1, ForKind::kParallel).num_tiles(), 1);
  EXPECT_EQ(phase(0, ForKind::kSerial).num_tiles(), 1);
}

}  // namespace
}  // namespace hone::ir
