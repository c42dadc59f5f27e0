#include "hone/ir/gpu/check_barriers.h"

#include <gtest/gtest.h>

#include "hone/ir/parser.h"
#include "hone/ir/verifier.h"

namespace hone::ir {
namespace {

// The error for statements with shared memory s and ring r.
std::string error_of(std::string_view body) {
  const Result<Program> p = parse_program(fmt::format(
      "program p {{ input X: f32[4, 64] input N: i64[1] output Y: f32[64] phase {{ alloc "
      "shared s: f32[64] {{ alloc shared r: f32[3, 64] {{ {} }} }} }} }}",
      body));
  EXPECT_TRUE(p.ok()) << p.status().message();
  const Status valid = verify(*p);
  EXPECT_TRUE(valid.ok()) << valid.message();
  const Status status = check_barriers(*p);
  return status.ok() ? "" : status.message();
}

constexpr std::string_view kStore = "thread t in 0..64 { s[t] = X[0, t] } ";
constexpr std::string_view kOther = "thread u in 0..64 { Y[u] = s[63 - u] } ";
std::string with(std::string_view between) {
  return error_of(std::string(kStore) + std::string(between) + std::string(kOther));
}

TEST(check_barriers, names_both_accesses) {
  EXPECT_EQ(with(""),
            "phase 0: no barrier between the store of s[t] and the load of s[63 - u] of another "
            "thread");
  EXPECT_EQ(with("barrier "), "");
}

TEST(check_barriers, a_copy_of_a_box_belongs_to_a_role) {
  EXPECT_EQ(error_of("alloc signal g: i64[1] arrivals 1 { copy s[0 : 64] = X[0 : 1, 0 : 64], g[0] "
                     "thread t in 0..64 { Y[t] = s[t] } }"),
            "phase 0: a copy to s outside of roles");
}

TEST(check_barriers, a_barrier_that_may_not_run_is_none) {
  EXPECT_NE(with("if N[0] < 4 { barrier } "), "");
  EXPECT_NE(with("for i in 0..+N[0] { barrier } "), "");
  EXPECT_EQ(with("for i in 0..4 { barrier } "), "");
  EXPECT_EQ(with("if N[0] < 4 { barrier } barrier "), "");
}

TEST(check_barriers, threads_are_compared_by_their_numbers) {
  const auto reads = [](std::string_view text) {
    return error_of(std::string(kStore) + std::string(text));
  };
  EXPECT_EQ(reads("thread a in 0..4 { thread b in 0..16 { Y[a] = s[a * 16 + b] } }"), "");
  EXPECT_EQ(reads("warp w in 0..2 { lane l in 0..32 { Y[l] = s[w * 32 + l] } }"), "");
  EXPECT_NE(reads("thread a in 0..4 { thread b in 0..16 { Y[a] = s[b * 4 + a] } }"), "");
  EXPECT_EQ(reads("thread a in 0..1 { Y[a] = s[0] }"), "");
  EXPECT_NE(reads("thread a in 0..1 { Y[a] = s[1] }"), "");
  EXPECT_NE(reads("thread a in 0..64 { Y[a] = s[N[0]] }"), "") << "data decides the place";
  EXPECT_NE(reads("warp w in 0..2 { for i in 0..32 { Y[i] = s[w * 32 + i] } }"), "")
      << "any lane may do that";
}

TEST(check_barriers, iterations_of_loops_of_the_block_are_told_apart) {
  const auto ring = [](std::string_view first, std::string_view second,
                       std::string_view barrier = "") {
    return error_of(fmt::format(
        "for k in 0..6 {{ thread t in 0..64 {{ r[{}, t] = X[0, t] }} {} thread u in 0..64 {{ Y[u] = "
        "r[{}, 63 - u] }} }}",
        first, barrier, second));
  };
  EXPECT_NE(ring("0", "0", "barrier"), "") << "the next iteration overwrites what is still read";
  EXPECT_EQ(ring("k % 2", "k % 2", "barrier"), "");
  EXPECT_NE(ring("k % 2", "(k + 1) % 2"), "");
  EXPECT_NE(ring("(k + 1) % 2", "k % 2"), "");
  EXPECT_EQ(ring("(k + 1) % 3", "(k + 1) % 3", "barrier"), "");
  EXPECT_EQ(ring("(k + 1) % 3", "k % 3", "barrier"), "") << "stored an iteration before";
  EXPECT_NE(ring("(k + 2) % 3", "k % 3", "barrier"), "") << "the next store is to what is read";
}

TEST(check_barriers, asynchronous_copies_are_waited_for_before_the_barrier) {
  const auto stages = [](std::string_view wait, std::string_view behind) {
    return error_of(fmt::format(
        "thread t in 0..64 {{ async r[0, t] = X[0, t] }} commit for k in 0..3 {{ thread v in 0..64 {{ "
        "async r[(k + 1) % 2, v] = X[k + 1, v] }} commit {} {} thread u in 0..64 {{ Y[u] = r[k % 2, "
        "63 - u] }} barrier }}",
        wait, behind));
  };
  EXPECT_EQ(stages("wait 1", "barrier"), "");
  EXPECT_EQ(stages("barrier", "wait 1"),
            "phase 0: no barrier between the store of r[0, t] and the load of r[k % 2, 63 - u] of "
            "another thread");
  EXPECT_EQ(
      stages("wait 2", "barrier"),
      "phase 0: the load of r[k % 2, 63 - u] comes before the store of r[0, t] was waited for");
}

TEST(check_barriers, paths_take_as_many_iterations_as_their_loops_have) {
  const auto waits = [](int64_t iterations) {
    return error_of(fmt::format(
        "thread t in 0..64 {{ async r[1, t] = X[0, t] }} commit for k in 0..{} {{ wait 1 commit }} "
        "barrier thread u in 0..64 {{ Y[u] = r[1, 63 - u] }}",
        iterations));
  };
  EXPECT_EQ(waits(3), "");
  EXPECT_NE(waits(1), "") << "the first wait leaves the group that was made before";
}

TEST(check_barriers, conditions_of_the_block_tell_the_iteration) {
  const auto last = [](int64_t end) {
    return error_of(fmt::format(
        "for k in 3..5 {{ wait 0 barrier if k < {} {{ thread v in 0..64 {{ async r[0, v] = X[0, v] "
        "}} }} commit thread u in 0..64 {{ Y[u] = r[k % 2, 63 - u] }} }}",
        end));
  };
  EXPECT_EQ(last(4), "") << "iteration 3 copies and reads r[1], iteration 4 reads r[0]";
  EXPECT_NE(last(5), "") << "iteration 4 copies what it reads";
}

TEST(check_barriers, a_slot_is_told_from_another_without_its_remainder) {
  const auto ring = [](std::string_view stored) {
    return error_of(
        fmt::format("for k in 0..3 {{ thread t in 0..64 {{ r[{}, t] = X[0, t] }} barrier "
                    "thread u in 0..64 {{ Y[u] = r[k, 63 - u] }} }}",
                    stored));
  };
  EXPECT_EQ(ring("(k + 1) % 3"), "");
  EXPECT_NE(ring("(k + 2) % 3"), "") << "the next store is to what is read";
}

TEST(check_barriers, warps_are_checked_one_by_one) {
  const auto lanes = [](std::string_view between) {
    return error_of(
        fmt::format("warp w in 0..2 {{ lane l in 0..32 {{ s[w * 32 + l] = X[0, l] }} {} lane "
                    "m in 0..32 {{ Y[w * 32 + m] = s[w * 32 + 31 - m] }} }}",
                    between));
  };
  EXPECT_NE(lanes(""), "");
  EXPECT_EQ(lanes("barrier warp"), "");
}

}  // namespace
}  // namespace hone::ir
