// A seed: the kernels of random tasks (random_task.h), by every sketch of the space and some of its
// points, for this machine with all that it can do or limited to AVX2, between guard pages
// (backend/cpu/guarded_run_testing.h), compute what the naive program does in the interpreter; NaN,
// infinite and denormal operands are among the data. Threads change nothing: a sum that is split
// over tiles has as many parts as its schedule says.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hone/backend/cpu/guarded_run_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/known_zeros.h"
#include "hone/ir/printer.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"
#include "hone/target/target.h"

#include "fuzz.h"
#include "random_task.h"
#include "task_data.h"

namespace hone::fuzz {

std::string make_input(Rng& rng) {
  const uint64_t seed = rng.next();
  return {reinterpret_cast<const char*>(&seed), sizeof(seed)};
}

namespace {

struct Oracle {
  Data data;
  uint64_t seed;
  std::vector<Tensor> want;
};

// "" or what is wrong with the kernel of a schedule.
std::string check(const RandomTask& task, const schedule::Steps& steps,
                  const target::Target& target, const Oracle& oracle, double tolerance,
                  int64_t alignment) {
  const Result<ir::Program> program = schedule::lower(task.dag, steps);
  if (!program.ok()) return "lower: " + program.status().message();
  const auto code =
      backend::cpu::compile(*program, target.cpu(), {.argument_alignment = alignment});
  if (code.status().code() == Code::kUnsupported) return "";
  if (!code.ok()) return "compile: " + code.status().message();
  const std::vector<ir::InPlacePair> pairs = ir::in_place_pairs(*program);
  const bool in_place = !pairs.empty() && oracle.seed % 2 == 0;
  std::vector<Tensor> got = arguments(task, *program, oracle.data, oracle.seed);
  const Status ran = backend::cpu::run_guarded(*program, *code, got,
                                               {.alignment = alignment,
                                                .threads = backend::cpu::some_threads(oracle.seed),
                                                .shared = in_place ? &pairs[0] : nullptr,
                                                .flush_denormals = oracle.data != Data::kDenormal});
  if (!ran.ok()) return ran.message() + "\n" + ir::print(*program);
  got.resize(task.dag.params.size());  // they come first, in order
  std::string wrong = difference(*program, oracle.want, got, tolerance, in_place);
  if (!wrong.empty()) {
    const Spread spread = spread_of(task, oracle.data, oracle.seed, oracle.want);
    wrong = difference(*program, oracle.want, got, tolerance, in_place, spread);
  }
  return wrong.empty() ? "" : wrong + "\n" + ir::print(*program);
}

// Its default, and a sample, of which half are moved.
std::vector<space::Point> points_of(const space::Space& space, int sketch, Rng& rng) {
  std::vector<space::Point> points = {space.default_point(sketch)};
  for (int attempt = 0; attempt < 30 && points.size() < 3; ++attempt) {
    space::Point point = space.sample(rng);
    if (point.sketch != sketch) continue;
    if (rng.chance(0.5)) point = space.mutate(point, rng);
    if (point.sketch == sketch) points.push_back(std::move(point));
  }
  return points;
}

void check_task(const RandomTasks& tasks, const RandomTask& task, Rng& rng) {
  const compute::Dag& dag = task.dag;
  static const std::vector<Data> kKinds = {Data::kPlain,    Data::kPlain, Data::kIntegers,
                                           Data::kIntegers, Data::kNan,   Data::kInfinite,
                                           Data::kDenormal};
  Oracle oracle{rng.choice(kKinds), rng.next(), {}};
  if (oracle.data == Data::kNan && tasks.is_any_operator) oracle.data = Data::kInfinite;
  // Terms that a schedule may leave out are zero, unless they are zero times infinity. (Around an
  // input zeros are known only where no constant of the task is infinite.)
  const bool ends = std::any_of(dag.stages.begin(), dag.stages.end(),
                                [](const compute::Stage& stage) { return stage.until != nullptr; });
  const bool zeros = std::any_of(dag.params.begin(), dag.params.end(),
                                 [](const ir::Param& param) { return !param.zeros.empty(); });
  if ((ends || zeros) && (oracle.data == Data::kNan || oracle.data == Data::kInfinite))
    oracle.data = Data::kPlain;
  const ir::Program naive = compute::naive_program(dag);
  oracle.want = arguments(task, naive, oracle.data, oracle.seed);
  const Status ran = ir::run(naive, oracle.want, {.keep_outputs = true});
  HONE_ASSERT(
      ran.ok(),
      fmt::format("{}: {}: {}", tasks.family, compute::describe(dag), ran.message()).c_str());
  oracle.want.resize(dag.params.size());
  const Result<target::Target> target =
      target::find(rng.chance(0.5) && runs_here(*target::find("host-avx2")) ? "host-avx2" : "host");
  HONE_ASSERT(target.ok(), "the host is known");
  const Result<space::Space> space = space::Space::create(dag, *target);
  HONE_ASSERT(space.ok(), space.status().message().c_str());
  for (int sketch = 0; sketch < space->num_sketches(); ++sketch) {
    const bool direct = space->algorithm(sketch) == "direct";
    // Winograd's algorithm adds what is far apart: an infinite or tiny operand spoils a whole tile.
    if (!direct && oracle.data != Data::kPlain && oracle.data != Data::kIntegers) continue;
    for (const space::Point& point : points_of(*space, sketch, rng)) {
      if (!space->instantiate(point).ok()) continue;  // an ordinary result, for a search, too
      const schedule::Steps steps = space->steps(point);
      const int64_t alignment = rng.chance(0.5) ? 4 : 64;
      const std::string wrong =
          check(task, steps, *target, oracle, direct ? 2e-5 : 1e-3, alignment);
      if (wrong.empty()) continue;
      fmt::print(stderr, "{}: {}\ntarget {}, data {}, alignment {}\n{}{}\n", tasks.family,
                 compute::describe(dag), target->name, static_cast<int>(oracle.data), alignment,
                 schedule::to_string(steps), wrong);
      HONE_ASSERT(false, "a kernel is wrong");
    }
  }
}

}  // namespace
}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  Rng rng(fuzz::seed_of(data, size));
  const fuzz::RandomTasks tasks = fuzz::random_tasks(rng);
  for (const fuzz::RandomTask& task : tasks.all) fuzz::check_task(tasks, task, rng);
  return 0;
}
