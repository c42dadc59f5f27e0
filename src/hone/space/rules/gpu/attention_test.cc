#include "hone/compute/dag_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using compute::testing::attention;

constexpr int64_t kOdd[] = {1, 2, 3, 7, 13, 17, 31, 33, 97};

std::string default_steps(const compute::Dag& dag, const target::Target& target) {
  const Result<Space> space = Space::create(dag, target);
  EXPECT_TRUE(space.ok()) << space.status().message();
  return schedule::to_string(space->steps(space->default_point()));
}

TEST(gpu_attention, odd_extents) {
  for (const int64_t n : kOdd) {
    expect_points(attention(2, n, 98 - n, 5), 3, 1e-5, small_gpu(), n > 1 ? 2 : 1);
    expect_points(attention(2, 13, n, 8), 3, 1e-5, small_gpu(), n > 1 ? 2 : 1);
    expect_points(attention(3, 7, 31, n), 3, 1e-5, small_gpu(), n > 1 ? 2 : 1);
  }
}

TEST(gpu_attention, blocks_keep_to_the_limits_of_the_device) {
  target::Target target = small_gpu();
  target.gpu().threads_per_block = 64;
  target.gpu().shared_bytes = target.gpu().shared_bytes_opt_in = 12 << 10;
  target.gpu().registers_per_thread = 56;
  const compute::Dag dag = attention(2, 33, 97, 16);
  expect_points(dag, 5, 1e-5, target, 2);
  const Result<Space> space = Space::create(dag, target);
  ASSERT_TRUE(space.ok()) << space.status().message();
  Rng rng(3);
  for (int i = 0; i < 40; ++i) {
    const Result<Candidate> candidate = space->instantiate(space->sample(rng));
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    const std::string steps = schedule::to_string(candidate->steps);
    if (steps.find("scope(masked, shared)") == std::string::npos) continue;  // several phases
    EXPECT_LE(shared_bytes(*candidate), 12 << 10) << steps;
  }
}

TEST(gpu_attention, keys_that_a_query_does_not_see) {
  for (const int64_t n : {1, 2, 3, 7, 13, 17, 31, 33, 67}) {
    for (const int64_t offset : {int64_t{0}, n / 2})
      expect_points(attention(n < 60 ? 2 : 1, n, n + 3, 8, offset), 1);
  }
}

// softmax(q k) v where a key's terms lie side by side, as where keys come from a product.
compute::Dag attention_of_rows(int64_t m, int64_t n, int64_t depth) {
  compute::Dag dag = attention(2, m, n, depth);
  for (ir::Param& param : dag.params) {
    if (param.buffer->name != "key") continue;
    const ir::BufferPtr rows = ir::make_buffer("key", param.buffer->dtype, {2, n, depth});
    for (compute::Stage& stage : dag.stages) {
      stage.outputs[0].value =
          ir::rewrite(stage.outputs[0].value, [&](const ir::Expr& e) -> ir::Expr {
            if (e->op != ir::Op::kLoad || e->buffer != param.buffer) return nullptr;
            return ir::load(rows, {e->args[0], e->args[2], e->args[1]});
          });
    }
    param.buffer = rows;
    break;
  }
  return dag;
}

TEST(gpu_attention, keys_whose_terms_are_neighbours_stay_rows) {
  for (const int64_t n : kOdd)
    expect_points(attention_of_rows(7, n, 1 + n % 9), 2, 1e-5, small_gpu(), n > 1 ? 2 : 1);
  expect_points(attention_of_rows(3, 97, 8), 3, 1e-5, small_gpu(), 4);
  const std::string steps = default_steps(attention_of_rows(33, 64, 16), small_gpu());
  EXPECT_NE(steps.find("layout(key.col, [h, n, e+4])"), std::string::npos) << steps;
}

// Keys in tiles of 64, the last of which may be shorter.
TEST(gpu_attention, tiles_of_keys) {
  for (const int64_t keys : {65, 97, 128}) {
    expect_points(attention(2, 7, keys, 3), 2, 1e-5, small_gpu(), 4);
    expect_points(attention(1, 17, keys, 8, keys / 2), 2, 1e-5, small_gpu(), 4);
  }
}

TEST(gpu_attention, many_keys_are_in_tiles_whose_sums_stay_in_registers) {
  const compute::Dag dag = attention(1, 5, 577, 8);
  const std::string steps = default_steps(dag, small_gpu());
  EXPECT_NE(steps.find("online_softmax(sums, 64)"), std::string::npos) << steps;
  EXPECT_NE(steps.find("scope(sums, fragment)"), std::string::npos) << steps;
  EXPECT_NE(steps.find("scope(sums.part, register)"), std::string::npos) << steps;
  expect_points(dag, 0);
}

// Runs points until it has run `count` whose steps have this part.
void expect_points_with(const compute::Dag& dag, std::string_view part, int count) {
  target::Target target = small_gpu();
  target.gpu().async_copy = true;
  target.gpu().sms = 32;
  const Result<Space> space = Space::create(dag, target);
  ASSERT_TRUE(space.ok()) << space.status().message();
  Rng rng(7);
  int seen = 0;
  for (int i = 0; i < 400 && seen < count; ++i) {
    const Result<Candidate> candidate = space->instantiate(space->sample(rng));
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    if (schedule::to_string(candidate->steps).find(part) == std::string::npos) continue;
    ++seen;
    ASSERT_NO_FATAL_FAILURE(expect_candidate(*candidate, 1e-5));
  }
  EXPECT_EQ(seen, count) << part;
}

// Keys and values of the next tiles are copied while a tile is computed.
TEST(gpu_attention, copies_work_ahead) {
  for (const compute::Dag& dag : {attention(2, 7, 97, 8), attention_of_rows(3, 97, 8),
                                  attention(1, 13, 200, 5), attention(1, 17, 97, 8, 40)}) {
    expect_points_with(dag, "pipeline(key.col, 2", 1);
    expect_points_with(dag, "pipeline(value.col, 3, async)", 1);
  }
}

// One query has work for one block: others have parts of the keys, which a second launch joins.
TEST(gpu_attention, one_query_of_many_keys) {
  for (const int64_t queries : {1, 2, 3}) {
    for (const int64_t keys : {129, 321})
      expect_points_with(attention(2, queries, keys, 7), "rfactor(sums, t, ", 2);
  }
  target::Target target = small_gpu();
  target.gpu().sms = 32;
  const compute::Dag dag = attention(2, 1, 1000, 8);
  EXPECT_NE(default_steps(dag, target).find("rfactor(sums, t, "), std::string::npos);
  expect_points(dag, 0, 1e-5, target);
}

// Scores stay in shared memory, sums in registers, and nothing between them is stored.
TEST(gpu_attention, is_one_phase) {
  const compute::Dag dag = attention(2, 33, 97, 16);
  const std::string steps = default_steps(dag, small_gpu());
  EXPECT_NE(steps.find("scope(masked, shared)"), std::string::npos) << steps;
  EXPECT_NE(steps.find("scope(sums, fragment)"), std::string::npos) << steps;
  const Result<Space> space = Space::create(dag, small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  const Result<Candidate> candidate = space->instantiate(space->default_point());
  ASSERT_TRUE(candidate.ok()) << candidate.status().message();
  const Result<ir::Program> program = schedule::lower_raw(candidate->state, candidate->bounds);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->phases.size(), 1);
}

}  // namespace
}  // namespace hone::space
