// Races that RunOptions::check_races finds, and orders that it accepts.
#include "hone/ir/gpu/race_detector.h"

#include <gtest/gtest.h>

#include "hone/ir/interpreter.h"
#include "hone/ir/parser.h"
#include "hone/ir/verifier.h"

namespace hone::ir {
namespace {

// What a run of these statements says; 64 elements of X go in, and Y comes out.
std::string error_of(std::string_view body) {
  const Result<Program> p = parse_program(
      fmt::format("program p {{ input X: f32[64] input M: f32[8, 8] output Y: f32[64] workspace W: "
                  "f32[64] phase {{ {} }} }}",
                  body));
  EXPECT_TRUE(p.ok()) << p.status().message();
  const Status valid = verify(*p);
  EXPECT_TRUE(valid.ok()) << valid.message();
  std::vector<Tensor> args = random_arguments(*p, 1);
  const std::string unchecked = run(*p, args).message();
  const Status status = run(*p, args, {.check_races = true});
  if (!unchecked.empty() && !status.message().starts_with("race")) {
    EXPECT_EQ(status.message(), unchecked);
  }
  return status.ok() ? "" : status.message();
}
std::string error_with_shared(std::string_view body) {
  return error_of(fmt::format("alloc shared s: f32[64] {{ {} }}", body));
}

constexpr std::string_view kStore = "thread t in 0..64 { s[t] = X[t] } ";

TEST(race_detector, threads_of_a_block_need_a_barrier) {
  const std::string load = "thread u in 0..64 { Y[u] = s[63 - u] }";
  EXPECT_EQ(error_with_shared(std::string(kStore) + load),
            "race for s at [63]: the store by thread 63 in 's[t] = X[t]' and the load by thread 0 "
            "in 'Y[u] = s[63 - u]' are in no order");
  EXPECT_EQ(error_with_shared(std::string(kStore) + "barrier " + load), "");
  EXPECT_EQ(error_with_shared(std::string(kStore) + "thread u in 0..64 { Y[u] = s[u] }"), "");
  EXPECT_EQ(error_with_shared(std::string(kStore) +
                              "thread a in 0..4 { thread b in 0..16 { Y[a] = s[a * 16 + b] } }"),
            "race for Y at [0]: the store by thread 0 in 'Y[a] = s[a * 16 + b]' and the store by "
            "thread 1 in 'Y[a] = s[a * 16 + b]' are in no order");
}

TEST(race_detector, a_store_follows_all_readers) {
  for (const int writer : {0, 1, 40}) {
    const std::string first = std::string(kStore) + "barrier thread u in 0..64 { Y[u] = s[0] } ";
    const std::string then =
        fmt::format("thread v in 0..64 {{ if v == {} {{ s[0] = 1.0 }} }}", writer);
    EXPECT_NE(error_with_shared(first + then).find("race for s at [0]: the load by thread"),
              std::string::npos)
        << writer;
    EXPECT_EQ(error_with_shared(first + "barrier " + then), "");
  }
}

TEST(race_detector, iterations_of_a_loop_of_the_block_follow_each_other_without_a_barrier) {
  const auto loop = [](std::string_view last) {
    return error_with_shared(
        fmt::format("for k in 0..3 {{ {} barrier thread u in 0..64 {{ Y[u] = s[63 - u] }} {} }}",
                    kStore, last));
  };
  EXPECT_NE(loop("").find("the load by thread"), std::string::npos);
  EXPECT_EQ(loop("barrier"), "");
}

TEST(race_detector, blocks_of_a_phase_are_in_no_order_but_phases_are) {
  const std::string stores = "parallel b in 0..4 { thread t in 0..16 { W[b * 16 + t] = X[t] } }";
  EXPECT_EQ(error_of(stores + " } phase { parallel b in 0..4 { thread t in 0..16 { Y[t + b * 16] = "
                              "W[63 - t - b * 16] } }"),
            "");
  EXPECT_EQ(
      error_of("parallel b in 0..4 { thread t in 0..16 { W[t] = X[t] } }"),
      "race for W at [0]: the store by thread 0 in 'W[t] = X[t]' and the store by thread 0 of "
      "another block in 'W[t] = X[t]' are in no order");
  EXPECT_EQ(
      error_of("parallel b in 0..4 { for i in 0..4 { W[0] = X[b] } }"),
      "race for W at [0]: the store by thread 0 in 'W[0] = X[b]' and the store by thread 0 of "
      "another block in 'W[0] = X[b]' are in no order");
  EXPECT_EQ(error_of("parallel b in 0..4 { alloc shared s: f32[4] { thread t in 0..4 { s[t] = X[t] "
                     "Y[b * 4 + t] = s[t] } } }"),
            "");
}

TEST(race_detector, a_barrier_of_a_warp_orders_its_lanes_alone) {
  const auto lanes = [](std::string_view between, std::string_view index) {
    return error_with_shared(
        fmt::format("warp w in 0..2 {{ lane l in 0..32 {{ s[w * 32 + l] = X[l] }} {} lane m in "
                    "0..32 {{ Y[w * 32 + m] = s[{}] }} }}",
                    between, index));
  };
  EXPECT_NE(lanes("", "w * 32 + 31 - m").find("race for s"), std::string::npos);
  EXPECT_EQ(lanes("barrier warp", "w * 32 + 31 - m"), "");
  EXPECT_NE(lanes("barrier warp", "63 - w * 32 - m").find("race for s"), std::string::npos);
  const std::string matrix =
      "alloc shared a: f32[8, 8] {{ alloc fragment d: f32[1, 8, 8] {{ warp w in 0..1 {{ lane l in "
      "0..32 {{ a[l // 8, l % 8] = 1.0 a[l // 8 + 4, l % 8] = 1.0 }} for i in 0..8 {{ for j in 0..8 "
      "{{ d[w, i, j] = 0.0 }} }} {} matrix d[w : 1, 0 : 8, 0 : 8] += a[0 : 8, 0 : 8] * M[0 : 8, 0 : "
      "8] for i in 0..8 {{ for j in 0..8 {{ Y[i * 8 + j] = d[w, i, j] }} }} }} }} }}";
  EXPECT_NE(
      error_of(fmt::format(fmt::runtime(matrix), "")).find("and the load by warp 0 in 'matrix"),
      std::string::npos);
  EXPECT_EQ(error_of(fmt::format(fmt::runtime(matrix), "barrier warp")), "");
}

TEST(race_detector, asynchronous_copies_are_there_when_they_were_waited_for) {
  const std::string copy = "thread t in 0..64 { async s[t] = X[t] } commit ";
  EXPECT_EQ(
      error_with_shared(copy + "thread u in 0..64 { Y[u] = s[u] }"),
      "race for s at [0]: the store by thread 0 in 'async s[t] = X[t]' and the load by thread "
      "0 in 'Y[u] = s[u]' are in no order: the first one was not waited for");
  EXPECT_EQ(error_with_shared(copy + "wait 0 thread u in 0..64 { Y[u] = s[u] }"), "");
  EXPECT_NE(error_with_shared(copy + "commit wait 2 thread u in 0..64 { Y[u] = s[u] }"), "");
  EXPECT_EQ(error_with_shared(copy + "commit wait 1 thread u in 0..64 { Y[u] = s[u] }"), "");
  // The barrier comes too early for other threads.
  EXPECT_NE(error_with_shared(copy + "barrier wait 0 thread u in 0..64 { Y[u] = s[63 - u] }"), "");
  EXPECT_EQ(error_with_shared(copy + "wait 0 barrier thread u in 0..64 { Y[u] = s[63 - u] }"), "");
  EXPECT_NE(error_with_shared(copy + "thread u in 0..64 { s[u] = 0.0 }"), "");
}

constexpr std::string_view kRoles =
    "alloc shared s: f32[2, 16] {{ alloc signal full: i64[2] arrivals 1 {{ alloc signal empty: "
    "i64[2] arrivals 1 {{ roles {{ "
    "warp 1 {{ for k in 0..4 {{ {} copy s[k % 2 : 1, 0 : 16] = X[k * 16 : 16], full[k % 2] }} }} "
    "warp 1 {{ for k in 0..4 {{ {} thread t in 0..16 {{ Y[k * 16 + t] = s[k % 2, 15 - t] }} {} }} }} "
    "}} }} }} }}";

TEST(race_detector, roles_are_ordered_by_signals) {
  const auto roles = [](std::string_view before, std::string_view wait, std::string_view after) {
    return error_of(fmt::format(fmt::runtime(kRoles), before, wait, after));
  };
  const std::string empty = "await empty[k % 2], (k // 2 + 1) % 2",
                    full = "await full[k % 2], k // 2", arrive = "arrive empty[k % 2]";
  EXPECT_EQ(roles(empty, full, arrive), "");
  EXPECT_NE(roles("", full, arrive).find("race for s at"), std::string::npos);
  EXPECT_NE(roles(empty, "", arrive).find("race for s at"), std::string::npos);
  EXPECT_EQ(roles(empty, full, ""),
            "roles wait for signals that never come: role 0 for empty, role 1 for full");
}

TEST(race_detector, the_first_copy_has_to_be_awaited) {
  const auto roles = [](std::string_view wait) {
    return error_with_shared(fmt::format(
        "alloc signal full: i64[1] arrivals 1 {{ roles {{ warp 1 {{ copy s[0 : 16] = "
        "X[0 : 16], full[0] }} warp 1 {{ {} thread t in 0..16 {{ Y[t] = s[t] }} }} }} }}",
        wait));
  };
  EXPECT_NE(roles("").find("race for s at [0]"), std::string::npos);
  EXPECT_EQ(roles("await full[0], 0"), "");
}

TEST(race_detector, copies_end_with_their_block) {
  EXPECT_EQ(
      error_of("parallel b in 0..4 { alloc shared s: f32[4] { thread t in 0..4 { async s[t] = "
               "X[t] } commit } }"),
      "");
}

// The lane that runs an iteration is the one of the element that is stored, whoever that is.
TEST(race_detector, iterations_of_a_warp_follow_each_other_for_the_stored_element_alone) {
  const auto loop = [](std::string_view index) {
    return error_with_shared(
        fmt::format("{} barrier warp w in 0..1 {{ for i in 0..8 {{ for j in 0..4 {{ s[j] = s[{}] + "
                    "X[i] }} }} }}",
                    kStore, index));
  };
  EXPECT_EQ(loop("j"), "");
  EXPECT_NE(loop("3 - j").find("race for s at"), std::string::npos);
}

TEST(race_detector, a_role_has_barriers_of_its_own) {
  const auto roles = [](std::string_view between) {
    return error_with_shared(fmt::format(
        "roles {{ warp 1 {{ thread t in 0..32 {{ Y[t] = X[t] }} barrier }} warp 1 {{ "
        "thread t in 0..32 {{ s[t] = X[t] }} {} thread t in 0..32 {{ Y[32 + t] = s[31 - "
        "t] }} }} }} thread t in 0..64 {{ s[t] = Y[t] }}",
        between));
  };
  EXPECT_EQ(roles("barrier"), "");
  EXPECT_NE(roles("").find("the store by thread 63"), std::string::npos);
}

TEST(race_detector, a_wait_of_the_block_alone_never_ends) {
  EXPECT_EQ(error_of("alloc signal g: i64[1] arrivals 2 { arrive g[0] await g[0], 0 }"),
            "the wait for g at 0 never ends");
  EXPECT_EQ(error_of("alloc signal g: i64[1] arrivals 2 { await g[0], 1 arrive g[0] arrive g[0] "
                     "await g[0], 0 }"),
            "");
}

}  // namespace
}  // namespace hone::ir
