// A seed: the kernels of random tasks (random_task.h), by every sketch of the space of a GPU and
// some of its points, run as CUDA C on this machine (backend/gpu/cuda_emulation_testing.h) and
// compute what their program does in the interpreter; NaN and infinite operands are among the data.
#include <fmt/format.h>

#include <algorithm>

#include "hone/backend/gpu/cuda_emulation_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/ir/printer.h"
#include "hone/ir/visit.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"

#include "fuzz.h"
#include "random_task.h"
#include "task_data.h"

namespace hone::fuzz {

std::string make_input(Rng& rng) {
  const uint64_t seed = rng.next();
  return {reinterpret_cast<const char*>(&seed), sizeof(seed)};
}

namespace {

using backend::gpu::Kernel;
using backend::gpu::testing::CudaEmulation;

struct Candidate {
  const RandomTask* task;
  schedule::Steps steps;
  ir::Program program;
  std::vector<Kernel> kernels;
};
constexpr size_t kMostCandidates = 8;  // of a run, which has a limit of time
uint64_t programs_run = 0;

// Returns a GPU of few SMs, with more and more that it can do, or one of the table.
target::Target some_gpu(Rng& rng) {
  target::Gpu gpu;
  gpu.sms = 2;
  const int64_t which = rng.between(0, 4);
  if (which == 3) return *target::find("cuda-sm_80");
  if (which == 4) return *target::find("cuda-sm_90a");
  gpu.async_copy = which >= 1;
  if (which == 2) gpu.matrix = {{16, 8, 8, DType::kF32, DType::kF32, 512}};
  return {.name = "small", .part = gpu};
}

bool has_matrices(const ir::Program& program) {
  return std::any_of(program.phases.begin(), program.phases.end(), [](const ir::Phase& phase) {
    return ir::any_stmt(*phase.body,
                        [](const ir::StmtNode& s) { return s.kind == ir::StmtKind::kMatrix; });
  });
}

// Adds the default points of all sketches, and as many random ones.
void add_candidates(const RandomTask& task, const target::Target& target, Rng& rng,
                    backend::gpu::SourcePrinter& printer, std::vector<Candidate>& all) {
  const Result<space::Space> space = space::Space::create(task.dag, target, trial::Accuracy::kFast);
  HONE_ASSERT(space.ok(), space.status().message().c_str());
  std::vector<space::Point> points = space->default_points();
  for (size_t i = points.size(); i > 0; --i) points.push_back(space->sample(rng));
  for (const space::Point& point : points) {
    if (all.size() >= kMostCandidates) return;
    if (!space->legal(point)) continue;
    const schedule::Steps steps = space->steps(point);
    const auto candidate = space->instantiate(point);
    Result<ir::Program> program = schedule::lower_raw(candidate->state, candidate->bounds);
    HONE_ASSERT(program.ok(), program.status().message().c_str());
    program = ir::run_pipeline(ir::gpu_pipeline(), *std::move(program));
    HONE_ASSERT(program.ok(), program.status().message().c_str());
    backend::gpu::PrintOptions options;
    options.symbol_prefix = fmt::format("k{}", all.size());
    Result<std::vector<Kernel>> kernels = printer.add(*program, options);
    if (!kernels.ok() && kernels.status().code() == Code::kUnsupported) continue;
    HONE_ASSERT(kernels.ok(), kernels.status().message().c_str());
    all.push_back({&task, steps, *std::move(program), *std::move(kernels)});
  }
}

// "" or what is wrong with the kernels of a program.
std::string check(const Candidate& candidate, const CudaEmulation& emulation, Data data,
                  uint64_t seed) {
  const ir::Program& program = candidate.program;
  std::vector<Tensor> want = arguments(*candidate.task, program, data, seed);
  const Status expected = ir::run(program, want, {.keep_outputs = true});
  if (!expected.ok()) return expected.message();
  for (const bool late : {false, true}) {
    std::vector<Tensor> got = arguments(*candidate.task, program, data, seed);
    for (size_t p = 0; p < got.size(); ++p) {
      if (program.params[p].role == ir::Role::kPacked) got[p] = want[p];  // by the host
    }
    for (const Kernel& kernel : candidate.kernels) {
      const Status ran =
          emulation.run(program, kernel, got, {.late_copies = late, .last_first = !late});
      if (!ran.ok()) return ran.message();
    }
    const double tolerance = has_matrices(program) ? 4e-3 : 2e-5;
    std::string wrong = difference(program, want, got, tolerance, false);
    if (!wrong.empty()) {
      const std::vector<Tensor> outputs(
          want.begin(),
          want.begin() + static_cast<std::ptrdiff_t>(candidate.task->dag.params.size()));
      got.resize(outputs.size());  // they come first, in order
      wrong = difference(program, outputs, got, tolerance, false,
                         spread_of(*candidate.task, data, seed, outputs));
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

std::string verdict(uint64_t runs) {
  return programs_run >= 2 * runs ? "" : fmt::format("only {} programs were run\n", programs_run);
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  using namespace hone::fuzz;
  Rng rng(seed_of(data, size));
  const RandomTasks tasks = random_tasks(rng);
  const target::Target target = some_gpu(rng);
  backend::gpu::SourcePrinter printer(backend::gpu::Dialect::kCuda);
  std::vector<Candidate> candidates;
  for (const RandomTask& task : tasks.all) add_candidates(task, target, rng, printer, candidates);
  if (candidates.empty()) return 0;
  std::vector<std::string> symbols;
  for (const Candidate& candidate : candidates) {
    for (const Kernel& kernel : candidate.kernels) symbols.push_back(kernel.symbol);
  }
  const Result<CudaEmulation> emulation = CudaEmulation::compile(printer.text(), symbols);
  HONE_ASSERT(emulation.ok(), emulation.status().message().c_str());
  static const std::vector<Data> kKinds = {Data::kPlain, Data::kPlain, Data::kIntegers,
                                           Data::kInfinite, Data::kNan};
  Data kind = rng.choice(kKinds);
  if (kind == Data::kNan && tasks.is_any_operator) kind = Data::kInfinite;
  for (const Candidate& candidate : candidates) {
    ++programs_run;
    // Printed code leaves out products with values that are known to be 0.
    const bool known = std::any_of(
        candidate.program.params.begin(), candidate.program.params.end(),
        [](const ir::Param& p) { return !p.buffer->values.empty() || !p.zeros.empty(); });
    const Data data_of_run = known ? Data::kPlain : kind;
    const std::string wrong = check(candidate, *emulation, data_of_run, rng.next());
    if (wrong.empty()) continue;
    fmt::print(stderr, "{}: {}\ntarget {}, data {}\n{}{}\n{}\n{}\n", tasks.family,
               compute::describe(candidate.task->dag), target.name, static_cast<int>(data_of_run),
               schedule::to_string(candidate.steps), wrong, ir::print(candidate.program),
               backend::gpu::print_c(candidate.program, backend::gpu::Dialect::kCuda)->text);
    HONE_ASSERT(false, "a kernel is wrong");
  }
  return 0;
}
