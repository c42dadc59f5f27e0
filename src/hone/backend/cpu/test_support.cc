#include "hone/backend/cpu/test_support.h"

#include <cstdlib>
#include <cstring>

#include "hone/backend/results_testing.h"
#include "hone/ir/in_place.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/printer.h"
#include "hone/runtime/kernel_abi.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {

std::vector<target::Target> runnable_targets() {
  std::vector<target::Target> out;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    out.push_back(*target::find("x86-64-avx2"));
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    out.push_back(*target::find("x86-64-avx512"));
  }
#endif
  return out;
}

Status run_machine_code(const ir::Program& program, const target::Target& target,
                        std::span<Tensor> args) {
  HONE_ASSIGN_OR_RETURN(const ObjectCode code, compile(program, target.cpu()));
  HONE_ASSIGN_OR_RETURN(const auto loaded, LoadedCode::load(code.object));
  std::vector<void*> pointers;
  for (Tensor& t : args) pointers.push_back(t.data());
  const auto scratch_bytes = static_cast<size_t>(code.scratch_bytes + 64) / 64 * 64;
  void* scratch = std::aligned_alloc(64, scratch_bytes);
  std::memset(scratch, 0xFF, scratch_bytes);  // NaN: what is read before it is written shows
  for (const EntryPoint& phase : code.phases) {
    const auto kernel = reinterpret_cast<hone_kernel>(loaded->symbol(phase.symbol));
    if (!kernel) return error(Code::kInternal, "no symbol {}", phase.symbol);
    const int64_t middle = phase.num_tiles / 2;
    if (middle > 0) kernel(pointers.data(), scratch, 0, middle, 0);
    kernel(pointers.data(), scratch, middle, phase.num_tiles, 0);
  }
  std::free(scratch);
  return ok_status();
}

// Compares for one placement of the arguments. `shared` names an input and an output in one place.
static std::string compare(const ir::Program& program, uint64_t seed, double tolerance,
                           const ir::InPlacePair* shared) {
  const auto arguments = [&] {
    std::vector<Tensor> args = ir::random_arguments(program, seed);
    if (shared != nullptr) args[shared->output] = args[shared->input];
    return args;
  };
  std::vector<Tensor> expected = arguments();
  if (Status s = ir::run(program, expected, {.keep_outputs = shared != nullptr}); !s.ok())
    return "interpreter: " + s.message();
  for (const target::Target& target : runnable_targets()) {
    std::vector<Tensor> found = arguments();
    for (size_t p = 0; p < found.size(); ++p) {
      if (testing::is_written(program.params[p]) && (shared == nullptr || p != shared->output))
        testing::fill_with_garbage(found[p]);
    }
    if (Status s = run_machine_code(program, target, found); !s.ok())
      return target.name + ": " + s.message();
    const std::string difference = testing::difference(program, expected, found, tolerance);
    if (!difference.empty())
      return fmt::format("{}: {} (seed {}{})\n{}", target.name, difference, seed,
                         shared != nullptr ? ", in place" : "", ir::print(program));
  }
  return "";
}

std::string compare_with_interpreter(const ir::Program& program, uint64_t seed, double tolerance) {
  std::string difference = compare(program, seed, tolerance, nullptr);
  for (const ir::InPlacePair& pair : ir::in_place_pairs(program)) {
    if (difference.empty()) difference = compare(program, seed, tolerance, &pair);
  }
  return difference;
}

ir::Stmt loop(const ir::VarPtr& v, int64_t extent, ir::ForKind kind, std::vector<ir::Stmt> body) {
  return ir::make_for(v, ir::constant(0), ir::constant(extent), kind, std::move(body));
}
ir::Program program_of(std::vector<ir::Param> params, ir::Stmt body) {
  return {"test", std::move(params), {{std::move(body), false}}};
}

}  // namespace hone::backend::cpu
