// backend/cpu/inner_loop.h - describes the loop in which a kernel spends its time. It disassembles
// the object and finds, per phase, the loop with the most multiply-adds.
//
// A loop is the code between a backward branch and its target, without the loops inside. If there
// are no multiply-adds, the loop with the most other work counts; if there is no loop, the whole
// function counts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/backend/cpu/compiler.h"
#include "hone/base/status.h"
#include "hone/explain.h"
#include "hone/target/cpu.h"

namespace hone::backend::cpu {

// Returns one loop per phase that runs with the model, in order. `object` and `phases` are as
// compile() returned them.
[[nodiscard]] Result<std::vector<InnerLoop>> inner_loops(const std::string& object,
                                                         std::span<const EntryPoint> phases,
                                                         const target::Cpu& target);

}  // namespace hone::backend::cpu
