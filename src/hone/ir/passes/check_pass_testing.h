// ir/passes/check_pass_testing.h - asks the interpreter whether a pass keeps a program valid and
// keeps what it computes. Tests and fuzz targets use this.
#pragma once

#include <algorithm>
#include <cmath>

#include "hone/ir/interpreter.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/ir/printer.h"
#include "hone/ir/verifier.h"
#include "hone/ir/visit.h"

namespace hone::ir::testing {

// With these parameters a pass changes a program wherever it may, not only where that pays.
inline const PassParameters kEager = {
    .prefetch_blocks = {.min_reuse = 1, .min_stream = 0, .min_rows = 1},
    .prefetch_next = {.min_bytes = 0},
    .prefetch_rows = {.min_table = 0},
    .roll_loops = {.max_loads = 0, .max_prepare_loads = 0, .max_sum_loads = 0}};

// Returns each pass of a list once.
inline std::vector<Pass> distinct(std::span<const Pass> passes) {
  std::vector<Pass> found;
  for (const Pass& pass : passes) {
    const auto same = [&](const Pass& other) { return other.name == pass.name; };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(pass);
  }
  return found;
}

// Returns whether two results are equal except for rounding: folded constants are rounded at each
// step (the interpreter rounds at stores only), and some passes change the order of sums.
inline bool same_values(const Tensor& a, const Tensor& b) {
  const double tolerance = !is_float(a.dtype()) ? 0 : a.dtype() == DType::kF16 ? 2e-3 : 1e-4;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.at(i), y = b.at(i);
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                      std::fabs(x - y) <= tolerance * (1 + std::fabs(x));
    if (!same) return false;
  }
  return true;
}

// Returns why `after` is not a valid program that computes what `before` does; empty if it is.
// Params that both have are the same buffers. `check_races`: no threads or tiles may race in
// `after`, as before the barriers of a GPU are inserted they do.
inline std::string difference(const Program& before, const Program& after, uint64_t seed,
                              bool check_races = true) {
  if (const Status valid = verify(after); !valid.ok()) return valid.message();
  std::vector<Tensor> expected = random_arguments(before, seed);
  std::vector<Tensor> found = random_arguments(after, seed);
  const auto for_common = [&](const auto& f) {
    for (size_t i = 0; i < before.params.size(); ++i) {
      for (size_t j = 0; j < after.params.size(); ++j) {
        if (before.params[i].buffer == after.params[j].buffer) f(expected[i], found[j], i);
      }
    }
  };
  for_common([](const Tensor& from, Tensor& to, size_t) { to = from.clone(); });
  if (const Status ran = run(before, expected); !ran.ok()) return "before: " + ran.message();
  if (const Status ran = run(after, found, {.check_races = check_races}); !ran.ok())
    return ran.message();
  std::string message;
  for_common([&](const Tensor& a, const Tensor& b, size_t i) {
    if (!same_values(a, b)) message = before.params[i].buffer->name + " has other values";
  });
  return message;
}

// Returns all programs that lack one of the barriers that this one has.
inline std::vector<Program> without_one_barrier(const Program& program) {
  std::vector<Program> made;
  for (size_t i = 0; i < program.phases.size(); ++i) {
    std::vector<Stmt> barriers;
    for_each_stmt(*program.phases[i].body, [&](const StmtNode& s) {
      for (const Stmt& child : s.body) {
        if (child->kind == StmtKind::kBarrier) barriers.push_back(child);
      }
    });
    for (const Stmt& barrier : barriers) {
      made.push_back(program);
      made.back().phases[i].body = rewrite_stmts(
          program.phases[i].body, [&](const Stmt& s) { return s == barrier ? make_block({}) : s; });
    }
  }
  return made;
}

}  // namespace hone::ir::testing
