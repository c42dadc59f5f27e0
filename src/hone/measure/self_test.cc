#include "hone/measure/self_test.h"

#include <algorithm>
#include <vector>

#include "hone/backend/registry.h"
#include "hone/target/gpu_devices.h"

namespace hone::measure {
namespace {

constexpr int64_t kTiles = 4, kRow = 64;
constexpr double kDeviceStart =
    60;  // seconds in which a driver opens its device, or compiles a kernel

// out = in + in. On a GPU, the threads of a block share a tile.
ir::Program trial_program(target::Kind kind) {
  const auto in = ir::make_buffer("in", DType::kF32, {kTiles, kRow});
  const auto out = ir::make_buffer("out", DType::kF32, {kTiles, kRow});
  const auto t = ir::make_var("t"), i = ir::make_var("i");
  const ir::Expr x = ir::load(in, {ir::variable(t), ir::variable(i)});
  const ir::Stmt body = ir::make_for(
      t, ir::constant(0), ir::constant(kTiles), ir::ForKind::kParallel,
      {ir::make_for(i, ir::constant(0), ir::constant(kRow),
                    kind == target::Kind::kCpu ? ir::ForKind::kSerial : ir::ForKind::kThread,
                    {ir::make_store(out, {ir::variable(t), ir::variable(i)}, x + x)})});
  return {"self_test", {{in, ir::Role::kInput}, {out, ir::Role::kOutput}}, {{body}}};
}

Result<Job> trial_job(const target::Target& target) {
  std::vector<float> in;
  Expected expected{.operand = 1};
  for (int64_t i = 0; i < kTiles * kRow; ++i) {
    in.push_back(static_cast<float>(i + 1));
    expected.values.push_back(2.0 * static_cast<double>(i + 1));
  }
  const auto bytes = static_cast<int64_t>(in.size() * sizeof(float));
  const OperandSpec specs[] = {{ir::Role::kInput, bytes, in.data()},
                               {ir::Role::kOutput, bytes, nullptr}};
  Job job;
  HONE_ASSIGN_OR_RETURN(job.executable, backend::compile(trial_program(target.kind()), target));
  HONE_ASSIGN_OR_RETURN(job.operands, Operands::create(specs, std::vector{expected}));
  job.arguments = {{ir::Role::kInput, bytes, 0}, {ir::Role::kOutput, bytes, 1}};
  job.tolerance = 1e-6;
  job.timing.max_seconds = 1e-3;
  if (target.kind() == target::Kind::kGpu) job.timeout_seconds = kDeviceStart;
  job.label = "self-test";
  return job;
}

}  // namespace

Status self_test(Runner& runner, const target::Target& target) {
  constexpr std::string_view kWhat = "nothing can be measured here: a trial kernel";
  Result<Job> job = trial_job(target);
  if (!job.ok()) return error(job.status().code(), "{}: {}", kWhat, job.status().message());
  std::vector<Job> batch;
  batch.push_back(*std::move(job));
  HONE_RETURN_IF_ERROR(runner.submit(std::move(batch)));
  HONE_ASSIGN_OR_RETURN(const std::vector<Measurement> answers, runner.collect());
  if (answers.size() != 1) return error(Code::kInternal, "{} has no result", kWhat);
  const Measurement& answer = answers.front();
  if (answer.outcome == trial::Outcome::kOk && answer.verified) return ok_status();
  return error(Code::kInternal, "{} for {} ended as '{}': {}", kWhat, target.name,
               outcome_name(answer.outcome),
               answer.message.empty() ? "it was not verified" : answer.message);
}

Result<std::unique_ptr<Runner>> make_tested_runner(const WorkerOptions& worker,
                                                   const target::Target& target) {
  WorkerOptions options = worker;
  if (target.kind() == target::Kind::kGpu) {
    options.device = {target::driver_kind(target.gpu()), target::driver_name(target.gpu())};
    options.start_seconds = std::max(options.start_seconds, kDeviceStart);
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner, make_local_runner(options));
  HONE_RETURN_IF_ERROR(self_test(*runner, target));
  return runner;
}

}  // namespace hone::measure
