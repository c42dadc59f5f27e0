#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hone/backend/gpu/code_batch_testing.h"
#include "hone/backend/gpu/emulated_run_testing.h"
#include "hone/backend/gpu/golden_programs_testing.h"
#include "hone/backend/operator_programs_testing.h"
#include "hone/backend/results_testing.h"
#include "hone/ir/parser.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/ir/random_gpu_program.h"
#include "hone/ir/random_program.h"

// Programs as OpenCL C on PoCL's device and as CUDA C that this machine runs, compared with the
// interpreter.

namespace hone::backend::gpu {
namespace {

using backend::testing::OperatorProgram;

template <typename Runner>
class PrintedCode : public Runner {
 protected:
  using Runner::add;
  void add(const OperatorProgram& p) { add(p.program, p.seed, p.tolerance); }
  void add(const std::string& text, double tolerance = 1e-5) {
    const auto program = ir::parse_program(text);
    ASSERT_TRUE(program.ok()) << program.status().message();
    add(*program, 1, tolerance);
  }
};

using Runners =
    ::testing::Types<testing::OpenClTest, testing::EmulatedCudaTest, testing::CudaDeviceTest>;
TYPED_TEST_SUITE(PrintedCode, Runners, testing::RunnerName);

TYPED_TEST(PrintedCode, operators_of_every_type) {
  for (const OperatorProgram& p : backend::testing::operator_programs(5, ir::ForKind::kSerial))
    this->add(p);
  this->expect_right();
}

TYPED_TEST(PrintedCode, casts_between_all_types) {
  for (const OperatorProgram& p : backend::testing::cast_programs(8, ir::ForKind::kVectorized))
    this->add(p);
  this->expect_right();
}

TYPED_TEST(PrintedCode, bits_as_another_type_and_signs_of_zeros) {
  for (const OperatorProgram& p : backend::testing::bit_programs(6, ir::ForKind::kVectorized))
    this->add(p);
  this->add(backend::testing::signs_of_zeros(5, ir::ForKind::kSerial));
  this->expect_right();
}

TYPED_TEST(PrintedCode, random_programs) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    const ir::Program program = ir::random_program(seed);
    if (!backend::testing::is_defined(program, seed)) continue;
    this->add(program, seed, 1e-4);
    ++compared;
  }
  EXPECT_GT(compared, 32);
  this->expect_right();
}

// Blocks of threads with barriers where the pass puts them.
TYPED_TEST(PrintedCode, random_programs_of_gpus) {
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    const Result<ir::Program> program =
        ir::run_pipeline(ir::gpu_pipeline(), ir::random_gpu_program(seed));
    ASSERT_TRUE(program.ok()) << program.status().message();
    if (backend::testing::is_defined(*program, seed)) this->add(*program, seed, 1e-4);
  }
  EXPECT_GT(this->size(), 11);
  this->expect_right();
}

// What insert_barriers makes: threads that need each other's results.
TYPED_TEST(PrintedCode, goldens_with_barriers) {
  for (const testing::GoldenProgram& golden : testing::golden_programs()) {
    if (!golden.barriers) continue;
    SCOPED_TRACE(golden.origin);
    const Result<Source> source = print_c(golden.program, this->dialect());
    if (!source.ok() && source.status().code() == Code::kUnsupported) continue;
    const std::vector<ir::Phase>& phases = golden.program.phases;
    const bool tf32 = std::any_of(phases.begin(), phases.end(), testing::has_matrices);
    this->add(golden.program, 1, tf32 ? 2e-3 : 1e-5);
  }
  EXPECT_GT(this->size(), 5);
  this->expect_right();
}

// A product by tiles: shared copies of both operands, a tile of registers of each thread.
TYPED_TEST(PrintedCode, a_product_of_matrices_by_tiles) {
  this->add(R"(program gemm {
  input A: f32[64, 48]
  input B: f32[48, 64]
  output C: f32[64, 64]
  phase {
    parallel b in 0..4 {
      alloc shared As: f32[16, 32] {
        alloc shared Bs: f32[16, 32] {
          alloc fragment acc: f32[8, 8, 4, 4] {
            thread ty in 0..8 { thread tx in 0..8 {
              unrolled i in 0..4 { unrolled j in 0..4 { acc[ty, tx, i, j] = 0.0 } }
            } }
            for k in 0..3 {
              thread r in 0..16 { thread c in 0..4 {
                unrolled i in 0..8 { As[r, c * 8 + i] = A[b // 2 * 32 + c * 8 + i, k * 16 + r] }
                unrolled i in 0..2 {
                  vectorized v in 0..4 {
                    Bs[r, c * 8 + i * 4 + v] = B[k * 16 + r, b % 2 * 32 + c * 8 + i * 4 + v]
                  }
                }
              } }
              barrier
              thread ty in 0..8 { thread tx in 0..8 {
                for kk in 0..16 {
                  unrolled i in 0..4 { unrolled j in 0..4 {
                    acc[ty, tx, i, j] = acc[ty, tx, i, j] + As[kk, ty * 4 + i] * Bs[kk, tx * 4 + j]
                  } }
                }
              } }
              barrier
            }
            thread ty in 0..8 { thread tx in 0..8 {
              unrolled i in 0..4 { vectorized j in 0..4 {
                C[b // 2 * 32 + ty * 4 + i, b % 2 * 32 + tx * 4 + j] = max(acc[ty, tx, i, j], 0.0)
              } }
            } }
          }
        }
      }
    }
  }
}
)");
  this->expect_right();
}

// Nests of several sizes in one block, guards between the loops over threads, sums by halves.
TYPED_TEST(PrintedCode, loops_over_threads_of_several_sizes) {
  this->add(R"(program rows {
  input X: f32[7, 100]
  output Y: f32[7, 100]
  output N: i64[7]
  phase {
    parallel b in 0..7 {
      alloc shared part: f32[64] {
        alloc shared total: f32[] {
          thread t in 0..64 {
            alloc register sum: f32[] {
              sum[] = 0.0
              for i in 0..2 { if i * 64 + t < 100 { sum[] = sum[] + X[b, i * 64 + t] } }
              part[t] = sum[]
            }
          }
          barrier
          thread t in 0..32 { part[t] = part[t] + part[t + 32] }
          barrier
          thread t in 0..1 {
            alloc stack sums: f32[2] {
              for i in 0..2 { sums[i] = 0.0 }
              for i in 0..32 { sums[i % 2] = sums[i % 2] + part[i] }
              total[] = sums[0] + sums[1]
            }
            N[b] = b * 3 - 7
          }
          barrier
          thread ty in 0..4 {
            if b + ty < 9 {
              thread tx in 0..16 {
                for i in 0..2 {
                  if i * 64 + ty * 16 + tx < 100 {
                    Y[b, i * 64 + ty * 16 + tx] = X[b, i * 64 + ty * 16 + tx] - total[]
                  }
                }
              }
            }
          }
          thread ty in 0..4 {
            if 9 <= b + ty {
              thread tx in 0..16 {
                for i in 0..2 {
                  if i * 64 + ty * 16 + tx < 100 { Y[b, i * 64 + ty * 16 + tx] = 0.0 }
                }
              }
            }
          }
        }
      }
    }
  }
}
)");
  this->expect_right();
}

// Vectors of all widths, padded loads under one test, copies of small elements, odd places that
// stay scalar.
TYPED_TEST(PrintedCode, loops_on_lanes) {
  this->add(R"(program lanes {
  input X: f32[8, 64]
  input H: f16[8, 64]
  input I: u8[8, 64]
  input D: f64[8, 64]
  output Y: f32[8, 64]
  output G: f16[8, 64]
  output J: u8[8, 64]
  output E: f64[8, 64]
  output Z: f32[8, 63]
  output P: f16[8, 64]
  output R: f32[8]
  phase {
    parallel b in 0..8 {
      thread t in 0..4 {
        vectorized v in 0..16 {
          Y[b, t * 16 + v] = select(b < 5, X[b, t * 16 + v] * 2.0, X[0, t]) + X[b, 63 - v]
        }
        vectorized v in 0..16 { G[b, t * 16 + v] = H[b, t * 16 + v] }
        vectorized v in 0..16 { J[b, t * 16 + v] = I[7 - b, t * 16 + v] }
        vectorized v in 0..16 { E[b, t * 16 + v] = D[b, t * 16 + v] + f64(X[b, t * 16 + v]) }
        vectorized v in 0..15 { Z[b, t * 15 + v] = X[b, t * 15 + v + 1] }
        vectorized v in 0..3 { if t == 0 { Z[b, 60 + v] = X[b, 60 + v] } }
        vectorized v in 0..16 { P[b, t * 16 + v] = f16(X[b, t * 16 + v]) + H[b, t * 16 + v] }
      }
      thread t in 0..1 {
        R[b] = 0.0
        vectorized v in 0..32 { R[b] = R[b] + X[b, v + 4] }
      }
    }
  }
}
)",
            1e-3);
  this->expect_right();
}

// Vectors of eight, four and two 16-bit floats: sums in float, copies under a test, values that are
// widened and rounded back, other types beside them, doubles that are rounded once.
TYPED_TEST(PrintedCode, lanes_of_half_precision) {
  const std::string text = R"(program halves {
  input X: f16[8, 64]
  input Z: f16[8, 64]
  input W: f32[8, 64]
  input U: f64[8, 64]
  output A: f16[8, 64]
  output B: f16[8, 64]
  output C: f16[8, 64]
  output D: f32[8, 64]
  output E: f16[8, 64]
  output F: f16[8, 64]
  output G: f16[8, 64]
  phase {
    parallel b in 0..8 {
      thread t in 0..4 {
        vectorized v in 0..16 {
          A[b, t * 16 + v] = f16(max(f32(X[b, t * 16 + v]) + f32(Z[b, t * 16 + v]), 0.0))
        }
        vectorized v in 0..16 {
          B[b, t * 16 + v] = select(b < 5, X[b, t * 16 + v], f16(0.0))
        }
        vectorized v in 0..12 { C[b, t * 16 + v] = f16(f32(X[b, t * 16 + v])) }
        vectorized v in 0..4 { C[b, t * 16 + 12 + v] = X[b, t * 16 + 15 - v] }
        vectorized v in 0..16 { D[b, t * 16 + v] = f32(X[b, t * 16 + v]) * W[b, t * 16 + v] }
        vectorized v in 0..16 { E[b, t * 16 + v] = f16(W[b, t * 16 + v] + f32(X[b, 3])) }
        vectorized v in 0..14 { F[b, t * 16 + v] = f16(f32(X[b, t * 16 + v]) * f32(X[b, 0])) }
        vectorized v in 0..2 { F[b, t * 16 + 14 + v] = f16(f32(Z[b, t * 16 + 14 + v]) * 0.5) }
        vectorized v in 0..16 { G[b, t * 16 + v] = f16(U[b, t * 16 + v]) }
      }
    }
  }
}
)";
  this->add(text, 0);
  this->add(testing::with_type(text, "bf16"), 0);
  this->expect_right();
}

// Equal loads under several tests: a vector is read if any of them holds.
TYPED_TEST(PrintedCode, loads_of_lanes_under_several_tests) {
  this->add(R"(program tests {
  input X: f32[16]
  input Z: f32[16]
  output A: f32[16]
  output B: f32[16]
  output C: f32[16]
  output D: f32[16]
  output E: f32[16]
  phase {
    thread t in 0..4 {
      vectorized v in 0..4 {
        A[t * 4 + v] = select(t < 2, X[t * 4 + v], 2.0 * X[t * 4 + v])
      }
      vectorized v in 0..4 { B[t * 4 + v] = select(t < 2, X[t * 4 + v], 0.0) + X[t * 4 + v] }
      vectorized v in 0..4 {
        C[t * 4 + v] = select(t < 1, X[t * 4 + v], 0.0) + select(t < 3, X[t * 4 + v], 0.5)
      }
      vectorized v in 0..4 {
        D[t * 4 + v] = select(v < 3, X[t * 4 + v], 0.0) + select(t < 2, X[t * 4 + v], 0.0)
      }
      vectorized v in 0..4 {
        E[t * 4 + v] = select(t < 2, Z[t * 4 + v], 0.0) + select(Z[t * 4 + v] < X[t * 4 + v], 1.0,
                                                               Z[t * 4 + v])
      }
    }
  }
}
)");
  this->expect_right();
}

// Allocations of one name in one loop, of which one is the last of shared memory.
TYPED_TEST(PrintedCode, arrays_of_one_name_follow_each_other) {
  this->add(R"(program arrays {
  input X: f32[16]
  output Y: f32[16]
  phase {
    alloc fragment r: f32[16] {
      thread t in 0..16 { r[t] = X[t] }
      thread t in 0..16 { Y[t] = r[t] }
    }
    alloc shared s: f32[16] {
      alloc fragment r: f32[16, 2] {
        thread t in 0..16 { r[t, 0] = X[t] }
        thread t in 0..16 { s[t] = r[t, 0] }
      }
    }
    barrier
    alloc shared s: f32[16] {
      alloc fragment r: f32[16, 2] {
        thread t in 0..16 { r[t, 1] = X[t] * 2.0 }
        thread t in 0..16 { Y[t] = Y[t] + r[t, 1] }
      }
    }
  }
}
)");
  this->expect_right();
}

// A running sum, a filter, bounds that data decide, values known to the compiler.
TYPED_TEST(PrintedCode, loops_that_are_run_in_order) {
  this->add(R"(program in_order {
  input X: f32[3, 40]
  input L: i64[3]
  constant W: f32[3, 3] = {1.0, 0.0, -1.0, 0.5, 2.0, 0.0, -1.0, 1.0, 4.0}
  output S: f32[3, 40]
  output F: i64[3]
  output V: f32[3, 3]
  output C: f32[3]
  phase {
    parallel b in 0..3 {
      alloc stack n: i64[] {
        alloc stack kept: f32[40] {
          n[] = 0
          S[b, 0] = X[b, 0]
          vectorized v in 0..39 { S[b, v + 1] = S[b, v] + X[b, v + 1] }
          vectorized v in 0..40 { if 0.0 < X[b, v] { kept[n[]] = X[b, v]  n[] = n[] + 1 } }
          F[b] = n[]
          unrolled i in 0..3 {
            V[b, i] = 0.0
            unrolled j in 0..3 { V[b, i] = V[b, i] + W[i, j] * X[b, j] }
          }
          C[b] = 0.0
          for i in 0..+L[b] { C[b] = C[b] + kept[0] * f32(i) + W[b, i % 3] }
        }
      }
    }
  }
}
)");
  this->expect_right();
}

}  // namespace
}  // namespace hone::backend::gpu
