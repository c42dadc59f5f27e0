// The task: its operators, extents and arithmetic, whatever the schedule (after Fasor's task
// features). Tasks are compared by these numbers, too.
#include <algorithm>

#include "hone/base/hash.h"
#include "hone/compute/bytes_moved.h"
#include "hone/compute/op_counts.h"
#include "hone/cost/inputs/input_parts.h"

namespace hone::cost {
namespace {

constexpr size_t kBuckets = 16;  // buckets of hashed operator names
constexpr size_t kSpatial = 6, kReduce = 4, kParams = 4;

double points(const compute::Stage& stage) {
  double product = 1;
  for (const compute::Axis& axis : stage.axes) product *= static_cast<double>(axis.extent);
  for (const compute::Axis& axis : stage.reduce) product *= static_cast<double>(axis.extent);
  return product;
}

// The stage with the most arithmetic, the first of equal ones; null if there is none.
const compute::Stage* main_stage(const compute::Dag& dag) {
  const compute::Stage* main = nullptr;
  double most = -1;
  for (const compute::Stage& stage : dag.stages) {
    const double work = compute::flops(stage) + points(stage);
    if (work > most) most = work, main = &stage;
  }
  return main;
}

void write_operators(const compute::Dag* dag, const compute::Stage* main, RowWriter& out) {
  std::array<double, kNumTags> tags{};
  std::array<double, kBuckets> buckets{};
  for (const compute::Stage& stage :
       dag ? std::span(dag->stages) : std::span<const compute::Stage>()) {
    tags[static_cast<size_t>(tag_of(stage))] += 1;
    if (!stage.op.empty()) buckets[hash_string(stage.op) % kBuckets] += 1;
  }
  for (size_t i = 0; i < kNumTags; ++i)
    out.flag(fmt::format("main.{}", tag_names()[i]),
             main && static_cast<size_t>(tag_of(*main)) == i);
  for (size_t i = 0; i < kNumTags; ++i)
    out.count(fmt::format("stages.{}", tag_names()[i]), tags[i]);
  for (size_t i = 0; i < kBuckets; ++i) out.count(fmt::format("operators.{}", i), buckets[i]);
}

void write_extents(std::string_view name, const std::vector<compute::Axis>* axes, size_t most,
                   RowWriter& out) {
  double rest = 1;
  for (size_t i = most; axes && i < axes->size(); ++i)
    rest *= static_cast<double>((*axes)[i].extent);
  // The innermost ones keep their places.
  for (size_t i = 0; i < most; ++i) {
    const bool there = axes && i < axes->size();
    out.count(fmt::format("{}{}", name, i),
              there ? static_cast<double>((*axes)[axes->size() - 1 - i].extent) : 0);
  }
  out.count(fmt::format("{}.others", name), rest - 1);
}

double bytes_of(const ir::Param& param) { return static_cast<double>(param.buffer->bytes()); }

// The largest params of a role first.
void write_params(std::string_view name, const compute::Dag* dag, ir::Role role, RowWriter& out) {
  std::vector<double> bytes;
  for (const ir::Param& param : dag ? std::span(dag->params) : std::span<const ir::Param>()) {
    if (param.role == role) bytes.push_back(bytes_of(param));
  }
  std::sort(bytes.begin(), bytes.end(), std::greater<>());
  out.count(fmt::format("{}.number", name), static_cast<double>(bytes.size()));
  bytes.resize(kParams, 0);
  for (size_t i = 0; i < kParams; ++i) out.count(fmt::format("{}{}.bytes", name, i), bytes[i]);
}

void write_arithmetic(const compute::Dag* dag, RowWriter& out) {
  compute::OpCounts total;
  double flops = 0, moved = 0;
  if (dag) {
    flops = compute::flops(*dag);
    moved = compute::bytes_moved(*dag);
    for (const compute::Stage& stage : dag->stages) {
      if (stage.is_extern()) continue;
      compute::accumulate(total, compute::count_ops(stage), points(stage));
    }
  }
  out.count("flops", flops);
  out.count("bytes", moved);
  out.ratio("flops_per_byte", flops, moved);
  out.count("ops.fma", total.fma);
  out.count("ops.add", total.add);
  out.count("ops.mul", total.mul);
  out.count("ops.div", total.div);
  out.count("ops.compare", total.compare);
  out.count("ops.select", total.select);
  out.count("ops.math", total.math);
  out.count("ops.integer", total.integer);
}

}  // namespace

void write_task(const compute::Dag* dag, RowWriter& out) {
  const compute::Stage* main = dag ? main_stage(*dag) : nullptr;
  write_operators(dag, main, out);
  out.count("stages", dag ? static_cast<double>(dag->stages.size()) : 0);
  write_extents("main.spatial", main ? &main->axes : nullptr, kSpatial, out);
  write_extents("main.reduce", main ? &main->reduce : nullptr, kReduce, out);
  write_params("input", dag, ir::Role::kInput, out);
  write_params("constant", dag, ir::Role::kConstant, out);
  write_params("output", dag, ir::Role::kOutput, out);
  write_arithmetic(dag, out);
}

}  // namespace hone::cost
