#include "hone/ir/passes/prefetch_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hone/ir/pass_testing.h"
#include "hone/ir/passes/hoist_places.h"
#include "hone/ir/passes/random_pattern.h"
#include "hone/ir/printer.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

constexpr const char* kParams = R"(
  input ids: i64[6]
  input table: f32[8, 100]
  input small: f32[8, 10]
  output y: f32[6, 100]
  output z: i64[6]
)";

// Returns the program with hints, for tables of 1,000 bytes or more, and expects the same results.
Program hinted(const std::string& body, PrefetchRowsOptions options = {.min_table = 1000}) {
  const Program before = hoist_places(testing::parsed_block(kParams, body));
  Program after = prefetch_rows(before, options);
  testing::expect_same_results(before, after);
  return after;
}
int64_t hints(const Program& program) {
  return testing::count(program.phases[0].body, StmtKind::kPrefetch);
}

std::string rows(const std::string& value) {
  return "for r in 0..6 { for i in 0..100 { y[r, i] = " + value + " } }";
}

// A row is a block of 64 numbers, of four lines, and 36, of three.
TEST(prefetch_rows, each_line_of_the_row_ahead_has_a_hint) {
  const Program made = hinted(rows("table[min(max(ids[r], 0), 7), i]"));
  EXPECT_EQ(hints(made), 4 + 3);
  const std::string text = print(made);
  EXPECT_NE(text.find("ids[min(r + 5, 5)]"), std::string::npos) << text;  // 400 bytes a row
  EXPECT_NE(text.find("table[ahead[], 80]"), std::string::npos) << text;  // 64 + 16
}

TEST(prefetch_rows, long_rows_are_prefetched_one_ahead_and_short_ones_no_further_than_there_are) {
  const std::string body = rows("table[min(max(ids[r], 0), 7), i]");
  EXPECT_NE(print(hinted(body, {.min_table = 1000, .ahead = 500})).find("ids[min(r + 1, 5)]"),
            std::string::npos);
  EXPECT_NE(print(hinted(body, {.min_table = 1000, .ahead = 900})).find("ids[min(r + 2, 5)]"),
            std::string::npos);
  EXPECT_NE(print(hinted(body, {.min_table = 1000, .ahead = 1 << 20})).find("ids[min(r + 5, 5)]"),
            std::string::npos);
}

TEST(prefetch_rows, what_gains_nothing_has_no_hints) {
  EXPECT_EQ(hints(hinted(rows("table[min(max(ids[r], 0), 7), i]"), {})), 0) << "a small table";
  EXPECT_EQ(hints(hinted(rows("table[min(max(ids[0], 0), 7), i]"))), 0) << "the same row";
  EXPECT_EQ(hints(hinted(rows("table[r, i]"))), 0) << "no place";
  EXPECT_EQ(hints(hinted("for r in 0..6 { z[r] = ids[r] }\n"
                         "for r in 0..6 { for i in 0..100 { y[r, i] = "
                         "table[min(max(z[r], 0), 7), i] } }")),
            0)
      << "a place that the kernel computes";
  EXPECT_EQ(hints(hinted("for r in 0..6 { for i in 0..10 { y[r, i] = "
                         "small[min(max(ids[r], 0), 7), i] + table[r, i] } }")),
            0)
      << "the table that is large is not read at the place";
}

// The last tile of rows has one of four.
TEST(prefetch_rows, rows_behind_the_last_one_are_not_asked_for) {
  const auto guarded = [](const std::string& condition) {
    return hints(hinted("for t in 0..2 { for r in 0..4 { if " + condition +
                        " { for i in 0..100 { y[t * 4 + r, i] = "
                        "table[min(max(ids[t * 4 + r], 0), 7), i] } } } }"));
  };
  EXPECT_EQ(guarded("t * 4 + r < 5"), 0);
}

TEST(prefetch_rows, two_tables_at_one_place_are_prefetched_both) {
  EXPECT_EQ(hints(hinted("for r in 0..6 { for i in 0..50 { y[r, i] = table[min(max(ids[r], 0), 7), "
                         "i] + table[min(max(ids[r], 0), 7), i + 50] } }")),
            4 + 4);
}

TEST(prefetch_rows, keeps_the_meaning_of_random_programs) {
  const auto patterns = random_patterns();
  const auto rows_at_places =
      std::ranges::find(patterns, std::string_view("placed_rows"), &RandomPattern::name);
  ASSERT_NE(rows_at_places, patterns.end());
  int64_t with_hints = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Program before = hoist_places(rows_at_places->make(rng));
    const Program after = prefetch_rows(before, {.min_table = 1});
    testing::expect_same_results(before, after);
    with_hints += hints(after) > 0 ? 1 : 0;
  }
  EXPECT_GT(with_hints, 20);
}

}  // namespace
}  // namespace hone::ir
