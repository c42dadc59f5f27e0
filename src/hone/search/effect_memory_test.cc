#include "hone/search/effect_memory.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/hash.h"
#include "hone/search/searcher_testing.h"

namespace hone::search {
namespace {

// Two tasks with the same algorithms and decisions.
struct OtherShape : testing::Fixture {
  OtherShape() {
    dag = compute::testing::conv2d({.h = 28, .w = 28, .ic = 16, .oc = 32});
    space = space::Space::create(dag, target);
  }
};
struct Pair {
  testing::Fixture first;
  OtherShape second;
  static SearchTask task(const testing::Fixture& f, std::string family = "conv2d") {
    SearchTask task = f.task(1);
    task.family = std::move(family);
    return task;
  }
};

// Some choices are worse than the model says, whatever the shape.
double error_of(const space::Space& space, const space::Point& point) {
  double error = 0;
  const std::vector<space::Decision>& decisions = space.decisions(point.sketch);
  for (size_t i = 0; i < decisions.size(); ++i) {
    const int64_t value = decisions[i].options[static_cast<size_t>(point.choices[i])];
    const uint64_t luck =
        hash_combine(hash_string(decisions[i].role_name()), static_cast<uint64_t>(value));
    error += static_cast<double>(luck % 1000) / 1000 - 0.5;
  }
  return error;
}

EffectMemory learned(const Pair& pair, int points) {
  Rng rng(3);
  EffectMemory memory;
  for (int i = 0; i < points; ++i) {
    const space::Point point = pair.first.space->sample(rng);
    memory.learn(Pair::task(pair.first), point, error_of(*pair.first.space, point));
  }
  return memory;
}

TEST(effect_memory, explains_errors_of_a_task_that_it_never_saw) {
  const Pair pair;
  const EffectMemory memory = learned(pair, 600);
  Rng rng(4);
  double before = 0, after = 0;
  for (int i = 0; i < 200; ++i) {
    const space::Point point = pair.second.space->sample(rng);
    const double error = error_of(*pair.second.space, point);
    before += error * error;
    after += std::pow(error - memory.expected_error(Pair::task(pair.second), point), 2);
  }
  EXPECT_LT(after, 0.5 * before);
}

TEST(effect_memory, keeps_models_and_families_apart) {
  const Pair pair;
  const EffectMemory memory = learned(pair, 50);
  const space::Point point = pair.first.space->default_point();
  EXPECT_NE(memory.expected_error(Pair::task(pair.first), point), 0);
  EXPECT_EQ(memory.expected_error(Pair::task(pair.first, "matmul"), point), 0);
}

TEST(effect_memory, is_the_same_after_writing_and_reading) {
  const Pair pair;
  const EffectMemory memory = learned(pair, 50);
  const Result<EffectMemory> read = EffectMemory::parse(memory.to_text());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->to_text(), memory.to_text());
  EXPECT_EQ(read->size(), memory.size());
  Rng rng(5);
  for (int i = 0; i < 20; ++i) {
    const space::Point point = pair.second.space->sample(rng);
    EXPECT_EQ(read->expected_error(Pair::task(pair.second), point),
              memory.expected_error(Pair::task(pair.second), point));
  }
}

TEST(effect_memory, reads_nothing_else_than_it_writes) {
  EXPECT_TRUE(EffectMemory::parse("").ok());
  EXPECT_TRUE(EffectMemory::parse("m conv2d direct lanes=8 0.5 0.01\n").ok());
  for (const std::string_view text :
       {"m conv2d direct lanes=8 0.5\n", "m conv2d direct 0.5 0.01\n", "\n",
        "m conv2d direct lanes=8 nan 0.01\n", "m conv2d direct lanes=8 0.5 -1\n",
        "m conv2d direct lanes=8 0.5 1\n", "m conv2d direct lanes=8 0.5 0.01 7\n",
        "m conv2d direct lanes=8 0.5 0.01\nm conv2d direct lanes=8 0.5 0.01\n"}) {
    const Result<EffectMemory> read = EffectMemory::parse(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_TRUE(read.status().message().starts_with("line ")) << read.status().message();
  }
}

}  // namespace
}  // namespace hone::search
