#include "hone/session/decided_params.h"

#include <algorithm>
#include <map>

#include "hone/ir/visit.h"

namespace hone {

std::vector<int> decided_buffers(const KernelLimits& limits) {
  std::vector<int> buffers;
  for (const DecidedSource& source : limits.decided) {
    if (std::ranges::count(buffers, source.place.buffer) == 0)
      buffers.push_back(source.place.buffer);
  }
  return buffers;
}

ir::Program with_decided_params(ir::Program program, const KernelLimits& limits,
                                const ir::BufferPtr& sizes) {
  if (limits.decided.empty()) return program;
  std::map<int, ir::BufferPtr> params;  // by buffer
  std::map<int64_t, ir::Expr> of_forms;
  for (const DecidedSource& source : limits.decided) {
    ir::BufferPtr& param = params[source.place.buffer];
    if (!param) param = ir::make_buffer("decided", DType::kI64, {source.elements});
    of_forms[source.form] = ir::load(param, {ir::constant(source.place.element)});
  }
  bool reads_others = false;
  for (ir::Phase& phase : program.phases) {
    if (!phase.body) continue;
    phase.body = ir::rewrite_exprs(phase.body, [&](const ir::Expr& e) {
      if (e->op != ir::Op::kLoad || e->buffer != sizes) return e;
      const bool is_form = ir::is_const_int(e->args[0]);
      const auto it = is_form ? of_forms.find(e->args[0]->int_value) : of_forms.end();
      reads_others |= it == of_forms.end();
      return it == of_forms.end() ? e : it->second;
    });
  }
  if (!reads_others)
    std::erase_if(program.params, [&](const ir::Param& one) { return one.buffer == sizes; });
  for (const int buffer : decided_buffers(limits))
    program.params.push_back({params.at(buffer), ir::Role::kInput});
  return program;
}

}  // namespace hone
