#include "hone/ir/passes/prefetch_next.h"

#include <gtest/gtest.h>

#include "hone/ir/prefetch_testing.h"
#include "hone/ir/printer.h"

namespace hone::ir {
namespace {

constexpr int64_t kRows = 64, kRow = 256, kBlock = 8, kDepth = 16;

using testing::count;
using testing::first;
using testing::kLine;
using testing::loop;
using testing::prefetched;
using testing::zero;

// Blocks of rows: sums of a row and the `below` rows behind it, then a nest that reads them 16
// times.
struct Blocks {
  int64_t below = 2;
  BufferPtr data = make_buffer("data", DType::kF32, {kRows + below, kRow});
  BufferPtr out = make_buffer("out", DType::kF32, {kRows, kRow});
  VarPtr block = make_var("block"), row = make_var("row"), column = make_var("column"),
         tap = make_var("tap"), r = make_var("r"), k = make_var("k"), c = make_var("c");
  bool reads_again = false;  // the last nest reads the data, too

  [[nodiscard]] Program program(ForKind kind = ForKind::kParallel) const {
    const BufferPtr between = make_buffer("between", DType::kF32, {kBlock, kRow}, Scope::kThread);
    const Expr begin = variable(block) * kBlock;
    const std::vector<Expr> at = {variable(row), variable(column)};
    const Expr read = load(data, {begin + variable(row) + variable(tap), variable(column)});
    const Stmt sum = make_store(between, at, load(between, at) + read);
    const Stmt start = make_store(between, at, constant_float(0));
    const Stmt taps = loop(tap, below + 1, {sum}, ForKind::kUnrolled);
    const Stmt windows = loop(row, kBlock, {loop(column, kRow, {start, taps})});
    const std::vector<Expr> to = {begin + variable(r), variable(c)};
    Expr term = load(between, {variable(r), variable(c)});
    if (reads_again) term = term + load(data, to);
    const Stmt add = make_store(out, to, load(out, to) + term);
    const Stmt products =
        loop(r, kBlock, {loop(k, kDepth, {loop(c, kRow, {add}, ForKind::kVectorized)})});
    const Stmt inside = make_alloc(between, {windows, products});
    return {"blocks",
            {{data, Role::kInput}, {out, Role::kOutput}},
            {{zero(out)}, {loop(block, kRows / kBlock, {inside}, kind)}}};
  }
};

const PrefetchNextOptions kAll = {.min_bytes = 0};

int64_t hints(const Program& program) { return count(program.phases[1].body, StmtKind::kPrefetch); }

TEST(prefetch_next, every_line_that_later_blocks_add_once) {
  for (const ForKind kind : {ForKind::kParallel, ForKind::kSerial}) {
    for (const int64_t below : {0, 2}) {
      const Blocks blocks{below};
      const Program hinted = prefetch_next(blocks.program(kind), kAll);
      ASSERT_EQ(hints(hinted), 1);
      EXPECT_EQ(first(hinted.phases[1].body, StmtKind::kPrefetch)->cache, 2);
      const std::vector<float> lines = prefetched(hinted, blocks.data);
      const auto begin = static_cast<size_t>((kBlock + below) * kRow / kLine);
      const auto block = static_cast<size_t>(kBlock * kRow / kLine);
      for (size_t i = 0; i < lines.size(); ++i) {
        const bool wanted = i >= begin && i < begin + block * (kRows / kBlock);
        EXPECT_EQ(lines[i], wanted ? 1 : 0) << i;
      }
    }
  }
}

TEST(prefetch_next, hints_stand_in_the_last_nest) {
  const Program hinted = prefetch_next(Blocks{}.program(), kAll);
  const Stmt& alloc = hinted.phases[1].body->body[0];
  EXPECT_EQ(count(alloc->body[0], StmtKind::kPrefetch), 0);
  EXPECT_EQ(count(alloc->body[1], StmtKind::kPrefetch), 1);
}

TEST(prefetch_next, the_program_computes_the_same) {
  const Program plain = Blocks{}.program(), hinted = prefetch_next(plain, kAll);
  std::vector<Tensor> a = random_arguments(plain, 1), b = random_arguments(hinted, 1);
  ASSERT_TRUE(run(plain, a).ok());
  ASSERT_TRUE(run(hinted, b).ok());
  for (int64_t i = 0; i < hinted.params[1].buffer->num_elements(); ++i)
    ASSERT_EQ(a[1].at(i), b[1].at(i)) << i;
}

TEST(prefetch_next, nothing_where_it_does_not_pay) {
  EXPECT_EQ(hints(prefetch_next(Blocks{}.program())), 0) << "a buffer that stays near";
  Blocks again;
  again.reads_again = true;
  EXPECT_EQ(hints(prefetch_next(again.program(), kAll)), 0) << "read by the last nest, too";
  PrefetchNextOptions small = kAll;
  small.max_bytes = kBlock * kRow * 4 - 1;
  EXPECT_EQ(hints(prefetch_next(Blocks{}.program(), small)), 0) << "more than the cache keeps";
  PrefetchNextOptions few = kAll;
  few.max_lines = 0;
  EXPECT_EQ(hints(prefetch_next(Blocks{}.program(), few)), 0) << "more than a step can ask for";
}

}  // namespace
}  // namespace hone::ir
