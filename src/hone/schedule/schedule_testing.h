// schedule/schedule_testing.h - runs a Dag both naively and as scheduled and compares the results,
// for tests: the library hone_schedule_testing.
#pragma once

#include <gtest/gtest.h>

#include "hone/ir/in_place.h"
#include "hone/ir/interpreter.h"
#include "hone/schedule/lower.h"

namespace hone::schedule {

// A schedule of compute::testing::gemm with a 6 x (2 x 4) register tile and packed weights.
inline constexpr std::string_view kGemmTile = R"(
cache_write(matmul)
cache_read(weight, matmul.acc)
layout(weight.cache, [n/8, k, n%8])
split(matmul, m, [6], peel)
split(matmul, n, [2, 4], pad)
reorder(matmul, [m.0, n.0, m.1, n.1, n.2])
parallel(matmul, m.0)
unroll(matmul, m.1)
unroll(matmul, n.1)
vectorize(matmul, n.2)
compute_at(matmul.acc, matmul, n.0)
scope(matmul.acc, register)
split(matmul.acc, n, [4])
reorder(matmul.acc, [k, m, n.0, n.1])
unroll(matmul.acc, m)
unroll(matmul.acc, n.0)
vectorize(matmul.acc, n.1)
)";

// Returns a schedule of compute::testing::gemm for a GPU. Each block has m_threads x n_threads
// threads, and each thread m x n results; `k` terms at a time are copied to shared memory.
struct ThreadTiles {
  int m_threads, m, n_threads, n, k = 5;
};

std::string product_in_threads(const ThreadTiles& t);

// Returns a schedule of compute::testing::conv2d, but for `add` of a residual, for a GPU: the data
// is copied to shared memory two channels of a tap at a time; taps and channels may be one loop.
std::string convolution_in_threads(bool taps_in_one_loop = false);

// Makes an argument per param. Inputs and constants hold small integers, so that sums are exact in
// any order.
std::vector<Tensor> integer_arguments(const ir::Program& program, uint64_t seed);

// Returns whether threads of a GPU run a part of the program.
bool has_threads(const ir::Program& program);

// Runs a program and returns its outputs in the order of its params; empty after a failure, which
// races between threads of a GPU are, too.
// `shared` names an input and the output that overwrites it.
std::vector<Tensor> outputs_of(const ir::Program& program, uint64_t seed,
                               const ir::InPlacePair* shared = nullptr);

// Returns what the naive program computes. Those of the last one are kept for the next schedule of
// the same task.
const std::vector<Tensor>& naive_outputs(const compute::Dag& dag, uint64_t seed);

void expect_close(const std::vector<Tensor>& want, const std::vector<Tensor>& got,
                  double tolerance);

// Expects the interpreter to give the same results for the naive and the scheduled program, also
// with outputs that overwrite inputs where the schedule allows it. The tolerance is relative to the
// largest output; 0 means exact.
void expect_same(const compute::Dag& dag, const Steps& steps, double tolerance = 0,
                 uint64_t seed = 1);

void expect_same(const compute::Dag& dag, std::string_view steps, double tolerance = 0);

// Returns the largest error of float32 results relative to the largest result, against plain sums
// in float64, for normally distributed data; 0 if something failed. The Dag must have one output.
double rounding_of(const compute::Dag& dag, const std::string& text);

// Returns why the steps are illegal; "" if they are legal.
std::string refusal(const compute::Dag& dag, std::string_view text);

// Returns what a schedule's program reads and writes.
ir::TouchReport touches_of(const compute::Dag& dag, std::string_view text);

compute::Dag built(compute::DagBuilder&& builder);

// Lowers a schedule for a GPU.
Result<ir::Program> lower_threads(const compute::Dag& dag, std::string_view text);

// Checks that a schedule for a GPU computes what the naive program does.
void expect_threads(const compute::Dag& dag, std::string_view text, double tolerance = 0);

}  // namespace hone::schedule
