#include <gtest/gtest.h>

#include <algorithm>

#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/portable_point.h"
#include "hone/space/space.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

Space space_of(const compute::Dag& dag, const target::Target& target = narrow()) {
  Result<Space> space = Space::create(dag, target);
  HONE_ASSERT(space.ok(), space.status().message().c_str());
  return *std::move(space);
}

int decision_of(const Space& space, std::string_view role) {
  const std::vector<Decision>& all = space.decisions(0);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Decision& decision) {
    return decision.name.ends_with(role);
  });
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

// The default point, but for one decision.
Point with(const Space& space, std::string_view role, int choice) {
  Point point = space.default_point();
  point.choices[static_cast<size_t>(decision_of(space, role))] = choice;
  return point;
}

std::string program_of(const compute::Dag& dag, const schedule::Steps& steps) {
  const Result<ir::Program> program = schedule::lower(dag, steps);
  EXPECT_TRUE(program.ok()) << program.status().message() << schedule::to_string(steps);
  return program.ok() ? ir::print(*program) : "";
}

int64_t count(const std::string& text, std::string_view part) {
  int64_t times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST(rows, several_at_once_give_what_one_gives) {
  for (const int64_t rows : {2, 3, 6, 7, 13}) {
    for (const compute::Dag& dag : {softmax(rows, 13, 1), normalized_rows(rows, 17)}) {
      const Space space = space_of(dag);
      const int decision = decision_of(space, ".rows_at_once");
      ASSERT_GE(decision, 0);
      const std::vector<int64_t>& counts =
          space.decisions(0)[static_cast<size_t>(decision)].options;
      EXPECT_EQ(counts.back(), rows < 4 ? 2 : 4);
      for (int choice = 0; choice < std::ssize(counts); ++choice) {
        const schedule::Steps steps = space.steps(with(space, ".rows_at_once", choice));
        schedule::expect_same(dag, steps);
        const std::string program = program_of(dag, steps);
        const int64_t n = counts[static_cast<size_t>(choice)];
        EXPECT_EQ(count(program, "if ") > 0, rows % n != 0) << program;
        const int64_t tiles = schedule::lower(dag, steps)->phases[0].num_tiles();
        EXPECT_EQ(tiles, (rows + n - 1) / n) << program;
      }
    }
  }
}

// The largest, the exponentials with their sum, and the result of rows are a loop each; so they are
// of the two that four at once leave.
TEST(rows, several_at_once_run_side_by_side) {
  const compute::Dag dag = softmax(6, 13, 1);
  const Space space = space_of(dag);
  for (const int choice : {0, 1, 2}) {
    const std::string program = program_of(dag, space.steps(with(space, ".rows_at_once", choice)));
    EXPECT_EQ(count(program, "vectorized"), choice == 2 ? 6 : 3) << program;
    EXPECT_EQ(count(program, " = exp("), choice == 2 ? 6 : 1 + choice) << program;
  }
}

TEST(rows, many_short_ones_run_together_without_being_asked) {
  const auto usual = [](const compute::Dag& dag) {
    const Space space = space_of(dag);
    const auto at = static_cast<size_t>(decision_of(space, ".rows_at_once"));
    return space.decisions(0)[at].options[static_cast<size_t>(space.default_point().choices[at])];
  };
  EXPECT_EQ(usual(softmax(1000, 13, 1)), 4);
  EXPECT_EQ(usual(softmax(1000, 29, 1)), 2);
  EXPECT_EQ(usual(softmax(1000, 64, 1)), 1) << "long";
  EXPECT_EQ(usual(softmax(6, 13, 1)), 1) << "a few for each core";
  EXPECT_EQ(usual(normalized_rows(1000, 33)), 2);
}

TEST(rows, what_waits_for_memory_is_read_row_by_row) {
  for (const compute::Dag& dag : {softmax(1000, 400, 1), centred_rows(1000, 33)})
    EXPECT_LT(decision_of(space_of(dag), ".rows_at_once"), 0);
  target::Target target = narrow();
  target.cpu().caches = {{1, 32 << 10, 64, 1, 64}, {2, 1 << 20, 64, 1, 32}};
  EXPECT_GE(decision_of(space_of(normalized_rows(4000, 64), target), ".rows_at_once"), 0);
  EXPECT_LT(decision_of(space_of(normalized_rows(40'000, 64), target), ".rows_at_once"), 0);
}

TEST(rows, the_only_row_is_alone) {
  EXPECT_LT(decision_of(space_of(softmax(1, 13, 1)), ".rows_at_once"), 0);
  EXPECT_LT(decision_of(space_of(softmax(3, 5, 16)), ".rows_at_once"), 0) << "columns";
}

// Points from before rows and tails were decisions, whatever the default is now.
TEST(rows, older_points_are_one_row_and_masked_columns) {
  const Result<PortablePoint> rows = parse_portable_point("direct");
  const Result<PortablePoint> columns = parse_portable_point("direct softmax:vectors=2");
  ASSERT_TRUE(rows.ok() && columns.ok());
  for (const int64_t n : {4, 1000}) {
    const Space space = space_of(softmax(n, 13, 1));
    const Point one = with(space, ".rows_at_once", 0);
    EXPECT_EQ(exact_point(*rows, space.steps(one), space), one);
  }
  const Space space = space_of(softmax(3, 5, 1001));
  Point masked = with(space, ".column_tail", 0);
  masked.choices[static_cast<size_t>(decision_of(space, ".vectors"))] = 1;
  EXPECT_EQ(exact_point(*columns, space.steps(masked), space), masked);
}

// Only the last block of columns tests which of them there are.
TEST(rows, whole_blocks_of_columns_test_nothing) {
  const compute::Dag dag = softmax(2, 5, 37);
  target::Target target = narrow();
  target.cpu().vector_registers = 32;
  const Space space = space_of(dag, target);
  for (const int vectors : {0, 1, 2, 3}) {
    for (const int tail : {0, 1}) {
      Point point = with(space, ".column_tail", tail);
      point.choices[static_cast<size_t>(decision_of(space, ".vectors"))] = vectors;
      schedule::expect_same(dag, space.steps(point));
      const std::string program = program_of(dag, space.steps(point));
      EXPECT_EQ(count(program, "alloc thread"), tail == 1 ? 2 : 1) << program;
    }
  }
  const Space even = space_of(softmax(2, 5, 32));
  EXPECT_EQ(even.canonical(with(even, ".column_tail", 1)), with(even, ".column_tail", 0));
}

}  // namespace
}  // namespace hone::space
