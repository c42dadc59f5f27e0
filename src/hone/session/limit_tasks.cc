#include "hone/session/limit_tasks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "hone/graph/integer_at.h"
#include "hone/session/decided_forms.h"
#include "hone/session/needed_parts.h"

namespace hone {
namespace {

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// Whether element i is i / inner % most, as in a constant that masks compare with a size.
std::optional<ir::SizeOperands::Places> places_in(const Tensor& tensor) {
  if (is_float(tensor.dtype()) || tensor.size() < 2 || tensor.at(0) != 0) return std::nullopt;
  ir::SizeOperands::Places places;
  while (places.inner < tensor.size() && tensor.at(places.inner) == 0) ++places.inner;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t place = graph::integer_at(tensor, i);
    if (place >= tensor.size()) return std::nullopt;
    places.most = std::max(places.most, place + 1);
  }
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (graph::integer_at(tensor, i) != i / places.inner % places.most) return std::nullopt;
  }
  return places;
}

// The integer that all elements are.
std::optional<int64_t> same_integer(const Tensor& tensor) {
  if (is_float(tensor.dtype()) || tensor.size() == 0) return std::nullopt;
  const int64_t first = graph::integer_at(tensor, 0);
  constexpr int64_t kExact = int64_t{1} << 53;  // of u64, larger ones are rounded
  if (tensor.dtype() == DType::kU64 && first >= kExact) return std::nullopt;
  for (int64_t i = 1; i < tensor.size(); ++i) {
    if (graph::integer_at(tensor, i) != first) return std::nullopt;
  }
  return first;
}

// The program with the values of constants that are one integer, such as the index of a row.
ir::Program with_integers(ir::Program program, const graph::TaskCall& call,
                          const graph::TaskList& tasks) {
  std::map<const ir::Buffer*, int64_t> known;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (program.params[i].role != ir::Role::kConstant) continue;
    const auto index = static_cast<size_t>(call.arguments[i].index);
    if (const auto value = same_integer(tasks.constants[index]))
      known[program.params[i].buffer.get()] = *value;
  }
  if (known.empty()) return program;
  for (ir::Phase& phase : program.phases) {
    if (phase.prepare || !phase.body) continue;
    phase.body = ir::rewrite_exprs(phase.body, [&](const ir::Expr& e) {
      const auto it = e->op == ir::Op::kLoad ? known.find(e->buffer.get()) : known.end();
      return it == known.end() ? e : ir::constant_int(it->second, e->type);
    });
  }
  return program;
}

std::vector<ir::ParamLimit> limits_of_outputs(const graph::TaskCall& call,
                                              const NeededParts& needed) {
  std::vector<ir::ParamLimit> limits;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const ir::Param& param = call.dag.params[i];
    if (param.role != ir::Role::kOutput) continue;
    for (const OffsetLimit& one : needed.of(place_of(call.arguments[i]))) {
      if (const auto limit = to_dimension(one, param.buffer->shape)) limits.push_back({i, *limit});
    }
  }
  return limits;
}

// Adds what a call reads that certain runs need. An input element is not needed if one of these
// says so.
void add_inputs(const graph::TaskCall& call, std::span<const ir::SizeLimits> found,
                const std::vector<ir::RunNeed>& runs, NeededParts& needed) {
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (call.dag.params[i].role != ir::Role::kInput) continue;
    const ir::BufferPtr& buffer = call.dag.params[i].buffer;
    PartReader reader{{}, buffer->shape, {}, runs};
    for (const ir::SizeLimits& limits : found) {
      for (const ir::SizeLimit& one : limits.of_param(buffer)) {
        if (const auto limit = to_offsets(one, buffer->shape)) reader.add_limit(*limit);
      }
      reader.keep_indices(limits.indices_of_param(buffer));
      reader.runs = ir::needed_by_all(std::move(reader.runs), limits.runs_of_loads(buffer));
    }
    for (const graph::PartsOfParam& one : call.parts) {
      if (one.param != i) continue;
      for (const OffsetLimit& limit : limits_of_parts(one.parts, buffer->shape))
        reader.add_limit(limit);
    }
    needed.add(place_of(call.arguments[i]), std::move(reader));
  }
}

// Returns a reader that needs all elements in these runs.
PartReader reader_of_all(const Shape& shape, std::vector<ir::RunNeed> runs) {
  PartReader reader{{}, shape, {}, std::move(runs)};
  for (const int64_t extent : shape) reader.indices.push_back({0, extent - 1});
  return reader;
}

// Adds the sizes that data decide, in these buffers, which a call reads in these runs.
void add_numbers(const graph::TaskList& tasks, const std::set<int>& buffers,
                 const std::vector<ir::RunNeed>& runs, NeededParts& needed) {
  for (const int buffer : buffers) {
    const Shape& shape = tasks.buffers[static_cast<size_t>(buffer)].shape;
    needed.add({graph::Argument::Kind::kArena, buffer}, reader_of_all(shape, runs));
  }
}

// Which calls may be left out of a run.
class OptionalCalls {
 public:
  explicit OptionalCalls(const graph::TaskList& tasks) {
    // What is read by no call.
    const auto add = [&](int buffer) {
      if (buffer >= 0) kept_.insert({graph::Argument::Kind::kArena, buffer});
    };
    for (const graph::TensorInfo& output : tasks.outputs) add(output.extents);
    for (const graph::TaskLoop& loop : tasks.loops) {
      for (const int buffer : {loop.condition, loop.limit}) add(buffer);
      for (const int buffer : loop.kept) add(buffer);
      for (const graph::LoopCopy& copy : loop.copies) add(copy.from);
    }
  }

  // Returns in which runs a call is needed. `found` are the limits in its programs.
  [[nodiscard]] std::vector<ir::RunNeed> runs_of(const graph::TaskCall& call,
                                                 std::span<const ir::SizeLimits> found,
                                                 const NeededParts& needed) const {
    if (call.loop >= 0) return {};
    std::optional<std::vector<ir::RunNeed>> runs;
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const ir::Param& param = call.dag.params[i];
      if (param.role != ir::Role::kOutput) continue;
      const Place place = place_of(call.arguments[i]);
      if (kept_.contains(place)) return {};
      std::vector<ir::RunNeed> own = needed.runs_of(place);
      for (const ir::SizeLimits& limits : found)
        own = ir::needed_by_all(std::move(own), limits.runs_of_stores(param.buffer));
      runs = runs ? ir::needed_by_either(*runs, own) : std::move(own);
    }
    return runs ? needed.that_matter(*std::move(runs)) : std::vector<ir::RunNeed>();
  }

 private:
  std::set<Place> kept_;
};

// Numbers of which the sizes are multiples in all runs.
std::vector<int64_t> multiples_of(const graph::Varying& varying) {
  std::vector<int64_t> all;
  for (const graph::SizeForm& form : varying.forms) {
    int64_t multiple = form.offset;
    for (const graph::SizeTerm& term : form.terms) multiple = std::gcd(multiple, term.factor);
    const bool is_sum = form.divisor == 1 && !form.is_bounded();
    all.push_back(is_sum && multiple > 0 ? multiple : 1);
  }
  return all;
}

// Where a call's gathers read.
std::vector<ir::IndexPlaces> places_of_indices(const graph::TaskCall& call) {
  std::vector<ir::IndexPlaces> all;
  for (const graph::IndexParam& one : call.indices) {
    ir::IndexPlaces places{call.dag.params[one.indices].buffer,
                           call.dag.params[one.data].buffer,
                           one.places.within,
                           {}};
    int64_t extent = 1;
    for (const graph::SizePart& part : one.places.parts) extent *= part.most;
    for (const OffsetLimit& limit : limits_of_parts({one.places.parts}, {extent})) {
      if (const auto found = to_dimension(limit, {extent})) places.limits.push_back(*found);
    }
    all.push_back(std::move(places));
  }
  return all;
}

// Whether a limit only says in which runs all stores are needed.
bool is_of_whole_call(const ir::Program& program, const ir::ParamLimit& limit) {
  return !ir::SizeLimits(program, {limit})
              .runs_of_stores(program.params[limit.param].buffer)
              .empty();
}

// What is known of tensors beyond the sizes of a run, from the first call to the last.
class KnownTensors {
 public:
  KnownTensors(const graph::TaskList& tasks, const DecidedForms& decided)
      : tasks_(tasks), sizes_(decided.of_places()) {
    if (tasks.sizes >= 0) {
      std::vector<int>& all = sizes_[{graph::Argument::Kind::kArena, tasks.sizes}];
      all.assign(graph::kMaxForms, -1);
      for (int form = 0; form < std::ssize(tasks.varying.forms); ++form)
        all[static_cast<size_t>(form)] = form;
    }
    for (const graph::TaskCall& call : tasks.calls) {
      for (size_t i = 0; i < call.arguments.size(); ++i) {
        if (call.dag.params[i].role == ir::Role::kOutput) ++writers_[place_of(call.arguments[i])];
      }
    }
    // What a loop copies at the end of a turn comes after what was there before.
    for (const graph::TaskLoop& loop : tasks.loops) {
      for (const graph::LoopCopy& copy : loop.copies)
        writers_[{graph::Argument::Kind::kArena, copy.to}] += 2;
    }
  }

  // `naive` is the call's naive program.
  ir::ValuesBeyond follow(const graph::TaskCall& call, const ir::Program& naive) {
    ir::SizeOperands operands;
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const ir::Param& param = call.dag.params[i];
      if (param.role == ir::Role::kConstant) add_places(call.arguments[i], param, operands);
      if (param.role == ir::Role::kInput) add_known(call.arguments[i], param, operands);
    }
    ir::ValuesBeyond found(naive, std::move(operands));
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      if (call.dag.params[i].role == ir::Role::kOutput)
        keep(call.arguments[i], call.dag.params[i], found.known());
    }
    return found;
  }

 private:
  void add_places(const graph::Argument& argument, const ir::Param& param,
                  ir::SizeOperands& operands) {
    const auto [it, fresh] = places_.try_emplace(argument.index);
    if (fresh) it->second = places_in(tasks_.constants[static_cast<size_t>(argument.index)]);
    if (it->second) operands.places[param.buffer.get()] = *it->second;
  }
  void add_known(const graph::Argument& argument, const ir::Param& param,
                 ir::SizeOperands& operands) const {
    if (const auto it = sizes_.find(place_of(argument)); it != sizes_.end())
      operands.sizes[param.buffer.get()] = it->second;
    const auto it = beyond_.find(place_of(argument));
    if (it == beyond_.end()) return;
    for (const auto& [offsets, value] : it->second) {
      if (const auto limit = to_dimension(offsets, param.buffer->shape))
        operands.beyond[param.buffer.get()].push_back({*limit, value});
    }
  }
  // A tensor that several calls write, or with a border, has elements that this call did not make.
  void keep(const graph::Argument& argument, const ir::Param& param,
            const ir::SizeOperands& found) {
    const Place place = place_of(argument);
    const bool is_whole = argument.kind == graph::Argument::Kind::kArena && writers_[place] == 1 &&
                          !tasks_.buffers[static_cast<size_t>(argument.index)].has_border();
    if (!is_whole) return;
    if (const auto it = found.sizes.find(param.buffer.get()); it != found.sizes.end())
      sizes_[place] = it->second;
    const auto it = found.beyond.find(param.buffer.get());
    if (it == found.beyond.end()) return;
    for (const ir::KnownBeyond& one : it->second) {
      if (const auto offsets = to_offsets(one.limit, param.buffer->shape))
        beyond_[place].emplace_back(*offsets, one.value);
    }
  }

  const graph::TaskList& tasks_;
  std::map<Place, std::vector<int>> sizes_;
  std::map<Place, std::vector<std::pair<OffsetLimit, double>>> beyond_;
  std::map<Place, int> writers_;
  std::map<int, std::optional<ir::SizeOperands::Places>> places_;  // by constant
};

// The functions refer to `beyond`.
ir::RunFacts facts_of(const graph::TaskCall& call, const ir::ValuesBeyond& beyond,
                      const std::vector<int64_t>& multiples) {
  return {
      [&beyond](const ir::Expr& condition, bool holds, const ir::Ranges& ranges) {
        return beyond.needs_of(condition, holds, ranges);
      },
      [&beyond](const ir::Expr& e, const ir::Ranges& ranges) { return beyond.form_of(e, ranges); },
      places_of_indices(call), multiples};
}

std::vector<std::pair<size_t, ir::ReductionEnd>> ends_of(const compute::Dag& dag,
                                                         const ir::ValuesBeyond& beyond) {
  std::vector<std::pair<size_t, ir::ReductionEnd>> ends;
  for (size_t s = 0; s < dag.stages.size(); ++s) {
    const compute::Stage& stage = dag.stages[s];
    if (stage.until || stage.reduce.size() != 1 || stage.outputs.size() != 1) continue;
    if (const auto end = beyond.end_of(stage.outputs[0].buffer)) ends.emplace_back(s, *end);
  }
  return ends;
}

// Adds what the caller of the model reads, and what loops copy.
void add_outside_readers(const graph::TaskList& tasks, NeededParts& needed) {
  for (size_t i = 0; i < tasks.outputs.size(); ++i) {
    const bool varies = i < tasks.varying.outputs.size() && tasks.outputs[i].extents < 0;
    const Shape& shape = tasks.outputs[i].shape;
    PartReader user = reader_of_all(shape, {});
    if (varies) user.limits = limits_of_parts(tasks.varying.outputs[i], shape);
    needed.add({graph::Argument::Kind::kOutput, static_cast<int>(i)}, std::move(user));
  }
  // What a turn hands on, or stacks, has the sizes of the run.
  for (const graph::TaskLoop& loop : tasks.loops) {
    for (const graph::LoopCopy& copy : loop.copies) {
      PartReader reader = reader_of_all(copy.shape, {});
      reader.limits = limits_of_parts(copy.parts, copy.shape);
      needed.add({graph::Argument::Kind::kArena, copy.from}, std::move(reader));
    }
  }
}

}  // namespace

std::optional<OffsetLimit> to_offsets(const ir::SizeLimit& limit, const Shape& shape) {
  const auto d = static_cast<size_t>(limit.dimension);
  const int64_t outer =
      std::accumulate(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(d), int64_t{1},
                      std::multiplies<>());
  OffsetLimit made{.form = limit.form,
                   .stride = strides_of(shape)[d],
                   .scale = limit.scale,
                   .beyond = limit.offset,
                   .unit = limit.unit};
  if (limit.period == 0 || limit.period >= shape[d]) {
    made.extent = outer == 1 ? 0 : shape[d];
  } else if (outer == 1 || shape[d] % limit.period == 0) {
    made.extent = limit.period;
  } else {
    return std::nullopt;
  }
  return with_whole_rows(made);
}

// Rows of r elements each, of which n are needed, are n * r elements.
OffsetLimit with_whole_rows(OffsetLimit limit) {
  const int64_t rows = limit.unit;
  if (rows > 1 && limit.scale == 1 && limit.beyond % rows == 0 && limit.extent % rows == 0) {
    limit.stride *= rows;
    limit.extent /= rows;
    limit.beyond /= rows;
    limit.unit = 1;
  }
  return limit;
}

std::optional<ir::SizeLimit> to_dimension(const OffsetLimit& limit, const Shape& shape) {
  const std::vector<int64_t> strides = strides_of(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t end = strides[d] * shape[d];
    if (shape[d] <= 1 || limit.stride < strides[d] || limit.stride >= end ||
        limit.stride % strides[d] != 0)
      continue;
    const int64_t rows = limit.stride / strides[d];
    const bool is_slowest = end == strides[0] * shape[0];
    if (limit.extent == 0 ? !is_slowest : end % (limit.stride * limit.extent) != 0)
      return std::nullopt;
    // (q / rows) * scale < n, for all whole q, only if q * scale < rows * (n + scale - 1).
    ir::SizeLimit made{.form = limit.form,
                       .dimension = static_cast<int>(d),
                       .scale = limit.scale,
                       .offset = rows * (limit.beyond + limit.scale - 1),
                       .unit = rows * limit.unit};
    if (limit.extent > 0 && rows * limit.extent < shape[d]) made.period = rows * limit.extent;
    return made;
  }
  return std::nullopt;
}

std::vector<OffsetLimit> limits_of_parts(const graph::ShapeParts& parts, const Shape& shape) {
  std::vector<OffsetLimit> limits;
  int64_t inner = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  const int64_t all = inner;
  for (size_t d = 0; d < parts.size(); ++d) {
    for (const graph::SizePart& part : parts[d]) {
      if (part.most <= 0 || inner % part.most != 0) return {};
      const int64_t outer = inner;
      inner /= part.most;
      if (part.form == graph::kNoForm) continue;
      limits.push_back({part.form, inner, outer == all ? 0 : part.most});
    }
  }
  // Parts that are not those of the shape say nothing.
  return inner == 1 ? limits : std::vector<OffsetLimit>{};
}

compute::Dag with_ends(compute::Dag dag, const KernelLimits& limits, const ir::BufferPtr& sizes) {
  if (limits.ends.empty()) return dag;
  dag.params.push_back({sizes, ir::Role::kInput});
  for (const auto& [stage, end] : limits.ends) {
    const ir::Expr size = ir::load(sizes, {ir::constant(end.form)});
    dag.stages[stage].until = size * end.unit - end.offset;
  }
  return dag;
}

Result<CallLimits> limits_of_calls(const graph::TaskList& tasks, const ScheduledCalls& calls) {
  CallLimits made;
  made.runs.resize(tasks.calls.size());
  std::vector<KernelLimits>& limits = made.kernels;
  limits.resize(tasks.calls.size());
  const DecidedForms decided(tasks);
  KnownTensors tensors(tasks, decided);
  std::vector<ir::Program> naive;
  std::vector<ir::ValuesBeyond> beyond;
  for (size_t c = 0; c < tasks.calls.size(); ++c) {
    naive.push_back(compute::naive_program(tasks.calls[c].dag));
    beyond.push_back(tensors.follow(tasks.calls[c], naive[c]));
    limits[c].ends = ends_of(tasks.calls[c].dag, beyond.back());
  }
  const std::vector<int64_t> multiples = multiples_of(decided.all());
  NeededParts needed(decided.all());
  add_outside_readers(tasks, needed);
  const ir::BufferPtr sizes = ir::make_sizes(std::ssize(decided.all().forms));
  const OptionalCalls optional(tasks);
  for (size_t c = tasks.calls.size(); c-- > 0;) {
    const graph::TaskCall& call = tasks.calls[c];
    limits[c].outputs = limits_of_outputs(call, needed);
    decided.leave_out_unknown(static_cast<int>(c), limits[c]);
    limits[c].multiples = multiples;
    std::vector<ir::Program> programs;  // outlive what is found in them
    std::vector<ir::SizeLimits> found;
    const bool mixes = calls.mixes(call);
    if (!mixes) {
      programs.push_back(with_integers(naive[c], call, tasks));
      found.emplace_back(programs.back(), limits[c].outputs, nullptr,
                         facts_of(call, beyond[c], multiples));
    }
    if (mixes || !limits[c].ends.empty()) {
      Result<search::ProgramPtr> program = calls.lower(call, with_ends(call.dag, limits[c], sizes));
      if (!program.ok() && !limits[c].ends.empty()) {  // its schedule has no such ends
        limits[c].ends.clear();
        program = calls.lower(call, call.dag);
      }
      HONE_RETURN_IF_ERROR(program.status());
      programs.push_back(with_integers(**program, call, tasks));
      found.emplace_back(programs.back(), limits[c].outputs, sizes,
                         ir::RunFacts{.multiples = multiples});
    }
    std::vector<ir::RunNeed> runs = optional.runs_of(call, found, needed);
    std::erase_if(runs, [&](const ir::RunNeed& run) { return decided.contains(run.form); });
    if (runs.size() > 1) runs.resize(1);  // a step of the plan has one
    add_inputs(call, found, runs, needed);
    add_numbers(tasks, decided.buffers_of(static_cast<int>(c), limits[c]), runs, needed);
    if (runs.empty()) continue;
    made.runs[c] = runs.front();
    std::erase_if(limits[c].outputs, [&](const ir::ParamLimit& limit) {
      return is_of_whole_call(programs.front(), limit);
    });
  }
  for (size_t c = 0; c < tasks.calls.size(); ++c)
    made.sizes.push_back(decided.number_for(static_cast<int>(c), limits[c]));
  return made;
}

LimitedTasks split_groups(const graph::TaskList& tasks, const CallLimits& limits) {
  const std::vector<KernelLimits>& kernels = limits.kernels;
  LimitedTasks made;
  made.tasks = tasks;
  made.tasks.groups.clear();
  for (size_t g = 0; g < tasks.groups.size(); ++g) {
    const size_t first = made.tasks.groups.size();
    for (const int c : tasks.groups[g].calls) {
      const KernelLimits& own = kernels[static_cast<size_t>(c)];
      size_t group = first;
      while (group < made.limits.size() && !(made.limits[group] == own)) ++group;
      if (group == made.limits.size()) {
        made.tasks.groups.push_back({tasks.groups[g].key, {}});
        made.group_before.push_back(g);
        made.limits.push_back(own);
      }
      made.tasks.groups[group].calls.push_back(c);
      made.tasks.calls[static_cast<size_t>(c)].sizes = limits.sizes[static_cast<size_t>(c)];
      made.tasks.calls[static_cast<size_t>(c)].group = static_cast<int>(group);
    }
  }
  return made;
}

}  // namespace hone
