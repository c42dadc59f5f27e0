#include "hone/backend/cpu/check_symbols.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "hone/backend/cpu/emit_object.h"
#include "hone/ir/visit.h"

namespace hone::backend::cpu {
namespace {

// The functions that the emitter calls, and those that LLVM makes of loops, of vectors and of
// rounding if a processor has no instruction for it. These are C's functions of double; those of
// float end in f.
constexpr std::string_view kMath[] = {"atan",      "ceil",  "cos",  "erf",   "erfc",      "exp",
                                      "exp2",      "floor", "fma",  "fmod",  "log",       "log2",
                                      "nearbyint", "pow",   "rint", "round", "roundeven", "sin",
                                      "sincos",    "sqrt",  "tanh", "trunc"};
constexpr std::string_view kOthers[] = {"memcpy", "memmove", "memset",
                                        // of the linker itself
                                        "_GLOBAL_OFFSET_TABLE_"};

bool is_provided(std::string_view name) {
  const auto among = [](const auto& list, std::string_view wanted) {
    return std::find(std::begin(list), std::end(list), wanted) != std::end(list);
  };
  if (among(kOthers, name) || among(kMath, name)) return true;
  return name.ends_with('f') && among(kMath, name.substr(0, name.size() - 1));
}

}  // namespace

Status check_symbols(const std::string& object, const ir::Program& program) {
  std::set<std::string> called;
  for (const ir::Phase& phase : program.phases) {
    ir::for_each_stmt(*phase.body, [&](const ir::StmtNode& s) {
      if (s.kind == ir::StmtKind::kExtern) called.insert(s.name);
    });
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, undefined_symbols(object));
  for (const std::string& name : names) {
    if (!is_provided(name) && !called.contains(name)) {
      return error(Code::kInternal, "bug: the code of {} needs {}, which neither libc nor libm has",
                   program.name, name);
    }
  }
  return ok_status();
}

}  // namespace hone::backend::cpu
