// Copies to shared memory that work ahead of the loop that reads them: what they compute is
// compared with the naive program, with races looked for, and what cannot work ahead is refused.
#include "hone/schedule/pipeline.h"

#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/ir/visit.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using namespace compute::testing;

const std::string kProduct = product_in_threads({.m_threads = 4, .m = 4, .n_threads = 4, .n = 2});

std::string both(int64_t depth, std::string_view transport) {
  return fmt::format("pipeline(data.cache, {0}, {1})\npipeline(weight.cache, {0}, {1})\n", depth,
                     transport);
}

int64_t count_statements(const ir::Program& program, ir::StmtKind kind) {
  int64_t count = 0;
  for (const ir::Phase& phase : program.phases)
    ir::for_each_stmt(*phase.body, [&](const ir::StmtNode& s) { count += s.kind == kind ? 1 : 0; });
  return count;
}

// Chunks have 5 terms: fewer chunks than slots, one chunk, and a last chunk with fewer terms.
TEST(pipeline, copies_work_ahead_of_a_product) {
  for (const int64_t k : {1, 5, 7, 10, 23, 35}) {
    for (const int64_t m : {3, 33}) {
      SCOPED_TRACE(fmt::format("{} x 17 x {}", m, k));
      const compute::Dag dag = gemm(m, 17, k);
      for (const int64_t depth : {2, 3, 4}) expect_threads(dag, kProduct + both(depth, "async"));
      expect_threads(dag, kProduct + both(2, "registers"));
      expect_threads(dag, kProduct + "pipeline(data.cache, 2, registers)\n" +
                              "pipeline(weight.cache, 3, async)\n");
      expect_threads(dag, kProduct + "pipeline(data.cache, 2, async)\n");
    }
  }
}

TEST(pipeline, the_ring_and_its_groups_reach_the_program) {
  std::string product = kProduct;
  product.replace(product.find(", peel"), 6, "");
  const Result<ir::Program> async = lower_threads(gemm(32, 16, 40), product + both(3, "async"));
  ASSERT_TRUE(async.ok()) << async.status().message();
  const std::string text = ir::print(*async);
  for (const char* part : {"alloc shared data.cache: f32[3, 16, 5]", "wait 1", "async data.cache["})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(count_statements(*async, ir::StmtKind::kBarrier), 1) << text;
  const Result<ir::Program> loaded =
      lower_threads(gemm(32, 16, 40), product + both(2, "registers"));
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(count_statements(*loaded, ir::StmtKind::kBarrier), 1) << ir::print(*loaded);
  EXPECT_NE(ir::print(*loaded).find("alloc fragment data.cache.next: f32[16, 5]"),
            std::string::npos)
      << ir::print(*loaded);
}

// Taps and channels are one loop, and what the taps read beyond the border is zero.
TEST(pipeline, a_convolution_copies_its_windows_ahead) {
  ConvShape shape;
  shape.h = 7, shape.w = 9, shape.ic = 5, shape.oc = 11;
  for (const char* end : {"pipeline(data.col, 3, async)", "pipeline(data.col, 2, registers)"}) {
    for (const bool in_one_loop : {false, true})
      expect_threads(conv2d(shape), convolution_in_threads(in_one_loop) + end);
  }
}

TEST(pipeline, says_what_cannot_work_ahead) {
  const std::pair<std::string, const char*> cases[] = {
      {"pipeline(nothing, 2, async)", "no stage nothing"},
      {"pipeline(data.cache, 1, async)", "a depth of 1, expected 2 to 8"},
      {"pipeline(data.cache, 3, registers)", "a depth of 3, expected 2"},
      {"pipeline(matmul.acc, 2, async)", "matmul.acc works ahead, but is not in shared memory"},
      {"pipeline(data.cache, 2, async)\npipeline(weight.cache, 3, async)",
       "data.cache and weight.cache work ahead in one loop, but not as far"},
      {"unroll(matmul.acc, k.0)\npipeline(data.cache, 2, async)",
       "data.cache works ahead in loop k.0, which is not serial"},
  };
  for (const auto& [steps, message] : cases) {
    const Result<ir::Program> program = lower_threads(gemm(4, 8, 5), kProduct + steps);
    EXPECT_NE(program.status().message().find(message), std::string::npos)
        << steps << "\n"
        << program.status().message();
  }
}

}  // namespace
}  // namespace hone::schedule
