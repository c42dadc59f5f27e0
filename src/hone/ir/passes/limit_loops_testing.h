// ir/passes/limit_loops_testing.h - asks the interpreter whether a program with limits computes all
// elements that are needed, while everything that is not needed is NaN. Tests and fuzz targets use
// this.
#pragma once

#include <cmath>
#include <limits>

#include "hone/base/rng.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/passes/limit_loops.h"
#include "hone/ir/printer.h"
#include "hone/ir/verifier.h"

namespace hone::ir::testing {

// All loops end early that may.
inline constexpr LimitOptions kAllLoops = {.min_stores = 0, .min_stores_of_all = 0};

struct LimitCase {
  std::vector<ParamLimit> limits;
  std::vector<int64_t> sizes;  // a value per form
};

// Makes limits of one or two dimensions of the outputs, which may be merged ones, and sizes.
inline LimitCase random_limits(const Program& program, Rng& rng) {
  LimitCase made;
  const auto forms = static_cast<int>(rng.between(1, 2));
  for (int form = 0; form < forms; ++form) {
    int64_t most = 1;
    for (size_t p = 0; p < program.params.size(); ++p) {
      const Param& param = program.params[p];
      const auto rank = static_cast<int64_t>(param.buffer->shape.size());
      if (param.role != Role::kOutput || rank == 0) continue;
      SizeLimit limit{.form = form, .dimension = static_cast<int>(rng.below(rank))};
      const int64_t extent = param.buffer->shape[static_cast<size_t>(limit.dimension)];
      limit.unit = rng.chance(0.6) ? 1 : rng.between(1, 4);
      if (extent > 3 && rng.chance(0.25)) limit.period = rng.between(2, extent);
      if (rng.chance(0.1)) limit.offset = rng.between(0, 2);
      most = std::max(most, (limit.period > 0 ? limit.period : extent) / limit.unit);
      made.limits.push_back({p, limit});
    }
    made.sizes.push_back(rng.between(1, most));
  }
  return made;
}

inline std::string describe(const LimitCase& given) {
  std::string text;
  for (const auto& [param, l] : given.limits) {
    text += fmt::format("param {}: (i{} % {}) * {} - {} < {} * {}; ", param, l.dimension, l.period,
                        l.scale, l.offset, l.unit, given.sizes[static_cast<size_t>(l.form)]);
  }
  return text;
}

inline bool is_needed(const std::vector<SizeLimit>& limits, const std::vector<int64_t>& sizes,
                      const Shape& shape, int64_t element) {
  for (const SizeLimit& limit : limits) {
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > static_cast<size_t>(limit.dimension) + 1;)
      stride *= shape[d];
    int64_t i = element / stride % shape[static_cast<size_t>(limit.dimension)];
    if (limit.period > 0) i %= limit.period;
    if (i * limit.scale - limit.offset >= limit.unit * sizes[static_cast<size_t>(limit.form)])
      return false;
  }
  return true;
}

struct LimitRun {
  std::string difference;  // empty if all that is needed is right
  bool changed = false;
  int64_t before = 0, after = 0;  // operations of the interpreter
  LimitedProgram limited;
};

// The program with as many tiles of each phase as a run of these sizes passes to it.
inline Program with_needed_tiles(const LimitedProgram& limited, const std::vector<int64_t>& sizes) {
  Program program = limited.program;
  for (size_t p = 0; p < program.phases.size(); ++p) {
    const TileLimit& limit = limited.tiles[p];
    Phase& phase = program.phases[p];
    if (limit.form < 0) continue;
    const int64_t size = sizes[static_cast<size_t>(limit.form)];
    const int64_t tiles =
        size <= 0 ? 0 : ((size - 1) / limit.divisor + 1) * limit.multiplier;  // rounded up
    if (tiles >= phase.num_tiles()) continue;
    const StmtNode& loop = *phase.body;
    phase.body = make_for(loop.var, loop.min, constant(tiles), loop.for_kind, loop.body, loop.peel);
  }
  return program;
}

// Runs a program with and without its limits. Elements of inputs that are not needed are NaN in the
// second run, and all that it stores begins as NaN.
inline LimitRun run_limited(const Program& program, const LimitCase& given, uint64_t seed,
                            const LimitOptions& options = {}) {
  LimitRun result;
  result.limited = limit_loops(program, given.limits, make_sizes(std::ssize(given.sizes)), options);
  const LimitedProgram& limited = result.limited;
  result.changed = limited.changed;
  if (const Status valid = verify(limited.program); !valid.ok()) {
    result.difference = valid.message();
    return result;
  }
  const SizeLimits found(program, given.limits);
  std::vector<Tensor> want = random_arguments(program, seed), got;
  for (size_t i = 0; i < want.size(); ++i) {
    got.push_back(want[i].clone());
    const Param& param = program.params[i];
    if (param.role != Role::kInput || !is_float(param.buffer->dtype)) continue;
    const std::vector<SizeLimit> limits = found.of_param(param.buffer);
    for (int64_t e = 0; e < got[i].size(); ++e) {
      if (!is_needed(limits, given.sizes, param.buffer->shape, e))
        got[i].set(e, std::numeric_limits<double>::quiet_NaN());
    }
  }
  if (limited.changed) {
    Tensor sizes(DType::kI64, {std::ssize(given.sizes)});
    for (int64_t f = 0; f < sizes.size(); ++f)
      sizes.set(f, static_cast<double>(given.sizes[static_cast<size_t>(f)]));
    got.push_back(std::move(sizes));
  }
  if (const Status ran = run(program, want, {.operations = &result.before}); !ran.ok()) {
    result.difference = "without limits: " + ran.message();
    return result;
  }
  const Program needed = with_needed_tiles(limited, given.sizes);
  if (const Status ran = run(needed, got, {.operations = &result.after}); !ran.ok()) {
    result.difference = ran.message();
    return result;
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (program.params[i].role != Role::kOutput) continue;
    std::vector<SizeLimit> limits;
    for (const ParamLimit& limit : given.limits) {
      if (limit.param == i) limits.push_back(limit.limit);
    }
    for (int64_t e = 0; e < want[i].size(); ++e) {
      const double a = want[i].at(e), b = got[i].at(e);
      const bool same = a == b || (std::isnan(a) && std::isnan(b));
      if (!same && is_needed(limits, given.sizes, program.params[i].buffer->shape, e))
        result.difference = program.params[i].buffer->name + " has other values";
    }
  }
  return result;
}

}  // namespace hone::ir::testing
