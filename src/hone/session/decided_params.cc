#include "hone/session/decided_params.h"

#include <algorithm>

#include "hone/ir/visit.h"

namespace hone {

ir::Program with_decided_params(ir::Program program, const KernelLimits& limits,
                                const ir::BufferPtr& sizes) {
  if (limits.decided.empty()) return program;
  std::vector<ir::BufferPtr> params;
  std::vector<ir::Expr> loads;
  for (const DecidedSource& source : limits.decided) {
    if (source.buffer == params.size())
      params.push_back(ir::make_buffer("decided", DType::kI64, {source.elements}));
    loads.push_back(ir::load(params[source.buffer], {ir::constant(source.element)}));
  }
  bool reads_others = false;
  for (ir::Phase& phase : program.phases) {
    if (!phase.body) continue;
    phase.body = ir::rewrite_exprs(phase.body, [&](const ir::Expr& e) {
      if (e->op != ir::Op::kLoad || e->buffer != sizes) return e;
      const bool is_decided =
          ir::is_const_int(e->args[0]) && e->args[0]->int_value >= limits.decided_from;
      reads_others |= !is_decided;
      return is_decided ? loads[static_cast<size_t>(e->args[0]->int_value - limits.decided_from)]
                        : e;
    });
  }
  if (!reads_others)
    std::erase_if(program.params, [&](const ir::Param& one) { return one.buffer == sizes; });
  for (ir::BufferPtr& param : params)
    program.params.push_back({std::move(param), ir::Role::kInput});
  return program;
}

}  // namespace hone
