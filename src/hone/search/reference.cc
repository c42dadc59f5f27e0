#include "hone/search/reference.h"

#include <algorithm>
#include <cstdlib>

#include "hone/backend/registry.h"
#include "hone/base/allocation.h"
#include "hone/base/rng.h"
#include "hone/base/round_up.h"
#include "hone/base/thread_pool.h"
#include "hone/compute/affine.h"
#include "hone/ir/known_zeros.h"
#include "hone/machine/local.h"
#include "hone/runtime/float_mode.h"
#include "hone/schedule/lower.h"

namespace hone::search {
namespace {

using Point = std::vector<int64_t>;  // an index along each axis of the last stage

struct Plain {
  ir::Program program;
  bool sampled = false;  // one tile per point of the last stage's axes
};

// All stages inside one parallel loop over the points of the last one; else the naive program.
Result<Plain> plain_program(compute::Dag dag) {
  for (ir::Param& param : dag.params) param.zeros.clear();  // all products
  const compute::Stage& last = dag.stages.back();
  std::string loop;
  schedule::Steps steps;
  schedule::Fuse fuse{last.name, {}};
  for (const compute::Axis& axis : last.axes) {
    loop += (loop.empty() ? "" : "@") + axis.var->name;
    fuse.loops.push_back(axis.var->name);
  }
  int writers = 0;
  for (const ir::Param& param : dag.params) {
    if (param.role == ir::Role::kOutput)
      writers += static_cast<int>(dag.writers(param.buffer).size());
  }
  if (!last.is_extern() && !last.axes.empty() && writers == 1) {
    if (fuse.loops.size() > 1) steps.push_back(fuse);
    steps.push_back(schedule::Parallel{last.name, loop});
    for (size_t i = dag.stages.size() - 1; i-- > 0;) {
      steps.push_back(schedule::ComputeAt{dag.stages[i].name, last.name, loop});
    }
    if (Result<ir::Program> program = schedule::lower(dag, steps);
        program.ok() && program->phases.size() == 1) {
      return Plain{std::move(program).value(), true};
    }
  }
  return Plain{compute::naive_program(dag), false};
}

// The corners and edges (0, 1, n-2, n-1 along each axis) and random points, in order, each once:
// two threads that run one point may both write to its output while they sum.
std::vector<Point> choose_points(const std::vector<compute::Axis>& axes, int64_t random, Rng& rng) {
  int64_t all = 1;
  for (const compute::Axis& axis : axes) all *= axis.extent;
  std::vector<Point> points = {{}};
  for (const compute::Axis& axis : axes) {
    std::vector<int64_t> ends = {0, 1, axis.extent - 2, axis.extent - 1};
    std::erase_if(ends, [&](int64_t i) { return i < 0 || i >= axis.extent; });
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    std::vector<Point> longer;
    for (const Point& point : points) {
      for (const int64_t end : ends) {
        longer.push_back(point);
        longer.back().push_back(end);
      }
    }
    points = std::move(longer);
    if (points.size() > 4096) rng.shuffle(points), points.resize(4096);
  }
  for (int64_t i = 0; i < std::min(random, 2 * all); ++i) {
    Point point;
    for (const compute::Axis& axis : axes) point.push_back(rng.below(axis.extent));
    points.push_back(std::move(point));
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

int64_t flat_offset(const ir::Buffer& buffer, const std::vector<compute::AffineRow>& rows,
                    const Point& point) {
  int64_t offset = 0;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    int64_t index = rows[d].constant;
    for (size_t a = 0; a < point.size(); ++a) index += rows[d].coef[a] * point[a];
    offset = offset * buffer.shape[d] + index;
  }
  return offset;
}

// Of the program's params. Inputs are shared; everything that is written is a copy.
std::vector<Tensor> memory_of(const ir::Program& program, std::span<const Tensor> arguments) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ir::Param& param = program.params[i];
    Tensor tensor = i < arguments.size() && param.role != ir::Role::kOutput
                        ? arguments[i]
                        : Tensor(param.buffer->dtype, param.buffer->shape);
    for (size_t j = 0; i >= arguments.size() && j < param.buffer->values.size(); ++j) {
      tensor.set(static_cast<int64_t>(j), param.buffer->values[j]);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Runs the tiles of these points on so many threads; without points all tiles on one.
Status run_plain(const ir::Program& program, const std::vector<compute::Axis>& axes,
                 std::span<const Point> points, std::span<Tensor> tensors, int threads) {
  HONE_ASSIGN_OR_RETURN(const backend::Executable executable,
                        backend::compile(program, machine::local().target()));
  HONE_ASSIGN_OR_RETURN(const backend::LoadedPtr loaded, backend::load(executable));
  std::vector<void*> pointers;
  for (Tensor& tensor : tensors) pointers.push_back(tensor.data());
  const int parts = points.empty() ? 1 : std::max(1, threads);
  const int64_t scratch_bytes = round_up(executable.scratch_bytes + 64, 64);
  std::vector<int> failed(static_cast<size_t>(parts), 0);
  ThreadPool pool(parts);
  pool.parallel_for(parts, [&](int64_t part) {
    const runtime::FloatMode mode(runtime::Denormals::kKept);
    void* const scratch = allocate_aligned(scratch_bytes);
    const auto run = [&](const backend::EntryPoint& entry, int64_t first, int64_t end) {
      const Status status =
          loaded->run(entry, pointers.data(), scratch, first, end, static_cast<int>(part));
      if (!status.ok()) failed[static_cast<size_t>(part)] = 1;
    };
    if (points.empty()) {
      for (const backend::EntryPoint& entry : executable.entries) run(entry, 0, entry.num_tiles);
    }
    for (size_t i = static_cast<size_t>(part); i < points.size(); i += static_cast<size_t>(parts)) {
      int64_t tile = 0;
      for (size_t a = 0; a < axes.size(); ++a) tile = tile * axes[a].extent + points[i][a];
      run(executable.entries[0], tile, tile + 1);
    }
    std::free(scratch);
  });
  if (std::count(failed.begin(), failed.end(), 1) > 0)
    return error(Code::kInternal, "the reference code failed");
  return ok_status();
}

}  // namespace

std::vector<Tensor> task_arguments(const compute::Dag& dag, uint64_t seed) {
  std::vector<Tensor> arguments;
  for (const ir::Param& param : dag.params) {
    Tensor tensor(param.buffer->dtype, param.buffer->shape);
    Rng rng(hash_combine(seed, arguments.size()));
    const bool f32 = tensor.dtype() == DType::kF32;
    for (int64_t i = 0; param.role != ir::Role::kOutput && i < tensor.size(); ++i) {
      if (!param.buffer->values.empty())
        tensor.set(i, param.buffer->values[static_cast<size_t>(i)]);
      else if (f32)
        static_cast<float*>(tensor.data())[i] = static_cast<float>(rng.uniform() * 2 - 1);
      else
        tensor.set(i, is_float(tensor.dtype()) ? rng.uniform() * 2 - 1
                                               : static_cast<double>(rng.below(4)));
    }
    ir::put_known_zeros(param, tensor);
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

double tolerance_of(const compute::Dag& dag, double of_sums) {
  constexpr double kNeighbours = 4;
  double tolerance = of_sums;
  const auto allow = [&](DType rounded) {
    if (rounded == DType::kF16) tolerance = std::max(tolerance, kNeighbours * 0x1p-10);
    if (rounded == DType::kBF16) tolerance = std::max(tolerance, kNeighbours * 0x1p-7);
  };
  for (const compute::Stage& stage : dag.stages)
    for (const compute::Output& output : stage.outputs) allow(output.buffer->dtype);
  for (const ir::Param& param : dag.params)
    if (param.role == ir::Role::kConstant) allow(param.buffer->dtype);
  return tolerance;
}

Result<std::vector<measure::Expected>> reference_outputs(const compute::Dag& dag,
                                                         std::span<const Tensor> arguments,
                                                         const ReferenceOptions& options) {
  HONE_ASSERT(arguments.size() == dag.params.size(), "one argument per param");
  HONE_ASSIGN_OR_RETURN(const Plain plain, plain_program(dag));
  const compute::Stage& last = dag.stages.back();
  Rng rng(options.seed);
  std::vector<Point> points;
  if (plain.sampled) points = choose_points(last.axes, options.points, rng);
  std::vector<Tensor> tensors = memory_of(plain.program, arguments);
  HONE_RETURN_IF_ERROR(run_plain(plain.program, last.axes, points, tensors, options.threads));

  std::vector<measure::Expected> expected;
  for (size_t i = 0; i < dag.params.size(); ++i) {
    const ir::Buffer& buffer = *dag.params[i].buffer;
    if (dag.params[i].role != ir::Role::kOutput) continue;
    measure::Expected output{.operand = static_cast<int>(i), .dtype = buffer.dtype};
    if (plain.sampled) {
      const std::vector<compute::AffineRow> rows = compute::write_rows(last, last.outputs[0]);
      for (const Point& point : points) output.places.push_back(flat_offset(buffer, rows, point));
      for (const int64_t place : output.places) output.values.push_back(tensors[i].at(place));
    } else {
      for (int64_t j = 0; j < tensors[i].size(); ++j) output.values.push_back(tensors[i].at(j));
    }
    expected.push_back(std::move(output));
  }
  return expected;
}

}  // namespace hone::search
