#include "hone/compute/kernel_params.h"

#include <algorithm>

namespace hone::compute {
namespace {

std::string describe(const ir::Param& param) {
  return fmt::format("{} {}[{}] with zeros [{}]", ir::role_name(param.role),
                     dtype_name(param.buffer->dtype), fmt::join(param.buffer->shape, ","),
                     fmt::join(param.zeros, ","));
}

}  // namespace

std::vector<size_t> remove_dead_params(Dag& dag) {
  std::vector<size_t> used = params_by_use(dag);
  std::sort(used.begin(), used.end());
  dag.params = in_order(dag.params, used);
  return used;
}

std::vector<size_t> order_like(const Dag& dag, const Dag& kernel) {
  const std::vector<size_t> own = params_by_use(dag), wanted = params_by_use(kernel);
  HONE_ASSERT(own.size() == dag.params.size() && wanted.size() == kernel.params.size() &&
                  own.size() == wanted.size(),
              "tasks of one key touch as many params, and none is dead");
  std::vector<size_t> order(own.size());
  for (size_t i = 0; i < own.size(); ++i) order[wanted[i]] = own[i];
  return order;
}

Status check_same_params(const Dag& kernel, const Dag& call) {
  if (kernel.params.size() != call.params.size()) {
    return error(Code::kInternal, "bug: its kernel takes {} arguments, but the call gives {}",
                 kernel.params.size(), call.params.size());
  }
  for (const Dag* dag : {&kernel, &call}) {
    if (params_by_use(*dag).size() != dag->params.size())
      return error(Code::kInternal, "bug: its kernel takes an argument that nothing touches");
  }
  const std::vector<size_t> order = order_like(call, kernel);
  for (size_t i = 0; i < order.size(); ++i) {
    const ir::Param &takes = kernel.params[i], &gives = call.params[i];
    const bool same = takes.role == gives.role && takes.buffer->dtype == gives.buffer->dtype &&
                      takes.buffer->shape == gives.buffer->shape && takes.zeros == gives.zeros;
    if (!same) {
      return error(Code::kInternal, "bug: argument {} of its kernel is {}, but the call gives {}",
                   i, describe(takes), describe(gives));
    }
    if (order[i] != i) {
      return error(Code::kInternal,
                   "bug: argument {} of its kernel is used where the call's argument {} is", i,
                   order[i]);
    }
  }
  return ok_status();
}

}  // namespace hone::compute
