#include "hone/backend/gpu/print_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hone/ir/linear.h"
#include "hone/ir/scalar.h"

namespace hone::backend::gpu {
namespace {

using ir::BufferPtr;
using ir::Expr;
using ir::Op;
using ir::StmtKind;
using ir::StmtNode;

constexpr int64_t kVectorBytes = 16;

bool equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return ir::equal(x, y); });
}

bool uses(const std::vector<Expr>& list, const ir::Var* var) {
  return std::any_of(list.begin(), list.end(), [&](const Expr& e) { return ir::uses(e, var); });
}

// Returns whether there are vectors of so many elements. CUDA has none of eight, but in the form of
// words with pairs of 16-bit floats.
bool has_vectors(DType type, int lanes) {
  return lanes * dtype_bytes(type) <= kVectorBytes && (lanes <= 4 || is_small_float(type));
}

bool is_zero(const Expr& e) {
  if (e->op == Op::kCast) return is_zero(e->args[0]);
  return (e->op == Op::kFloat && e->float_value == 0 && !std::signbit(e->float_value)) ||
         ir::is_const_int(e, 0);
}

// Returns x where the store is B[..] = B[..] + x of floats, else null.
Expr added_to_itself(const StmtNode& s) {
  const Expr& value = s.value;
  if (value->op != Op::kAdd || (value->type != DType::kF32 && value->type != DType::kF64))
    return nullptr;
  const Expr& own = value->args[0];
  const bool same = own->op == Op::kLoad && own->buffer == s.buffer && equal(own->args, s.indices);
  return same ? value->args[1] : nullptr;
}

// Returns whether the body of a loop on lanes is one store, whose element no other iteration reads.
const StmtNode* only_store(const StmtNode& loop) {
  if (loop.body.size() != 1 || loop.body[0]->kind != StmtKind::kStore) return nullptr;
  const StmtNode& store = *loop.body[0];
  bool independent = true;
  const auto check = [&](const Expr& e) {
    ir::visit(e, [&](const Expr& n) {
      if (n->op == Op::kLoad && n->buffer == store.buffer && !equal(n->args, store.indices))
        independent = false;
    });
  };
  check(store.value);
  for (const Expr& index : store.indices) check(index);
  return independent ? &store : nullptr;
}

// What an asynchronous store copies: an element, or zero if the guard does not hold. The guard is
// null if there is none.
struct AsyncSource {
  Expr load, guard;
};
AsyncSource source_of(const StmtNode& s) {
  return s.value->op == Op::kSelect ? AsyncSource{s.value->args[1], s.value->args[0]}
                                    : AsyncSource{s.value, nullptr};
}

// Returns whether an index can be computed everywhere. What loads or divides may be undefined where
// the guard of its access does not hold.
bool is_always_defined(const Expr& index) {
  bool defined = true;
  ir::visit(index, [&](const Expr& e) {
    const bool divides = ir::is_division(e->op) && !ir::is_const_int(e->args[1]);
    defined = defined && e->op != Op::kLoad && !divides;
  });
  return defined;
}

}  // namespace

bool VectorPrinter::is_async(const StmtNode& s, int64_t bytes) const {
  const auto [load, guard] = source_of(s);
  return s.async && context_.is_cuda() && (bytes == 4 || bytes == 8 || bytes == 16) &&
         load->op == Op::kLoad && load->type == s.buffer->dtype &&
         memory_.is_param(*load->buffer) &&
         (!guard || std::all_of(load->args.begin(), load->args.end(), is_always_defined));
}

void VectorPrinter::async_copy(const StmtNode& s, int64_t bytes) {
  const AsyncSource source = source_of(s);
  const std::string_view name = context_.functions.use(fmt::format("copy_async_{}", bytes));
  out_.line(fmt::format("{}(&{}, &{}, {});", name, exprs_.element(s.buffer, s.indices),
                        exprs_.element(source.load->buffer, source.load->args),
                        source.guard ? exprs_.print(source.guard) : "true"));
}

// Lanes that are one aligned vector on both sides, under one condition, are one copy.
bool VectorPrinter::async_chunks(const Lanes& lanes) {
  const StmtNode& store = *lanes.store;
  const int64_t bytes = dtype_bytes(store.buffer->dtype) * lanes.count;
  const AsyncSource source = source_of(store);
  if (!is_async(store, bytes) || (source.guard && ir::uses(source.guard, lanes.loop->var.get())) ||
      !is_vector(store.buffer, store.indices, lanes) ||
      !is_vector(source.load->buffer, source.load->args, lanes))
    return false;
  chunks(lanes, [&](const Expr& first) {
    async_copy(*ir::substitute(lanes.loop->body[0], {{lanes.loop->var, first}}), bytes);
  });
  return true;
}

void VectorPrinter::store(const StmtNode& s) {
  const int64_t bytes = dtype_bytes(s.buffer->dtype);
  if (is_async(s, bytes)) return async_copy(s, bytes);
  const std::string place = exprs_.element(s.buffer, s.indices);
  if (const Expr added = added_to_itself(s))
    return out_.line(fmt::format("{} += {};", place, exprs_.print(added)));
  out_.line(fmt::format("{} = {};", place, exprs_.stored(s.value)));
}

bool VectorPrinter::is_vector(const BufferPtr& buffer, const std::vector<Expr>& indices,
                              const Lanes& lanes) const {
  const bool shared = buffer->scope == ir::Scope::kShared;
  if (!memory_.is_param(*buffer) && !shared) return false;
  // An array of C is indexed by rows.
  if (indices.empty() ||
      (shared && uses({indices.begin(), indices.end() - 1}, lanes.loop->var.get())))
    return false;
  const ir::Linear place = ir::linearize(memory_.flat_index(*buffer, indices));
  const Expr v = ir::variable(lanes.loop->var);
  if (place.coefficient(v) != 1 || ir::depends(ir::without(place, v), lanes.loop->var))
    return false;
  // Buffers begin at multiples of 16 bytes, and a chunk at a multiple of its lanes from the first.
  if ((place.constant + lanes.loop->min->int_value) % lanes.count != 0) return false;
  return std::all_of(place.terms.begin(), place.terms.end(), [&](const auto& term) {
    return ir::equal(term.first, v) || term.second % lanes.count == 0;
  });
}

void VectorPrinter::find_loads(const Expr& e, const Expr& guard, bool may_load,
                               Lanes& lanes) const {
  const ir::Var* var = lanes.loop->var.get();
  if (e->op == Op::kSelect) {
    find_loads(e->args[0], guard, may_load, lanes);
    // One test for all lanes, or loads lane by lane.
    const bool uniform = may_load && !ir::uses(e->args[0], var);
    const auto under = [&](const Expr& c) { return guard ? ir::logical_and(guard, c) : c; };
    find_loads(e->args[1], uniform ? under(e->args[0]) : guard, uniform, lanes);
    find_loads(e->args[2], uniform ? under(ir::make(Op::kNot, {e->args[0]})) : guard, uniform,
               lanes);
    return;
  }
  if (e->op != Op::kLoad) {
    for (const Expr& a : e->args) find_loads(a, guard, may_load, lanes);
    return;
  }
  for (const Expr& index : e->args) find_loads(index, guard, false, lanes);
  if (!has_vectors(e->type, lanes.count) || !is_vector(e->buffer, e->args, lanes)) return;
  if (!may_load) return lanes.by_lane.push_back(e);
  const auto known = std::find_if(lanes.loads.begin(), lanes.loads.end(),
                                  [&](const VectorLoad& l) { return ir::equal(l.load, e); });
  if (known == lanes.loads.end()) return lanes.loads.push_back({e, guard, nullptr});
  known->guard = known->guard && guard ? ir::make(Op::kOr, {known->guard, guard}) : nullptr;
}

bool VectorPrinter::plan(Lanes& lanes) const {
  if (lanes.count > 4 && !is_half_precision(lanes)) return false;
  lanes.loads.clear();
  lanes.by_lane.clear();
  find_loads(lanes.store->value, nullptr, true, lanes);
  for (const Expr& index : lanes.store->indices) find_loads(index, nullptr, false, lanes);
  std::erase_if(lanes.loads, [&](const VectorLoad& l) {
    return l.guard && std::any_of(lanes.by_lane.begin(), lanes.by_lane.end(),
                                  [&](const Expr& e) { return ir::equal(l.load, e); });
  });
  lanes.stores_vector = has_vectors(lanes.store->buffer->dtype, lanes.count) &&
                        is_vector(lanes.store->buffer, lanes.store->indices, lanes);
  return lanes.stores_vector || !lanes.loads.empty();
}

bool VectorPrinter::is_half_precision(const Lanes& lanes) const {
  const auto has = [&](const BufferPtr& buffer, const std::vector<Expr>& indices) {
    const bool in_registers = !memory_.is_param(*buffer) && buffer->scope != ir::Scope::kShared;
    return in_registers || is_small_float(buffer->dtype) || !uses(indices, lanes.loop->var.get());
  };
  bool all = has(lanes.store->buffer, lanes.store->indices);
  ir::visit(lanes.store->value,
            [&](const Expr& e) { all = all && (e->op != Op::kLoad || has(e->buffer, e->args)); });
  return all;
}

void VectorPrinter::chunks(const Lanes& lanes, const auto& print_chunk) {
  const StmtNode& loop = *lanes.loop;
  const int64_t first = loop.min->int_value, extent = loop.extent->int_value;
  if (extent == lanes.count) {
    out_.open("");
    print_chunk(ir::constant(first));
    return out_.close();
  }
  const ir::Ranges::Mark mark = context_.ranges.mark();
  context_.ranges.bind(loop.var, {first, first + extent - lanes.count});
  const std::string name = context_.names.declare(loop.var.get(), loop.var->name);
  out_.line("#pragma unroll");
  out_.open(fmt::format("for (int {} = {}; {} < {}; {} += {})", name, first, name, first + extent,
                        name, lanes.count));
  print_chunk(ir::variable(loop.var));
  out_.close();
  context_.names.release(loop.var.get());
  context_.ranges.reset(mark);
}

bool VectorPrinter::loop(const StmtNode& s) {
  if (!ir::is_const_int(s.min) || !ir::is_const_int(s.extent)) return false;
  const StmtNode* store = only_store(s);
  if (store == nullptr) return false;
  // The lanes' variable is not bound here, so that the place of an element is a form of it.
  for (const int count : {16, 8, 4, 2}) {
    Lanes lanes = {&s, store, count, {}};
    if (s.extent->int_value % count != 0) continue;
    if (async_chunks(lanes)) return true;
    if (is_async(*store, dtype_bytes(store->buffer->dtype))) continue;  // element by element
    if (count > 4 && copy(lanes)) return true;
    if (!plan(lanes)) continue;
    chunks(lanes, [&](const Expr& first) { chunk(lanes, first); });
    return true;
  }
  return false;
}

// Elements of one or two bytes that are copied as they are move as 16 bytes.
bool VectorPrinter::copy(const Lanes& lanes) {
  const StmtNode& store = *lanes.store;
  const Expr& value = store.value;
  const int64_t bytes = dtype_bytes(store.buffer->dtype) * lanes.count;
  if (value->op != Op::kLoad || bytes > kVectorBytes ||
      !is_vector(store.buffer, store.indices, lanes) ||
      !is_vector(value->buffer, value->args, lanes))
    return false;
  const std::string type = fmt::format("uint{}", bytes / 4);
  chunks(lanes, [&](const Expr& first) {
    const ir::VarMap at = {{lanes.loop->var, first}};
    std::vector<Expr> to, from;
    for (const Expr& e : store.indices) to.push_back(ir::substitute(e, at));
    for (const Expr& e : value->args) from.push_back(ir::substitute(e, at));
    out_.line(fmt::format("{} = {};", vector_at(store.buffer, to, type, false),
                          vector_at(value->buffer, from, type, true)));
  });
  return true;
}

std::string VectorPrinter::vector_at(const BufferPtr& buffer, const std::vector<Expr>& indices,
                                     const std::string& type, bool is_read) {
  const bool shared = buffer->scope == ir::Scope::kShared;
  const std::string_view space = context_.is_cuda() ? "" : shared ? "__local " : "__global ";
  return fmt::format("*({}{}{}*)&{}", space, is_read ? "const " : "", type,
                     exprs_.element(buffer, indices));
}

// The value of one lane, with the components of what was read as vectors.
Expr VectorPrinter::lane(const Expr& e, const Lanes& lanes, const Expr& first,
                         int64_t number) const {
  if (e->op == Op::kLoad) {
    for (const VectorLoad& l : lanes.loads) {
      if (ir::equal(l.load, e)) return ir::load(l.vector, {ir::constant(number)});
    }
  }
  if (e->op == Op::kVar) return e->var == lanes.loop->var ? first + number : e;
  if (e->args.empty()) return e;
  std::vector<Expr> args;
  for (const Expr& a : e->args) args.push_back(lane(a, lanes, first, number));
  return ir::with_args(*e, std::move(args));
}

void VectorPrinter::chunk(Lanes& lanes, const Expr& first) {
  const StmtNode& store = *lanes.store;
  const ir::VarMap at = {{lanes.loop->var, first}};
  const auto places = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    for (const Expr& e : indices) out.push_back(ir::substitute(e, at));
    return out;
  };
  for (VectorLoad& l : lanes.loads) {
    const std::string name = context_.names.fresh(l.load->buffer->name + "_v");
    l.vector = memory_.add_vector(name, l.load->type, lanes.count);
    const std::string type = vector_type(context_.dialect, l.load->type, lanes.count);
    const std::string vector = vector_at(l.load->buffer, places(l.load->args), type, true);
    if (!l.guard) {
      out_.line(fmt::format("const {} {} = {};", type, name, vector));
      continue;
    }
    const int words = lanes.count / vector_step(context_.dialect, l.load->type);
    std::string zeros = "0";
    for (int i = 1; i < words; ++i) zeros += ", 0";
    out_.line(fmt::format("{} {} = {};", type, name, make_vector(context_.dialect, type, zeros)));
    out_.line(
        fmt::format("if ({}) {} = {};", exprs_.print(ir::substitute(l.guard, at)), name, vector));
  }
  if (!lanes.stores_vector) {
    for (int i = 0; i < lanes.count; ++i) {
      std::vector<Expr> indices;
      for (const Expr& e : store.indices) indices.push_back(lane(e, lanes, first, i));
      this->store(*ir::make_store(store.buffer, indices, lane(store.value, lanes, first, i)));
    }
    return;
  }
  const std::string type = vector_type(context_.dialect, store.buffer->dtype, lanes.count);
  out_.line(fmt::format("{} = {};", vector_at(store.buffer, places(store.indices), type, false),
                        stored_vector(lanes, first, type)));
}

std::string VectorPrinter::stored_vector(const Lanes& lanes, const Expr& first,
                                         const std::string& type) {
  const Expr& value = lanes.store->value;
  const DType element = lanes.store->buffer->dtype;
  // Vectors that are read under a guard are zero where it does not hold.
  const auto is_read = [&](const VectorLoad& l) {
    if (ir::equal(value, l.load)) return !l.guard;
    return value->op == Op::kSelect && l.guard && ir::equal(value->args[0], l.guard) &&
           ir::equal(value->args[1], l.load) && is_zero(value->args[2]);
  };
  if (lanes.loads.size() == 1 && lanes.loads[0].load->type == element && is_read(lanes.loads[0]))
    return memory_.name(*lanes.loads[0].vector);
  std::string elements;
  const int step = vector_step(context_.dialect, element);
  for (int i = 0; i < lanes.count; i += step) {
    if (i > 0) elements += ", ";
    const Expr one = lane(value, lanes, first, i);
    elements +=
        step == 1 ? exprs_.stored(one) : exprs_.stored_pair(one, lane(value, lanes, first, i + 1));
  }
  return make_vector(context_.dialect, type, elements);
}

}  // namespace hone::backend::gpu
