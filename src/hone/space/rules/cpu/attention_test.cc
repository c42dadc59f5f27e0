#include <gtest/gtest.h>

#include <algorithm>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/lower.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/space.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using compute::testing::attention;

// Sets one decision, "attention.block", to the option with a value; it must have it.
void choose(const Space& space, std::string_view name, int64_t value, Point& point) {
  const std::vector<Decision>& decisions = space.decisions(point.sketch);
  const auto decision = std::find_if(decisions.begin(), decisions.end(),
                                     [&](const Decision& d) { return d.name == name; });
  ASSERT_NE(decision, decisions.end()) << name;
  const auto& options = decision->options;
  const auto found = std::find(options.begin(), options.end(), value);
  ASSERT_NE(found, options.end()) << name << ": " << value;
  point.choices[static_cast<size_t>(decision - decisions.begin())] =
      static_cast<int>(found - options.begin());
}

int64_t chosen(const Space& space, std::string_view name, const Point& point) {
  const std::vector<Decision>& decisions = space.decisions(point.sketch);
  for (size_t d = 0; d < decisions.size(); ++d) {
    if (decisions[d].name == name)
      return decisions[d].options[static_cast<size_t>(point.choices[d])];
  }
  return 0;
}

// Queries in one block or in several, keys and values as they lie or in panels, with rests of
// queries, of the keys' panels and of the register tiles, of all keys at once and of tiles of them.
TEST(attention, panels_and_blocks_compute_the_same) {
  for (const auto& [keys, offset] :
       {std::pair{515, std::optional<int64_t>()}, {515, {500}}, {521, {}}, {521, {500}}}) {
    const compute::Dag dag = attention(2, 37, keys, 7, offset);
    const Result<Space> space = Space::create(dag, narrow());
    ASSERT_TRUE(space.ok()) << space.status().message();
    ASSERT_EQ(space->num_sketches(), keys == 515 ? 4 : 3);  // 521 has no divisor
    for (int sketch = 0; sketch < space->num_sketches(); ++sketch) {
      const std::string sums = sketch == 0 ? "sums" : "sums.part";
      const bool rests = sketch > (keys == 515 ? 1 : 0);
      for (const int64_t blocks : {1, 2}) {
        for (const int64_t panels : {0, 1, 2, 3}) {
          if (rests && blocks == 2 && (panels & 1) == 0) continue;  // 32 queries share keys
          Point point = space->default_point(sketch);
          choose(*space, "attention.block", 16, point);
          choose(*space, "attention.blocks", blocks, point);
          choose(*space, "attention.keys", panels & 1, point);
          choose(*space, "attention.values", panels >> 1, point);
          choose(*space, "masked.vectors", 2, point);
          choose(*space, "masked.column", offset || rests ? 4 : 3, point);
          choose(*space, sums + ".vectors", 1, point);
          choose(*space, sums + ".column", offset || rests ? 2 : 5, point);
          if (!rests) {  // several copies of tiles that do not fill a block
            choose(*space, "masked.unroll", 1, point);
            choose(*space, sums + ".unroll", 1, point);
          }
          const schedule::Steps steps = space->steps(point);
          const std::string text = schedule::to_string(steps);
          SCOPED_TRACE(text);
          EXPECT_EQ(text.find("layout(key.cache") != std::string::npos, (panels & 1) != 0);
          EXPECT_EQ(text.find("layout(value.cache") != std::string::npos, (panels & 2) != 0);
          EXPECT_EQ(
              text.find(sketch == 0 ? "m, [2, 16]" : "split(sums, m, [16]") != std::string::npos,
              blocks == 2);
          ASSERT_TRUE(space->legal(point));
          schedule::expect_same(dag, steps, 1e-5);
        }
      }
    }
  }
}

// A number of keys that has no good divisor is tiled like its neighbours, the last tile shorter.
TEST(attention, any_number_of_keys_is_in_tiles) {
  target::Target target = narrow();
  target.cpu().caches = {{1, 32 << 10, 64, 1, 64}, {2, 1 << 20, 64, 1, 32}};
  for (const int64_t keys : {2049, 2053, 3001, 4099, 65537}) {
    for (const std::optional<int64_t> offset : {std::optional<int64_t>(), {keys}}) {
      const Result<Space> space = Space::create(attention(2, 64, keys, 16, offset), target);
      ASSERT_TRUE(space.ok()) << space.status().message();
      const Point point = space->default_point();
      ASSERT_TRUE(space->legal(point));
      const schedule::Steps steps = space->steps(point);
      SCOPED_TRACE(schedule::to_string(steps));
      ASSERT_TRUE(std::holds_alternative<schedule::OnlineSoftmax>(steps[0]));
      const int64_t tile = std::get<schedule::OnlineSoftmax>(steps[0]).factor;
      EXPECT_TRUE(tile >= 64 && tile <= 512) << tile;
      EXPECT_GT(chosen(*space, "attention.block", point), 0);
      // The total of a row needs no loop of its own, in whole tiles and in the last.
      const Result<ir::Program> program =
          schedule::lower(attention(2, 64, keys, 16, offset), steps);
      ASSERT_TRUE(program.ok()) << program.status().message();
      EXPECT_EQ(ir::print(*program).find("vectorized r_1 in"), std::string::npos);
    }
  }
}

// What is known of the loops without any model: copies serve many queries, and the scores of those
// that are computed at a time take a small part of the second-level cache.
TEST(attention, default_point_copies_for_many_queries_only) {
  target::Target target = narrow();
  target.cpu().caches = {{1, 32 << 10, 64, 1, 64}, {2, 1 << 20, 64, 1, 32}};
  const auto text = [&](int64_t queries, std::optional<int64_t> offset) {
    const Result<Space> space = Space::create(attention(8, queries, 512, 16, offset), target);
    EXPECT_TRUE(space.ok()) << space.status().message();
    return space.ok() ? schedule::to_string(space->steps(space->default_point())) : "cache_read";
  };
  const std::string many = text(512, std::nullopt);
  EXPECT_NE(many.find("cache_read(key, scores)"), std::string::npos) << many;
  EXPECT_NE(many.find("split(attention, m, [8, 32], mask)"), std::string::npos) << many;
  EXPECT_EQ(text(1, std::nullopt).find("cache_read"), std::string::npos);
  EXPECT_EQ(text(512, 0).find("cache_read"), std::string::npos);  // most keys are left out
}

// Whatever the lengths, caches and cores: the default point is legal, and its scores fit.
TEST(attention, default_points_are_legal_and_keep_their_scores_near) {
  for (const int64_t queries : {1, 13, 64, 197, 211, 257, 577, 1500}) {
    for (const int64_t l2 : {256 << 10, 512 << 10, 1 << 20}) {
      for (const int cores : {1, 2, 64}) {
        for (const std::optional<int64_t> offset : {std::optional<int64_t>(), {0}}) {
          target::Target target = narrow();
          target.cpu().cores = cores;
          target.cpu().caches = {{1, 32 << 10, 64, 1, 64}, {2, l2, 64, 1, 32}};
          const Result<Space> space =
              Space::create(attention(8, queries, queries, 16, offset), target);
          ASSERT_TRUE(space.ok()) << space.status().message();
          for (const Point& point : space->default_points()) {
            SCOPED_TRACE(fmt::format("{} queries, {} bytes, {} cores\n{}", queries, l2, cores,
                                     schedule::to_string(space->steps(point))));
            EXPECT_TRUE(space->legal(point));
            const int64_t block = chosen(*space, "attention.block", point);
            const int64_t blocks = chosen(*space, "attention.blocks", point);
            if (queries == 1 && block == 0) continue;  // no attention: one axis has no points
            ASSERT_GT(block, 0);
            EXPECT_LE(block * std::min<int64_t>(queries, 512) * 8,
                      std::max<int64_t>(l2, 8 * 512 * 16));
            if (offset) continue;
            EXPECT_TRUE(queries < 4 || cores > 2 || block >= 4) << block;
            EXPECT_TRUE(queries % block != 0 || queries % (block * blocks) == 0)
                << block << " " << blocks;
          }
        }
      }
    }
  }
}

// With rests on all sides, whose code comes in nine copies and more, the default point is legal.
TEST(attention, default_points_with_rests_are_short_enough) {
  target::Target target = narrow();
  target.cpu().caches = {{1, 32 << 10, 64, 1, 64}, {2, 1 << 20, 64, 1, 32}};
  target.cpu().vector_registers = 32;
  for (const int64_t queries : {13, 97, 1021}) {
    for (const int64_t keys : {521, 1021, 2053}) {
      for (const int64_t depth : {7, 40, 64, 97}) {
        const Result<Space> space = Space::create(attention(2, queries, keys, depth), target);
        ASSERT_TRUE(space.ok()) << space.status().message();
        for (const Point& point : space->default_points()) {
          SCOPED_TRACE(fmt::format("{} x {} x {}\n{}", queries, keys, depth,
                                   schedule::to_string(space->steps(point))));
          EXPECT_TRUE(space->legal(point));
        }
      }
    }
  }
}

// Copies are choices, no algorithm: records go by that.
TEST(attention, sampled_schedules_are_of_their_sketch_s_algorithm) {
  const Result<Space> space = Space::create(attention(2, 64, 512, 16), narrow());
  ASSERT_TRUE(space.ok());
  Rng rng(1);
  for (int i = 0; i < 50; ++i) {
    const Point point = space->sample(rng);
    EXPECT_EQ(schedule::algorithm_of(space->steps(point)), space->algorithm(point.sketch));
  }
}

}  // namespace
}  // namespace hone::space
