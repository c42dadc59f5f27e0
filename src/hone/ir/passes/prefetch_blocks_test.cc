#include "hone/ir/passes/prefetch_blocks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/ir/prefetch_testing.h"
#include "hone/ir/printer.h"
#include "hone/ir/verifier.h"

namespace hone::ir {
namespace {

constexpr int64_t kColumns = 64, kDepth = 32, kTile = 4, kLanes = 16;

using testing::count;
using testing::first;
using testing::kLine;
using testing::loop;
using testing::prefetched;
using testing::zero;

// out[i, n] += a[i, k] * w[n / lanes, k, n % lanes] in tiles of 4 rows and of so many columns.
struct Product {
  int64_t rows, lanes = kLanes;
  BufferPtr a = make_buffer("a", DType::kF32, {rows, kDepth});
  BufferPtr w = make_buffer("w", DType::kF32, {kColumns / lanes, kDepth, lanes});
  BufferPtr out = make_buffer("out", DType::kF32, {rows, kColumns});
  VarPtr m = make_var("m"), n = make_var("n"), k = make_var("k"), i = make_var("i"),
         lane = make_var("lane"), tile = make_var("tile");

  Stmt inside(const Expr& row_tile, const Expr& panel) const {
    const Expr row = row_tile * kTile + variable(i);
    const std::vector<Expr> at = {row, panel * lanes + variable(lane)};
    const Expr product =
        load(a, {row, variable(k)}) * load(w, {panel, variable(k), variable(lane)});
    const Stmt vector =
        loop(lane, lanes, {make_store(out, at, load(out, at) + product)}, ForKind::kVectorized);
    return loop(k, kDepth, {loop(i, kTile, {vector}, ForKind::kUnrolled)});
  }
  Program of(const Stmt& body) const {
    return {"product",
            {{a, Role::kInput}, {w, Role::kPacked}, {out, Role::kOutput}},
            {{zero(out)}, {body}}};
  }
  // The weights' panels outside, the rows inside.
  Program by_panel() const {
    const Stmt rows_inside = loop(m, rows / kTile, {inside(variable(m), variable(n))});
    return of(loop(n, kColumns / lanes, {rows_inside}, ForKind::kParallel));
  }
  // Both in one loop.
  Program fused() const {
    const int64_t tiles = rows / kTile;
    const Stmt body = inside(floormod(variable(tile), tiles), floordiv(variable(tile), tiles));
    return of(loop(tile, tiles * kColumns / lanes, {body}, ForKind::kParallel));
  }
  Program by_row() const {
    const Stmt panels_inside = loop(n, kColumns / lanes, {inside(variable(m), variable(n))});
    return of(loop(m, rows / kTile, {panels_inside}));
  }
};

TEST(prefetch_blocks, each_line_of_every_next_block_once_or_more) {
  for (const int64_t rows : {12, 16, 28, 128}) {
    const Product p{rows};
    for (const Program& program : {p.by_panel(), p.fused()}) {
      const Program hinted = prefetch_blocks(program);
      const std::vector<float> lines = prefetched(hinted, p.w);
      const auto panel = static_cast<size_t>(kDepth);  // lines of one
      const size_t panels = kColumns / kLanes;
      for (size_t i = 0; i < panel; ++i) EXPECT_EQ(lines[i], 0) << "the first comes from nowhere";
      for (size_t i = panel; i < (panels + 1) * panel; ++i)
        EXPECT_GE(lines[i], 1) << "line " << i << " with " << rows << " rows\n" << print(hinted);
      // Lines behind the buffer are prefetched at most once, as steps are rounded up.
      for (size_t i = (panels + 2) * panel; i < lines.size(); ++i) EXPECT_EQ(lines[i], 0);
    }
  }
}

// Gives the loop over a variable another number of iterations.
Stmt with_extent(const Stmt& s, const VarPtr& var, int64_t extent) {
  std::vector<Stmt> body;
  for (const Stmt& child : s->body) body.push_back(with_extent(child, var, extent));
  if (s->kind == StmtKind::kFor && s->var == var)
    return make_for(var, constant(0), constant(extent), s->for_kind, std::move(body));
  return s->body.empty() ? s : with_body(*s, std::move(body));
}

// How many lines behind the first panel a run of so many tiles of rows prefetches.
int64_t lines_ahead(const Product& p, int64_t tiles, const PrefetchOptions& options) {
  Program program = prefetch_blocks(p.by_panel(), options);
  program.phases[1].body = with_extent(program.phases[1].body, p.m, tiles);
  const std::vector<float> lines = prefetched(program, p.w);
  const int64_t panel = kDepth * p.lanes / kLine;
  return std::count_if(lines.begin() + panel, lines.end(), [](float times) { return times > 0; });
}

TEST(prefetch_blocks, early_hints_are_there_for_runs_of_few_rows) {
  const int64_t all = kDepth * kColumns / kLine;
  const Product p{128};
  EXPECT_LT(lines_ahead(p, 1, {}), all / 4);
  EXPECT_EQ(lines_ahead(p, 1, {.is_early = true}), all);
  // Panels of two lines a term: there are hints for one of them with each term, so that two tiles
  // of rows share them.
  const Product wide{128, 2 * kLine};
  EXPECT_EQ(lines_ahead(wide, 1, {.is_early = true}), all / 2);
  EXPECT_EQ(lines_ahead(wide, 2, {.is_early = true}), all);
  EXPECT_EQ(lines_ahead(wide, 1, {.is_early = true, .min_work = 2}), all);
}

TEST(prefetch_blocks, early_hints_repeat_at_the_same_lines) {
  for (const Product& p : {Product{128}, Product{128, 2 * kLine}}) {
    const int64_t panel = kDepth * p.lanes / kLine, terms = kDepth * 128 / kTile;
    for (const Program& program : {p.by_panel(), p.fused()}) {
      const std::vector<float> lines =
          prefetched(prefetch_blocks(program, {.is_early = true}), p.w);
      for (int64_t i = 0; i < kDepth * kColumns / kLine; ++i) {
        const int64_t times = i < panel ? 0 : terms / panel;
        EXPECT_EQ(lines[static_cast<size_t>(i)], static_cast<float>(times)) << i;
      }
    }
  }
}

// Options for a run of so many tiles of rows, of 32 at most.
PrefetchOptions early_for(int64_t tiles, int64_t most_rows = 128) {
  return {.is_early = true, .min_work = 2, .run_extents = {{constant(tiles * kTile), most_rows}}};
}

TEST(prefetch_blocks, early_hints_are_spread_over_the_reads_that_a_run_has) {
  const Product wide{128, 2 * kLine};
  const int64_t all = kDepth * kColumns / kLine;
  for (const int64_t tiles : {1, 2, 3, 32})
    EXPECT_EQ(lines_ahead(wide, tiles, early_for(tiles)), all) << tiles;
  const int64_t panels = 2;  // with each step a line of both, and the one behind
  EXPECT_EQ(lines_ahead(wide, 1, early_for(2)), panels * (kDepth + 1)) << "the rest with tile 1";
  EXPECT_EQ(lines_ahead(wide, 1, early_for(32)), panels * (kDepth / 4 + 1)) << "a quarter a step";
  // An extent that does not count rows says nothing of reads.
  EXPECT_EQ(lines_ahead(wide, 1, early_for(32, 100)), all);
}

TEST(prefetch_blocks, reads_beyond_those_that_need_hints_repeat_the_last_lines) {
  const Product wide{128, 2 * kLine};
  const int64_t panel = kDepth * 2, all = kDepth * kColumns / kLine;
  const std::vector<float> lines =
      prefetched(prefetch_blocks(wide.by_panel(), early_for(32)), wide.w);
  for (int64_t i = panel; i < panel + all; ++i) {
    const float times = lines[static_cast<size_t>(i)];
    EXPECT_GE(times, 1) << i;
    // Two hints a step, and four steps for each line.
    EXPECT_EQ(times > 2 * 4, i % panel >= panel - 2) << i;
  }
}

TEST(prefetch_blocks, a_step_has_no_more_early_hints_than_one_read_needs) {
  PrefetchOptions options = early_for(2);
  options.min_work = 1;  // as many hints as the tile has rows
  const Product narrow{128};
  const Program program = prefetch_blocks(narrow.by_panel(), options);
  const int64_t lines = kDepth * kColumns / kLine;  // of all panels, in kDepth steps each
  EXPECT_EQ(count(program.phases[1].body, StmtKind::kPrefetch), 1) << print(program);
  EXPECT_EQ(lines_ahead(narrow, 2, options), lines);
}

TEST(prefetch_blocks, a_block_that_is_read_again_goes_to_the_second_level_cache) {
  const Program hinted = prefetch_blocks(Product{16}.by_panel());
  const Stmt hint = first(hinted.phases[1].body, StmtKind::kPrefetch);
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->buffer->name, "w");
  EXPECT_EQ(hint->cache, 2);
  EXPECT_EQ(count(hinted.phases[1].body, StmtKind::kPrefetch), 1);
}

TEST(prefetch_blocks, a_block_that_is_read_once_only_of_a_large_buffer) {
  const Product p{16};
  PrefetchOptions options;
  EXPECT_EQ(count(prefetch_blocks(p.by_row(), options).phases[1].body, StmtKind::kPrefetch), 1)
      << "the rows, which each panel reads again";
  options.min_stream = p.w->num_elements() * 4;
  const Program hinted = prefetch_blocks(p.by_row(), options);
  EXPECT_EQ(count(hinted.phases[1].body, StmtKind::kPrefetch), 2);
  const std::vector<float> lines = prefetched(hinted, p.w);
  for (size_t i = kDepth; i < kDepth * kColumns / kLanes; ++i) EXPECT_EQ(lines[i], 16 / kTile);
  options.min_rows = kTile + 1;
  EXPECT_EQ(count(prefetch_blocks(p.by_row(), options).phases[1].body, StmtKind::kPrefetch), 1);
}

TEST(prefetch_blocks, an_index_that_takes_the_tile_apart_is_left) {
  const Product p{16};
  Program program = p.by_panel();
  const Expr lane = variable(p.lane);
  program.phases[1].body = rewrite_exprs(program.phases[1].body, [&](const Expr& e) -> Expr {
    if (e->op != Op::kLoad || e->buffer != p.w) return nullptr;
    return load(p.w, {e->args[0], e->args[1], floordiv(lane, 2) + floormod(lane, 2) * 8});
  });
  EXPECT_EQ(count(prefetch_blocks(program).phases[1].body, StmtKind::kPrefetch), 0);
}

TEST(prefetch_blocks, blocks_larger_than_the_limit_are_left) {
  PrefetchOptions options;
  options.max_block = kDepth * kLanes * 4 - 1;
  EXPECT_EQ(
      count(prefetch_blocks(Product{16}.by_panel(), options).phases[1].body, StmtKind::kPrefetch),
      0);
}

// Rows by a number that the iteration keeps, which is not there before it.
TEST(prefetch_blocks, a_place_that_memory_holds_is_left) {
  const BufferPtr a = make_buffer("a", DType::kF32, {3, 64, 64});
  const BufferPtr which = make_buffer("which", DType::kI64, {64});
  const BufferPtr out = make_buffer("out", DType::kF32, {3, 64, 64});
  const BufferPtr place = make_buffer("place", DType::kI64, {}, Scope::kStack);
  const VarPtr b = make_var("b"), i = make_var("i"), j = make_var("j"), lane = make_var("lane");
  const Expr column = variable(j) * kLanes + variable(lane);
  const Expr from = load(a, {variable(b), load(place, {}), column});
  const Stmt store = make_store(out, {variable(b), variable(i), column}, from);
  const Stmt copy =
      loop(j, 4, {loop(lane, kLanes, {store}, ForKind::kVectorized)}, ForKind::kUnrolled);
  const Expr row = floormod(load(which, {variable(i)}), 64);
  const Stmt rows = loop(i, 64, {make_alloc(place, {make_store(place, {}, row), copy})});
  const Stmt body = loop(b, 3, {rows});
  const Program program =
      prefetch_blocks({"copy",
                       {{a, Role::kInput}, {which, Role::kInput}, {out, Role::kOutput}},
                       {{zero(out)}, {body}}},
                      {.min_reuse = 1, .min_stream = 0, .min_rows = 1});
  EXPECT_TRUE(verify(program).ok()) << verify(program).message();
  EXPECT_EQ(count(program.phases[1].body, StmtKind::kPrefetch), 0) << print(program);
}

TEST(prefetch_blocks, results_and_prepare_phases_stay_as_they_are) {
  const Product p{16};
  Program program = p.by_panel();
  const Program hinted = prefetch_blocks(program);
  std::vector<Tensor> before = random_arguments(program, 1), after = random_arguments(program, 1);
  ASSERT_TRUE(run(program, before).ok());
  ASSERT_TRUE(run(hinted, after).ok());
  for (int64_t i = 0; i < before[2].size(); ++i) {
    const double a = before[2].at(i), b = after[2].at(i);
    EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << a << " and " << b;
  }
  program.phases[1].prepare = true;
  EXPECT_EQ(count(prefetch_blocks(program).phases[1].body, StmtKind::kPrefetch), 0);
}

}  // namespace
}  // namespace hone::ir
