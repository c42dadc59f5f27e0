// Machine code for 64-bit Arm of sampled schedules of every kind of task, with the instructions
// that Hone counts of it (backend/cpu/count_code.h), for arm_counts_test.py, which runs it.
//   hone_arm_counts FOLDER DEVICE ...
// writes FOLDER/NAME.o and, for its arguments one after the other, FOLDER/NAME.bin; a line of JSON
// on standard output for each phase that runs with a model.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

#include "hone/backend/cpu/count_code.h"
#include "hone/base/file.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"

namespace hone {
namespace {

using namespace compute::testing;
namespace cpu = backend::cpu;

constexpr int kPoints = 3;
constexpr int64_t kMostInstructions = 20'000;  // what takes longer is left out

std::vector<std::pair<const char*, compute::Dag>> kinds() {
  return {{"product", gemm(7, 24, 17)},
          {"convolution", conv2d({.h = 6, .w = 5, .ic = 4, .oc = 16})},
          {"depthwise", depthwise(9, 9, 16, 1)},
          {"maximum_pool", max_pool(8, 8, 16)},
          {"average_pool", global_pool(7, 7, 24)},
          {"softmax", softmax(5, 33, 1)},
          {"normalized_rows", normalized_rows(6, 40)},
          {"sum_of_two", sum_of_two(7, 70)},
          {"transpose", transpose(16, 9, 32, 0)},
          {"attention", attention(2, 5, 9, 8)},
          {"gather", gather_rows(5, 24, 11)}};
}

Status write_kernel(const std::string& folder, const std::string& name, const ir::Program& program,
                    const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const cpu::ObjectCode code,
                        cpu::compile(program, target.cpu(), {.symbol_prefix = name}));
  HONE_ASSIGN_OR_RETURN(const std::vector<CountedCode> counts,
                        cpu::count_code(code.object, code.phases, program, target.cpu()));
  nlohmann::json arguments = nlohmann::json::array();
  std::string bytes;
  for (const Tensor& tensor : ir::random_arguments(program, 1)) {
    arguments.push_back(tensor.bytes());
    bytes.append(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
  }
  HONE_RETURN_IF_ERROR(write_file_atomic(folder + "/" + name + ".o", code.object));
  HONE_RETURN_IF_ERROR(write_file_atomic(folder + "/" + name + ".bin", bytes));
  for (const CountedCode& counted : counts) {
    if (counted.executed.all > kMostInstructions) continue;
    const nlohmann::json line = {{"name", name},
                                 {"symbol", counted.symbol},
                                 {"arguments", arguments},
                                 {"scratch", code.scratch_bytes},
                                 {"tiles", counted.tiles},
                                 {"counted", counted.executed.all},
                                 {"exact", counted.exact()},
                                 {"failure", counted.failure}};
    fmt::print("{}\n", line.dump());
  }
  return ok_status();
}

Status write_kernels(const std::string& folder, const std::string& device) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::find(device));
  for (const auto& [kind, dag] : kinds()) {
    HONE_ASSIGN_OR_RETURN(const space::Space space, space::Space::create(dag, target));
    Rng rng(11);
    for (int i = 0; i < kPoints; ++i) {
      const space::Point point = i == 0 ? space.default_point() : space.sample(rng);
      HONE_ASSIGN_OR_RETURN(const ir::Program program,
                            schedule::lower(dag, space.steps(point), ir::cpu_pipeline(),
                                            {.parameters = target.passes}));
      std::string name = fmt::format("{}_{}_{}", device, kind, i);
      std::replace(name.begin(), name.end(), '-', '_');
      HONE_RETURN_IF_ERROR(write_kernel(folder, name, program, target));
    }
  }
  return ok_status();
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  for (int i = 2; i < argc; ++i) {
    const hone::Status done = hone::write_kernels(argv[1], argv[i]);
    if (done.ok()) continue;
    fmt::print(stderr, "{}: {}\n", argv[i], done.message());
    return 1;
  }
  return 0;
}
