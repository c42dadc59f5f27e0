#include "hone/ir/passes/hoist_places.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

constexpr const char* kParams = R"(
  input ids: i64[6]
  input x: f32[8, 100]
  input b: f32[100]
  output y: f32[8, 100]
  output z: f32[100, 8]
)";

struct Found {
  int64_t places = 0, vector_loops = 0;
  bool operator==(const Found&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Found& found) {
  return out << found.places << " places, " << found.vector_loops << " loops over vectors";
}

// Counts what is computed ahead, and expects the same results.
Found hoisted(const std::string& body) {
  const Program before = testing::parsed_block(kParams, body);
  const Program after = hoist_places(before);
  testing::expect_same_results(before, after);
  Found found{.places = testing::count(after.phases[0].body, StmtKind::kAlloc)};
  for_each_stmt(*after.phases[0].body, [&](const StmtNode& s) {
    found.vector_loops += s.kind == StmtKind::kFor && s.for_kind == ForKind::kVectorized;
  });
  return found;
}
constexpr Found kNothing;

std::string copy_of(const std::string& value) {
  return "for r in 0..6 { for i in 0..100 { y[r, i] = " + value + " } }";
}

// 100 elements are a block of 64 and the rest.
TEST(hoist_places, rows_that_are_whole_have_their_place_computed_once) {
  EXPECT_EQ(hoisted(copy_of("x[min(max(ids[r], 0), 7), i]")), (Found{1, 2}));
  EXPECT_EQ(hoisted(copy_of("x[min(max(ids[r], 0), 7), i] * b[i] + b[min(max(ids[r], 0), 7)]")),
            (Found{1, 2}));
  EXPECT_EQ(hoisted(copy_of("x[min(max(ids[r], 0), 7), i] + x[min(max(ids[0], 1), 7), i]")),
            (Found{2, 2}));
  // Part of an index, as where it goes into a window.
  EXPECT_EQ(hoisted("for i in 0..50 { y[0, i] = x[0, min(max(ids[0], 0), 50) + i] }"),
            (Found{1, 1}));
}

TEST(hoist_places, what_is_not_side_by_side_is_moved_one_by_one) {
  EXPECT_EQ(hoisted(copy_of("x[r, min(max(ids[r], 0), 7)] + x[r, 99 - i]")), (Found{1, 0}));
  EXPECT_EQ(hoisted("for i in 0..8 { z[i, 0] = x[min(max(ids[0], 0), 7), i] }"), (Found{1, 0}));
  EXPECT_EQ(hoisted("for i in 0..6 { y[0, i] = x[min(max(ids[i], 0), 7), i] }"), kNothing);
  EXPECT_EQ(hoisted(copy_of("x[r, i]")), kNothing);
}

TEST(hoist_places, a_place_under_a_condition_is_not_computed_without_it) {
  EXPECT_EQ(hoisted("for r in 0..8 { for i in 0..100 { y[r, i] = select(r < 6, "
                    "x[min(max(ids[r], 0), 7), i], 0.0) } }"),
            kNothing);
  EXPECT_EQ(hoisted("for r in 0..8 { for i in 0..100 { y[r, i] = "
                    "x[select(r < 6, min(max(ids[r], 0), 7), i % 8), i] } }"),
            kNothing);
}

TEST(hoist_places, a_row_that_reads_what_it_writes_moves_one_by_one_unless_it_is_its_own) {
  const std::string before = "for r in 0..8 { for i in 0..100 { y[r, i] = x[r, i] } }\n";
  EXPECT_EQ(hoisted(before + copy_of("y[min(max(ids[r], 0), 7), i]")), (Found{1, 0}));
  EXPECT_EQ(hoisted(before + copy_of("y[r, i] + x[min(max(ids[r], 0), 7), i]")), (Found{1, 2}));
}

TEST(hoist_places, a_row_at_a_place_is_told_from_others) {
  const auto tells = [](const std::string& body) {
    const Program program = testing::parsed_block(kParams, body);
    return is_row_at_place(*program.phases[0].body->body[0]);
  };
  EXPECT_TRUE(tells("for i in 0..100 { y[0, i] = x[min(max(ids[0], 0), 7), i] }"));
  EXPECT_FALSE(tells("for i in 0..100 { y[0, i] = x[0, i] }"));
  EXPECT_FALSE(tells(copy_of("x[min(max(ids[r], 0), 7), i]")));
}

}  // namespace
}  // namespace hone::ir
