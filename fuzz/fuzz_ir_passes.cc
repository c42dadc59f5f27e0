// A seed: every pass keeps a random program valid and what it computes.
#include <cmath>

#include "hone/ir/fuse_loops.h"
#include "hone/ir/hoist_functions.h"
#include "hone/ir/hoist_guards.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/partition_loops.h"
#include "hone/ir/printer.h"
#include "hone/ir/random_program.h"
#include "hone/ir/roll_loops.h"
#include "hone/ir/share_sums.h"
#include "hone/ir/share_windows.h"
#include "hone/ir/simplify.h"
#include "hone/ir/verifier.h"

#include "fuzz.h"

namespace hone::fuzz {

std::string make_input(Rng& rng) {
  const uint64_t seed = rng.next();
  return {reinterpret_cast<const char*>(&seed), sizeof(seed)};
}

namespace {

// Constants that are folded are rounded at each step, which the interpreter does at stores only.
bool same_values(const Tensor& a, const Tensor& b) {
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (x != y && !(std::isnan(x) && std::isnan(y)) && std::fabs(x - y) > 1e-4 * (1 + std::fabs(x)))
      return false;
  }
  return true;
}

void check(const ir::Program& before, const ir::Program& after, const char* pass, uint64_t seed) {
  const Status valid = ir::verify(after);
  std::vector<Tensor> expected = ir::random_arguments(before, seed);
  std::vector<Tensor> found = ir::random_arguments(before, seed);
  HONE_ASSERT(ir::run(before, expected).ok(), "a random program is out of bounds");
  const Status ran = valid.ok() ? ir::run(after, found) : valid;
  bool same = ran.ok();
  for (size_t i = 0; same && i < expected.size(); ++i) same = same_values(expected[i], found[i]);
  if (same) return;
  fmt::print(stderr, "{}: {}\n{}{}", pass, ran.message(), ir::print(before), ir::print(after));
  HONE_ASSERT(same, "a pass changed what a program computes");
}

}  // namespace
}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const uint64_t seed = fuzz::seed_of(data, size);
  // Only f32: casts to integers turn a difference in the last bit into one in the first.
  const ir::Program p = ir::random_program(seed, {.only_f32 = true});
  fuzz::check(p, ir::simplify(p), "simplify", seed);
  fuzz::check(p, ir::hoist_guards(p), "hoist_guards", seed);
  fuzz::check(p, ir::hoist_functions(p), "hoist_functions", seed);
  fuzz::check(p, ir::fuse_loops(p), "fuse_loops", seed);
  fuzz::check(p, ir::partition_loops(p), "partition_loops", seed);
  fuzz::check(p, ir::share_sums(p), "share_sums", seed);
  fuzz::check(p, ir::share_windows(p), "share_windows", seed);
  fuzz::check(p, ir::roll_loops(p, {.max_loads = 0, .max_sum_loads = 0}), "roll_loops", seed);
  return 0;
}
