#include "hone/backend/cpu/code_cache.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "hone/backend/cpu/sample_programs_testing.h"
#include "hone/ir/parser.h"
#include "hone/ir/printer.h"
#include "hone/runtime/kernel_abi.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

constexpr int64_t kEnough = 1 << 20;

target::Cpu avx2() { return target::find("x86-64-avx2")->cpu(); }

TEST(code_cache, equal_programs_are_compiled_once_whatever_their_names) {
  CodeCache cache(kEnough);
  const ir::Program program = gemm_program({6, 16, 32, 6, 16, 8});
  ir::Program copy = *ir::parse_program(ir::print(program));
  copy.name = "of_another_task";
  const auto first = cache.compile(program, avx2());
  const auto second = cache.compile(copy, avx2());
  ASSERT_TRUE(first.ok() && second.ok()) << first.status().message();
  EXPECT_EQ(first->code, second->code);
  EXPECT_EQ(first->entries[0].symbol, second->entries[0].symbol);
  EXPECT_EQ(cache.counts().compiled, 1);
  EXPECT_EQ(cache.counts().reused, 1);

  const auto other = cache.compile(gemm_program({6, 16, 64, 6, 16, 8}), avx2());
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->entries[0].symbol, first->entries[0].symbol);
  ASSERT_TRUE(cache.compile(program, target::find("x86-64-avx512")->cpu()).ok());
  EXPECT_EQ(cache.counts().compiled, 3);
}

TEST(code_cache, what_it_gives_is_what_the_compiler_makes_but_for_symbols) {
  CodeCache cache(kEnough);
  const ir::Program program = conv_program({12, 12, 64, 64, 6, 16, 8});
  const auto cached = cache.compile(program, avx2());
  const auto made = compile(program, avx2(), {.symbol_prefix = "another_one_0123456789abcdef"});
  ASSERT_TRUE(cached.ok() && made.ok());
  EXPECT_EQ(cached->content, made->content);
  EXPECT_EQ(cached->code_bytes, made->text_bytes);
  EXPECT_EQ(cached->scratch_bytes, made->scratch_bytes);
  EXPECT_NE(cached->code.str(), made->object);
  EXPECT_NE(cached->content, cache.compile(gemm_program({6, 16, 32, 6, 16, 8}), avx2())->content);
  const auto loaded = LoadedCode::load(cached->code.str());
  ASSERT_TRUE(loaded.ok());
  EXPECT_NE((*loaded)->symbol(cached->entries[0].symbol), nullptr);
}

// Schedules of a task that pack its weights alike.
TEST(code_cache, what_packs_weights_is_compiled_once_for_several_programs) {
  constexpr std::string_view kProgram = R"(program "scale" {
  constant W: f32[8]
  packed P: f32[8]
  output Y: f32[8]
  phase prepare {
    for i in 0..8 {
      P[i] = W[7 - i]
    }
  }
  phase {
    for i in 0..8 {
      Y[i] = P[i] * FACTOR
    }
  }
}
)";
  CodeCache cache(kEnough);
  std::set<std::string> objects, preparing;
  for (const std::string factor : {"2.0", "3.0"}) {
    std::string text(kProgram);
    text.replace(text.find("FACTOR"), 6, factor);
    const auto program = ir::parse_program(text);
    ASSERT_TRUE(program.ok()) << program.status().message();
    const auto code = cache.compile(*program, target::host().cpu());
    ASSERT_TRUE(code.ok()) << code.status().message();
    objects.insert(code->code.str());
    preparing.insert(code->prepare_code.str());
    ASSERT_EQ(code->entries.size(), 2U);
    EXPECT_TRUE(code->entries[0].prepare);
    EXPECT_FALSE(code->entries[1].prepare);
    const auto loaded = LoadedCode::load(code->code.str(), code->prepare_code.str());
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    struct alignas(64) Floats {
      float values[8];
    } weights = {{1, 2, 3, 4, 5, 6, 7, 8}}, packed = {}, result = {};
    void* const args[] = {weights.values, packed.values, result.values};
    for (const EntryPoint& phase : code->entries) {
      const auto kernel = reinterpret_cast<hone_kernel>((*loaded)->symbol(phase.symbol));
      ASSERT_NE(kernel, nullptr) << phase.symbol;
      EXPECT_EQ(kernel(args, nullptr, 0, phase.num_tiles, 0), 0);
    }
    EXPECT_EQ(result.values[0], 8 * std::stof(factor));
  }
  EXPECT_EQ(objects.size(), 2U);
  EXPECT_EQ(preparing.size(), 1U);
  EXPECT_FALSE(preparing.begin()->empty());
  EXPECT_EQ(cache.counts().compiled, 3);
  EXPECT_EQ(cache.counts().reused, 1);
}

TEST(code_cache, threads_that_ask_for_the_same_wait_for_one) {
  CodeCache cache(kEnough);
  std::vector<std::string> objects(8);
  std::vector<std::thread> threads;
  for (std::string& object : objects) {
    threads.emplace_back([&] {
      for (const int64_t k : {32, 48})
        object += cache.compile(gemm_program({6, 16, k, 6, 16, 8}), avx2())->code.str();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(objects.begin(), objects.end()).size(), 1U);
  EXPECT_EQ(cache.counts().compiled, 2);
  EXPECT_EQ(cache.counts().reused, 14);
}

TEST(code_cache, that_there_is_too_much_code_is_remembered) {
  CodeCache cache(kEnough);
  const ir::Program huge = gemm_program({1024, 16, 32, 1024, 16, 8, 32});
  for (int i = 0; i < 2; ++i) {
    const auto code = cache.compile(huge, avx2());
    ASSERT_FALSE(code.ok());
    EXPECT_EQ(code.status().code(), Code::kUnsupported) << code.status().message();
  }
  EXPECT_EQ(cache.counts().compiled, 1);
}

TEST(code_cache, keeps_no_more_than_it_may_and_the_latest) {
  const auto program = [](int64_t k) { return gemm_program({6, 16, k, 6, 16, 8}); };
  CodeCache one(kEnough);
  ASSERT_TRUE(one.compile(program(16), avx2()).ok());
  CodeCache cache(one.counts().bytes * 7 / 2);  // room for three objects
  for (const int64_t k : {16, 24, 32}) ASSERT_TRUE(cache.compile(program(k), avx2()).ok());
  ASSERT_TRUE(cache.compile(program(16), avx2()).ok());
  EXPECT_EQ(cache.counts().compiled, 3);
  ASSERT_TRUE(cache.compile(program(40), avx2()).ok());  // in place of 24
  EXPECT_LE(cache.counts().bytes, one.counts().bytes * 7 / 2);
  ASSERT_TRUE(cache.compile(program(16), avx2()).ok());
  EXPECT_EQ(cache.counts().compiled, 4);
  ASSERT_TRUE(cache.compile(program(24), avx2()).ok());
  EXPECT_EQ(cache.counts().compiled, 5);

  CodeCache none(0);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(none.compile(program(16), avx2()).ok());
  EXPECT_EQ(none.counts().compiled, 2);
  EXPECT_EQ(none.counts().bytes, 0);
}

}  // namespace
}  // namespace hone::backend::cpu
