// Runs the kernels that Hone chooses for a model on a GPU of CUDA, when it measures nothing, as
// CUDA C on this machine (backend/gpu/cuda_emulation_testing.h), and compares each with its program
// in the interpreter. Kernels with more operations than MOST are left out.
//   hone_emulate_model MODEL DEVICE MOST
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "hone/backend/gpu/cuda_emulation_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/schedule/lower.h"
#include "hone/session/compile_graph.h"
#include "hone/session/session.h"

namespace hone {
namespace {

// The largest difference of an output from the interpreter's, over the largest number there.
constexpr double kTolerance = 2e-2;  // of bfloat16, which has 8 bits

double distance(const Tensor& want, const Tensor& found) {
  double largest = 1, most = 0;
  bool any = want.size() == 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double w = want.at(i), f = found.at(i);
    any = any || !std::isnan(w);
    if (w == f || (std::isnan(w) && std::isnan(f))) continue;
    if (std::isnan(w) || std::isnan(f)) return HUGE_VAL;
    largest = std::max(largest, std::fabs(w));
    most = std::max(most, std::fabs(w - f));
  }
  return any ? most / largest : HUGE_VAL;  // nothing but NaN compares nothing
}

using backend::gpu::testing::CudaEmulation;

struct Printed {
  std::string name;
  ir::Program program;
  std::vector<backend::gpu::Kernel> kernels;
};

// Compiles the kernels of all programs together, which takes less time than one by one.
Result<CudaEmulation> compile_together(const std::string& text, const std::vector<Printed>& all) {
  std::vector<std::string> symbols;
  for (const Printed& printed : all) {
    for (const backend::gpu::Kernel& kernel : printed.kernels) symbols.push_back(kernel.symbol);
  }
  return CudaEmulation::compile(text, symbols, CudaEmulation::Build::kOptimised);
}

// Returns how far the results of the printed program are from the interpreter's.
Result<double> emulated(const CudaEmulation& emulation, const Printed& printed) {
  const ir::Program& program = printed.program;
  std::vector<Tensor> want = ir::random_arguments(program, 1);
  HONE_RETURN_IF_ERROR(ir::run(program, want));
  double most = 0;
  for (const bool late : {false, true}) {
    std::vector<Tensor> found = ir::random_arguments(program, 1);
    for (size_t p = 0; p < found.size(); ++p) {
      const ir::Role role = program.params[p].role;
      if (role == ir::Role::kPacked) found[p] = want[p];  // by the host
      if (role == ir::Role::kOutput || role == ir::Role::kWorkspace)
        std::memset(found[p].data(), 0xff, static_cast<size_t>(found[p].bytes()));
    }
    for (const backend::gpu::Kernel& kernel : printed.kernels)
      HONE_RETURN_IF_ERROR(
          emulation.run(program, kernel, found, {.late_copies = late, .last_first = !late}));
    for (size_t p = 0; p < found.size(); ++p) {
      if (program.params[p].role == ir::Role::kOutput)
        most = std::max(most, distance(want[p], found[p]));
    }
  }
  return most;
}

Status emulate_model(const std::string& path, const std::string& device, double most_flops) {
  CompileOptions options;
  options.target.device = device;
  options.records.use_db = false;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(path, options));
  HONE_ASSIGN_OR_RETURN(const Untuned untuned, make_untuned(*session, std::move(graph), options));
  const ModelTasks& model = untuned.model;
  const std::vector<schedule::Steps>& chosen = untuned.schedules;
  backend::gpu::SourcePrinter printer(backend::gpu::Dialect::kCuda);
  std::vector<Printed> all;
  for (size_t g = 0; g < chosen.size(); ++g) {
    HONE_RETURN_IF_ERROR(model.space(g).status());
    const std::string name = compute::describe(model.dag(g));
    if (model.space(g)->least_flops() > most_flops) {
      fmt::print("left out: {}\n", name);
      continue;
    }
    HONE_ASSIGN_OR_RETURN(ir::Program program,
                          schedule::lower(model.dag(g), chosen[g], ir::gpu_pipeline(),
                                          {.parameters = model.target().passes}));
    backend::gpu::PrintOptions print;
    print.symbol_prefix = fmt::format("k{}", g);
    HONE_ASSIGN_OR_RETURN(auto kernels, printer.add(program, print));
    all.push_back({name, std::move(program), std::move(kernels)});
  }
  if (all.empty()) return ok_status();
  HONE_ASSIGN_OR_RETURN(const CudaEmulation emulation, compile_together(printer.text(), all));
  int wrong = 0;
  for (const Printed& printed : all) {
    const Result<double> off = emulated(emulation, printed);
    const bool good = off.ok() && *off <= kTolerance;
    wrong += good ? 0 : 1;
    fmt::print("{} {}: {}\n", good ? "right" : "WRONG",
               off.ok() ? fmt::format("{:.1e}", *off) : off.status().message(), printed.name);
    std::fflush(stdout);
  }
  return wrong == 0 ? ok_status() : error(Code::kInternal, "{} kernels are wrong", wrong);
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const hone::Status done = hone::emulate_model(argv[1], argv[2], std::strtod(argv[3], nullptr));
  if (!done.ok()) fmt::print(stderr, "{}\n", done.message());
  return done.ok() ? 0 : 1;
}
