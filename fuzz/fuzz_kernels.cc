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

namespace hone::fuzz {

std::string make_input(Rng& rng) {
  const uint64_t seed = rng.next();
  return {reinterpret_cast<const char*>(&seed), sizeof(seed)};
}

namespace {

enum class Data : uint8_t { kPlain, kIntegers, kInfinite, kNan, kDenormal };

double element(Data data, double scale, Rng& rng) {
  const double plain = rng.uniform() * 2 - 1;
  switch (data) {
    case Data::kPlain: return plain;
    case Data::kNan:
      if (rng.chance(0.01)) return std::numeric_limits<double>::quiet_NaN();
      return plain;
    case Data::kInfinite:
      if (rng.chance(0.01)) return rng.chance(0.5) ? HUGE_VAL : -HUGE_VAL;
      return plain;
    case Data::kIntegers:
    case Data::kDenormal: break;
  }
  return static_cast<double>(rng.between(-3, 3)) * scale;
}

// Outputs begin as in guarded runs: what no stage writes is the same in both.
std::vector<Tensor> arguments(const RandomTask& task, const ir::Program& program, Data data,
                              uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> args;
  for (const ir::Param& param : program.params) {
    if (const auto index = task.indices.find(args.size()); index != task.indices.end()) {
      args.push_back(index->second);
      continue;
    }
    Tensor tensor(param.buffer->dtype, param.buffer->shape);
    const bool given = param.role == ir::Role::kInput || param.role == ir::Role::kConstant;
    // Denormal data times weights that are integers have exact sums.
    const bool tiny = data == Data::kDenormal && param.role == ir::Role::kInput;
    const double scale = tiny ? std::ldexp(1.0, -static_cast<int>(rng.between(127, 149))) : 1;
    if (!given) std::memset(tensor.data(), 0xFF, static_cast<size_t>(tensor.bytes()));
    for (int64_t i = 0; given && i < tensor.size(); ++i) {
      const std::vector<float>& known = param.buffer->values;
      tensor.set(i, known.empty() ? element(data, scale, rng)
                                  : static_cast<double>(known[static_cast<size_t>(i)]));
    }
    ir::put_known_zeros(param, tensor);
    args.push_back(std::move(tensor));
  }
  return args;
}

// Of every parameter, how far its elements move where rounding moves operands; NaN: so far that
// some are numbers and some are not.
using Spread = std::vector<std::vector<double>>;

// "" if each element is within `tolerance` of the largest finite one and its own `spread` (none:
// 0), or as infinite or as little of a number. `in_place`: what no stage writes is what an input
// left there.
std::string difference(const ir::Program& program, const std::vector<Tensor>& want,
                       const std::vector<Tensor>& got, double tolerance, bool in_place,
                       const Spread& spread = {}) {
  for (size_t p = 0; p < want.size(); ++p) {
    if (program.params[p].role != ir::Role::kOutput) continue;
    double largest = 0;
    for (int64_t i = 0; i < want[p].size(); ++i) {
      const double v = std::fabs(want[p].at(i));
      if (std::isfinite(v)) largest = std::max(largest, v);
    }
    const double allowed = tolerance * largest + 4 * std::ldexp(1.0, -149);
    for (int64_t i = 0; i < want[p].size(); ++i) {
      const double w = want[p].at(i), g = got[p].at(i);
      const double own = spread.empty() ? 0 : spread[p][static_cast<size_t>(i)];
      if (w == g || std::fabs(w - g) <= allowed + own || std::isnan(own)) continue;
      if (std::isnan(w) && std::isnan(g)) continue;
      // All bits set, as what no stage writes.
      if (in_place && (std::isnan(w) || (w == -1 && !is_float(want[p].dtype())))) continue;
      return fmt::format("{}[{}] is {}, expected {} (largest {})", program.params[p].buffer->name,
                         i, g, w, largest);
    }
  }
  return "";
}

struct Oracle {
  Data data;
  uint64_t seed;
  std::vector<Tensor> want;
};

// How far a result may be off because of rounding alone: near the pole of a reciprocal or where
// terms cancel, the last bits of the operands decide, and long sums round. The naive program on
// operands that are off by some units in the last place, up or down by chance, tells (the condition
// of the task there), and how far it is from itself in double.
Spread spread_of(const RandomTask& task, const Oracle& oracle) {
  constexpr int kRuns = 8;
  constexpr double kOff = 0x1p-21;  // 4 units of f32
  const ir::Program naive = compute::naive_program(task.dag);
  Rng rng(oracle.seed);
  std::vector<Tensor> exact = arguments(task, naive, oracle.data, oracle.seed);
  HONE_ASSERT(ir::run(naive, exact, {.float64 = true, .keep_outputs = true}).ok(),
              "as it ran before");
  Spread spread;
  for (const Tensor& want : oracle.want) spread.emplace_back(static_cast<size_t>(want.size()), 0.0);
  const auto widen = [&](const std::vector<Tensor>& found) {
    for (size_t p = 0; p < spread.size(); ++p) {
      for (int64_t i = 0; i < oracle.want[p].size(); ++i) {
        const double other = found[p].at(i), want = oracle.want[p].at(i);
        const bool undecided = std::isnan(other) != std::isnan(want);  // a root of about zero
        double& most = spread[p][static_cast<size_t>(i)];
        most = undecided ? NAN : std::max(most, std::fabs(other - want));  // NAN stays
      }
    }
  };
  widen(exact);
  for (int run = 0; run < kRuns; ++run) {
    std::vector<Tensor> args = arguments(task, naive, oracle.data, oracle.seed);
    for (size_t p = 0; p < args.size(); ++p) {
      const ir::Param& param = naive.params[p];
      const bool given = param.role == ir::Role::kInput || param.role == ir::Role::kConstant;
      if (!given || !is_float(args[p].dtype()) || !param.buffer->values.empty()) continue;
      for (int64_t i = 0; i < args[p].size(); ++i)
        args[p].set(i, args[p].at(i) * (rng.chance(0.5) ? 1 + kOff : 1 - kOff));
    }
    HONE_ASSERT(ir::run(naive, args, {.keep_outputs = true}).ok(), "as it ran before");
    widen(args);
  }
  return spread;
}

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
    const Spread spread = spread_of(task, oracle);
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
  if (oracle.data == Data::kNan && tasks.is_extremum) oracle.data = Data::kInfinite;
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
