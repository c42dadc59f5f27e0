#include "hone/search/candidate.h"

#include <ctime>
#include <utility>

#include "hone/backend/registry.h"
#include "hone/compute/affine.h"
#include "hone/compute/dag_text.h"
#include "hone/ir/program_hash.h"
#include "hone/search/reference.h"
#include "hone/space/portable_point.h"

namespace hone::search {
namespace {

constexpr double kPackRate = 2e7;       // bytes a second, at the very least, to pack constants
constexpr double kDriverCompiles = 10;  // seconds, at the very most, that OpenCL's driver compiles
// A quarter of the registers that a thread can have. Some words beside a loop cost little; a tile
// that does not fit is written and read in each of its iterations.
constexpr int64_t kMostSpilled = 256;

}  // namespace

int64_t constant_bytes(const compute::Dag& dag) {
  int64_t bytes = 0;
  for (const ir::Param& param : dag.params) {
    if (param.role == ir::Role::kConstant) bytes += param.buffer->bytes();
  }
  return bytes;
}

double load_seconds(int64_t constant_bytes, const target::Target& target) {
  const bool compiles =
      target.kind() == target::Kind::kGpu && target.gpu().api == target::GpuApi::kOpenCl;
  return static_cast<double>(constant_bytes) / kPackRate + (compiles ? kDriverCompiles : 0);
}

Result<TaskOperands> make_operands(const compute::Dag& dag, uint64_t seed, int threads,
                                   std::span<const Tensor> more) {
  TaskOperands operands;
  operands.constant_bytes = constant_bytes(dag);
  std::vector<Tensor> arguments = task_arguments(dag, seed);
  HONE_ASSIGN_OR_RETURN(const std::vector<measure::Expected> expected,
                        reference_outputs(dag, arguments, {.seed = seed, .threads = threads}));
  std::vector<measure::OperandSpec> specs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ir::Param& param = dag.params[i];
    const bool given = param.role != ir::Role::kOutput;
    specs.push_back({param.role, arguments[i].bytes(), given ? arguments[i].data() : nullptr});
    operands.places[param.buffer.get()] = static_cast<int>(i);
  }
  // Small constants that the Dag itself carries.
  for (const compute::Stage& stage : dag.stages) {
    if (stage.is_extern()) continue;
    for (const compute::Access& access : compute::reads(stage)) {
      const ir::Buffer& buffer = *access.buffer;
      if (buffer.values.empty() || operands.places.contains(&buffer)) continue;
      Tensor tensor(buffer.dtype, buffer.shape);
      for (size_t j = 0; j < buffer.values.size(); ++j)
        tensor.set(static_cast<int64_t>(j), buffer.values[j]);
      operands.places[&buffer] = static_cast<int>(specs.size());
      specs.push_back({ir::Role::kConstant, tensor.bytes(), tensor.data()});
      arguments.push_back(std::move(tensor));
    }
  }
  for (const Tensor& tensor : more) {
    operands.more.push_back(static_cast<int>(specs.size()));
    specs.push_back({ir::Role::kInput, tensor.bytes(), tensor.data()});
  }
  HONE_ASSIGN_OR_RETURN(operands.memory, measure::Operands::create(specs, expected));
  return operands;
}

void lower(Candidate& candidate, const compute::Dag& dag, const target::Target& target) {
  if (!candidate.program) {
    Result<ProgramPtr> program = lower_schedule(dag, candidate.steps, target);
    candidate.status = program.status();
    if (!candidate.runs()) return;
    candidate.program = std::move(program).value();
  }
  candidate.program_hash = ir::hash(*candidate.program);
}

void build(Candidate& candidate, const compute::Dag& dag, const target::Target& target,
           const TaskOperands& operands) {
  if (candidate.program_hash == 0) lower(candidate, dag, target);
  if (!candidate.runs()) return;
  Result<backend::Executable> executable =
      backend::compile(*candidate.program, target, schedule::to_string(candidate.steps));
  candidate.status = executable.status();
  if (candidate.status.code() == Code::kUnsupported) candidate.dropped = Dropped::kCannotRun;
  if (!candidate.runs()) return;
  measure::Job& job = candidate.job;
  for (const ir::Param& param : candidate.program->params) {
    measure::Argument argument{param.role, param.buffer->bytes(), -1};
    const auto place = operands.places.find(param.buffer.get());
    if (place != operands.places.end()) argument.operand = place->second;
    job.arguments.push_back(argument);
  }
  candidate.code = executable->content;
  job.executable = std::move(executable).value();
  job.operands = operands.memory;
}

void drop_if_it_spills(Candidate& candidate) {
  const std::optional<CodeFigures>& code = candidate.job.executable.figures;
  if (!candidate.runs() || candidate.trusted || !code || code->spill_bytes < kMostSpilled) return;
  candidate.dropped = Dropped::kSpills;
  candidate.status =
      error(Code::kUnsupported, "a thread spills {} bytes of registers, {} are tried",
            code->spill_bytes, kMostSpilled - 1);
}

trial::Record make_record(const TrialSource& source, const Candidate& candidate,
                          const measure::Measurement& measurement, double seconds, double drift) {
  trial::Record record;
  record.task = source.task;
  record.kernel_class = compute::kernel_class(*source.dag);
  record.task_text = compute::to_text(*source.dag);
  record.device = source.device;
  record.version = source.version;
  record.algorithm = schedule::algorithm_of(candidate.steps);
  record.steps = schedule::to_string(candidate.steps);
  record.accuracy = trial::accuracy_of(record.steps);
  if (candidate.point) {
    record.decisions = space::to_string(space::to_portable(*source.space, *candidate.point));
  }
  record.code = candidate.job.executable.figures;
  record.outcome = measurement.outcome;
  record.message = measurement.message;
  if (measurement.outcome == trial::Outcome::kOk) {
    record.times = measurement.timing.samples;
    record.centre = seconds;
    record.low = measurement.timing.low * seconds / measurement.timing.centre;
    record.high = measurement.timing.high * seconds / measurement.timing.centre;
    record.drift = drift;
    for (size_t i = 0; i < measurement.duel.pairs(); ++i) {
      record.duel.push_back(measurement.duel.challenger[i]);
      record.duel.push_back(measurement.duel.incumbent[i]);
    }
    record.verified = measurement.verified;
    record.bounds = measurement.bounds;
  }
  record.threads = source.threads;
  record.seed = source.seed;
  record.unix_time = static_cast<int64_t>(std::time(nullptr));
  record.host_load = source.load.average;
  record.others = source.load.others;
  record.steal = source.load.steal;
  record.model = source.model;
  return record;
}

}  // namespace hone::search
