// A seed: a random legal schedule of a random small task computes what the naive program computes,
// in the interpreter and as machine code, and survives its text form.
#include <cmath>

#include "hone/backend/cpu/test_support.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/known_zeros.h"
#include "hone/ir/printer.h"
#include "hone/ir/verifier.h"
#include "hone/schedule/lower.h"
#include "hone/schedule/random_schedule_testing.h"
#include "hone/target/target.h"

#include "fuzz.h"

namespace hone::fuzz {

std::string make_input(Rng& rng) {
  const uint64_t seed = rng.next();
  return {reinterpret_cast<const char*>(&seed), sizeof(seed)};
}

namespace {

// Small integers: sums are exact in any order.
std::vector<Tensor> arguments(const ir::Program& program, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> args;
  for (const ir::Param& param : program.params) {
    Tensor tensor(param.buffer->dtype, param.buffer->shape);
    const bool given = param.role == ir::Role::kInput || param.role == ir::Role::kConstant;
    for (int64_t i = 0; given && i < tensor.size(); ++i)
      tensor.set(i, static_cast<double>(rng.between(-3, 3)));
    ir::put_known_zeros(param, tensor);
    args.push_back(std::move(tensor));
  }
  return args;
}

// Elements that the Dag never writes (borders) are whatever they were.
bool same_outputs(const ir::Program& a, const std::vector<Tensor>& x, const ir::Program& b,
                  const std::vector<Tensor>& y) {
  for (size_t i = 0, j = 0; i < x.size() && j < y.size(); ++i, ++j) {
    if (a.params[i].role != ir::Role::kOutput) continue;
    HONE_ASSERT(b.params[j].buffer == a.params[i].buffer, "the Dag's params come first, in order");
    for (int64_t k = 0; k < x[i].size(); ++k) {
      const double want = x[i].at(k), got = y[j].at(k);
      if (std::isnan(want)) continue;
      // A mean's factor rounds; everything else is exact.
      if (!(std::fabs(want - got) <= 1e-5 * (1 + std::fabs(want)))) return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const uint64_t seed = fuzz::seed_of(data, size);
  Rng rng(seed);
  const compute::Dag dag = schedule::random_dag(rng);
  const schedule::Steps steps = schedule::random_steps(dag, rng, 30);

  const Result<schedule::Steps> parsed = schedule::parse_steps(schedule::to_string(steps));
  HONE_ASSERT(parsed.ok() && *parsed == steps, "the text form of a schedule reads back");
  const Result<ir::Program> program = schedule::lower(dag, steps);
  if (!program.ok()) return 0;  // illegal in a way that only lowering sees
  const Status valid = ir::verify(*program);
  const ir::Program naive = compute::naive_program(dag);
  std::vector<Tensor> want = fuzz::arguments(naive, seed), got = fuzz::arguments(*program, seed);
  std::vector<Tensor> run = fuzz::arguments(*program, seed);
  HONE_ASSERT(ir::run(naive, want).ok(), "the naive program is out of bounds");
  const Status interpreted = valid.ok() ? ir::run(*program, got) : valid;
  bool same = interpreted.ok() && fuzz::same_outputs(naive, want, *program, got);
  std::string where = "interpreter";
  for (const target::Target& target : backend::cpu::runnable_targets()) {
    if (!same || seed % 4 != 0) break;  // machine code for a quarter of the seeds
    const Status status = backend::cpu::run_machine_code(*program, target, run);
    same = status.ok() && fuzz::same_outputs(naive, want, *program, run);
    where = target.name + " " + status.message();
  }
  if (!same) {
    fmt::print(stderr, "{}: {}\n{}\n{}{}", where, interpreted.message(), compute::describe(dag),
               to_string(steps), ir::print(*program));
  }
  HONE_ASSERT(same, "a legal schedule changed what a task computes");
  return 0;
}
