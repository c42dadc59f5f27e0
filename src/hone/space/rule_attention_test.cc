#include <gtest/gtest.h>

#include <algorithm>

#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/lower.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/space.h"

namespace hone::space {
namespace {

using compute::testing::attention;

target::Target small_vectors() {
  target::Target target;
  target.vector_bytes = 16;
  target.vector_registers = 16;
  target.cores = 2;
  return target;
}

// Sets one decision to the option with a value; the point as it was if there is none.
void choose(const Space& space, std::string_view role, int64_t value, Point& point) {
  const std::vector<Decision>& decisions = space.decisions(point.sketch);
  for (size_t d = 0; d < decisions.size(); ++d) {
    if (decisions[d].name.substr(decisions[d].role) != role ||
        !decisions[d].name.starts_with("attention."))
      continue;
    const auto& options = decisions[d].options;
    const auto found = std::find(options.begin(), options.end(), value);
    if (found != options.end()) point.choices[d] = static_cast<int>(found - options.begin());
  }
}

// Queries in one block or in several, keys and values as they lie or in panels, with rests
// everywhere, of all keys at once and of tiles of them.
TEST(attention, panels_and_blocks_compute_the_same) {
  for (const std::optional<int64_t> offset : {std::optional<int64_t>(), {500}}) {
    const compute::Dag dag = attention(1, 37, 512, 7, offset);
    const Result<Space> space = Space::create(dag, small_vectors());
    ASSERT_TRUE(space.ok()) << space.status().message();
    ASSERT_EQ(space->num_sketches(), 2);
    for (int sketch = 0; sketch < 2; ++sketch) {
      for (const int64_t blocks : {1, 2, 4}) {
        for (const int64_t panels : {0, 1, 2, 3}) {
          Point point = space->default_point(sketch);
          choose(*space, "block", 16, point);
          choose(*space, "blocks", blocks, point);
          choose(*space, "keys", panels & 1, point);
          choose(*space, "values", panels >> 1, point);
          const schedule::Steps steps = space->steps(point);
          SCOPED_TRACE(schedule::to_string(steps));
          const std::string text = schedule::to_string(steps);
          EXPECT_EQ(text.find("im2col(scores, key)") != std::string::npos, (panels & 1) != 0);
          EXPECT_EQ(text.find("value.col") != std::string::npos, (panels & 2) != 0);
          ASSERT_TRUE(space->legal(point));
          schedule::expect_same(dag, steps, 1e-5);
        }
      }
    }
  }
}

// What is known of the loops without any model: copies serve many queries, and the scores of those
// that are computed at a time take a small part of the second-level cache.
TEST(attention, default_point_copies_for_many_queries_only) {
  target::Target target = small_vectors();
  target.caches = {{1, 32 << 10, 64, 1, 64}, {2, 1 << 20, 64, 1, 32}};
  const auto text = [&](int64_t queries, std::optional<int64_t> offset) {
    const Result<Space> space = Space::create(attention(8, queries, 512, 16, offset), target);
    return space.ok() ? schedule::to_string(space->steps(space->default_point())) : "";
  };
  const std::string many = text(512, std::nullopt);
  EXPECT_NE(many.find("im2col(scores, key)"), std::string::npos) << many;
  EXPECT_NE(many.find("split(attention, m, [8, 32], mask)"), std::string::npos) << many;
  EXPECT_EQ(text(1, std::nullopt).find("im2col"), std::string::npos);
  EXPECT_EQ(text(512, 0).find("im2col"), std::string::npos);  // most keys are left out
}

}  // namespace
}  // namespace hone::space
