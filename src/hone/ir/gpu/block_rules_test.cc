#include "hone/ir/gpu/block_rules.h"

#include <gtest/gtest.h>

#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/parser.h"
#include "hone/ir/printer.h"
#include "hone/ir/verifier.h"

namespace hone::ir {
namespace {

// The verifier's message for a phase with these statements.
std::string error_of(std::string_view body) {
  const Result<Program> p = parse_program(fmt::format(
      "program p {{ input X: f32[64, 64] input N: i64[4] output Y: f32[64, 64] phase {{ {} }} }}",
      body));
  if (!p.ok()) return "syntax: " + p.status().message();
  const Status status = verify(*p);
  if (status.ok()) {
    EXPECT_EQ(print(*parse_program(print(*p))), print(*p));
    return "";
  }
  EXPECT_EQ(status.message().find("phase 0: "), 0U) << status.message();
  return status.message().substr(9);
}

constexpr std::string_view kEverything = R"(
  parallel b in 0..4 {
    alloc shared s: f32[2, 16, 16] { alloc shared h: f32[16, 8] {
      alloc signal full: i64[2] arrivals 1 {
        alloc fragment acc: f32[16, 16] { alloc fragment d: f32[4, 16, 8] {
          for k in 0..4 {
            if k < N[0] {
              thread ty in 0..16 { if ty < 8 { thread tx in 0..16 {
                async s[k % 2, ty, tx] = select(k < 3, X[ty, tx], 0.0)
                acc[ty, tx] = 1.0
              } } }
            }
            commit
            wait 1
            barrier
            warp w in 0..4 {
              lane l in 0..32 { if l < 16 { h[l, 0] = X[l, w] } }
              barrier warp
              matrix d[w : 1, 0 : 16, 0 : 8] += s[0 : 1, 0 : 16, 0 : 16] * transposed h[0 : 8, 0 : 8]
              for i in 0..16 { Y[i, w] = d[w, i, 0] }
            }
            barrier
            warp v in 0..2 { lane l in 0..32 { Y[0, l] = 0.0 } }
          }
          roles {
            warp 1 { for k in 0..4 {
              copy s[k % 2 : 1, 0 : 16, 0 : 16] = X[16 : 16, k * 16 : 16], full[k % 2]
              arrive full[0]
            } }
            warp 4 { alloc fragment sum: f32[16, 16] { for k in 0..4 {
              await full[k % 2], k // 2 % 2
              async matrix sum[0 : 16, 0 : 16] += s[k % 2 : 1, 0 : 16, 0 : 16] * s[0 : 1, 0 : 16, 0 : 16]
              commit
              wait 0
              thread t in 0..128 { Y[t // 64, t % 64] = 1.0 }
              barrier
              for i in 0..16 { for j in 0..16 { Y[i, j] = sum[i, j] } }
            } } }
          }
        } }
      }
    } }
  })";

TEST(block_rules, programs_of_gpus_are_accepted_and_print_as_they_read) {
  std::string text(kEverything);
  // Rows of A and columns of B must have one length.
  EXPECT_EQ(error_of(text), "a matrix statement of 16x8 += 16x16 * 8x8");
  text.replace(text.find("transposed h[0 : 8, 0 : 8]"), 26, "h[0 : 16, 0 : 8]");
  EXPECT_EQ(error_of(text), "");
  const Program p = *parse_program(
      "program p { output Y: f32[64, 64] phase { "
      "warp w in 0..3 { lane l in 0..20 { Y[w, l] = 1.0 } } } }");
  EXPECT_EQ(block_threads(*p.phases[0].body), 96);
}

TEST(block_rules, threads_of_nests_are_numbered_in_order) {
  const Program p = *parse_program(
      "program p { output Y: f32[64, 64] phase { warp a in 0..2 { warp w in 0..3 { lane l in 0..4 "
      "{ lane m in 0..8 { Y[w, l] = 1.0 } } } } } }");
  std::vector<const StmtNode*> loops;
  for (const StmtNode* s = p.phases[0].body.get(); s->kind == StmtKind::kFor; s = s->body[0].get())
    loops.push_back(s);
  const ThreadNest nest = thread_nest(loops);
  std::vector<int64_t> strides;
  for (const ThreadDim& dim : nest.dims) strides.push_back(dim.stride);
  EXPECT_EQ(strides, (std::vector<int64_t>{96, 32, 8, 1}));
  EXPECT_FALSE(nest.whole_warps);
  loops.resize(2);
  EXPECT_TRUE(thread_nest(loops).whole_warps);
  EXPECT_EQ(thread_nest(loops).dims[0].stride, 96);
  EXPECT_EQ(block_threads(*p.phases[0].body), 192);
}

TEST(block_rules, what_a_function_may_write_decides_nothing_for_the_block) {
  EXPECT_EQ(error_of("thread t in 0..1 { extern f(N, Y) } if N[0] < 1 { barrier }"),
            "a condition of a block loads N, which the phase writes");
}

TEST(block_rules, data_is_accessed_by_threads_only) {
  EXPECT_EQ(error_of("thread t in 0..4 { Y[0, t] = 1.0 } Y[0, 0] = 1.0"),
            "a store of Y outside of loops over threads");
  EXPECT_EQ(error_of("thread t in 0..4 { Y[0, t] = 1.0 } extern f(X, Y)"),
            "extern f outside of loops over threads");
  EXPECT_EQ(error_of("thread t in 0..4 { alloc shared s: f32[2] { s[0] = 1.0 } }"),
            "s, which is shared, is allocated inside of loops over threads");
  EXPECT_EQ(error_of("alloc stack s: f32[2] { thread t in 0..4 { s[0] = 1.0 } }"),
            "s, which is stack, is allocated outside of loops over threads");
}

TEST(block_rules, threads_of_a_block_decide_alike) {
  EXPECT_EQ(error_of("for i in 0..+N[0] { if N[1] < i { thread t in 0..4 { Y[0, t] = 1.0 } } }"),
            "");
  EXPECT_EQ(
      error_of("alloc shared s: f32[2] { if s[0] < 1.0 { thread t in 0..4 { s[0] = 1.0 } } }"),
      "a condition of a block loads s, which the phase writes");
  EXPECT_EQ(error_of("if Y[0, 0] < 1.0 { thread t in 0..4 { Y[0, t] = 1.0 } }"),
            "a condition of a block loads Y, which the phase writes");
}

TEST(block_rules, loops_over_threads_nest_directly) {
  const std::string_view not_inside =
      "loop u over threads is not directly inside of the one around it";
  EXPECT_EQ(error_of("thread t in 0..4 { thread u in 0..4 { Y[t, u] = 1.0 } Y[0, 0] = 1.0 }"),
            not_inside);
  EXPECT_EQ(error_of("thread t in 0..4 { for i in 0..4 { thread u in 0..4 { Y[t, u] = 1.0 } } }"),
            not_inside);
  EXPECT_EQ(error_of("warp w in 0..4 { thread u in 0..4 { Y[w, u] = 1.0 } }"), not_inside);
  EXPECT_EQ(error_of("thread w in 0..4 { lane l in 0..4 { Y[w, l] = 1.0 } }"),
            "loop l over lanes outside of loops over warps");
  EXPECT_EQ(error_of("warp w in 0..4 { lane l in 0..33 { Y[w, l] = 1.0 } }"),
            "loop l runs over 33 lanes of 32");
  EXPECT_EQ(error_of("thread t in 0..2000 { Y[0, 0] = 1.0 }"),
            "loop t needs 2000 threads, expected 1024 at most");
  EXPECT_EQ(error_of("roles { warp 2 { thread t in 0..65 { Y[0, 0] = 1.0 } } }"),
            "loop t needs 65 threads, expected 64 at most");
  EXPECT_EQ(error_of("thread t in 1..4 { Y[0, 0] = 1.0 }"),
            "loop t over threads does not count from 0 to a constant");
}

TEST(block_rules, barriers_and_groups_are_of_the_block) {
  EXPECT_EQ(error_of("thread t in 0..4 { barrier }"), "a barrier inside of a loop over threads");
  EXPECT_EQ(error_of("warp t in 0..4 { barrier }"), "a barrier inside of a loop over threads");
  EXPECT_EQ(error_of("warp t in 0..4 { barrier warp }"), "");
  EXPECT_EQ(error_of("barrier warp t in 0..4 { lane l in 0..2 { Y[t, l] = 1.0 } }"), "");
  EXPECT_EQ(error_of("barrier warp"), "a barrier of a warp outside of loops over warps");
  EXPECT_EQ(error_of("thread t in 0..4 { commit }"),
            "commit or wait inside of a loop over threads");
  EXPECT_EQ(error_of("thread t in 0..4 { roles { warp 1 { barrier } } }"),
            "roles inside of roles or of loops over threads");
  EXPECT_EQ(error_of("roles { warp 33 { barrier } }"), "roles of 33 warps, expected 1 to 32");
}

TEST(block_rules, fragments_belong_to_threads) {
  const auto fragment = [](std::string_view body) {
    return error_of(fmt::format("alloc fragment f: f32[4, 8, 2] {{ {} }}", body));
  };
  EXPECT_EQ(fragment("thread t in 0..4 { thread u in 0..8 { f[t, u, 1] = 1.0 } }"), "");
  EXPECT_EQ(fragment("thread t in 0..1 { f[0, 0, 0] = 1.0 }"),
            "extent 0 of fragment f is 4, expected 1, the extent of t");
  EXPECT_EQ(fragment("thread t in 0..4 { thread u in 0..8 { f[t, 7 - u, 1] = 1.0 } }"),
            "index 1 of fragment f is 7 - u, expected u");
  EXPECT_EQ(fragment("thread t in 0..2 { thread u in 0..8 { f[t, u, 1] = 1.0 } }"),
            "extent 0 of fragment f is 4, expected 2, the extent of t");
  EXPECT_EQ(fragment("thread t in 0..4 { f[t, 0, 0] = 1.0 } "
                     "thread t in 0..4 { thread u in 0..8 { f[t, u, 1] = 1.0 } }"),
            "accesses to fragment f give its elements to different threads");
  EXPECT_EQ(fragment("warp t in 0..4 { for i in 0..8 { f[t, i, 1] = 1.0 } }"), "");
}

TEST(block_rules, warps_and_their_lanes_read_what_each_other_have) {
  const auto fragments = [](std::string_view body) {
    return error_of(
        fmt::format("alloc fragment f: f32[4, 32, 2] {{ alloc fragment s: f32[4, 1] {{ "
                    "warp w in 0..4 {{ lane l in 0..32 {{ f[w, l, 1] = 1.0 }} }} {} }} }}",
                    body));
  };
  const std::string_view sum =
      "warp w in 0..4 { for k in 0..32 { s[w, 0] = s[w, 0] + f[w, k, 1] } }";
  EXPECT_EQ(fragments(sum), "");
  EXPECT_EQ(fragments(fmt::format("{} warp w in 0..4 {{ lane l in 0..32 {{ Y[w, l] = s[w, 0] }} }}",
                                  sum)),
            "");
  EXPECT_EQ(fragments("warp w in 0..4 { for k in 0..32 { f[w, k, 1] = 0.0 } }"),
            "accesses to fragment f give its elements to different threads");
  EXPECT_EQ(fragments("warp w in 0..4 { lane l in 0..32 { f[w, l, 0] = f[w, 31 - l, 1] } }"),
            "index 1 of fragment f is 31 - l, expected l");
  EXPECT_EQ(fragments("warp v in 0..2 { warp w in 0..2 { s[w, 0] = f[v, w, 1] } }"),
            "extent 0 of fragment f is 4, expected 2, the extent of v");
  EXPECT_EQ(
      fragments(fmt::format("{} warp w in 0..4 {{ lane l in 0..32 {{ s[w, 0] = 1.0 }} }}", sum)),
      "index 1 of fragment s is 0, expected l");
}

TEST(block_rules, asynchronous_statements_copy) {
  const auto shared = [](std::string_view body) {
    return error_of(fmt::format(
        "alloc shared s: f32[64, 64] {{ alloc signal g: i64[2] arrivals 2 {{ {} }} }}", body));
  };
  const std::string_view no_copy =
      "an asynchronous store of s does not copy an element of global memory to shared memory in a "
      "loop over threads";
  EXPECT_EQ(shared("thread t in 0..4 { async s[0, t] = X[0, t] * 2.0 }"), no_copy);
  EXPECT_EQ(shared("thread t in 0..4 { async s[0, t] = s[1, t] }"), no_copy);
  EXPECT_EQ(shared("thread t in 0..4 { async s[0, t] = select(t < 2, X[1, t], 1.0) }"), no_copy);
  EXPECT_EQ(shared("copy s[0 : 8, 0 : 4] = X[1 : 8, 2 : 4], g[1]"), "");
  EXPECT_EQ(shared("copy s[0 : 8, 0 : 4] = X[1 : 4, 2 : 8], g[1]"),
            "the boxes of a copy of X to s have other extents");
  EXPECT_EQ(shared("copy Y[0 : 8, 0 : 4] = X[1 : 8, 2 : 4], g[1]"),
            "a copy of X to Y is not one of a type between global and shared memory");
  EXPECT_EQ(shared("copy s[0 : 80, 0 : 4] = X[0 : 80, 0 : 4], g[1]"),
            "a box of s has the extent 80 in dimension 0 of 64");
  EXPECT_EQ(shared("thread t in 0..4 { arrive g[0] }"),
            "a statement with signal g inside of a loop over threads");
  EXPECT_EQ(shared("thread t in 0..4 { Y[0, t] = f32(g[0]) }"),
            "g is accessed as data, but is a signal");
}

}  // namespace
}  // namespace hone::ir
